"""Metrics of an episode, computed by hand in a flat of two rooms, live and from the log."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import synthetic
from raising import raises_naming
from synthetic import DOWN, FORWARD, LEFT, MUG, RIGHT, STOP

from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError, UnreachableGoal
from robot_runtime.hal import HeadState, Intrinsics, Zone
from robot_runtime.metrics.episode_metrics import EpisodeScorer, Rules
from robot_runtime.metrics.functional.path import path_length
from robot_runtime.metrics.measures import COMMON
from robot_runtime.metrics.visibility import points_in_map, visible_pixels
from robot_runtime.recording.json_output import plain
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import ActionResult, EndReason, EpisodeEnd, EpisodeHeader, Outcome
from robot_runtime.scenes.scene import SceneObject
from robot_runtime.scoring.summary import score_steps
from robot_runtime.tasks.task import Success


def score(header: EpisodeHeader, actions: list[Action], tilt_rad: float = 0.0, rules: Rules | None = None) -> dict:
    scorer = EpisodeScorer(header, rules)
    records = synthetic.drive(header, actions, tilt_rad)
    for record in records:
        scorer.on_step(record)
    stopped = bool(actions) and actions[-1] is STOP
    scorer.on_end(synthetic.end_of(records, EndReason.STOP if stopped else EndReason.MAX_STEPS))
    return scorer.metrics()


class TestPointNav:
    def test_straight_to_the_goal(self) -> None:
        metrics = score(synthetic.header(), [FORWARD] * 12 + [STOP])
        assert tuple(metrics) == tuple(metric.name for metric in COMMON)
        assert metrics["success"] is True
        assert metrics["spl"] == pytest.approx(1.0)
        assert metrics["soft_spl"] == pytest.approx(1.0)
        assert metrics["distance_to_goal"] == pytest.approx(0.0, abs=1e-6)
        assert (metrics["collisions"], metrics["steps"]) == (0, 13)
        assert metrics["path_length_m"] == pytest.approx(3.0)
        assert metrics["shortest_path_m"] == pytest.approx(3.0)

    def test_near_enough_with_a_detour(self) -> None:
        """Back and forth once: 11 steps to the goal less 0.25 m, 2 more of detour: p = 3.25 m, l = 3 m."""
        turn = [LEFT] * 6
        actions = [FORWARD, *turn, FORWARD, *turn, *[FORWARD] * 11, STOP]
        metrics = score(synthetic.header(), actions)
        assert metrics["success"] is True
        assert metrics["path_length_m"] == pytest.approx(3.25)
        assert metrics["spl"] == pytest.approx(3 / 3.25)
        assert metrics["soft_spl"] == pytest.approx((1 - 0.25 / 3) * 3 / 3.25)
        assert metrics["steps"] == len(actions)

    def test_a_motion_that_a_fault_ended_belongs_to_the_path(self) -> None:
        header = synthetic.header()
        scorer, records = EpisodeScorer(header), synthetic.drive(header, [FORWARD] * 4)
        for record in records:
            scorer.on_step(record)
        asked, measured = Displacement(forward_m=0.25), Displacement(forward_m=0.2)
        result = ActionResult(Outcome.FAULT, asked, measured, Zone.NONE, 2.9, "base: silent")
        scorer.on_end(EpisodeEnd(EndReason.FAULT, 4, 9, "base: silent", FORWARD, result))
        assert scorer.metrics()["path_length_m"] == pytest.approx(1.2)

    def test_without_stop_there_is_no_success(self) -> None:
        metrics = score(synthetic.header(), [FORWARD] * 12)
        assert metrics["success"] is False
        assert metrics["spl"] == 0.0
        assert metrics["soft_spl"] == pytest.approx(1.0)

    @pytest.mark.parametrize(("inclusive", "succeeded"), [(False, False), (True, True)])
    def test_threshold_edge(self, inclusive: bool, succeeded: bool) -> None:
        """Stopped exactly 0.5 m before the goal."""
        episode = synthetic.pointnav_episode(start=SE2(3.5, 1.9, 0.0))
        task = synthetic.pointnav_task(success=Success("distance", 0.5, inclusive=inclusive))
        assert score(synthetic.header(task, episode), [STOP])["success"] is succeeded

    def test_through_the_wall_is_far(self) -> None:
        """0.4 m across the wall from the goal, but metres around it."""
        episode = synthetic.pointnav_episode(start=SE2(2.7, 0.5, 0.0), goals=(replace(_GOAL, x_m=3.3, y_m=0.5),))
        metrics = score(synthetic.header(episode=episode), [STOP])
        assert metrics["success"] is False
        # Around the corner of the wall at (3.0 +- 0.05, 1.4), which the robot's radius rounds off.
        assert 2 * math.hypot(0.3, 1.08) * 0.9 < float(metrics["distance_to_goal"] or 0) < 2.9

    def test_collisions_are_steps_that_ended_in_contact(self) -> None:
        """Past the sofa's corner at (0.9, 2.7) with 0.1 m to spare sideways: a radius of 0.18 m touches at y = 2.55."""
        metrics = score(synthetic.header(), [LEFT] * 3 + [FORWARD] * 9 + [RIGHT, STOP])
        assert metrics["collisions"] == 7  # two forwards fit into 0.65 m
        assert metrics["path_length_m"] == pytest.approx(0.65, abs=0.05)

    def test_start_at_the_goal(self) -> None:
        episode = synthetic.pointnav_episode(start=SE2(4.0, 1.9, 0.0))
        assert score(synthetic.header(episode=episode), [STOP])["spl"] == 1.0
        assert score(synthetic.header(episode=episode), [STOP], rules=Rules(zero_path="zero"))["spl"] == 0.0

    def test_path_length_of_the_dataset_when_asked_for(self) -> None:
        header = synthetic.header(episode=synthetic.pointnav_episode(shortest_path_m=1.5))
        metrics = score(header, [FORWARD] * 12 + [STOP], rules=Rules(shortest_path="dataset"))
        assert metrics["shortest_path_m"] == 1.5
        assert metrics["spl"] == pytest.approx(0.5)
        with raises_naming(UnreachableGoal, "shortest_path"):
            score(synthetic.header(), [STOP], rules=Rules(shortest_path="dataset"))

    def test_no_way_from_the_start(self) -> None:
        episode = synthetic.pointnav_episode(start=SE2(-5.0, 0.0, 0.0))
        with raises_naming(UnreachableGoal, "(-5.00, 0.00)"):
            EpisodeScorer(synthetic.header(episode=episode)).on_step(
                replace(_still(), referee=replace(_still().referee, pose=episode.start))
            )

    def test_before_the_first_step_nothing_is_known(self) -> None:
        assert set(EpisodeScorer(synthetic.header()).metrics().values()) == {None}

    def test_an_episode_that_a_fault_ended_has_not_succeeded(self) -> None:
        header = synthetic.header()
        scorer = EpisodeScorer(header)
        records = synthetic.drive(header, [FORWARD] * 12 + [STOP])
        for record in records:
            scorer.on_step(record)
        assert scorer.metrics()["success"] is True
        scorer.on_end(synthetic.end_of(records, EndReason.FAULT))
        assert scorer.metrics()["success"] is False

    def test_choices_are_json_and_name_every_rule(self) -> None:
        choices = EpisodeScorer(synthetic.header()).choices()
        json.dumps(plain(choices))
        assert choices["success"]["inclusive"] is False
        assert {"scorer", "zero_path", "shortest_path", "sampling", "robot_radius_m", "box_margin_m"} <= choices.keys()


