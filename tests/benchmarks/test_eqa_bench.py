"""The table of `bench eqa`: a line per agent and start, flats and house apart."""

from __future__ import annotations

import pytest

from robot_runtime.common.geometry import SE2
from robot_runtime.tasks.episode import Episode
from tests.benchmarks.sim.eqa import MEMORY, by_place, rows, table
from tests.benchmarks.sim.eqa_answerers import Graded
from tests.benchmarks.sim.eqa_answerers import rows as answerer_rows
from tests.benchmarks.sim.eqa_episodes import Outcome

METRICS = ("d_T_m", "d_delta_m", "d_min_m", "r_T", "r_enter", "stopped", "answer_rank")


def outcome(scene: str, start: str, right: bool, seen: bool = True) -> Outcome:
    """An episode that ended 2 m from its target, with rank 1 where it is right, else without an answer."""
    metrics = dict.fromkeys(METRICS[:3], 2.0) | dict.fromkeys(METRICS[3:6], True)
    metrics |= {"answer_rank": 1 if right else None, "answer_accuracy": right}
    episode = Episode("0", scene, SE2(), goals=(), info={"info": {"start": start}})
    return Outcome(episode, metrics, "red" if right else None, seen, steps=9, infer_ms=(1.0, 3.0, 8.0))


FOUND = [
    outcome("flat_1", "T-10", right=True),
    outcome("flat_2", "T-10", right=False, seen=False),
    outcome("flat_2", "T-50", right=True),
    outcome("house", "T-30", right=True),
]


def test_a_line_has_means_over_the_episodes_of_one_start_in_one_place() -> None:
    places = by_place({MEMORY: FOUND}, "house")
    assert list(places) == ["generated flats", "house"]
    head, *lines = table(places["generated flats"]).splitlines()
    assert head.split()[:3] == ["agent", "start", "n"]
    assert [line.split()[1:3] for line in lines] == [["T-10", "2"], ["T-50", "1"]]
    assert lines[0].split()[3:10] == ["2.00", "2.00", "2.00", "1.00", "1.00", "1.00", "1.00"]
    assert lines[0].split()[10] == "0.50"
    assert [line.split()[1:3] for line in table(places["house"]).splitlines()[1:]] == [["T-30", "1"]]


def test_without_a_house_all_scenes_are_flats() -> None:
    assert by_place({MEMORY: FOUND}, None) == {"generated flats": {MEMORY: FOUND}}


def test_accuracy_where_the_target_was_seen_leaves_the_others_out() -> None:
    found = {row.id: row.value for row in rows({MEMORY: FOUND})}
    assert found["memory_accuracy_seen"] == 1
    assert found["memory_accuracy_t10"] == pytest.approx(0.5)
    assert found["memory_accuracy_answered"] == 1
    assert found["step_ms"] == 3


def test_a_gain_is_paired_by_question_and_its_interval_is_over_ends() -> None:
    ends: list[Graded] = [{"attention": [1.0, 1.0], "last": [1.0, 0.0], "blind": [0.0, 0.0]}] * 20
    found = {row.id: (row.value, row.low, row.high) for row in answerer_rows("learned", "ends", ends)}
    assert found == {
        "learned_accuracy": (1, 1, 1),
        "learned_over_blind": (1, 1, 1),
        "learned_over_last_frame": (0.5, 0.5, 0.5),
    }
