"""Poses over a hedgehog's serial port: they come from a thread, which ends with the connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from drivers.marvelmind.driver import MarvelmindLocalizer
from drivers.marvelmind.options import MarvelmindOptions
from drivers.marvelmind.protocol import POSITION_MM, Position, encode
from drivers.marvelmind.serial_port import HEDGEHOG
from drivers.serial_wire.pty_emulation import Pty
from drivers.serial_wire.reader import ThreadLink
from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.errors import DeviceFault

PATIENCE_S = 20.0
BAUD = 115_200


@pytest.fixture
def wire() -> Iterator[Pty]:
    """A pty: the hedgehog writes to it, the driver opens its path."""
    wire = Pty()
    yield wire
    wire.unplug()


def test_poses_come_from_a_thread_which_ends_with_the_connection(wire: Pty) -> None:
    clock = SystemClock()
    options = MarvelmindOptions(port=wire.path)
    localizer = MarvelmindLocalizer(clock, options, options.mounting("lab"), ThreadLink(wire.path, BAUD, HEDGEHOG))
    with localizer:
        assert wire.path in {thread.name for thread in threading.enumerate()}
        before_ns = clock.now_ns()
        wire.write(encode(Position(POSITION_MM, 1, 1.5, 2.5, 0.4, address=5, age_s=0.25)))
        arrived = wait_for(clock, lambda: localizer.arrivals().estimates or None, PATIENCE_S, 0.01)
        assert arrived is not None
        (estimate,) = arrived
        assert (estimate.pose.x_m, estimate.pose.y_m) == (1.5, 2.5)
        assert before_ns - 250_000_000 <= estimate.stamp_ns <= clock.now_ns() - 250_000_000
    assert wire.path not in {thread.name for thread in threading.enumerate()}


def test_a_hedgehog_that_is_unplugged_in_mid_run_is_an_error_until_it_is_connected_anew(wire: Pty) -> None:
    clock = SystemClock()
    options = MarvelmindOptions(port=wire.path)
    localizer = MarvelmindLocalizer(clock, options, options.mounting("lab"), ThreadLink(wire.path, BAUD, HEDGEHOG))
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
