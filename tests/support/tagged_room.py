"""The hand-made room with AprilTags, a robot in it that carries one, and localizers that look at them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from drivers.apriltag import driver, static_camera
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Robot
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.scene import Scene
from robot_runtime.scenes.tag_map import Tag, TagMap, write_tag_map
from robot_runtime.tasks.task import TrainingCamera
from sim_bridge.robot.driver import make_robot

CAMERA = TrainingCamera(400, 300, 79.0, 0.88, 0.1, 10.0, False)

TAGS = (
    Tag(0, 0.24, (3.0, 0.9, 0.9), (0.0, 0.0, 180.0)),
    Tag(1, 0.24, (3.0, 0.1, 1.2), (0.0, 0.0, 180.0)),
    Tag(2, 0.24, (3.0, -0.9, 0.8), (0.0, 0.0, 180.0)),
    Tag(3, 0.24, (1.5, 2.0, 1.0), (0.0, 0.0, -90.0)),
    Tag(4, 0.24, (0.4, 2.0, 0.7), (0.0, 0.0, -90.0)),
    Tag(5, 0.24, (-0.6, 2.0, 1.1), (0.0, 0.0, -90.0)),
)

ROBOT_TAG = {"id": 100, "size_m": 0.2, "xyz_m": [0.0, 0.0, 0.95], "rpy_deg": [0.0, -90.0, 0.0]}

CEILING = {
    "lens": {"width": 400, "height": 300, "fx": 150.0, "fy": 150.0, "cx": 199.5, "cy": 149.5},
    "xyz_m": [0.5, 0.0, 2.45],
    "rpy_deg": [0.0, 90.0, 0.0],
    "tag": ROBOT_TAG,
}
"""A camera that sees the middle of the room from above."""

FACING_EAST = SE2(0.6, -0.2, 0.1)
"""From here tags 0, 1 and 2 are in view; turned left by a radian, tags 3 and 4."""

FACING_WEST = SE2(0.6, -0.2, math.pi)
"""From here none is."""


def tagged_robot(scene: Scene, folder: Path, tags: tuple[Tag, ...] = TAGS) -> tuple[Robot, RobotContext]:
    """A disconnected robot among tags, facing three of them."""
    path = folder / "hung.yaml"
    write_tag_map(path, TagMap(1, "tag36h11", tags))
    context = RobotContext(scene, CAMERA, seed=0)
    robot = make_robot(context, "tagged", {"tags": str(path), "robot_tag": ROBOT_TAG}, "test options")
    robot.placer.place(FACING_EAST, 0.0)
    return robot, context


def with_tags(robot: Robot, context: RobotContext, folder: Path, tags: tuple[Tag, ...] = TAGS, **options: Any) -> Robot:
    """The robot with a localizer that has this map, whatever hangs in the room."""
    path = folder / "map.yaml"
    write_tag_map(path, TagMap(1, "tag36h11", tags))
    given = {"tags": str(path), "rate_hz": 4.0, **options}
    return replace(robot, localizer=driver.make_localizer(robot, context, given, "test options"))


def watched(robot: Robot, context: RobotContext, options: Mapping[str, Any] = CEILING) -> Robot:
    """The robot with the camera under the ceiling as its referee."""
    given = {"rate_hz": 4.0, **options}
    return replace(robot, referee=static_camera.make_localizer(robot, context, given, "test options"))
