"""Rearrangement's measures, worked by hand: a ball and a bin on the floor of two rooms, a mug on a table."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from raising import raises_naming
from rearranged import with_state
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import EpisodeError, RecordingError
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.recording.json_output import plain
from robot_runtime.recording.verdict_files import add_verdict
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, EpisodeHeader, StepRecord
from robot_runtime.scenes.objects import Grab, GrabOutcome, ObjectPose, ObjectSource
from robot_runtime.scenes.scene import Scene, SceneObject
from robot_runtime.scoring.summary import score_log
from robot_runtime.task_kinds.rearrangement.measures import RearrangementMeasures
from robot_runtime.task_kinds.rearrangement.settings import Rearrangement
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.tasks.episode import Episode, RearrangedObject
from robot_runtime.tasks.goal_program import Program
from robot_runtime.tasks.task import Success, Task

GRAB = Action.GRAB_RELEASE
BALL = SceneObject("ball", "Ball", (1.0, 1.0, 0.15), (0.3, 0.3, 0.3), movable=True)
BIN = SceneObject("bin", "Bin", (5.0, 1.0, 0.2), (0.3, 0.3, 0.4), movable=True)
MUG = replace(synthetic.MUG, movable=True)
GOAL = ObjectPose((4.0, 1.0, 0.15))
TO_EAST = RearrangedObject("ball", BALL.pose, GOAL, "Ball")
HAND = Rearrangement("geometric", (0.5, 0.5), 1.5, max_translation_m=0.3, harm_min_iou=0.5)

Poses = Mapping[str, ObjectPose]


def scene() -> Scene:
    flat = synthetic.scene()
    return replace(flat, file=replace(flat.file, objects=(synthetic.TABLE, MUG, synthetic.SOFA, BALL, BIN)))


def task(hand: Rearrangement = HAND, **changes: Any) -> Task:
    return replace(
        synthetic.pointnav_task(),
        name="tidy",
        kind="rearrangement",
        actions=(STOP, FORWARD, LEFT, Action.LOOK_UP, Action.LOOK_DOWN, GRAB),
        sensors=("rgb", "depth"),
        success=Success("objects"),
        settings=hand,
        **changes,
    )


def header(hand: Rearrangement = HAND, source: ObjectSource = ObjectSource.SIMULATOR, **changes: Any) -> EpisodeHeader:
    layout = replace(Layout((TO_EAST,)), **changes)
    episode = Episode("tidy", "two rooms", SE2(1.0, 1.9, 0.0), (), details=layout)
    return synthetic.header(task(hand), episode, scene=scene(), object_source=source)


START: Poses = {"ball": BALL.pose, "bin": BIN.pose, "mug_1": MUG.pose}


def tracked(
    head: EpisodeHeader,
    final: Poses,
    held: tuple[str, ...] = (),
    start: Poses = START,
    actions: tuple[Action, ...] = (),
) -> list[StepRecord]:
    """Two moves and a stop; the objects are at their start until the end."""
    records = synthetic.drive(head, actions or (FORWARD, FORWARD, STOP))
    records = [with_state(record, poses=start) for record in records]
    return [*records[:-1], with_state(records[-1], poses=final, held=held)]


def scored(head: EpisodeHeader, records: list[StepRecord], rules: Rules | None = None) -> Metrics:
    scorer = EpisodeScorer(head, rules)
    for record in records:
        scorer.on_step(record)
    scorer.on_end(synthetic.end_of(records, EndReason.STOP))
    json.dumps(plain(scorer.choices()))
    return scorer.metrics()


def score(final: Poses, held: tuple[str, ...] = (), hand: Rearrangement = HAND, **changes: Any) -> Metrics:
    head = header(hand, **changes)
    return scored(head, tracked(head, final, held))


def at(x_m: float, y_m: float = 1.0, z_m: float = 0.15, yaw_deg: float = 0.0) -> ObjectPose:
    return ObjectPose.upright((x_m, y_m, z_m), math.radians(yaw_deg))


# --- objects --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("x_m", "right"), [(4.0, True), (4.29, True), (3.7, True), (4.31, False), (1.0, False)])
def test_an_object_is_right_near_its_goal(x_m: float, right: bool) -> None:
    metrics = score({**START, "ball": at(x_m)})
    assert metrics["success"] is metrics["criterion_translation"] is right
    assert metrics["completion"] == metrics["targets_met"] == float(right)
    assert metrics["criterion_no_harm"] is True
    assert (metrics["criterion_angle"], metrics["criterion_iou"], metrics["criterion_openness"]) == (None,) * 3


@pytest.mark.parametrize(
    ("x_m", "yaw_deg", "verdicts"),
    [(4.0, 0, (True, True, True)), (4.0, 11, (True, False, True)), (4.11, 0, (True, True, False)),
     (4.25, 40, (True, False, False)), (5.0, 0, (False, True, False))],
)  # fmt: skip
def test_each_criterion_by_itself(x_m: float, yaw_deg: float, verdicts: tuple[bool, ...]) -> None:
    hand = replace(HAND, max_angle_deg=10.0, min_iou=0.5)
    metrics = score({**START, "ball": at(x_m, yaw_deg=yaw_deg)}, hand=hand)
    assert tuple(metrics[f"criterion_{name}"] for name in ("translation", "angle", "iou")) == verdicts
    assert metrics["success"] is all(verdicts)


def test_what_is_carried_is_right_nowhere_and_harmed() -> None:
    without_ball = {name: pose for name, pose in START.items() if name != "ball"}
    metrics = score(without_ball, held=("ball",))
    assert (metrics["success"], metrics["criterion_translation"], metrics["held_at_end"]) == (False, False, 1)
    assert metrics["criterion_no_harm"] is True
    without_bin = {"ball": GOAL, "mug_1": MUG.pose}
    metrics = score(without_bin, held=("bin",))
    assert (metrics["success"], metrics["criterion_no_harm"]) == (False, False)
    assert (metrics["completion"], metrics["targets_met"]) == (0.0, 1.0)


def test_harm_takes_everything_away_and_is_the_tasks_to_test() -> None:
    pushed = {**START, "ball": GOAL, "bin": at(5.2, z_m=0.2)}
    metrics = score(pushed)
    assert (metrics["success"], metrics["completion"], metrics["targets_met"]) == (False, 0.0, 1.0)
    assert metrics["criterion_no_harm"] is False
    nudged = {**START, "ball": GOAL, "bin": at(5.05, z_m=0.2)}
    assert score(nudged)["success"] is True
    lenient = score(pushed, hand=replace(HAND, harm_min_iou=None))
    assert (lenient["success"], lenient["criterion_no_harm"]) == (True, None)


def test_half_of_the_targets() -> None:
    both = (TO_EAST, RearrangedObject("bin", BIN.pose, at(1.0, 3.0, 0.2)))
    metrics = score({**START, "ball": GOAL}, objects=both)
    assert (metrics["completion"], metrics["success"]) == (0.5, False)


def test_the_metrics_of_room_rearrangement() -> None:
    both = (TO_EAST, RearrangedObject("bin", BIN.pose, at(1.0, 3.0, 0.2)))
    hand = Rearrangement("geometric", (0.5, 0.5), 1.5, min_iou=0.5)
    metrics = score({**START, "ball": GOAL, "mug_1": at(1.0, 2.0)}, hand=hand, objects=both)
    assert metrics["prop_fixed"] == 0.5
    assert metrics["prop_fixed_strict"] == 0.0, "the mug was not misplaced before"
    assert metrics["prop_misplaced"] == 1.0
    assert 0 < metrics["energy_prop"] <= 1  # type: ignore[operator]
    untouched = score({**START}, hand=hand, objects=both)
    assert (untouched["prop_fixed"], untouched["prop_fixed_strict"], untouched["energy_prop"]) == (0, 0, 1)


def test_grabs_are_counted() -> None:
    head = header()
    grabs = [Grab(GrabOutcome.NOTHING, None, "nothing there"), Grab(GrabOutcome.GRABBED, "ball"),
             Grab(GrabOutcome.RELEASED, "ball")]  # fmt: skip
    records = tracked(head, {**START, "ball": GOAL}, actions=(GRAB, GRAB, GRAB, STOP))
    records = [records[0], *(with_state(r, grab=g) for r, g in zip(records[1:4], grabs, strict=True)), records[4]]
    metrics = scored(head, records)
    assert (metrics["grabs"], metrics["failed_grabs"]) == (1, 1)


# --- the shortest way -----------------------------------------------------------------------------------------------


def test_spl_is_by_the_shortest_way_to_carry_everything() -> None:
    """From (1, 1.9) to about 1 m of the ball and on to about 1 m of its goal, 3 m away, through the doorway."""
    metrics = score({**START, "ball": GOAL})
    shortest_m, travelled_m = metrics["shortest_path_m"], metrics["path_length_m"]
    assert 1.0 < shortest_m < 3.5  # type: ignore[operator]
    assert metrics["spl"] == 1.0, "nobody can be better than the shortest way"
    assert travelled_m < shortest_m  # type: ignore[operator]
    assert (metrics["soft_spl"], metrics["distance_to_goal"]) == (None, None)
    far = score({**START, "ball": at(1.0, 3.0)}, objects=(replace(TO_EAST, goal=at(1.0, 3.0)),))
    assert far["shortest_path_m"] < shortest_m  # type: ignore[operator]


def test_the_dataset_may_state_the_shortest_way() -> None:
    head = header()
    head = replace(head, episode=replace(head.episode, shortest_path_m=0.25))
    metrics = scored(head, tracked(head, {**START, "ball": GOAL}), Rules(shortest_path="dataset"))
    assert metrics["spl"] == pytest.approx(0.5)


def test_an_object_that_can_be_put_down_from_nowhere_has_no_spl() -> None:
    unreachable = replace(TO_EAST, goal=at(0.3, 3.3))  # in the middle of the sofa
    hand = replace(HAND, reach_m=0.9)
    metrics = score({**START, "ball": unreachable.goal or GOAL}, objects=(unreachable,), hand=hand)
    assert (metrics["success"], metrics["spl"], metrics["shortest_path_m"]) == (True, None, None)


# --- programs -------------------------------------------------------------------------------------------------------

PREDICATE = Rearrangement("predicate", (0.5, 0.5), 1.5, harm_min_iou=0.5)
TARGETS = ({"subject": "ball", "at": {"room": "kitchen"}}, {"subject": "mug_1", "on": "table_1"})


def test_a_program_decides() -> None:
    program = Program(TARGETS)
    metrics = score({**START, "ball": at(5.8, 3.8)}, hand=PREDICATE, program=program)
    assert (metrics["success"], metrics["criterion_translation"], metrics["prop_fixed"]) == (True, None, None)
    metrics = score({**START, "ball": at(5.8, 3.8), "mug_1": at(4.0, 3.0)}, hand=PREDICATE, program=program)
    assert (metrics["completion"], metrics["criterion_no_harm"]) == (0.5, True)


def test_a_programs_own_do_no_harm_comes_before_the_tasks() -> None:
    pushed = {**START, "ball": at(5.8, 3.8), "bin": at(5.2, z_m=0.2)}
    assert score(pushed, hand=PREDICATE, program=Program(TARGETS))["success"] is False
    for harm in ({"min_iou": 0.1}, {"min_iou": 0.5, "ignore": ["bin"]}):
        assert score(pushed, hand=PREDICATE, program=Program(TARGETS, harm))["success"] is True


def test_without_goal_poses_a_program_has_no_shortest_way() -> None:
    bare = (RearrangedObject("ball", BALL.pose),)
    metrics = score({**START, "ball": at(5.8, 3.8)}, hand=PREDICATE, program=Program(TARGETS), objects=bare)
    assert (metrics["success"], metrics["spl"]) == (True, None)


# --- phases ---------------------------------------------------------------------------------------------------------


def test_the_walkthrough_is_not_scored() -> None:
    hand = Rearrangement("experience", (0.5, 0.5), 1.5, max_translation_m=0.3, harm_min_iou=0.5, walkthrough_steps=9)
    head = header(hand)
    walk = [
        with_state(r, phase="walkthrough", poses={**START, "ball": GOAL}) for r in synthetic.drive(head, [FORWARD] * 4)
    ]
    begin = with_state(replace(synthetic.drive(head, [STOP])[1], index=5), phase="unshuffle", poses=START)
    moved = tracked(head, {**START, "ball": GOAL})[1:]
    rest = [with_state(replace(r, index=r.index + 5), phase="unshuffle") for r in moved]
    metrics = scored(head, [*walk, begin, *rest])
    assert (metrics["success"], metrics["steps"]) == (True, 3)
    assert metrics["path_length_m"] == pytest.approx(0.5)
    assert metrics["criterion_no_harm"] is True
    running = EpisodeScorer(head)
    for record in (*walk, begin):
        running.on_step(record)
    assert running.metrics()["success"] is False, "the stop ended the walkthrough, not the episode"


# --- where poses come from ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [(math.nan, 1.0, 0.15), (math.inf, 1.0, 0.15)])
def test_a_pose_that_is_none_makes_the_episode_unscorable(bad: tuple[float, float, float]) -> None:
    with pytest.raises(RecordingError, match=r"'ball': at the end, its position .* is not finite"):
        score({**START, "ball": ObjectPose(bad)})


def test_an_object_that_nobody_saw_makes_the_episode_unscorable() -> None:
    with raises_naming(RecordingError, "'ball'", "simulator"):
        score({name: pose for name, pose in START.items() if name != "ball"})


def test_objects_that_the_scene_does_not_have() -> None:
    with pytest.raises(EpisodeError, match="no object 'ghost'"):
        score(START, objects=(replace(TO_EAST, id="ghost"),))
    with pytest.raises(EpisodeError, match=r"'sofa_1' .* cannot be moved"):
        score(START, objects=(replace(TO_EAST, id="sofa_1"),))


def test_a_person_tells_where_the_objects_are(tmp_path: Path) -> None:
    """Unscorable until then, with the reason; then scored, and the score says whose word it takes."""
    head = header(source=ObjectSource.OPERATOR)
    records = tracked(head, {}, start={})
    recorder = Recorder(tmp_path)
    synthetic.play(recorder, head, records)
    (log,) = tmp_path.rglob("*.mcap")
    before = score_log(log)
    assert not before.scorable
    assert "'ball'" in before.reason
    add_verdict(log, "Ada", objects={"ball": at(4.1)})
    after = score_log(log)
    assert after.metrics["success"] is True
    assert after.choices["object_poses_from"] == ["operator"]


def test_a_persons_word_overrules_the_tracker(tmp_path: Path) -> None:
    head = header(source=ObjectSource.TRACKER)
    recorder = Recorder(tmp_path)
    synthetic.play(recorder, head, tracked(head, {**START, "ball": GOAL}))
    (log,) = tmp_path.rglob("*.mcap")
    assert score_log(log).metrics["success"] is True
    add_verdict(log, "Ada", objects={"ball": at(2.0)})
    after = score_log(log)
    assert after.metrics["success"] is False
    assert after.choices["object_poses_from"] == ["tracker", "operator"]


def test_verdicts_name_objects() -> None:
    head = header()
    measures = RearrangementMeasures(head, Rules(), EpisodeScorer(head).measures.geodesic)
    for record in tracked(head, {**START, "ball": at(2.0), "bin": at(3.0, z_m=0.2)}):
        measures.on_step(record)
    assert measures.criteria() == {"ball": {"translation": False}}
    assert measures.harmed() == ["bin"]
