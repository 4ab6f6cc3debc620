"""What a report shows of a rearrangement: each object before and after, where it should be, and its tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from robot_runtime.objects import ObjectPose
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scene import SceneObject
from robot_runtime.scoring.drawing import footprint, n
from robot_runtime.scoring.metrics.boxes import iou
from robot_runtime.scoring.metrics.rearrangement import PoseTest, angle_between, pose_box


@dataclass(frozen=True)
class ObjectChange:
    """One object of the episode.

    Attributes:
        item: its box in the scene; None if the scene has no such object.
        end: None if nobody says, or it is held.
        must_stay: it has no goal, and no program may want it elsewhere.
        measured: what its tests measure between end and goal, as text.
        tests: per criterion of the task, whether it holds; empty if it cannot be known.
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
        """How far from its start it ended; None if nobody says."""
        return None if self.end is None else math.dist(self.start.position, self.end.position)

    @property
    def passed(self) -> bool | None:
        """Whether all its tests hold; None if it cannot be known."""
        return all(self.tests.values()) if self.tests else None


def object_changes(
    header: EpisodeHeader, records: Sequence[StepRecord], said: Mapping[str, ObjectPose]
) -> tuple[ObjectChange, ...]:
    """The objects of an episode that moves some. said: poses that people added after the run, which overrule the log's.

    None in a task that moves nothing.
    """
    rules = header.task.rearrangement
    if rules is None:
        return ()
    angle_rad = None if rules.max_angle_deg is None else math.radians(rules.max_angle_deg)
    test = PoseTest(
        max_translation_m=rules.max_translation_m,
        max_angle_rad=angle_rad,
        min_iou=rules.min_iou,
        inclusive_iou=rules.inclusive_iou,
        max_openness=rules.max_openness,
    )
    stays = PoseTest(min_iou=rules.harm_min_iou)
    items = {item.id: item for item in header.scene.objects}
    last = {**records[-1].objects, **said}
    changes = []
    for each in header.episode.objects:
        end = last.get(each.id)
        applied, wanted = (stays, each.start) if each.goal is None else (test, each.goal)
        measured, tests = _judged(applied, items.get(each.id), wanted, end)
        held = each.id in records[-1].held and each.id not in said
        changes.append(
            ObjectChange(
                id=each.id,
                item=items.get(each.id),
                start=each.start,
                goal=each.goal,
                end=None if held else end,
                held=held,
                must_stay=each.goal is None and header.episode.program is None,
                measured=measured,
                tests=tests,
            )
        )
    return tuple(changes)


def _judged(
    test: PoseTest, item: SceneObject | None, wanted: ObjectPose, end: ObjectPose | None
) -> tuple[str, dict[str, bool]]:
    """What is measured between an end and where the object should be, and which of the criteria hold."""
    if end is None or end.fault is not None or wanted.fault is not None:
        return "", {}
    apart_m = math.dist(end.position, wanted.position)
    turned_rad = angle_between(end.quaternion, wanted.quaternion)
    shared = None
    if item is not None and min(item.size) > 0:
        shared = iou(pose_box(end, item.size), pose_box(wanted, item.size))
    opened = None
    if end.openness is not None and wanted.openness is not None:
        opened = abs(end.openness - wanted.openness)
    overlap = "" if shared is None else f", overlap {shared:.2f}"
    measured = f"{apart_m:.2f} m, {math.degrees(turned_rad):.0f}°{overlap}"
    measurements = {"translation": apart_m, "angle": turned_rad, "iou": shared, "openness": opened}
    limits = {
        "translation": test.max_translation_m,
        "angle": test.max_angle_rad,
        "iou": test.min_iou,
        "openness": test.max_openness,
    }
    if all(limit is None or measurements[name] is None for name, limit in limits.items()):
        return measured, {}  # the program of the episode decides, or there is nothing to measure it by
    return measured, test.verdicts(translation_m=apart_m, angle_rad=turned_rad, iou=shared, openness=opened)


def objects_overlay(changes: Sequence[ObjectChange], unit: float) -> Markup:
    """Each object where it was (dashed), should be (green) and is, with a line from where it was to where it is."""
    parts = []
    for change in changes:
        for name, pose in (("before", change.start), ("wanted", change.goal), (_end_class(change), change.end)):
            if pose is not None:
                parts.append(_shape(name, change, pose, unit))
        if change.end is not None and change.moved_m and change.moved_m > unit:
            (x0, y0, _), (x1, y1, _) = change.start.position, change.end.position
            parts.append(Markup('<path class="moved" d="M{} {}L{} {}"/>').format(*map(n, (x0, -y0, x1, -y1))))
    return Markup("").join(parts)


def _end_class(change: ObjectChange) -> str:
    return {True: "after won", False: "after lost", None: "after"}[change.passed]


def _shape(name: str, change: ObjectChange, pose: ObjectPose, unit: float) -> Markup:
    """The object's footprint there, at least so large that it can be seen."""
    size = change.item.size if change.item is not None else (0.0, 0.0, 0.0)
    w, x, y, z = pose.quaternion
    yaw_deg = math.degrees(math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
    place = SceneObject(change.id, change.id, pose.position, size, yaw_deg)
    return footprint(name, place, max(size[0], 1.6 * unit), max(size[1], 1.6 * unit), change.id)
