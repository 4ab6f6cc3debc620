"""Measures of AreaGoal, computed by hand, and their panels in a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from kind_episodes import header_of, page, recorded, scored, task_of
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader
from robot_runtime.scoring.summary import score_steps
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Category, Success


def area_header(when: str) -> EpisodeHeader:
    categories = {"kitchen": Category(4, ("kitchen",))}
    success = Success("room", when=when)
    episode = Episode("7", "two rooms", SE2(1.0, 1.9, 0.0), (), category="kitchen")
    return synthetic.header(task_of("areagoal", success, categories=categories), episode)


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


def test_same_numbers_as_live(record) -> None:
    header, actions = area_header("stop"), [*[FORWARD] * 10, STOP]
    with LogReader(record(header, actions)) as log:
        assert score_steps(log).metrics() == scored(header, actions)[0]


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
