"""The driver in the documentation, over a pseudo terminal, with the base at the other end emulated in bytes."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import pty
import struct
import threading
import time
import tty
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, cast

import pytest

from robot_runtime.common.clock import SystemClock
from robot_runtime.common.geometry import SE2
from robot_runtime.conformance import BaseConformance
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal import Camera, Device, LocalizerInfo, PoseEstimate, Robot, Velocity, Zone
from robot_runtime.hal.pose_history import PoseHistory
from robot_runtime.hal.stand_ins import HistoryLocalizer
from robot_runtime.robots.loader import RobotContext

EXAMPLE = Path(__file__).resolve().parents[1] / "docs" / "examples" / "own_base.py"
PERIOD_S = 0.02


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("own_base", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


own_base = _load()


class Pebble:
    """The base at the other end of the wire: ideal wheels, commanded and reported in bytes."""

    def __init__(self) -> None:
        self._main, self._far = pty.openpty()
        tty.setraw(self._main)
        tty.setraw(self._far)
        os.set_blocking(self._main, False)
        self.port = os.ttyname(self._far)
        self.bumper, self.silent, self.garbage = 0, False, b""
        self.wheels_mm_s = (0, 0)
        self._travel_mm = [0.0, 0.0]
        self._clock, self._pose = SystemClock(), SE2()
        self.truth = PoseHistory("tracker", "odom")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        if self._over.is_set():
            return
        self._over.set()
        self._thread.join(2.0)
        os.close(self._main)
        os.close(self._far)

    def _run(self) -> None:
        received, then = b"", time.monotonic()
        while not self._over.wait(PERIOD_S):
            with contextlib.suppress(BlockingIOError):
                received += os.read(self._main, 4096)
            while len(received) >= 6:
                if received[:1] == b"V" and sum(received[:6]) & 0xFF == 0:
                    self.wheels_mm_s = struct.unpack("<hh", received[1:5])
                    received = received[6:]
                else:
                    received = received[1:]
            now = time.monotonic()
            for side in (0, 1):
                self._travel_mm[side] += self.wheels_mm_s[side] * (now - then)
            self._pose = self._moved(now - then)
            self.truth.add(PoseEstimate(self._clock.now_ns(), self._pose, "odom"))
            then = now
            left, right = (round(10 * travel) for travel in self._travel_mm)
            message = struct.pack("<cBiiH", b"R", self.bumper, left, right, 15600)
            sealed = message + bytes([-sum(message) & 0xFF])
            os.write(self._main, self.garbage + (b"" if self.silent else sealed))

    def _moved(self, seconds: float) -> SE2:
        left_m_s, right_m_s = (speed / 1000 for speed in self.wheels_mm_s)
        yaw_rad = self._pose.yaw_rad + (right_m_s - left_m_s) / own_base.TRACK_M * seconds
        forward_m = (left_m_s + right_m_s) / 2 * seconds
        x_m, y_m = self._pose.x_m + forward_m * math.cos(yaw_rad), self._pose.y_m + forward_m * math.sin(yaw_rad)
        return SE2(x_m, y_m, yaw_rad)


class _NoCamera(Device):
    """In place of the camera that a robot's file would name."""

    def connect(self) -> None:
        pass

    def close(self) -> None:
        pass


def make_robot(pebble: Pebble) -> Robot:
    """The example's robot, with a referee that goes on when the base is closed, as an external tracker does."""
    context = RobotContext(scene=None, camera=None, seed=0)
    robot: Robot = own_base.make_robot(context, "pebble", {"port": pebble.port}, "test")
    referee = HistoryLocalizer(LocalizerInfo("tracker", "odom", 1 / PERIOD_S), robot.clock, pebble.truth)
    return replace(robot, camera=cast(Camera, _NoCamera()), referee=referee)


@pytest.mark.slow
@pytest.mark.usefixtures("in_real_time")
class TestPebble(BaseConformance):
    pebbles: ClassVar[list[Pebble]] = []

    @pytest.fixture(autouse=True)
    def _close_pebbles(self) -> Any:
        yield
        while self.pebbles:
            self.pebbles.pop().close()

    def make_robot(self) -> Robot:
        self.pebbles.append(Pebble())
        return make_robot(self.pebbles[-1])


@pytest.fixture
def pebble() -> Any:
    made = Pebble()
    yield made
    made.close()


def test_the_driver_is_short() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 200


@pytest.mark.slow
def test_a_pressed_bumper_holds_the_wheels(pebble: Pebble, in_real_time: None) -> None:
    with make_robot(pebble) as robot:
        robot.clock.sleep(0.3)
        for _ in range(10):
            robot.base.command(Velocity(0.2, 0.0))
            robot.clock.sleep(0.02)
        assert pebble.wheels_mm_s[0] > 100
        pebble.bumper = Zone.CENTER.value
        robot.clock.sleep(0.1)
        assert robot.base.command(Velocity(0.2, 0.0)) == Velocity()
        assert robot.base.state(0.1).bumper is Zone.CENTER
        robot.clock.sleep(0.1)
        assert pebble.wheels_mm_s == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [b"", b"x"])
def test_a_base_without_reports_is_stopped_and_stale(pebble: Pebble, in_real_time: None, noise: bytes) -> None:
    pebble.garbage = noise
    with make_robot(pebble) as robot:
        robot.clock.sleep(0.3)
        robot.base.command(Velocity(0.2, 0.0))
        pebble.silent = True
        robot.clock.sleep(0.4)
        assert pebble.wheels_mm_s == (0, 0)
        with pytest.raises(StaleData):
            robot.base.state(0.1)


@pytest.mark.slow
def test_garbage_on_the_wire_costs_nothing(pebble: Pebble, in_real_time: None) -> None:
    pebble.garbage = b"Rx\x00R"
    with make_robot(pebble) as robot:
        robot.clock.sleep(0.3)
        assert robot.base.state(0.1).battery_v == pytest.approx(15.6)


@pytest.mark.slow
def test_an_unplugged_base_can_be_stopped_and_closed(pebble: Pebble, in_real_time: None) -> None:
    robot = make_robot(pebble)
    robot.connect()
    robot.clock.sleep(0.3)
    pebble.close()
    robot.clock.sleep(0.2)
    robot.base.stop()
    robot.base.emergency_stop()
    with pytest.raises(StaleData):
        robot.base.state(0.1)
    robot.close()


def test_a_port_that_is_no_terminal_is_refused_and_closed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    open_before = len(os.listdir("/proc/self/fd"))
    robot = own_base.make_robot(
        RobotContext(scene=None, camera=None, seed=0), "pebble", {"port": str(tmp_path / "file")}, ""
    )
    with pytest.raises(DeviceFault, match="file"):
        robot.base.connect()
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_a_robot_without_a_camera_says_so(pebble: Pebble) -> None:
    context = RobotContext(scene=None, camera=None, seed=0)
    robot = own_base.make_robot(context, "pebble", {"port": pebble.port}, "test")
    with pytest.raises(DeviceFault, match="camera"):
        robot.connect()


def test_a_missing_port_is_named(tmp_path: Path) -> None:
    context = RobotContext(scene=None, camera=None, seed=0)
    robot = own_base.make_robot(context, "pebble", {"port": str(tmp_path / "absent")}, "test")
    with pytest.raises(DeviceFault, match="absent"):
        robot.base.connect()
