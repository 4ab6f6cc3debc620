"""Wired emergency stops: each latches until it is released, and one that is gone counts as pressed."""

from __future__ import annotations

import errno
import os
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from open_room import fake_robot, make_task
from raising import raises_naming

from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.errors import ConfigError, DeviceFault
from robot_runtime.estop import inputs
from robot_runtime.estop.inputs import StopInputMonitor
from robot_runtime.estop.requests import carry_out
from robot_runtime.hal import Halt, Robot
from robot_runtime.hal.stop_inputs import StopButton, StopInputs, StopLine, StopPin, StopSwitch
from robot_runtime.robots.loader import RobotContext, load_robot

PATIENCE_S = 20.0
EAST, SOUTH = 305, 304


class Site:
    """A connected robot with a gamepad and a wired switch; ``said`` has what the operator was told."""

    def __init__(self, folder: Path) -> None:
        self.gamepad, self.switch = folder / "event7", folder / "value"
        os.mkfifo(self.gamepad)
        self.switch.write_text("0\n", encoding="ascii")
        self.said: list[str] = []
        self._writer = os.open(self.gamepad, os.O_RDWR)

    def options(self, code: int | None = EAST) -> StopInputs:
        return StopInputs((StopButton(str(self.gamepad), code),), (StopSwitch(str(self.switch)),))

    @contextmanager
    def robot(self, **options: object) -> Iterator[Robot]:
        with fake_robot(make_task()) as robot:
            robot = replace(robot, stop_inputs=self.options(**options))
            with StopInputMonitor(robot, self.said.append):
                yield robot

    def press(self, code: int, value: int = 1) -> None:
        os.write(self._writer, struct.pack("llHHi", 0, 0, 1, code, value) + struct.pack("llHHi", 0, 0, 0, 0, 0))

    def unplug(self) -> None:
        os.close(self._writer)

    def told(self, text: str) -> bool:
        return (
            wait_for(SystemClock(), lambda: any(text in line for line in self.said) or None, PATIENCE_S, 0.005) or False
        )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def halt(robot: Robot) -> Halt:
    robot.clock.sleep(0.1)
    return robot.base.state(0.2).halt


def test_a_gamepads_button_latches_until_it_is_released(site: Site) -> None:
    with site.robot() as robot:
        site.press(SOUTH)
        site.press(EAST)
        assert site.told("event7 is pressed")
        assert len(site.said) == 1
        assert halt(robot) is Halt.E_STOP
        site.press(EAST, value=0)
        assert halt(robot) is Halt.E_STOP
        carry_out("release", robot)
        assert halt(robot) is not Halt.E_STOP


def test_other_buttons_do_nothing_unless_any_may(site: Site) -> None:
    with site.robot() as robot:
        site.press(SOUTH)
        SystemClock().sleep(0.1)
        assert halt(robot) is not Halt.E_STOP
    with site.robot(code=None):
        site.press(SOUTH)
        assert site.told("event7 is pressed")


def test_a_wired_switch_stops_again_as_long_as_it_is_pressed(site: Site) -> None:
    with site.robot() as robot:
        site.switch.write_text("1\n", encoding="ascii")
        assert site.told("value is pressed")
        carry_out("release", robot)
        stopped = wait_for(SystemClock(), lambda: halt(robot) is Halt.E_STOP or None, PATIENCE_S, 0.01)
        assert stopped
        site.switch.write_text("0\n", encoding="ascii")
        SystemClock().sleep(0.2)
        assert halt(robot) is Halt.E_STOP, "the operator clears it"
        carry_out("release", robot)
        SystemClock().sleep(0.2)
        assert halt(robot) is not Halt.E_STOP


def test_an_input_that_is_gone_stops_the_robot(site: Site) -> None:
    with site.robot() as robot:
        site.switch.unlink()
        assert site.told("value is gone")
        assert halt(robot) is Halt.E_STOP
        site.unplug()
        assert site.told("event7 is gone")


