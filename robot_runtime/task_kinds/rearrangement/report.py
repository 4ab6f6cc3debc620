"""Objects of a rearrangement in a report: before, after, where they should be, and their tests."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup
from typing_extensions import override

from robot_runtime.common.yaml_text import dump_yaml
from robot_runtime.metrics.functional.rearrangement import angle_between
from robot_runtime.recording.json_output import plain
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.scene import SceneObject
from robot_runtime.scoring.report.charts import element
from robot_runtime.scoring.report.map_drawing import footprint, segments
from robot_runtime.scoring.report.panels import Layer, LegendEntry, ReportPanels
from robot_runtime.scoring.report.rendering import render
from robot_runtime.scoring.summary import EpisodeScore
from robot_runtime.task_kinds.rearrangement.measures import RearrangementMeasures
from robot_runtime.task_kinds.rearrangement.task import Layout


@dataclass(frozen=True)
class ObjectCriteria:
    """Test results of a rearrangement.

    Attributes:
        criteria: results of the tests of each object with a goal, by criterion.
        harmed: ids of displaced objects that were to stay; None without such a test.
    """

    criteria: Mapping[str, Mapping[str, bool]]
    harmed: tuple[str, ...] | None

    def of(self, object_id: str) -> Mapping[str, bool]:
        """Return the tests of an object."""
        if object_id in self.criteria or self.harmed is None:
            return self.criteria.get(object_id, {})
        return {"unharmed": object_id not in self.harmed}


@dataclass(frozen=True)
class ObjectChange:
    """An object of the episode.

    Attributes:
        id: id of the object.
        item: box of the object in the scene; None if the scene has no such object.
        start: initial pose.
        goal: goal pose; None if the object has none.
        end: final pose; None if unknown or held.
        held: whether the robot held the object at the end.
        must_stay: whether the object has no goal, and no evaluation program could give it one.
        measured: distance and angle between final and required pose, as text.
        tests: whether each criterion of the task holds, by name; empty if unknown.
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
    """The objects of a rearrangement; poses that people have stated overrule the log's."""
    items = {item.id: item for item in header.scene.objects}
    last = {**records[-1].state.poses, **stated}
    changes = []
    layout = Layout.of(header.episode)
    for each in layout.objects:
        held = each.id in records[-1].state.held and each.id not in stated
        end = None if held else last.get(each.id)
        changes.append(
            ObjectChange(
                id=each.id,
                item=items.get(each.id),
                start=each.start,
                goal=each.goal,
                end=end,
                held=held,
                must_stay=each.goal is None and layout.program is None,
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


class RearrangementPanels(ReportPanels):
    """Objects before and after; there is no goal of the robot, and no distance to it."""

    @classmethod
    @override
    def failure(cls, score: EpisodeScore) -> str:
        harm = ", harm done" if score.metrics["criterion_no_harm"] is False else ""
        return f"{score.metrics['targets_met']:.0%} of targets met{harm}"

    @cached_property
    def criteria_of_objects(self) -> ObjectCriteria | None:
        """Test results of the objects; None without a score."""
        measures, score = self.data.measures, self.data.score
        if measures is None:
            return None
        assert isinstance(measures, RearrangementMeasures)
        harmed = None if score.metrics["criterion_no_harm"] is None else tuple(measures.harmed())
        return ObjectCriteria(measures.criteria(), harmed)

    @cached_property
    def changes(self) -> tuple[ObjectChange, ...]:
        """The objects of the episode."""
        data = self.data
        stated = {name: pose for verdict in data.score.verdicts for name, pose in verdict.objects.items()}
        return object_changes(data.header, data.records, stated, self.criteria_of_objects)

    @override
    def statements(self) -> Markup:
        program = Layout.of(self.data.header.episode).program
        if program is None:
            return Markup("")
        text = dump_yaml(plain(program.to_document()))
        return _PROGRAM.format(text)

    @override
    def marks(self, unit: float) -> Layer:
        return Layer(objects_overlay(self.changes, unit), _LEGEND if self.changes else ())

    @override
    def goals(self, unit: float) -> Layer:
        return Layer()

    @override
    def tables(self) -> Markup:
        if not self.changes:
            return Markup("")
        return Markup(render("objects.html", "robot_runtime.task_kinds.rearrangement", changes=self.changes))


_PROGRAM = Markup(
    '<div class="says"><span class="small muted">success condition at the end</span><pre class="small">{}</pre></div>'
)
_LEGEND = (
    LegendEntry("object before", "var(--muted)", "hollow"),
    LegendEntry("where it should be", "var(--goal)", "hollow"),
    LegendEntry("after", "var(--muted)"),
)


def objects_overlay(changes: Sequence[ObjectChange], unit: float) -> Markup:
    """Each object's start (dashed), goal (green) and end, with a line from start to end."""
    parts = []
    for change in changes:
        end = {True: "after won", False: "after lost", None: "after"}[change.passed]
        for name, pose in (("before", change.start), ("wanted", change.goal), (end, change.end)):
            if pose is not None:
                parts.append(_shape(name, change, pose, unit))
        x_m, y_m, _ = (change.end or change.start).position
        parts.append(element("text", "object-label", change.id, x=x_m, y=-y_m - 1.6 * unit, font_size=1.8 * unit))
        if change.end is not None and change.moved_m and change.moved_m > unit:
            parts.append(segments("moved", (change.start.position, change.end.position)))
    return Markup("").join(parts)


def _shape(name: str, change: ObjectChange, pose: ObjectPose, unit: float) -> Markup:
    """The object's footprint at a pose, with a visible minimum size."""
    size = change.item.size if change.item is not None else (0.0, 0.0, 0.0)
    yaw_deg = math.degrees(pose.yaw_rad)
    place = SceneObject(change.id, change.id, pose.position, size, yaw_deg)
    return footprint(name, place, max(size[0], 1.6 * unit), max(size[1], 1.6 * unit), change.id)
