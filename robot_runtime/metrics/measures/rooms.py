"""Presence of the robot in rooms."""

from __future__ import annotations

from collections.abc import Sequence

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.scene import Room


def in_rooms(poses: Sequence[SE2], rooms: Sequence[Room]) -> list[bool]:
    """At each pose, whether the robot's center is in one of the rooms."""
    return [any(room.contains(pose.x_m, pose.y_m) for room in rooms) for pose in poses]
