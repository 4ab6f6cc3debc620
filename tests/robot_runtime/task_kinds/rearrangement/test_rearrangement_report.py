"""Panels of a rearrangement: objects before and after, and their tests."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from kind_episodes import page, panels, shown
from rearranged import with_state
from synthetic import FORWARD, STOP

from robot_runtime.actions.discrete import Action
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.objects import ObjectPose, ObjectSource
from robot_runtime.scoring.report.panels import outcome
from robot_runtime.task_kinds.rearrangement.report import ObjectCriteria, object_changes, objects_overlay
from robot_runtime.task_kinds.rearrangement.settings import Rearrangement
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.tasks.episode import RearrangedObject
from robot_runtime.tasks.task import Success

MUG_POSE = ObjectPose(synthetic.MUG.center)


class TestObjects:
    def header(self, goal: ObjectPose | None) -> EpisodeHeader:
        rules = Rearrangement("geometric", (0.5, 0.6), 1.5, max_translation_m=0.3, max_angle_deg=30, harm_min_iou=0.5)
        objects = (RearrangedObject("mug_1", MUG_POSE, goal), RearrangedObject("sofa_1", ObjectPose((0.5, 3.3, 0.4))))
        task = synthetic.pointnav_task(
            name="tidy",
            kind="rearrangement",
            sensors=("rgb",),
            actions=(STOP, FORWARD, Action.GRAB_RELEASE),
            success=Success("objects"),
            settings=rules,
        )
        flat = synthetic.scene()
        movable = tuple(replace(item, movable=item.id != "table_1") for item in flat.objects)
        scene = replace(flat, file=replace(flat.file, objects=movable))
        episode = replace(
            synthetic.pointnav_episode(),
            goals=(),
            details=replace(Layout.of(synthetic.pointnav_episode()), objects=objects),
        )
        return synthetic.header(task, episode, scene=scene)

    def changes(self, end: dict[str, ObjectPose], held: tuple[str, ...] = (), said: dict | None = None, criteria=None):
        header = self.header(ObjectPose((4.0, 2.0, 0.76)))
        (record,) = synthetic.drive(synthetic.header(), [])
        return object_changes(header, [with_state(record, poses=end, held=held)], said or {}, criteria)

    def test_each_criterion_of_each_object(self) -> None:
        turned = ObjectPose((4.1, 2.0, 0.76), (math.cos(0.5), 0.0, 0.0, math.sin(0.5)))
        criteria = ObjectCriteria({"mug_1": {"translation": True, "angle": False}}, ())
        mug, sofa = self.changes({"mug_1": turned, "sofa_1": ObjectPose((0.5, 3.4, 0.4))}, criteria=criteria)
        assert dict(mug.tests) == {"translation": True, "angle": False}
        assert (mug.passed, sofa.passed, sofa.must_stay) == (False, True, True)
        assert (mug.measured, sofa.measured) == ("0.10 m, 57°", "0.10 m, 0°")
        assert mug.moved_m == pytest.approx(math.dist(MUG_POSE.position, turned.position))

    def test_without_a_score_nothing_is_passed_or_missed(self) -> None:
        assert [change.passed for change in self.changes({"mug_1": MUG_POSE})] == [None, None]

    def test_what_is_held_or_unknown_has_no_end(self) -> None:
        mug, sofa = self.changes({}, held=("mug_1",))
        assert (mug.held, mug.end, mug.passed, sofa.end, sofa.moved_m) == (True, None, None, None, None)

    def test_what_an_operator_measured_overrules_the_log(self) -> None:
        goal = ObjectPose((4.0, 2.0, 0.76))
        mug, _ = self.changes({"mug_1": MUG_POSE}, said={"mug_1": goal})
        assert (mug.end, mug.measured) == (goal, "0.00 m, 0°")

    def test_page_of_a_scored_rearrangement(self, tmp_path: Path) -> None:
        header = replace(self.header(ObjectPose((4.0, 2.0, 0.76))), object_source=ObjectSource.SIMULATOR)
        records = synthetic.drive(header, [FORWARD, STOP])
        poses = {"mug_1": ObjectPose((4.1, 2.0, 0.76)), "sofa_1": ObjectPose((2.5, 3.3, 0.4))}
        start = {"mug_1": MUG_POSE, "sofa_1": ObjectPose((0.5, 3.3, 0.4))}
        records = [with_state(one, poses=poses if one.index else start) for one in records]
        recorder = Recorder(tmp_path)
        synthetic.play(recorder, header, records)
        assert recorder.path is not None
        data = shown(recorder.path)
        assert data.score.reason == ""
        assert panels(recorder.path).criteria_of_objects == ObjectCriteria(
            {"mug_1": {"translation": True, "angle": True}}, ("sofa_1",)
        )
        assert outcome(data.score) == ("lost", "failed: 100% of targets met, harm done")
        text = page(recorder.path, tmp_path)
        assert [text.count(f'class="{name}"') for name in ("before", "wanted", "after won", "after lost")] == [
            2,
            1,
            1,
            1,
        ]
        assert '<span class="tag lost">unharmed</span>' in text

    def test_before_goal_and_after_are_drawn(self) -> None:
        svg = str(
            objects_overlay(
                self.changes(
                    {"mug_1": ObjectPose((4.0, 2.1, 0.76))}, criteria=ObjectCriteria({"mug_1": {"iou": True}}, None)
                ),
                0.06,
            )
        )
        assert [svg.count(f'class="{name}"') for name in ("before", "wanted", "after won", "moved")] == [2, 1, 1, 1]
        assert "<title>mug_1</title>" in svg
