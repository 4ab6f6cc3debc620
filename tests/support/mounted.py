"""Simulated robots whose camera sits, turns and measures otherwise than their description says."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml
from rich.console import Console

from calibration.operator_guide import Guide
from robot_runtime.common import config
from robot_runtime.common.clock import Clock
from robot_runtime.common.transforms import Offset, rotation_rpy, transform
from robot_runtime.hal import Intrinsics, Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import Simulation
from robot_runtime.imaging.camera import ImagingOptions, SourceCamera
from robot_runtime.imaging.rig import RgbdCalibration
from robot_runtime.imaging.source import RawRgbd, RgbdSource, SensorMode
from robot_runtime.robots.camera_mount import CameraMount
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import find_scene, load_scene

NOMINAL = CameraMount((-0.01, 0.0, 0.55), (0.0, 0.0, 0.05), Offset((0.067, 0.0, -0.004)), Offset((0.0, 0.015, 0.0)))
"""As described: looking straight ahead, its optical centre in front of the tilt axis."""

TRUE = CameraMount(
    (-0.01, 0.0, 0.55), (0.012, 0.0, 0.041), Offset((0.075, 0.014, 0.02), (1.5, -2.0, 1.2)), Offset((0.0, 0.015, 0.0))
)
"""As assembled: 15 mm higher, off to the left, and turned about all three axes."""


@contextmanager
def robot(
    folder: Path, mount: CameraMount = TRUE, name: str = "sim", tilt_servo: str | None = None, **options: object
) -> Iterator[Robot]:
    """A connected simulated robot with a camera on that mount; ``options`` are a simulated robot's."""
    (folder / "true.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(config.unparse(mount)))))
    document = {
        "name": name,
        "tilt_servo": tilt_servo,
        "driver": "sim_bridge.robot.driver.make_robot",
        "options": {"camera": {"mount": str(folder / "true.yaml")}, **options},
    }
    (folder / "robot.yaml").write_text(yaml.safe_dump(document))
    with load_robot(str(folder / "robot.yaml"), RobotContext(load_scene(find_scene("apartment")), None, 0)) as made:
        yield made


def guide(folder: Path | None = None) -> Guide:
    """Of nobody."""
    return Guide(Console(file=io.StringIO()), folder, attended=False)


class ShiftedSource(RgbdSource):
    """A camera on a simulation, of whose calibration only depth's scale and bias are wrong."""

    COLOR = Lens(640, 480, 480.0, 481.0, 322.0, 238.0, "brown_conrady", (0.05, -0.1, 0.001, -0.001, 0.0))
    DEPTH = Lens(320, 240, 200.0, 200.0, 161.0, 119.0)
    COLOR_FROM_DEPTH = transform((0.03, 0.002, -0.004), rotation_rpy(0.05, -0.01, 0.01))

    def __init__(self, clock: Clock, simulation: Simulation, scale: float = 1.0, bias_m: float = 0.0) -> None:
        self._clock, self._simulation = clock, simulation
        self._scale, self._bias_m = scale, bias_m

    def connect(self) -> None: ...

    def close(self) -> None: ...

    @property
    def name(self) -> str:
        return "shifted camera SN9"

    @property
    def calibration(self) -> RgbdCalibration:
        return RgbdCalibration(self.COLOR, self.DEPTH, self.COLOR_FROM_DEPTH, 0.001, "SN9", "factory")

    @property
    def color_mode(self) -> SensorMode:
        return SensorMode("color", "color", self.COLOR, 30.0)

    @property
    def depth_mode(self) -> SensorMode:
        return SensorMode("depth", "depth", self.DEPTH, 30.0, 0.2, 6.0)

    @property
    def modes(self) -> tuple[SensorMode, ...]:
        return self.color_mode, self.depth_mode

    @property
    def rate_hz(self) -> float:
        return 30.0

    def read(self, exposed_after_ns: int, timeout_s: float) -> RawRgbd:
        self._clock.sleep_until(exposed_after_ns)
        pose = self._simulation.camera_pose()
        color = self._simulation.render_color(self.COLOR, pose)
        depth_m = self._simulation.render_depth(self.DEPTH, pose @ self.COLOR_FROM_DEPTH)
        # True metres are scale * measured + bias.
        counts = np.rint((depth_m - self._bias_m) / self._scale * 1000)
        now_ns = self._clock.now_ns()
        return RawRgbd(now_ns, now_ns, color, np.where(depth_m > 0, np.clip(counts, 0, 65535), 0).astype(np.uint16))


def with_source(made: Robot, source: RgbdSource) -> Robot:
    """The robot with a camera over that source."""
    options = ImagingOptions(allow_partial_coverage=True)
    target = Intrinsics.from_hfov(160, 120, 60)
    return replace(made, camera=SourceCamera(source, made.clock, target, NOMINAL, options, made.name))
