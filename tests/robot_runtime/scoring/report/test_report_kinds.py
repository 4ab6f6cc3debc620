"""Reports of each kind of task: alignment, criteria, answers, rooms over time, objects before and after."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.metrics.functional.dtw import dtw
from robot_runtime.recording.verdict_files import add_verdict
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import ANSWER, EndReason, EpisodeEnd, EpisodeHeader
from robot_runtime.scenes.objects import ObjectPose, ObjectSource
from robot_runtime.scoring.report import episode_charts, group_charts
from robot_runtime.scoring.report.episode_data import EpisodeData, ObjectCriteria, load_episode_data
from robot_runtime.scoring.report.outcome import criteria, outcome, question_result
from robot_runtime.scoring.report.pages import write_report
from robot_runtime.scoring.statistics.intervals import Interval
from robot_runtime.scoring.summary import EpisodeScore
from robot_runtime.task_kinds.rearrangement.report import object_changes, objects_overlay
from robot_runtime.tasks.episode import Episode, Instruction, Question, RearrangedObject
from robot_runtime.tasks.task import Category, Rearrangement, Success

ROUTE = ((1.0, 1.9, 0.0), (2.0, 1.9, 0.0), (3.0, 1.9, 0.0), (4.0, 1.9, 0.0))


def header_of(kind: str, success: Success, episode: Episode, **changes: Any) -> EpisodeHeader:
    task = synthetic.pointnav_task(name=kind, kind=kind, sensors=("rgb", "depth"), success=success, **changes)
    return synthetic.header(task, episode)


def recorded(folder: Path, header: EpisodeHeader, actions: list, answer: object = None) -> Path:
    records = synthetic.drive(header, actions)
    if answer is not None:
        records[-1] = replace(records[-1], policy_info={ANSWER: answer})
    recorder = Recorder(folder)
    reason = EndReason.STOP if actions[-1] is STOP else EndReason.MAX_STEPS
    synthetic.play(recorder, header, records, synthetic.end_of(records, reason))
    assert recorder.path is not None
    return recorder.path


def page(path: Path, folder: Path) -> str:
    write_report([path], folder / "report.html")
    return " ".join((folder / "report.html").read_text(encoding="utf-8").split())


def shown(path: Path) -> EpisodeData:
    _, data = load_episode_data(path)
    assert data is not None
    return data


class TestInstruction:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        said = synthetic.pointnav_episode(instruction=Instruction("Go <east>."), reference_path=ROUTE)
        return recorded(
            tmp_path, header_of("vln", Success("distance", 3.0), said), [FORWARD] * 8 + [LEFT, FORWARD, STOP]
        )

    def test_the_pairs_are_those_that_ndtw_adds(self, path: Path) -> None:
        data = shown(path)
        total_m = sum(math.dist(*pair) for pair in data.pairs)
        ndtw = data.score.metrics["ndtw"]
        assert ndtw == pytest.approx(math.exp(-total_m / (len(ROUTE) * 3.0)))
        driven = [(data.poses[0].x_m, data.poses[0].y_m)]
        for pose in data.poses:
            if (pose.x_m, pose.y_m) != driven[-1]:
                driven.append((pose.x_m, pose.y_m))
        assert total_m == pytest.approx(dtw([point[:2] for point in ROUTE], driven))
        assert data.pairs[0] == ((1.0, 1.9), (1.0, 1.9))

    def test_page(self, path: Path, tmp_path: Path) -> None:
        text = page(path, tmp_path)
        assert "Go &lt;east&gt;." in text
        assert text.count('class="pair"') == len(shown(path).pairs)
        assert text.count('class="node"') == len(ROUTE)
        assert "aligned by DTW" in text

    def test_without_a_reference_there_is_nothing_to_align(self, tmp_path: Path) -> None:
        said = synthetic.pointnav_episode(instruction=Instruction("Go."))
        data = shown(recorded(tmp_path, header_of("vln", Success("distance", 3.0), said), [STOP]))
        assert (data.reference, data.pairs) == ((), ())


class TestObjectNav:
    def test_a_failure_says_which_criterion_it_missed(self, record) -> None:
        data = shown(record(synthetic.header(synthetic.objectnav_task()), [FORWARD, STOP]))
        assert [criterion.met for criterion in criteria(data)] == [True, True, False, True]
        assert "limit 1 m" in criteria(data)[2].detail
        assert outcome(data.score) == ("lost", "failed: not near")

    def test_a_criterion_that_is_not_known_is_neither_met_nor_missed(self, record, tmp_path: Path) -> None:
        end = EpisodeEnd(EndReason.MAX_STEPS, 4, 99)
        path = record(synthetic.header(synthetic.objectnav_task()), [FORWARD] * 4, end)
        assert [criterion.met for criterion in criteria(shown(path))] == [False, True, True, None]
        assert "sees the object?" in page(path, tmp_path)

    def test_a_verdict_is_named_with_who_and_when(self, record, tmp_path: Path) -> None:
        path = record(synthetic.header(synthetic.objectnav_task()), [FORWARD] * 4 + [STOP])
        add_verdict(path, "Ada", visible=False, note="a bottle stood before it")
        text = page(path, tmp_path)
        for expected in ("Ada&#39;s", "the object was not visible: a bottle", "Some scores use verdicts of Ada"):
            assert expected in text, expected


QUESTION = Question("What color is the mug?", "red", "color")


class TestQuestion:
    def header(self) -> EpisodeHeader:
        episode = synthetic.pointnav_episode(question=QUESTION)
        return header_of("eqa", Success("answer"), episode)

    @pytest.mark.parametrize(
        ("answer", "given", "rank", "right"),
        [
            ("Red", "Red", None, True),
            ({"blue": 0.5, "red": 0.4, "green": 0.1}, "blue", 2.0, False),
            (None, "none", None, False),
        ],
    )
    def test_question_and_answer(self, tmp_path: Path, answer: object, given: str, rank: float, right: bool) -> None:
        path = recorded(tmp_path, self.header(), [FORWARD, STOP], answer)
        panel = question_result(shown(path))
        assert panel is not None
        assert (panel.question, panel.truth, panel.given) == (QUESTION.text, "red", given)
        assert (panel.rank, panel.right) == (rank, right)
        text = page(path, tmp_path)
        assert ("true is: red" in text) is not right
        assert ("rank of the truth: 2" in text) is (rank is not None)

    def test_room_over_time(self, tmp_path: Path) -> None:
        data = shown(recorded(tmp_path, self.header(), [FORWARD] * 12 + [STOP]))
        svg = str(episode_charts.room_plot(data))
        assert re.findall(r"<title>(.*?)</title>", svg) == ["living room, steps 0 to 8", "kitchen, steps 9 to 13"]
        assert svg.count('class="room-goal"') == 1


def test_a_goal_room_is_drawn_as_an_area(tmp_path: Path) -> None:
    success = Success("room", when="end")
    header = header_of(
        "areagoal",
        success,
        replace(synthetic.pointnav_episode(), category="kitchen", goals=()),
        categories={"kitchen": Category(0, ("kitchen",))},
    )
    text = page(recorded(tmp_path, header, [FORWARD] * 12 + [STOP]), tmp_path)
    assert text.count('class="goal-room"') == 1
    assert 'class="viewpoint"' not in text
    assert 'class="room-goal"' in text


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
            rearrangement=rules,
        )
        flat = synthetic.scene()
        movable = tuple(replace(item, movable=item.id != "table_1") for item in flat.objects)
        scene = replace(flat, file=replace(flat.file, objects=movable))
        episode = replace(synthetic.pointnav_episode(), goals=(), objects=objects)
        return synthetic.header(task, episode, scene=scene)

    def changes(self, end: dict[str, ObjectPose], held: tuple[str, ...] = (), said: dict | None = None, criteria=None):
        header = self.header(ObjectPose((4.0, 2.0, 0.76)))
        (record,) = synthetic.drive(synthetic.header(), [])
        return object_changes(header, [replace(record, objects=end, held=held)], said or {}, criteria)

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
        records = [replace(one, objects=poses if one.index else start) for one in records]
        recorder = Recorder(tmp_path)
        synthetic.play(recorder, header, records)
        assert recorder.path is not None
        data = shown(recorder.path)
        assert data.score.reason == ""
        assert data.criteria == ObjectCriteria({"mug_1": {"translation": True, "angle": True}}, ("sofa_1",))
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
                    {"mug_1": ObjectPose((4.0, 2.1, 0.76))},
                    criteria=ObjectCriteria({"mug_1": {"iou": True}}, None),
                ),
                0.06,
            )
        )
        assert [svg.count(f'class="{name}"') for name in ("before", "wanted", "after won", "moved")] == [2, 1, 1, 1]
        assert "<title>mug_1</title>" in svg

    def test_tasks_that_move_nothing_show_none(self) -> None:
        header = synthetic.header()
        assert object_changes(header, synthetic.drive(header, []), {}, None) == ()

    def test_between_phases_the_track_is_interrupted(self, record) -> None:
        data = shown(record(synthetic.header(), [FORWARD] * 3))
        walked = [replace(one, phase="walkthrough" if one.index < 2 else "unshuffle") for one in data.records]
        assert [len(track) for track in replace(data, records=tuple(walked)).tracks] == [2, 2]


class TestPlots:
    @given(
        st.lists(st.tuples(st.floats(0, 1e3), st.booleans()), min_size=1, max_size=30),
    )
    def test_success_by_distance_counts_every_episode(self, episodes: list[tuple[float, bool]]) -> None:
        tips = re.findall(r"<title>.*?: (\d+) of (\d+),", str(group_charts.success_by_distance(episodes)))
        assert sum(int(won) for won, _ in tips) == sum(won for _, won in episodes)
        assert sum(int(count) for _, count in tips) == len(episodes)

    @given(
        st.lists(st.floats(0, 1), min_size=1, max_size=30),
        st.sampled_from([1.0, None]),
        st.floats(0, 1) | st.just(math.nan),
    )
    def test_a_distribution_counts_every_episode(self, values: list[float], high: float | None, low: float) -> None:
        svg = str(group_charts.distribution("x", values, Interval(sum(values) / len(values), low, 1.0), high))
        counts = re.findall(r": (\d+) episodes?</title>", svg)
        assert sum(map(int, counts)) == len(values)
        assert "nan" not in svg

    @given(st.lists(st.integers(0, 600), min_size=1, max_size=30))
    def test_counts_fall_into_classes_that_double(self, counts: list[int]) -> None:
        svg = str(group_charts.count_plot("x", counts))
        classes = re.findall(r"<title>(\d+)(?:–(\d+))?: (\d+) episode", svg)
        assert sum(int(number) for _, _, number in classes) == len(counts)
        for low, high, number in classes:
            inside = [count for count in counts if int(low) <= count <= int(high or low)]
            assert len(inside) == int(number)

    def test_what_cannot_be_plotted_is_empty(self) -> None:
        assert group_charts.distribution("x", [math.inf], Interval(math.inf, math.inf, math.inf)) == ""

    @pytest.mark.parametrize(
        ("metrics", "end", "text"),
        [
            ({"success": True}, "stop", "success"),
            ({"success": False}, "max_steps", "failed: step limit"),
            ({"success": False}, "stop", "failed: stopped elsewhere"),
            ({"success": False, "answer_accuracy": False}, "stop", "failed: wrong or no answer"),
        ],
    )
    def test_outcomes(self, metrics: dict, end: str, text: str) -> None:
        assert outcome(EpisodeScore(Path("x"), end=end, metrics=metrics))[1] == text

    def test_poses_that_are_lost_end_the_picture_and_not_the_report(self, tmp_path: Path) -> None:
        header = synthetic.header()
        records = synthetic.drive(header, [FORWARD] * 3 + [STOP])
        records[2] = replace(records[2], referee=replace(records[2].referee, pose=SE2(math.nan, 0.0, 0.0)))
        recorder = Recorder(tmp_path)
        synthetic.play(recorder, header, records)
        assert recorder.path is not None
        assert len(shown(recorder.path).poses) == 2
        assert "is not finite" in page(recorder.path, tmp_path)
