"""Localizer by a camera in the room and a tag on the robot: ``driver: drivers.apriltag.static_camera.make_localizer``.

A referee independent of the policy's sensors: it uses neither the robot's camera nor its odometry.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from drivers.apriltag.emulator import EmulatedImageSource
from drivers.apriltag.image_sources import ImageSource, WebcamImageSource
from drivers.apriltag.localizer import Accuracy, RobotState, TagLocalizer
from drivers.apriltag.pose import CameraInRoom, FloorPrior
from drivers.opencv_camera.feed import WebcamFeed
from drivers.opencv_camera.options import OpenCvOptions
from robot_runtime.common import config
from robot_runtime.common.quantities import Latency, MapCoordinate, Rate
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, Matrix, Offset, Point3, rotation_rpy, transform
from robot_runtime.hal import Lens, Localizer, LocalizerInfo, Robot
from robot_runtime.hal.simulation import CameraMotion
from robot_runtime.imaging.tag_detector import DetectorOptions, TagDetector
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.tag_map import Tag


@dataclass(frozen=True)
class StaticCameraOptions(config.Strict):
    """The ``options`` of the localizer.

    Attributes:
        lens: lens of the camera's calibration.
        xyz_m: origin of the camera's body frame (x forward, y left, z up) in ``map``.
        rpy_deg: rotation of that frame, as in URDF.
        tag: tag on the robot, in base_link.
        device: webcam, best a path under ``/dev/v4l/by-id``; unused in simulation.
        format: pixel format of its images, four characters.
        rate_hz: rate of periodic images; a request for a newer pose takes one more at once.
        latency_s: time from exposure to the kernel's stamp, measured by filming a clock. At 0.3 m/s, 0.03 s are 1 cm.
        detector: options of the tag detector.
        accuracy: standard deviations of the inputs of a pose.
        noise: noise model of the simulator and its options for the emulated camera; empty for none.
    """

    lens: Lens
    xyz_m: tuple[MapCoordinate, MapCoordinate, MapCoordinate]
    rpy_deg: Point3
    tag: Tag
    device: str = "/dev/video0"
    format: str = "MJPG"
    rate_hz: Annotated[Rate, Field(le=60)] = 5.0
    latency_s: Latency = 0.0
    detector: DetectorOptions = field(default_factory=DetectorOptions)
    accuracy: Accuracy = field(default_factory=lambda: Accuracy(stance=FloorPrior(tilt_sd_deg=1.0)))
    noise: dict[str, Any] = field(default_factory=lambda: {"model": "sensor"})

    @property
    def map_from_camera(self) -> Matrix:
        """The optical frame in ``map``, float64 (4, 4)."""
        optical = transform((0.0, 0.0, 0.0), rotation_rpy(*OPTICAL_RPY_RAD))
        return np.asarray(Offset(self.xyz_m, self.rpy_deg).matrix @ optical)


def make_localizer(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Localizer:
    """Return the localizer, disconnected; on a simulated robot the camera is emulated. Raises ``ConfigError``."""
    chosen = config.parse(dict(options), StaticCameraOptions, where)
    pose, simulation = chosen.map_from_camera, robot.simulation
    name = f"static camera {chosen.device}"
    if simulation is None:
        source: ImageSource = WebcamImageSource(
            name, _feed(chosen, robot), chosen.lens, robot.clock, chosen.rate_hz, chosen.latency_s
        )
    else:
        noise = simulation.color_noise(chosen.noise, f"{where}: noise")
        source = EmulatedImageSource(name, simulation, chosen.lens, chosen.rate_hz, noise, lambda: pose, CameraMotion)
    remedy = f"keep the robot where the camera sees its tag, {chosen.tag.id}, or name the tag that it has"
    robot_state = RobotState(CameraInRoom(pose))
    return TagLocalizer(
        LocalizerInfo(name, "map", chosen.rate_hz),
        robot.clock,
        source,
        TagDetector(chosen.detector),
        {chosen.tag.id: chosen.tag},
        lambda: robot_state,
        chosen.accuracy,
        remedy,
        simulation,
    )


def _feed(options: StaticCameraOptions, robot: Robot) -> WebcamFeed:
    lens = options.lens
    hfov_deg = math.degrees(2 * math.atan(lens.width / 2 / lens.fx))
    webcam = OpenCvOptions(hfov_deg, options.device, lens.width, lens.height, format=options.format)
    return WebcamFeed(webcam, robot.clock)
