"""Driver of a made-up RGB-D camera whose images are noise: what every camera must have, and no more."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from robot_runtime.common import config
from robot_runtime.common.clock import Clock
from robot_runtime.hal import Intrinsics, Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.camera import ImagingOptions, SourceCamera, source_camera
from robot_runtime.imaging.rig import RgbdCalibration
from robot_runtime.imaging.source import RawRgbd, RgbdSource, SensorMode
from robot_runtime.robots.loader import RobotContext

LENS = Lens.of(Intrinsics.from_hfov(640, 480, 90.0))


class NoiseSource(RgbdSource):
    """Pairs of color and depth. A real one waits for its device in ``read``, and raises ``StaleData`` in the end."""

    name, rate_hz = "noise camera", 30.0
    calibration = RgbdCalibration(LENS, LENS, np.eye(4), 0.001, "0001", "nominal")  # depth in counts of 1 mm
    color_mode = SensorMode("color", "640x480", LENS, 30.0)
    depth_mode = SensorMode("depth", "640x480", LENS, 30.0, min_m=0.3, max_m=6.0)
    modes = (color_mode, depth_mode)

    def __init__(self, clock: Clock) -> None:
        self._clock, self._random = clock, np.random.default_rng(0)

    def connect(self) -> None: ...

    def close(self) -> None: ...

    def read(self, exposed_after_ns: int, timeout_s: float) -> RawRgbd:
        self._clock.sleep(1 / self.rate_hz)
        stamp_ns = max(exposed_after_ns, self._clock.now_ns())
        color = self._random.integers(0, 256, (480, 640, 3), np.uint8)
        return RawRgbd(stamp_ns, stamp_ns, color, self._random.integers(500, 5000, (480, 640), np.uint16))


def make_camera(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> SourceCamera:
    """The camera. Its file: ``driver: own_camera.make_camera`` and ``options: {depth_max_m: 5.0}``."""
    imaging = config.parse(dict(options), ImagingOptions, where)  # pass ImagingOptions() where there are no options
    return source_camera(NoiseSource(robot.clock), robot, context, imaging)