class TestVisible:
    """RoboTHOR's rule, judged from the depth image of the stop."""

    @pytest.mark.parametrize(
        ("actions", "seen"),
        [
            pytest.param([FORWARD] * 4 + [STOP], True, id="in front of it, 0.6 m from the axis"),
            pytest.param([FORWARD] * 4 + [DOWN, STOP], True, id="looking down"),
            pytest.param([FORWARD] * 4 + [LEFT] * 6 + [STOP], False, id="turned away"),
            pytest.param([FORWARD, STOP], False, id="in view, but 1.35 m away"),
            pytest.param([FORWARD] * 4, False, id="no stop"),
        ],
    )
    def test_rule(self, actions: list[Action], seen: bool) -> None:
        header = synthetic.header(synthetic.objectnav_task(width=160, height=120))
        assert score(header, actions)["success"] is seen

    def test_behind_a_wall_does_not_count(self) -> None:
        hidden = replace(MUG, center=(3.2, 1.0, 0.76))
        scene = replace(synthetic.scene(), file=replace(synthetic.scene().file, objects=(hidden,)))
        episode = synthetic.objectnav_episode(start=SE2(2.5, 1.0, 0.0))
        header = synthetic.header(synthetic.objectnav_task(width=160, height=120), episode, scene=scene)
        assert score(header, [STOP])["success"] is False

    def test_the_table_is_not_the_mug(self) -> None:
        """The pixels around the mug's foot see the table top; with the mug taken away they must not count."""
        task = synthetic.objectnav_task(width=160, height=120)
        intrinsics, pose = task.camera.intrinsics, SE2(4.0, 2.2, 0.0)
        head = HeadState(0, 0.0, -0.4, False)
        frame = synthetic.render(intrinsics, pose, head.tilt_rad)
        points = points_in_map(frame.depth_m, intrinsics, synthetic.MOUNT, head, pose)
        assert visible_pixels(points, MUG, pose, 1.0) > 20
        elsewhere = replace(MUG, center=(4.6, 2.0, MUG.center[2]))
        assert visible_pixels(points, elsewhere, pose, 1.0) == 0

    def test_min_visible_pixels(self) -> None:
        task = synthetic.objectnav_task(width=160, height=120)
        for pixels, seen in ((5, True), (100_000, False)):
            header = synthetic.header(replace(task, success=replace(task.success, min_visible_pixels=pixels)))
            assert score(header, [FORWARD] * 4 + [STOP])["success"] is seen

    def test_points_of_a_turned_and_tilted_camera(self) -> None:
        """One pixel in the image's centre, 2 m ahead, camera 30 degrees down at 0.88 m, robot at (1, 2) facing +y."""
        depth_m = np.zeros((3, 3), np.float32)
        depth_m[1, 1] = 2.0
        head = HeadState(0, 0.0, math.radians(-30), False)
        (point,) = points_in_map(depth_m, Intrinsics(3, 3, 3, 3, 1, 1), (0.1, 0.0, 0.88), head, SE2(1, 2, math.pi / 2))
        assert point == pytest.approx([1.0, 2.0 + 0.1 + 2 * math.cos(math.pi / 6), 0.88 - 1.0])

    def test_box_is_turned_with_its_object(self) -> None:
        item = SceneObject("x", "Mug", (0.0, 0.0, 0.5), (1.0, 0.1, 0.2), 90.0)
        inside, outside = np.array([[0.0, 0.45, 0.5]]), np.array([[0.45, 0.0, 0.5]])
        assert visible_pixels(inside, item, SE2(), 1.0) == 1
        assert visible_pixels(outside, item, SE2(), 1.0) == 0

    def test_distance_is_from_the_vertical_axis(self) -> None:
        item = SceneObject("x", "Mug", (0.9, 0.0, 1.8), (0.2, 0.2, 0.2))
        assert visible_pixels(np.array([[0.9, 0.0, 1.8]]), item, SE2(), 1.0) == 1
        assert visible_pixels(np.array([[0.9, 0.0, 1.8]]), item, SE2(), 0.8) == 0

    def test_a_stop_without_its_image_is_refused(self, record) -> None:
        path = record(synthetic.header(synthetic.objectnav_task()), [STOP])
        with LogReader(path) as log:
            scorer = EpisodeScorer(log.header)
            first, stop = log.steps(images=False)
            scorer.on_step(first)
            assert scorer.needs_frame(stop)
            with raises_naming(RecordingError, "step 1", "depth image"):
                scorer.on_step(stop)


