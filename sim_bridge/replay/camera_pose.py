"""Pose of a log's camera at each step, from the referee's pose, the recorded head angles and the camera's mount.

A header has the camera's position at rest only. How it moves with the head is in the mount's file, which the robot's
configuration names; without that file the camera is assumed to rotate about its optical center, with a note.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, optical_axes
from robot_runtime.common.transforms import opengl_rotation
from robot_runtime.errors import ConfigError
from robot_runtime.hal.simulation import Pose3
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.robots.camera_mount import CameraMount, load_mount
from sim_bridge.physics.scene_model import NEAR_M, SKY_M
from sim_bridge.robot.camera import CameraOptions

SAME_PLACE_M = 0.001
"""Distance from the header's camera position beyond which a mount is not the one that the log was recorded with."""


@dataclass(frozen=True)
class LoggedCamera:
    """The camera of a log.

    Attributes:
        straightened: whether its images were rotated to look exactly along pan and tilt, whatever the mount's own
            angles (:mod:`robot_runtime.imaging.camera`).
        note: what is unknown about the mount; empty if nothing is.
    """

    mount: CameraMount
    straightened: bool = False
    note: str = ""

    def map_from_camera(self, record: StepRecord) -> Pose3:
        """Pose of the optical frame in ``map`` at a step, float64 (4, 4)."""
        return self.pose_from(record.referee.pose, record.head.pan_rad, record.head.tilt_rad)

    def pose_from(self, base: SE2, pan_rad: float, tilt_rad: float) -> Pose3:
        """Pose of the optical frame in ``map``, float64 (4, 4), of a robot at ``base`` with these head angles."""
        sensor = self.mount.sensor(base, pan_rad, tilt_rad)
        pose = np.eye(4)
        pose[:3, 3] = sensor[:3, 3]
        if self.straightened:
            pose[:3, :3] = optical_axes(base.yaw_rad + pan_rad, tilt_rad)
        else:
            pose[:3, :3] = opengl_rotation(sensor) * (1, -1, -1)
        return pose


def logged_camera(header: EpisodeHeader) -> LoggedCamera:
    """The camera that a log was recorded with."""
    part, own = _part(header.robot_config), camera_options(header.robot_config)
    name = own.get("mount")
    plain = CameraMount(header.mount)
    if not isinstance(name, str):
        return LoggedCamera(plain, straightened=part is not None)
    try:
        mount = load_mount(config.find_preset("mounts", name))
    except ConfigError as error:
        return LoggedCamera(
            plain, part is not None, f"camera mount {name!r} cannot be read ({error.message}): {_TURNS}"
        )
    off_m = math.dist(mount.sensor(SE2(), 0.0, 0.0)[:3, 3].tolist(), header.mount)
    if off_m > SAME_PLACE_M:
        changed = (
            f"camera mount {name!r} was changed: it has the camera {1000 * off_m:.0f} mm from where the log has it"
        )
        return LoggedCamera(plain, part is not None, f"{changed}: {_TURNS}")
    return LoggedCamera(mount, part is not None)


_TURNS = "the camera is taken to turn about its own center"


def camera_options(robot_config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options of a log's camera with its mount and depth range: the chosen camera, else the robot's own."""
    part = _part(robot_config)
    options = _mapping(robot_config, "options") if part is None else _mapping(part, "options")
    return _mapping(options, "camera" if part is None else "imaging")


def _part(robot_config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    part = robot_config.get("camera")
    return part if isinstance(part, Mapping) else None


def _mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


def measured_by(header: EpisodeHeader) -> CameraOptions:
    """Depth unit and range of a log's camera; where the log names no range, the defaults."""
    recorded = camera_options(header.robot_config)
    known = CameraOptions()
    near_m, far_m = (
        float(value) if isinstance(value := recorded.get(name), (int, float)) else otherwise
        for name, otherwise in (("depth_min_m", known.depth_min_m), ("depth_max_m", known.depth_max_m))
    )
    return CameraOptions(
        depth_min_m=max(near_m, NEAR_M), depth_max_m=min(far_m, SKY_M), depth_unit_m=header.depth_unit_m
    )
