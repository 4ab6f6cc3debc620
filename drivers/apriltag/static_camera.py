"""A camera in the room that watches a tag on the robot: ``driver: drivers.apriltag.static_camera.make_localizer``.

Made for referees: nothing that the policy uses has a part in it, neither its camera nor its odometry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drivers.apriltag.detector import DetectorOptions, TagDetector
from drivers.apriltag.emulator import EmulatedEye
from drivers.apriltag.eyes import Eye, VideoEye
from drivers.apriltag.localizer import Accuracy, Bearing, TagLocalizer
from drivers.apriltag.pose import CameraInRoom, Stance
from robot_runtime import config
from robot_runtime.camera_mount import OPTICAL_RPY_RAD, Matrix, Offset, Point3, rotation_rpy, transform
from robot_runtime.hal import Localizer, LocalizerInfo, Robot
from robot_runtime.imaging.lens import Lens
from robot_runtime.robots import RobotContext
from robot_runtime.simulation import CameraMotion
from robot_runtime.tag_map import Tag


@dataclass(frozen=True)
class StaticCameraOptions:
    """The ``options`` of the localizer.

    Attributes:
        lens: of the camera's calibration.
        xyz_m, rpy_deg: the camera's body frame (x forward, y left, z up) in ``map``, as in URDF.
        tag: the one on the robot, in base_link.
        device: what OpenCV opens: ``/dev/video0``, ``rtsp://...``; in simulation the emulated camera answers.
        latency_s: from exposure to arrival, as measured.
        noise: of the emulated camera on a simulated robot: a model of the simulator's and its options; empty: none.
    """

    lens: Lens
    xyz_m: Point3
    rpy_deg: Point3
    tag: Tag
    device: str = "/dev/video0"
    rate_hz: float = 5.0
    latency_s: float = 0.05
    detector: DetectorOptions = field(default_factory=DetectorOptions)
    accuracy: Accuracy = field(default_factory=lambda: Accuracy(stance=Stance(tilt_sd_deg=1.0)))
    noise: dict[str, Any] = field(default_factory=lambda: {"model": "sensor"})

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not 0 < self.rate_hz <= 60:
            raise ValueError(f"rate_hz must lie above 0 and not above 60, got {self.rate_hz}")
        if not 0 <= self.latency_s <= 2:
            raise ValueError(f"latency_s must lie between 0 and 2, got {self.latency_s}")

    @property
    def map_from_camera(self) -> Matrix:
        """The optical frame in ``map``, float64 (4, 4)."""
        optical = transform((0.0, 0.0, 0.0), rotation_rpy(*OPTICAL_RPY_RAD))
        return np.asarray(Offset(self.xyz_m, self.rpy_deg).matrix @ optical)


def make_localizer(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Localizer:
    """The localizer, disconnected; on a simulated robot the camera is emulated. Raises ``ConfigError``."""
    chosen = config.parse(dict(options), StaticCameraOptions, where)
    pose, simulation = chosen.map_from_camera, robot.simulation
    name = f"static camera {chosen.device}"
    eye: Eye = VideoEye(chosen.device, chosen.lens, robot.clock, chosen.rate_hz, chosen.latency_s)
    if simulation is not None:
        noise = simulation.color_noise(chosen.noise, f"{where}: noise")
        eye = EmulatedEye(name, simulation, chosen.lens, chosen.rate_hz, noise, lambda: pose, CameraMotion)
    bearing = Bearing(CameraInRoom(pose))
    return TagLocalizer(
        LocalizerInfo(name, "map", chosen.rate_hz),
        robot.clock,
        eye,
        TagDetector(chosen.detector),
        {chosen.tag.id: chosen.tag},
        lambda: bearing,
        chosen.accuracy,
        simulation,
    )
