"""Presence of the robot in goal rooms (r_T and r_-> of Das et al. 2018), for all kinds of tasks that have them."""

from collections.abc import Sequence

from robot_runtime.common.geometry import SE2
from robot_runtime.metrics.measures import MetricDefinition
from robot_runtime.scenes.scene import Room

ROOM_METRICS = (
    MetricDefinition("r_T", "r_T", share=True),
    MetricDefinition("r_enter", "r_→", share=True),
    MetricDefinition("stopped", "stopped", share=True),
)
"""Presence at the end, presence ever, and whether the robot stopped."""


def in_rooms(poses: Sequence[SE2], rooms: Sequence[Room]) -> list[bool]:
    """At each pose, whether the robot's center is in one of the rooms."""
    return [any(room.contains(pose.x_m, pose.y_m) for room in rooms) for pose in poses]