class TestFromTheLog:
    @pytest.mark.parametrize(
        ("task", "actions"),
        [
            (synthetic.pointnav_task(), [LEFT] * 3 + [FORWARD] * 9 + [RIGHT, STOP]),
            (synthetic.objectnav_task(), [FORWARD] * 4 + [STOP]),
            (synthetic.objectnav_task("distance"), [FORWARD] * 4 + [LEFT, FORWARD, STOP]),
        ],
        ids=["pointnav", "visible", "view points"],
    )
    def test_same_numbers_as_live(self, record, task, actions) -> None:
        header = synthetic.header(task)
        with LogReader(record(header, actions)) as log:
            assert score_steps(log).metrics() == score(header, actions)

    def test_a_log_without_a_step(self, record, tmp_path) -> None:
        path = record(synthetic.header(), [STOP])
        whole = path.read_bytes()
        with LogReader(path) as log:
            first_step = log._chunks[1].span.offset
        path.write_bytes(whole[: first_step - 9])
        with LogReader(path) as log, raises_naming(RecordingError, path):
            score_steps(log)

    def test_distances_go_down_on_the_way_to_the_goal(self) -> None:
        header = synthetic.header()
        scorer = EpisodeScorer(header)
        for record in synthetic.drive(header, [FORWARD] * 12):
            scorer.on_step(record)
        assert scorer.distances_m() == pytest.approx([3 - 0.25 * i for i in range(13)], abs=1e-6)
        assert path_length([(p.x_m, p.y_m) for p in scorer.poses]) == pytest.approx(3.0)


_GOAL = synthetic.pointnav_episode().goals[0]


def _still():
    return synthetic.drive(synthetic.header(), [])[0]
