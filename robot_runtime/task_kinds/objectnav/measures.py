"""Measures of ObjectNav: the four criteria of Batra et al. 2020, section 2.1, each by itself.

*Intentionality*: the agent stopped. *Validity*: it stands where the robot fits. *Proximity*: its center is within a
distance of the object's surface, the oriented box. *Visibility*: at least one pixel shows the object; or, by
oracle-visibility, the place is at one of the object's view points; or an operator's verdict says so.

Of several instances, the one that meets most criteria counts. An episode succeeds if it meets all four. View points are
places near the object that see it: at one of them, proximity and visibility hold together, although the success
distance may lead a little farther from the object than 1 m.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.hal import RgbdFrame
from robot_runtime.metrics.measures import GoalSearch, Measures, MetricDefinition, Run
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.metrics.visibility import points_in_map, visible_pixels
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import SceneObject
from robot_runtime.tasks.categories import instances
from robot_runtime.tasks.task import Task
from robot_runtime.verdicts import Verdicts

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
    """Search for objects in the images nearest to them."""
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


PROXIMITY_M = 1.0
"""Distance of proximity in meters, the paper's "reasonable starting point"; the rule ``visible`` has its own."""


class ObjectMeasures(Measures):
    """Success by view points or by the frame at the stop, and the criteria."""

    rank = 1
    defines: ClassVar[tuple[MetricDefinition, ...]] = (
        MetricDefinition("criterion_intentionality", "stopped", share=True),
        MetricDefinition("criterion_validity", "valid place", share=True),
        MetricDefinition("criterion_proximity", "near object", share=True),
        MetricDefinition("criterion_visibility", "sees object", share=True),
    )

    def __init__(self, header: EpisodeHeader, rules: Rules, geodesic: GeodesicMap) -> None:
        super().__init__(header, rules, geodesic)
        self._instances = instances(header.task, header.scene, header.episode)
        self._by_frame = header.task.success.rule == "visible"
        self._near_and_seen: list[tuple[bool, bool]] | None = None
        self._verdict: bool | None = None
        self._verdict_by = ""

    @classmethod
    @override
    def needs_images(cls, task: Task) -> bool:
        return task.success.rule == "visible"

    @override
    def on_verdicts(self, verdicts: Verdicts) -> None:
        """Use the verdict of a person or a judge on visibility in place of the computed one."""
        verdict = verdicts.on_visibility
        self._verdict = None if verdict is None else verdict.visible
        self._verdict_by = "an operator's" if verdict is None or verdict.judge is None else f"{verdict.who}'s"

    @override
    def needs_frame(self, record: StepRecord) -> bool:
        return self._by_frame and self._verdict is None and record.action is Action.STOP

    def on_step(self, record: StepRecord) -> None:
        """Evaluate the frame at the stop, if success depends on it. Raises ``RecordingError`` without a depth image."""
        if self.needs_frame(record):
            self._near_and_seen = self._evaluate_frame(record)

    @override
    def holds(self, pose: SE2, distance_m: float) -> bool:
        near, seen = self._judged(pose, distance_m)
        if near is None and self._verdict is not None:
            near = super().holds(pose, distance_m)
        return math.isfinite(distance_m) and bool(near) and bool(seen)

    @override
    def facets(self) -> Mapping[str, str]:
        category = self.header.episode.category
        return {**super().facets(), **({"category": category} if category else {})}

    @override
    def metrics(self, run: Run) -> Metrics:
        near, seen = self._judged(run.poses[-1], run.distance_m)
        return {
            "criterion_intentionality": run.stopped,
            "criterion_validity": math.isfinite(run.distance_m),
            "criterion_proximity": near,
            "criterion_visibility": seen,
        }

    @override
    def search_goal(self, records: Sequence[StepRecord], frame: Callable[[StepRecord], RgbdFrame]) -> GoalSearch:
        return search_goal(self.header, self._instances, records, frame)

    @override
    def choices(self) -> dict[str, Any]:
        task = self.header.task
        return {
            "criteria": "Batra et al. 2020, section 2.1; of several instances the one that meets most",
            "criterion_validity": "on the map inflated by the robot's radius, and connected to a goal",
            "criterion_proximity": {
                "distance_m": self._proximity_m,
                "from": "robot's centre",
                "to": "box, in the plane" + ("" if self._by_frame else "; at a view point always"),
            },
            "criterion_visibility": self._visibility(task.success.min_visible_pixels),
        }

    def _visibility(self, pixels: int) -> str:
        if self._verdict is not None:
            return f"{self._verdict_by} verdict; success is that, stopped, and near"
        if self._by_frame:
            return f"{pixels} pixel{'' if pixels == 1 else 's'} of the frame of the stop"
        return "oracle: at a view point of the object, by the task's success distance"

    def _near(self, pose: SE2) -> bool | None:
        """Whether any instance is near; None if the scene has no box of one."""
        around = [item.distance_m(pose.x_m, pose.y_m) <= self._proximity_m for item in self._instances]
        return any(around) if around else None

    @property
    def _proximity_m(self) -> float:
        return self.header.task.success.distance_m if self._by_frame else PROXIMITY_M

    def _judged(self, pose: SE2, distance_m: float) -> tuple[bool | None, bool | None]:
        """Proximity and visibility; None if unknown, without a box in the scene or a frame at the stop."""
        if self._verdict is not None:
            return self._near(pose), self._verdict
        if not self._by_frame:
            at_view_point = super().holds(pose, distance_m)
            return at_view_point or self._near(pose), at_view_point
        if self._near_and_seen is None:
            return self._near(pose), None
        return max(self._near_and_seen, key=sum, default=(False, False))

    def _evaluate_frame(self, record: StepRecord) -> list[tuple[bool, bool]]:
        """Per instance, whether it is near and whether it is visible.

        THOR's distance is to the visible part of an object; the box of a partly hidden object may be nearer.
        """
        header = self.header
        if not record.frame.depth_m.size:
            raise RecordingError(
                f"step {record.index}: has no depth image, but success is judged from it", "read it with its images"
            )
        pose, rule = record.referee.pose, header.task.success
        points = points_in_map(record.frame.depth_m, header.intrinsics, header.mount, record.head, pose)
        judged = []
        for item in self._instances:
            pixels, near_pixels = (
                visible_pixels(points, item, pose, reach_m, self.rules.box_margin_m)
                for reach_m in (math.inf, rule.distance_m)
            )
            seen = pixels >= rule.min_visible_pixels
            near = near_pixels >= rule.min_visible_pixels
            judged.append((near if seen else item.distance_m(pose.x_m, pose.y_m) <= rule.distance_m, seen))
        return judged
