"""Measures of each kind of task, computed by hand in a flat of two rooms, live and from the log."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import synthetic
from raising import raises_naming
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.metrics.measures import COMMON, MEASURES, Measures, all_metrics, measures_of
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.recording.json_records import plain
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import ANSWER, EndReason, EpisodeHeader
from robot_runtime.scenes.scene import SceneObject
from robot_runtime.scoring.summary import score_steps
from robot_runtime.tasks.episode import Episode, Goal, Instruction, Question
from robot_runtime.tasks.task import Category, Success, Task

MISSING = object()
ROUTE = ((1.0, 1.9, 0.0), (2.0, 1.9, 0.0), (3.0, 1.9, 0.0), (4.0, 1.9, 0.0))


def task(kind: str, success: Success, **changes: Any) -> Task:
    return synthetic.pointnav_task(name=f"{kind}_test", kind=kind, sensors=("rgb", "depth"), success=success, **changes)


def scored(
    header: EpisodeHeader, actions: list[Action], rules: Rules | None = None, answer: object = MISSING
) -> tuple[Metrics, dict[str, Any]]:
    scorer = EpisodeScorer(header, rules)
    records = synthetic.drive(header, actions)
    if answer is not MISSING:
        records[-1] = replace(records[-1], policy_info={ANSWER: answer})
    for record in records:
        scorer.on_step(record)
    stopped = actions[-1] is STOP
    scorer.on_end(synthetic.end_of(records, EndReason.STOP if stopped else EndReason.MAX_STEPS))
    json.dumps(plain(scorer.choices()))
    return scorer.metrics(), scorer.choices()


def test_all_metrics_are_those_of_the_installed_kinds() -> None:
    own = {metric.name for kind in MEASURES.usable().values() for metric in kind.defines}
    assert set(all_metrics()) == own | {metric.name for metric in COMMON}
    assert tuple(all_metrics())[: len(COMMON)] == tuple(metric.name for metric in COMMON)
    assert "completion" in own


def test_a_kind_without_measures_has_those_of_plain_navigation() -> None:
    assert measures_of(synthetic.pointnav_task()) is Measures


# --- ObjectNav ------------------------------------------------------------------------------------------------------


def criteria(metrics: Metrics) -> tuple[Any, ...]:
    names = ("intentionality", "validity", "proximity", "visibility")
    return tuple(metrics[f"criterion_{name}"] for name in names)


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        pytest.param([FORWARD] * 4 + [STOP], (True, True, True, True), id="success"),
        pytest.param([FORWARD] * 4, (False, True, True, None), id="no stop: nothing was framed on purpose"),
        pytest.param([FORWARD, STOP], (True, True, False, True), id="seen from afar"),
        pytest.param([FORWARD] * 4 + [LEFT] * 6 + [STOP], (True, True, True, False), id="turned away"),
    ],
)
def test_each_criterion_by_pixels(actions: list[Action], expected: tuple[Any, ...]) -> None:
    metrics, _ = scored(synthetic.header(synthetic.objectnav_task(width=160, height=120)), actions)
    assert criteria(metrics) == expected
    assert metrics["success"] is all(expected)


@pytest.mark.parametrize(
    ("start", "actions", "expected"),
    [
        pytest.param(SE2(4.0, 2.2, 1.0), [STOP], (True, True, True, True), id="at a view point, looking elsewhere"),
        pytest.param(SE2(4.0, 2.2, 1.0), [LEFT], (False, True, True, True), id="no stop"),
        pytest.param(SE2(3.75, 2.2, 0.0), [STOP], (True, True, True, False), id="near, but at no view point"),
        pytest.param(SE2(1.0, 1.9, 0.0), [STOP], (True, True, False, False), id="far"),
    ],
)
def test_each_criterion_by_oracle_visibility(start: SE2, actions: list[Action], expected: tuple[Any, ...]) -> None:
    header = synthetic.header(synthetic.objectnav_task("distance"), synthetic.objectnav_episode(start=start))
    metrics, choices = scored(header, actions)
    assert criteria(metrics) == expected
    assert metrics["success"] is all(expected)
    assert choices["criterion_visibility"].startswith("oracle")
    assert choices["criterion_proximity"]["distance_m"] == 1.0


def test_proximity_is_to_the_surface() -> None:
    plank = SceneObject("x", "Mug", (0.0, 0.0, 0.5), (1.0, 0.2, 0.2), 90.0)
    assert [plank.distance_m(*point) for point in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.4))] == pytest.approx([0.9, 0.5, 0])
    assert plank.distance_m(0.4, 0.9) == pytest.approx(0.5)


# --- instructions ---------------------------------------------------------------------------------------------------


def vln_header(**changes: Any) -> EpisodeHeader:
    episode = Episode(
        "7",
        "two rooms",
        SE2(1.0, 1.9, 0.0),
        (Goal(4.0, 1.9),),
        instruction=Instruction("Go east."),
        reference_path=ROUTE,
    )
    return synthetic.header(task("vln", Success("distance", 1.0)), replace(episode, **changes))


def test_a_route_that_is_followed() -> None:
    """13 nodes 0.25 m apart against 4 nodes: every third but one is off its nearest node, by 0.25 or 0.5 m."""
    metrics, choices = scored(vln_header(), [FORWARD] * 12 + [STOP])
    assert metrics["success"] is True
    assert metrics["oracle_success"] is True
    off_m = 3 * (0.25 + 0.5 + 0.25)
    assert metrics["ndtw"] == pytest.approx(math.exp(-off_m / (4 * 1.0)))
    assert metrics["sdtw"] == metrics["ndtw"]
    assert metrics["average_deviation_m"] == pytest.approx(off_m / 13)
    assert metrics["max_deviation_m"] == pytest.approx(0.5)
    assert metrics["oracle_navigation_error_m"] == pytest.approx(0.0, abs=1e-6)
    assert choices["route_reference"] == "nodes of the reference path"
    assert choices["route"]["threshold_m"] == 1.0


def test_against_the_followers_positions_where_the_dataset_has_them() -> None:
    dense = [[-1.9, 0.0, -(1.0 + 0.25 * i)] for i in range(13)]  # Habitat's axes
    header = vln_header(info={"ground_truth": {"locations": dense}})
    metrics, choices = scored(header, [FORWARD] * 12 + [STOP])
    assert metrics["ndtw"] == pytest.approx(1.0)
    assert choices["route_reference"] == "the follower's positions"
    metrics, choices = scored(header, [FORWARD] * 12 + [STOP], Rules(reference="nodes"))
    assert metrics["ndtw"] < 0.9
    assert choices["reference"] == "nodes"


def test_past_the_goal_is_oracle_success_alone() -> None:
    header = vln_header(goals=(Goal(2.5, 1.9),))
    metrics, _ = scored(header, [FORWARD] * 12 + [STOP])
    assert (metrics["success"], metrics["oracle_success"], metrics["sdtw"]) == (False, True, 0.0)
    assert metrics["distance_to_goal"] == pytest.approx(1.5)


def test_turning_on_the_spot_does_not_count_against_fidelity() -> None:
    straight, _ = scored(vln_header(), [FORWARD] * 12 + [STOP])
    turning, _ = scored(vln_header(), [LEFT] * 12 + [FORWARD] * 12 + [STOP])
    assert turning["ndtw"] == pytest.approx(straight["ndtw"])


def test_without_a_reference_there_is_no_fidelity() -> None:
    metrics, choices = scored(vln_header(reference_path=()), [FORWARD] * 12 + [STOP])
    assert metrics["success"] is True
    assert metrics["ndtw"] is metrics["cls"] is None
    assert choices["route_reference"] == "none"


# --- questions ------------------------------------------------------------------------------------------------------


def eqa_header(when: str = "end", **changes: Any) -> EpisodeHeader:
    question = Question("What color is the mug?", "red", "color", (0, 1, 2), 5)
    episode = synthetic.objectnav_episode(category=None, question=question, start=SE2(1.0, 1.9, 0.0))
    success = Success("answer", target="view_points", room="box", when=when)
    return synthetic.header(task("eqa", success), replace(episode, **changes))


@pytest.mark.parametrize(
    ("answer", "right", "rank"),
    [
        ("red", True, None),
        (" Red ", True, None),
        ("blue", False, None),
        (5, True, None),
        (np.int64(5), True, None),
        (4, False, None),
        ({"red": 0.7, "blue": 0.3}, True, 1.0),
        ({"blue": 0.7, "red": np.float32(0.2), "green": 0.1}, False, 2.0),
        ({"blue": 0.7, "green": 0.1}, False, 3.0),
        (None, False, None),
        (MISSING, False, None),
    ],
)
def test_answers(answer: object, right: bool, rank: float | None) -> None:
    metrics, _ = scored(eqa_header(), [STOP], answer=answer)
    assert metrics["success"] is metrics["answer_accuracy"] is right
    assert metrics["answer_rank"] == rank
    assert metrics["spl"] is None


@pytest.mark.parametrize("answer", [True, 1.5, {}, {"red": "high"}, {"red": math.nan}, ["red"]])
def test_what_is_no_answer_makes_no_score(answer: object) -> None:
    with raises_naming(RecordingError, "step 1", "answer"):
        scored(eqa_header(), [STOP], answer=answer)


def test_an_id_needs_a_vocabulary() -> None:
    header = eqa_header(question=Question("What color is the mug?", "red", "color"))
    with raises_naming(RecordingError, "answer_token"):
        scored(header, [STOP], answer=5)


def test_where_the_agent_went() -> None:
    """From the west room, past the doorway at x = 3, to x = 3.5; the nearer view point is (4.0, 2.2)."""
    metrics, _ = scored(eqa_header(), [FORWARD] * 10, answer="red")
    assert (metrics["r_T"], metrics["r_enter"], metrics["stopped"]) == (True, True, False)
    assert metrics["d_T_m"] == pytest.approx(math.hypot(0.5, 0.3), abs=0.03)
    assert metrics["d_T_m"] == metrics["distance_to_goal"] == metrics["d_min_m"]
    assert metrics["d_delta_m"] == pytest.approx(metrics["shortest_path_m"] - metrics["d_T_m"])
    assert metrics["success"] is True  # the paper asks at the step limit, too
    assert scored(eqa_header("stop"), [FORWARD] * 10, answer="red")[0]["success"] is False


def test_in_and_out_again() -> None:
    turn = [LEFT] * 6
    metrics, _ = scored(eqa_header(), [*[FORWARD] * 10, *turn, *[FORWARD] * 4, STOP], answer="red")
    assert (metrics["r_T"], metrics["r_enter"], metrics["stopped"]) == (False, True, True)
    assert metrics["d_min_m"] < metrics["d_T_m"]


def test_without_rooms_the_distances_stand() -> None:
    scene = synthetic.scene()
    header = replace(eqa_header(), scene=replace(scene, file=replace(scene.file, rooms=(), objects=())))
    metrics, _ = scored(header, [STOP], answer="red")
    assert metrics["r_T"] is metrics["r_enter"] is None
    assert metrics["d_T_m"] is not None


# --- rooms ----------------------------------------------------------------------------------------------------------


def area_header(when: str) -> EpisodeHeader:
    categories = {"kitchen": Category(4, ("kitchen",))}
    success = Success("room", when=when)
    episode = Episode("7", "two rooms", SE2(1.0, 1.9, 0.0), (), category="kitchen")
    return synthetic.header(task("areagoal", success, categories=categories), episode)


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        pytest.param([FORWARD] * 10 + [STOP], {"stop": True, "end": True, "reached": True}, id="stops inside"),
        pytest.param([FORWARD] * 10, {"stop": False, "end": True, "reached": True}, id="is inside at the end"),
        pytest.param(
            [FORWARD] * 10 + [LEFT] * 6 + [FORWARD] * 4 + [STOP],
            {"stop": False, "end": False, "reached": True},
            id="was inside",
        ),
        pytest.param([FORWARD] * 7 + [STOP], {"stop": False, "end": False, "reached": False}, id="stops at the door"),
    ],
)
def test_when_a_room_counts(actions: list[Action], expected: dict[str, bool]) -> None:
    for when, succeeded in expected.items():
        metrics, choices = scored(area_header(when), actions)
        assert metrics["success"] is succeeded, when
        assert choices["stop_required"] is (when == "stop")
        assert metrics["r_T"] is (expected["end"])
        assert metrics["r_enter"] is (expected["reached"])


def test_a_room_is_as_far_as_its_nearest_place() -> None:
    metrics, _ = scored(area_header("stop"), [FORWARD] * 10 + [STOP])
    assert metrics["shortest_path_m"] == pytest.approx(2.0, abs=0.12)
    assert metrics["distance_to_goal"] == pytest.approx(0.0, abs=0.08)
    assert metrics["spl"] == pytest.approx(2.0 / 2.5, abs=0.05)


# --- logs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [vln_header(), area_header("stop"), eqa_header()], ids=["vln", "areagoal", "eqa"])
def test_same_numbers_as_live(record, header: EpisodeHeader) -> None:
    actions = [*[FORWARD] * 10, STOP]
    with LogReader(record(header, actions)) as log:
        assert score_steps(log).metrics() == scored(header, actions)[0]


def test_words_come_back_from_the_log(record) -> None:
    told = replace(vln_header().task, sensors=("rgb", "instruction"))
    with LogReader(record(replace(vln_header(), task=told), [FORWARD, STOP])) as log:
        seen = [record.observation["instruction"] for record in log.steps()]
    assert [(str(text), text.shape) for text in seen] == [("Go east.", ())] * 3


def test_before_the_first_step_nothing_is_known() -> None:
    metrics = EpisodeScorer(eqa_header()).metrics()
    assert set(metrics) == {metric.name for metric in (*COMMON, *MEASURES.load("eqa").defines)}
    assert set(metrics.values()) == {None}
