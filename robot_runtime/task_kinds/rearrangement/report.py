"""Objects of a rearrangement in a report: before, after, where they should be, and their tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from robot_runtime.metrics.functional.rearrangement import angle_between
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.scene import SceneObject
from robot_runtime.scoring.report.charts import element
from robot_runtime.scoring.report.episode_data import ObjectCriteria
from robot_runtime.scoring.report.map_drawing import footprint, moved_line


@dataclass(frozen=True)
class ObjectChange:
    """One object of the episode.

    Attributes:
        id: of the object.
        item: its box in the scene; None if the scene has no such object.
        start: initial pose.
        goal: None if it has none.
        end: final pose; None if unknown or held.
        held: whether the robot held it at the end.
        must_stay: it has no goal, and there is no evaluation program that could have one.
        measured: distance and angle between final and required pose, as text.
        tests: per criterion of the task, whether it holds; empty if unknown.
    """

    id: str
    item: SceneObject | None
    start: ObjectPose
    goal: ObjectPose | None
    end: ObjectPose | None
    held: bool
    must_stay: bool
    measured: str
    tests: Mapping[str, bool]

    @property
    def moved_m(self) -> float | None:
        """Distance between start and end; None if unknown."""
        return None if self.end is None else math.dist(self.start.position, self.end.position)

    @property
    def passed(self) -> bool | None:
        """Whether all its tests hold; None if unknown."""
        return all(self.tests.values()) if self.tests else None


def object_changes(
    header: EpisodeHeader,
    records: Sequence[StepRecord],
    stated: Mapping[str, ObjectPose],
    criteria: ObjectCriteria | None,
) -> tuple[ObjectChange, ...]:
    """The objects of a rearrangement; none for other tasks.

    Args:
        header: of the log.
        records: of the log.
        stated: poses by people's verdicts, which overrule the log's.
        criteria: test results of the scorer; None without a score.
    """
    if header.task.rearrangement is None:
        return ()
    items = {item.id: item for item in header.scene.objects}
    last = {**records[-1].objects, **stated}
    changes = []
    for each in header.episode.objects:
        held = each.id in records[-1].held and each.id not in stated
        end = None if held else last.get(each.id)
        changes.append(
            ObjectChange(
                id=each.id,
                item=items.get(each.id),
                start=each.start,
                goal=each.goal,
                end=end,
                held=held,
                must_stay=each.goal is None and header.episode.program is None,
                measured=_measured(each.goal or each.start, end),
                tests={} if criteria is None else criteria.of(each.id),
            )
        )
    return tuple(changes)


def _measured(required: ObjectPose, end: ObjectPose | None) -> str:
    if end is None or end.fault is not None or required.fault is not None:
        return ""
    turned_deg = math.degrees(angle_between(end.quaternion, required.quaternion))
    return f"{math.dist(end.position, required.position):.2f} m, {turned_deg:.0f}°"


def objects_overlay(changes: Sequence[ObjectChange], unit: float) -> Markup:
    """Each object's start (dashed), goal (green) and end, with a line from start to end."""
    parts = []
    for change in changes:
        for name, pose in (("before", change.start), ("wanted", change.goal), (_end_class(change), change.end)):
            if pose is not None:
                parts.append(_shape(name, change, pose, unit))
        x_m, y_m, _ = (change.end or change.start).position
        parts.append(element("text", "object-label", change.id, x=x_m, y=-y_m - 1.6 * unit, font_size=1.8 * unit))
        if change.end is not None and change.moved_m and change.moved_m > unit:
            parts.append(moved_line(change.start.position, change.end.position))
    return Markup("").join(parts)


def _end_class(change: ObjectChange) -> str:
    return {True: "after won", False: "after lost", None: "after"}[change.passed]


def _shape(name: str, change: ObjectChange, pose: ObjectPose, unit: float) -> Markup:
    """The object's footprint at a pose, with a visible minimum size."""
    size = change.item.size if change.item is not None else (0.0, 0.0, 0.0)
    yaw_deg = math.degrees(pose.yaw_rad)
    place = SceneObject(change.id, change.id, pose.position, size, yaw_deg)
    return footprint(name, place, max(size[0], 1.6 * unit), max(size[1], 1.6 * unit), change.id)
