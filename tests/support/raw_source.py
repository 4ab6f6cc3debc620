"""A source of raw pairs on the fake robot, and everything that can go wrong with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drivers.fake.camera import render
from robot_runtime.common.clock import NS_PER_S, seconds_to_ns
from robot_runtime.errors import DeviceFault, NotConnected, StaleData
from robot_runtime.hal import Intrinsics, Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.rig import RgbdCalibration
from robot_runtime.imaging.source import RawRgbd, RgbdSource, SensorMode

WIDE = Intrinsics.from_hfov(96, 90, 95.0)
NARROW = Intrinsics.from_hfov(96, 54, 55.0)


class RawSource(RgbdSource):
    """Exposes ``rate_hz`` times a second what stands before the robot; wrong is whatever an attribute says.

    Attributes:
        frozen: the last picture comes again and again, with new stamps. blind: depth is all 0.
        unplugged: reading fails. skew_s: of depth behind colour. reads: how often it was read.
    """

    def __init__(self, robot: Robot, pinhole: Intrinsics = WIDE, rate_hz: float = 30.0, has_depth: bool = True) -> None:
        self._robot, self._rate_hz, self._has_depth = robot, rate_hz, has_depth
        self._pinhole = pinhole
        self._rig = RgbdCalibration(Lens.of(pinhole), Lens.of(pinhole), np.eye(4), 0.001, "12", "factory")
        self._last: RawRgbd | None = None
        self.connected = self.frozen = self.blind = self.unplugged = False
        self.skew_s = 0.0
        self.reads = 0

    @property
    def name(self) -> str:
        return "test camera 12"

    @property
    def calibration(self) -> RgbdCalibration:
        return self._rig

    @property
    def color_mode(self) -> SensorMode:
        return SensorMode("color", "used", self._rig.color, self._rate_hz)

    @property
    def depth_mode(self) -> SensorMode:
        return SensorMode("depth", "used", self._rig.depth, self._rate_hz, 0.1, 8.0)

    @property
    def modes(self) -> tuple[SensorMode, ...]:
        wide = replace(self.color_mode, name="wide", lens=Lens.of(WIDE))
        return self.color_mode, wide, self.depth_mode, replace(self.depth_mode, name="wide", lens=Lens.of(WIDE))

    @property
    def has_depth(self) -> bool:
        return self._has_depth

    @property
    def rate_hz(self) -> float:
        return self._rate_hz

    def connect(self) -> None:
        self.connected = True

    def close(self) -> None:
        self.connected = False

    def read(self, exposed_after_ns: int, timeout_s: float) -> RawRgbd:
        if not self.connected:
            raise NotConnected("test camera 12: is not connected", "connect it")
        if self.unplugged:
            raise DeviceFault("test camera 12: was unplugged", "plug it in")
        self.reads += 1
        clock = self._robot.clock
        period_ns = round(NS_PER_S / self._rate_hz)
        stamp_ns = -(-max(exposed_after_ns, clock.now_ns()) // period_ns) * period_ns
        if stamp_ns > clock.now_ns() + seconds_to_ns(timeout_s):
            clock.sleep(timeout_s)
            raise StaleData("test camera 12: nothing came in time", "wait longer")
        clock.sleep_until(stamp_ns)
        if self.frozen and self._last is not None:
            return replace(self._last, color_stamp_ns=stamp_ns, depth_stamp_ns=stamp_ns)
        info = replace(self._robot.camera.info, intrinsics=self._pinhole, depth_max_m=8.0, depth_unit_m=0.001)
        head = self._robot.head.state(1.0)
        rgb, depth_m = render(info, self._robot.referee.latest(1.0).pose, head.pan_rad, head.tilt_rad, 2.9)
        depth = np.zeros((0, 0), np.uint16) if not self._has_depth else np.rint(depth_m * 1000).astype(np.uint16)
        self._last = RawRgbd(stamp_ns, stamp_ns + seconds_to_ns(self.skew_s), rgb, depth * (not self.blind))
        return self._last
