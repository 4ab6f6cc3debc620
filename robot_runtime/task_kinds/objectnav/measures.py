"""Measures of ObjectNav: the four criteria of Batra et al. 2020, section 2.1, each by itself.

*Intentionality*: the agent stopped. *Validity*: it stands where the robot fits. *Proximity*: its center is within a
distance of the object's surface, the oriented box. *Visibility*: at least one pixel shows the object; or, by
oracle-visibility, the place is at one of the object's view points; or an operator's verdict says so.

Of several instances, the one that meets most criteria counts. An episode succeeds if it meets all four. View points are
places near the object that see it: at one of them, proximity and visibility hold together, although the success
distance may lead a little farther from the object than 1 m.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

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
from robot_runtime.task_kinds.objectnav.goal_search import search_goal
from robot_runtime.tasks.categories import instances
from robot_runtime.tasks.task import Task
from robot_runtime.verdicts import Verdicts

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
