"""Live readings of emulated devices over a pty."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import pytest
from dynamixel_rig import servos_in_real_time
from emulated_base import make_body
from pty_server import PtyServer
from raising import raises_naming

from drivers.create2.emulator import EmulatedCreate2
from drivers.dynamixel import bus
from drivers.dynamixel.emulator import emulated_servos
from drivers.dynamixel.protocol import TORQUE
from drivers.dynamixel.variants import VARIANTS
from drivers.hardware import echo
from drivers.kobuki import protocol as kobuki
from drivers.marvelmind.protocol import POSITION_MM, Flags, Position, encode
from drivers.serial_base.emulator import EmulatorOptions, StuckBumper
from drivers.serial_wire.pty_emulation import Pty
from robot_runtime.cli.main import run_command
from robot_runtime.errors import ConfigError, DeviceFault
from robot_runtime.hal import Velocity


def test_servos_are_shown_and_left_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echo, "SERVO_IDS", range(10, 12))
    monkeypatch.setattr(bus, "REPLY_S", 5.0)  # emulated servos of a busy computer
    servos = emulated_servos(VARIANTS["interbotix"])
    servos[1].put(2048 + 1024)
    with servos_in_real_time(*servos) as path:
        assert run_command(["hardware", "echo", "dynamixel", "--port", path, "--count", "2"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "servo 10 (XL430-W250): +0.0°, 32 °C, 12.0 V, torque off"
    assert second.startswith("servo 11 (XL430-W250): +90.0°")
    assert servos[0].get(TORQUE) == 0


def shown(lines_of: Callable[[str], Iterator[str]], packets: bytes, count: int) -> list[str]:
    """Lines about a device that sends the same bytes again and again."""
    terminal, over = Pty(), threading.Event()

    def send() -> None:
        while not over.wait(0.01):
            terminal.write(packets)

    sender = threading.Thread(target=send)
    sender.start()
    lines = lines_of(terminal.path)
    try:
        return list(islice(lines, count))
    finally:
        over.set()
        sender.join()
        lines.close()  # type: ignore[attr-defined]
        terminal.unplug()


def test_beacons_are_shown() -> None:
    fix = Position(POSITION_MM, 1, 1.5, 2.5, 0.4, address=5, age_s=0.08)
    packets = encode(fix) + encode(Position(POSITION_MM, 2, 0, 0, 0, 5, flags=Flags.UNAVAILABLE))
    assert set(shown(echo.beacons, packets, 6)) == {
        "hedgehog 5: x 1.500 y 2.500 z 0.400 m, 80 ms old",
        "hedgehog 5: no fix, 0 ms old",
    }


def test_a_kobuki_is_shown() -> None:
    frame = kobuki.encode(kobuki.Basic(0, bumper=2, left_encoder=7, battery_dv=158), kobuki.Inertia(-4500, 0))
    lines = shown(echo.kobuki, frame, 2)
    assert lines[0].startswith("bumper 010, cliff 000, wheel drop 00, buttons 000, encoders 7 0, gyro -45.0°, 15.8 V")


def test_a_create_2_is_shown_in_passive_mode() -> None:
    body, terminal = make_body(), Pty()
    device = EmulatedCreate2(body, np.random.default_rng(0), EmulatorOptions(faults=(StuckBumper(),)))
    with PtyServer(terminal, device):
        lines = echo.create2(terminal.path)
        first = next(lines)
        lines.close()  # type: ignore[attr-defined]
    assert first.startswith("bumper and wheel drop 0011, cliff 0000, buttons 00000000, encoders 0 0, mode 1, 16.0 V")
    assert device.velocity == Velocity()


def test_a_silent_port_ends_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echo, "SILENCE_S", 0.05)
    terminal = Pty()
    with raises_naming(DeviceFault, terminal.path, "nothing arrived"):
        list(echo.beacons(terminal.path))
    terminal.unplug()


def test_an_empty_bus_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echo, "SERVO_IDS", range(1, 3))
    with servos_in_real_time() as path, raises_naming(DeviceFault, os.path.basename(path), "no servo", "power supply"):
        next(echo.servos(path))


def test_an_unknown_device_is_refused() -> None:
    assert run_command(["hardware", "echo", "toaster"]) == ConfigError.exit_code
