"""Search for the goal objects of an episode in its images, which tells the causes of failures apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.hal import RgbdFrame
from robot_runtime.metrics.measures import GoalSearch
from robot_runtime.metrics.visibility import points_in_map, visible_pixels
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.scene import SceneObject

SEEN_WITHIN_M = 5.0
"""Distance in the plane up to which an object in the image counts as seen."""

_TESTED_FRAMES = 24
_THINNED = 2
"""Images per goal object in which it is searched, the nearest first, and the step between their rows and columns."""


def search_goal(
    header: EpisodeHeader,
    instances: Sequence[SceneObject],
    records: Sequence[StepRecord],
    frame: Callable[[StepRecord], RgbdFrame],
) -> GoalSearch:
    """Search for objects in the images nearest to them.

    Args:
        header: header of the episode.
        instances: boxes of the goal objects.
        records: scored steps, without images.
        frame: function that reads the images of a step.
    """
    camera, success = header.intrinsics, header.task.success
    decides = success.rule == "visible"
    if not instances:
        return GoalSearch("", None, certain=False, decides=decides)
    least = max(success.min_visible_pixels, camera.width * camera.height // 4000 // _THINNED**2)
    complete = True
    for item in instances:
        ahead = [record for record in records if _may_show(header, record, item)]
        ahead.sort(key=lambda record: item.distance_m(record.referee.pose.x_m, record.referee.pose.y_m))
        for record in ahead[:: max(1, math.ceil(len(ahead) / _TESTED_FRAMES))]:
            try:
                measured_m = frame(record).depth_m
            except RecordingError:
                complete = False
                continue
            depth_m = np.zeros_like(measured_m)
            depth_m[::_THINNED, ::_THINNED] = measured_m[::_THINNED, ::_THINNED]
            pose = record.referee.pose
            points = points_in_map(depth_m, camera, header.mount, record.head, pose)
            complete &= bool(len(points))
            if visible_pixels(points, item, pose, SEEN_WITHIN_M, 0.05) >= least:
                text = f"its camera showed {item.id} at step {record.index}"
                return GoalSearch(text, record.index, certain=True, decides=decides)
    return GoalSearch("no image shows the goal object", None, complete, decides)


def _may_show(header: EpisodeHeader, record: StepRecord, item: SceneObject) -> bool:
    """Whether an object is near enough and, with a margin for its width, in the camera's field of view."""
    pose = record.referee.pose
    if item.distance_m(pose.x_m, pose.y_m) > SEEN_WITHIN_M:
        return False
    local = SE2(item.center[0], item.center[1]).relative_to(pose)
    bearing = abs(math.remainder(math.atan2(local.y_m, local.x_m) - record.head.pan_rad, math.tau))
    distance_m = math.hypot(local.x_m, local.y_m)
    margin = math.atan2(math.hypot(item.size[0], item.size[1]) / 2, max(distance_m, 0.1))
    return bearing - margin <= math.atan2(header.intrinsics.width / 2, header.intrinsics.fx)
