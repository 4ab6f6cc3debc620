"""Localizer by tags on the walls and the robot's own camera: ``driver: drivers.apriltag.driver.make_localizer``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from drivers.apriltag.emulator import EmulatedImageSource
from drivers.apriltag.image_sources import CameraImageSource, ImageSource
from drivers.apriltag.localizer import Accuracy, RobotState, TagLocalizer
from drivers.apriltag.pose import CameraOnRobot
from robot_runtime.common import config
from robot_runtime.common.clock import SimulatedClock
from robot_runtime.common.geometry import SE2, optical_axes
from robot_runtime.common.quantities import Rate
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, Matrix, rotation_rpy, transform
from robot_runtime.errors import ConfigError, DeviceFault
from robot_runtime.hal import STREAMS, Localizer, LocalizerInfo, Robot
from robot_runtime.imaging.tag_detector import DetectorOptions, TagDetector
from robot_runtime.robots.camera_mount import CameraMount, load_mount
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.tag_map import find_tag_map, load_tag_map


@dataclass(frozen=True)
class AprilTagOptions(config.Strict):
    """The ``options`` of the localizer.

    Attributes:
        tags: ``scene`` for ``tags.yaml`` in the scene's folder, or a tag map's path.
        rate_hz: rate of periodic images; a request for a newer pose takes one more at once.
        mount: preset of ``launch/mounts/`` or file of the camera's mount; None for the camera's own.
        detector: options of the tag detector.
        accuracy: standard deviations of the inputs of a pose.
        noise: noise model of the simulator and its options for the emulated camera; empty for none.
    """

    tags: str = "scene"
    rate_hz: Annotated[Rate, Field(le=60)] = 5.0
    mount: str | None = None
    detector: DetectorOptions = field(default_factory=DetectorOptions)
    accuracy: Accuracy = field(default_factory=Accuracy)
    noise: dict[str, Any] = field(default_factory=lambda: {"model": "sensor"})


def make_localizer(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Localizer:
    """Return the localizer, disconnected; a simulated robot renders the simulated room.

    Raises:
        ConfigError: a bad option, a missing or invalid tag map, or a robot whose camera shows no room.
    """
    chosen = config.parse(dict(options), AprilTagOptions, where)
    path = find_tag_map(chosen.tags, context.scene, f"{where}: tags")
    tags = load_tag_map(path).by_id
    mount = None if chosen.mount is None else load_mount(config.find_preset("mounts", chosen.mount))
    robot_state = _RobotStateReader(robot, mount)
    simulation = robot.simulation
    if simulation is None and isinstance(robot.clock, SimulatedClock):
        raise ConfigError(f"{where}: the camera of robot {robot.name!r} shows no room with tags", "use robot sim-tags")
    source: ImageSource = CameraImageSource(robot.camera, robot.clock, chosen.rate_hz)
    name = f"apriltag by {path.name}"
    remedy = "bring tags of the map into view, or hang more of them"
    if simulation is not None:
        remedy += "; in a simulated room they hang where the robot's options say so, as `--robot sim-tags` does"
        noise = simulation.color_noise(chosen.noise, f"{where}: noise")
        pose, motion = simulation.camera_pose, simulation.camera_motion
        source = EmulatedImageSource(name, simulation, source.lens, chosen.rate_hz, noise, pose, motion)
    return TagLocalizer(
        LocalizerInfo(name, "map", chosen.rate_hz),
        robot.clock,
        source,
        TagDetector(chosen.detector),
        tags,
        robot_state,
        chosen.accuracy,
        remedy,
        simulation,
    )


class _RobotStateReader:
    """State of the robot's head and base at an exposure. The robot connects these devices itself."""

    def __init__(self, robot: Robot, mount: CameraMount | None) -> None:
        self._robot, self._mount = robot, mount

    def __call__(self) -> RobotState:
        try:
            head = self._robot.head.state(STREAMS["head"].max_age_s)
            base = self._robot.base.state(STREAMS["base"].max_age_s)
        except DeviceFault as error:
            return RobotState(None, error.message)
        if head.moving:
            return RobotState(None, "the head is turning")
        camera = CameraOnRobot(self._camera(head.pan_rad, head.tilt_rad))
        return RobotState(camera, odom=base.odom, velocity=base.velocity)

    def _camera(self, pan_rad: float, tilt_rad: float) -> Matrix:
        """Return the optical frame in base_link, float64 (4, 4)."""
        if self._mount is not None:
            optical = transform((0.0, 0.0, 0.0), rotation_rpy(*OPTICAL_RPY_RAD))
            return np.asarray(self._mount.sensor(SE2(), pan_rad, tilt_rad) @ optical)
        place = self._robot.camera.info.mount
        return transform((place.x_m, place.y_m, place.z_m), optical_axes(pan_rad, tilt_rad))