def test_a_run_does_not_begin_without_its_stop_button(site: Site) -> None:
    site.switch.unlink()
    with raises_naming(DeviceFault, "fake", "value", "stop_inputs"), site.robot():
        pass


def test_a_robots_file_names_its_inputs(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    text = "name: lab\ndriver: drivers.fake.driver.make_robot\nstop_inputs: "
    file.write_text(text + "{buttons: [{device: /dev/input/event3, code: 305}]}\n", encoding="utf-8")
    robot = load_robot(str(file), RobotContext(None, None, seed=0))
    assert robot.stop_inputs == StopInputs((StopButton("/dev/input/event3", 305),))
    file.write_text(text + "{button: []}\n", encoding="utf-8")
    with raises_naming(ConfigError, "stop_inputs.button", "buttons"):
        load_robot(str(file), RobotContext(None, None, seed=0))


@contextmanager
def monitored(inputs: StopInputs) -> Iterator[tuple[Robot, list[str]]]:
    said: list[str] = []
    with fake_robot(make_task()) as robot:
        robot = replace(robot, stop_inputs=inputs)
        with StopInputMonitor(robot, said.append):
            yield robot, said


def held(robot: Robot) -> bool:
    return wait_for(SystemClock(), lambda: halt(robot) is Halt.E_STOP or None, PATIENCE_S, 0.005) or False


def test_a_switch_at_a_serial_port_stops_when_its_circuit_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = [termios.TIOCM_CTS]
    monkeypatch.setattr(inputs.fcntl, "ioctl", lambda *_: struct.pack("i", levels[0]))
    with monitored(StopInputs(lines=(StopLine("/dev/null"),))) as (robot, said):
        assert halt(robot) is not Halt.E_STOP
        levels[0] = termios.TIOCM_DSR
        assert held(robot)
        assert "cts of /dev/null is pressed" in said[0]


def test_a_port_without_such_lines_is_refused() -> None:
    main, far = os.openpty()
    inputs = StopInputs(lines=(StopLine(os.ttyname(far), "dsr"),))
    with raises_naming(DeviceFault, "dsr of", "stop_inputs"), monitored(inputs):
        pass
    os.close(main)
    os.close(far)


def test_a_switch_at_a_pin_stops_when_its_circuit_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    gpiod = pytest.importorskip("gpiod")
    levels = {17: gpiod.line.Value.INACTIVE}
    released: list[bool] = []
    request = SimpleNamespace(get_value=levels.__getitem__, release=lambda: released.append(True))
    asked: list[object] = []

    def request_lines(chip: str, settings: dict[int, object], consumer: str) -> SimpleNamespace:
        asked.append((chip, *settings))
        return request

    monkeypatch.setattr(gpiod, "request_lines", request_lines)
    with monitored(StopInputs(pins=(StopPin("/dev/gpiochip0", 17),))) as (robot, _):
        assert halt(robot) is not Halt.E_STOP
        levels[17] = gpiod.line.Value.ACTIVE
        assert held(robot)
    assert asked == [("/dev/gpiochip0", 17)]
    assert released


def test_a_missing_chip_is_refused() -> None:
    pytest.importorskip("gpiod")
    with raises_naming(DeviceFault, "pin 3 of /dev/no_chip"), monitored(StopInputs(pins=(StopPin("/dev/no_chip", 3),))):
        pass


def test_a_terminal_that_is_not_the_sessions_own_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from robot_runtime.estop import cli

    def not_controlling(descriptor: int) -> int:
        raise OSError(errno.ENOTTY, "Inappropriate ioctl for device")

    said: list[str] = []
    monkeypatch.setattr(cli.os, "isatty", lambda descriptor: True)
    monkeypatch.setattr(cli.os, "tcgetpgrp", not_controlling)
    assert not cli._is_in_foreground(said.append)
    assert "not the session's own" in said[0]
