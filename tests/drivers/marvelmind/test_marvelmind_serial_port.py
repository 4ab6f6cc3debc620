"""The hedgehog's serial port: what can be wrong with it is a typed error with a remedy, and its thread ends."""

from __future__ import annotations

import errno
import os
import pty
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import serial
from raising import raises_naming

from drivers.marvelmind import serial_port
from drivers.marvelmind.driver import MarvelmindLocalizer
from drivers.marvelmind.options import MarvelmindOptions
from drivers.marvelmind.protocol import POSITION_MM, Position, encode
from drivers.marvelmind.serial_port import Port, ThreadLink
from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.errors import DeviceFault

PATIENCE_S = 20.0
BAUD = 115_200


@dataclass
class Wire:
    """A pty: the hedgehog writes to ``master``, the driver opens ``path``."""

    master: int
    path: str
    plugged: bool = True

    def unplug(self) -> None:
        if self.plugged:
            self.plugged = False
            os.close(self.master)


@pytest.fixture
def wire() -> Iterator[Wire]:
    master, slave = pty.openpty()
    path = os.ttyname(slave)
    keeper = Port(path, BAUD)  # so that the line is raw, and kept, before anybody writes
    keeper.close()
    wire = Wire(master, path)
    yield wire
    wire.unplug()
    os.close(slave)


def test_a_missing_port_is_named_with_those_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with raises_naming(DeviceFault, "/dev/no_hedgehog") as caught:
        Port("/dev/no_hedgehog", BAUD)
    assert "plug the hedgehog in" in caught.value.remedy
    found = [SimpleNamespace(device="/dev/ttyACM7", vid=0x0483), SimpleNamespace(device="/dev/ttyS0", vid=None)]
    monkeypatch.setattr(serial_port.list_ports, "comports", lambda: found)
    with pytest.raises(DeviceFault) as caught:
        Port("/dev/no_hedgehog", BAUD)
    assert "/dev/ttyACM7" in caught.value.remedy
    assert "ttyS0" not in caught.value.remedy


def test_a_port_that_is_in_use_is_not_shared(wire: Wire) -> None:
    first = Port(wire.path, BAUD)
    with raises_naming(DeviceFault, wire.path) as caught:
        Port(wire.path, BAUD)
    assert "end the program" in caught.value.remedy
    first.close()


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.EACCES, "60-marvelmind.rules"), (errno.EBUSY, "end the program"), (None, "'port'")]
)
def test_what_the_system_refuses_has_a_remedy(monkeypatch: pytest.MonkeyPatch, number: int, remedy: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise serial.SerialException(number, "refused")

    monkeypatch.setattr(serial_port.serial, "Serial", refuse)
    with pytest.raises(DeviceFault) as caught:
        Port("/dev/ttyACM0", BAUD)
    assert remedy in caught.value.remedy


def test_what_is_no_serial_port_is_refused() -> None:
    with raises_naming(DeviceFault, "/dev/null"):
        Port("/dev/null", BAUD)


def test_poses_come_from_a_thread_which_ends_with_the_connection(wire: Wire) -> None:
    clock = SystemClock()
    options = MarvelmindOptions(port=wire.path)
    localizer = MarvelmindLocalizer(clock, options, options.mounting("lab"), ThreadLink(wire.path, BAUD))
    with localizer:
        assert wire.path in {thread.name for thread in threading.enumerate()}
        before_ns = clock.now_ns()
        os.write(wire.master, encode(Position(POSITION_MM, 1, 1.5, 2.5, 0.4, address=5, age_s=0.25)))
        arrived = wait_for(clock, lambda: localizer.arrivals().estimates or None, PATIENCE_S, 0.01)
        assert arrived is not None
        (estimate,) = arrived
        assert (estimate.pose.x_m, estimate.pose.y_m) == (1.5, 2.5)
        assert before_ns - 250_000_000 <= estimate.stamp_ns <= clock.now_ns() - 250_000_000
    assert wire.path not in {thread.name for thread in threading.enumerate()}


def test_a_hedgehog_that_is_unplugged_in_mid_run_is_an_error_until_it_is_connected_anew(wire: Wire) -> None:
    clock = SystemClock()
    options = MarvelmindOptions(port=wire.path)
    localizer = MarvelmindLocalizer(clock, options, options.mounting("lab"), ThreadLink(wire.path, BAUD))
    localizer.connect()
    wire.unplug()

    def fault() -> DeviceFault | None:
        try:
            localizer.arrivals()
        except DeviceFault as error:
            return error
        return None

    found = wait_for(clock, fault, PATIENCE_S, 0.01)
    assert found is not None
    assert wire.path in found.message
    assert "plug it in again" in found.remedy
    localizer.close()
    localizer.close()
