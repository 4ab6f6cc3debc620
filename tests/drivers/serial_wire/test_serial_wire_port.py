"""Serial ports: what can be wrong with one is a typed error with a remedy, and it has one owner at a time."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import serial
from raising import raises_naming

from drivers.serial_wire import port
from drivers.serial_wire.port import Attachment, Port
from drivers.serial_wire.pty_emulation import Pty, read_exactly
from robot_runtime.errors import DeviceFault

BAUD = 115_200
ROCKET = Attachment("rocket", frozenset({0x0483}), "drivers/rocket/60-rocket.rules")


@pytest.fixture
def terminal() -> Iterator[Pty]:
    terminal = Pty()
    yield terminal
    terminal.unplug()


def test_a_missing_port_is_named_with_those_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with raises_naming(DeviceFault, "/dev/no_rocket") as caught:
        Port("/dev/no_rocket", BAUD, ROCKET)
    assert "plug the rocket in" in caught.value.remedy
    found = [SimpleNamespace(device="/dev/ttyACM7", vid=0x0483), SimpleNamespace(device="/dev/ttyS0", vid=None)]
    monkeypatch.setattr(port.list_ports, "comports", lambda: found)
    with pytest.raises(DeviceFault) as caught:
        Port("/dev/no_rocket", BAUD, ROCKET)
    assert "/dev/ttyACM7" in caught.value.remedy
    assert "ttyS0" not in caught.value.remedy


def test_a_port_that_is_in_use_is_not_shared(terminal: Pty) -> None:
    first = Port(terminal.path, BAUD, ROCKET)
    with raises_naming(DeviceFault, terminal.path) as caught:
        Port(terminal.path, BAUD, ROCKET)
    assert "end the program" in caught.value.remedy
    first.close()


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.EACCES, "60-rocket.rules"), (errno.EBUSY, "end the program"), (None, "'port'")]
)
def test_what_the_system_refuses_has_a_remedy(monkeypatch: pytest.MonkeyPatch, number: int, remedy: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise serial.SerialException(number, "refused")

    monkeypatch.setattr(port.serial, "Serial", refuse)
    with pytest.raises(DeviceFault) as caught:
        Port("/dev/ttyACM0", BAUD, ROCKET)
    assert remedy in caught.value.remedy


def test_what_is_no_serial_port_is_refused() -> None:
    with raises_naming(DeviceFault, "/dev/null"):
        Port("/dev/null", BAUD, ROCKET)


def test_bytes_cross_in_both_directions_and_an_unplugged_device_is_an_error(terminal: Pty) -> None:
    opened = Port(terminal.path, BAUD, ROCKET)
    terminal.write(b"telemetry")
    assert read_exactly(opened, 9) == b"telemetry"
    opened.write(b"ignite")
    assert terminal.read_exactly(6) == b"ignite"
    terminal.unplug()
    for use in (lambda: opened.read(1), lambda: opened.write(b"x")):
        with raises_naming(DeviceFault, opened.path) as caught:
            use()
        assert "plug it in again" in caught.value.remedy
    opened.close()
