"""Emulated Create 2 as a foreign client sees it: pycreate2 over a pty."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from emulated_base import make_body, make_device
from kinematic_body import KinematicBody
from pty_server import PtyServer

from drivers.create2.emulator import EmulatedCreate2
from drivers.create2.protocol import DROP_LEFT, STREAMED, encode_stream
from drivers.create2.wire import Create2Wire
from drivers.serial_wire.pty_emulation import Pty
from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.hal import Zone

create2api = pytest.importorskip("pycreate2.create2api")

PATIENCE_S = 20.0


class Client(create2api.Create2):  # type: ignore[misc, name-defined]
    """Its own destructor drives, on a port that may be closed by then."""

    def __del__(self) -> None:
        self.close()


pytestmark = pytest.mark.usefixtures("in_real_time")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, KinematicBody]]:
    """A client and the body that it drives."""
    monkeypatch.setattr(create2api, "time", SimpleNamespace(sleep=lambda seconds: None))  # it sleeps after each command
    body, terminal = make_body(), Pty()
    with PtyServer(terminal, make_device(EmulatedCreate2, body)):
        robot = Client(terminal.path)
        robot.SCI.ser.timeout = PATIENCE_S
        yield robot, body
        robot.close()


@pytest.mark.slow
def test_a_foreign_client_drives_and_reads_all_sensors(client: tuple[Any, KinematicBody]) -> None:
    robot, body = client
    robot.start()
    assert robot.get_sensors().open_interface_mode == 1
    robot.safe()
    robot.drive_direct(200, 200)  # the right wheel comes first
    assert wait_for(SystemClock(), lambda: body.pose.x_m > 0.1 or None, PATIENCE_S, 0.02)
    found = robot.get_sensors()
    assert found.open_interface_mode == 2
    assert found.voltage == 16_000
    assert found.encoder_counts_left == found.encoder_counts_right > 200
    robot.drive_direct(100, -100)
    assert wait_for(SystemClock(), lambda: body.heading_rad > 0.2 or None, PATIENCE_S, 0.02)


def test_pycreate2_swaps_the_sides_of_wheel_drops_which_the_driver_does_not(client: tuple[Any, KinematicBody]) -> None:
    robot, body = client
    body.wheel_drop = Zone.LEFT
    robot.start()
    assert wait_for(SystemClock(), lambda: any(robot.get_sensors().bumps_wheeldrops) or None, PATIENCE_S, 0.02)
    seen = robot.get_sensors().bumps_wheeldrops
    assert (seen.wheeldrop_left, seen.wheeldrop_right) == (False, True)
    (reading,) = Create2Wire().feed(encode_stream(dict.fromkeys(STREAMED, 0) | {7: DROP_LEFT}), 10**9)
    assert Zone(reading.wheel_drop) == Zone.LEFT


def test_a_foreign_client_reads_the_banner_of_a_reset(client: tuple[Any, KinematicBody]) -> None:
    robot, _ = client
    robot.start()
    assert b"release-3.3.0" in robot.reset()
    wire = Create2Wire()
    wire.feed(b"noise r3_robot/tags/rel", 0)
    wire.feed(b"ease-3.2.6:4182 CLEAN\r\n", 1)
    assert wire.version == "3.2.6"
