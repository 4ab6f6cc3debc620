"""Measures of instruction following, computed by hand, and their panels in a report."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
from kind_episodes import ROUTE, driven, header_of, page, panels, recorded, scored, shown, task_of
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.common.geometry import SE2
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.metrics.functional.dtw import dtw
from robot_runtime.metrics.settings import Rules
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader
from robot_runtime.scoring.summary import score_log, score_steps
from robot_runtime.task_kinds.vln.kind import Instruction, Route
from robot_runtime.task_kinds.vln.measures import REPEAT_M
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Success


def vln_header(**changes: Any) -> EpisodeHeader:
    episode = Episode(
        "7",
        "two rooms",
        SE2(1.0, 1.9, 0.0),
        (Goal(4.0, 1.9),),
        details=Route(instruction=Instruction("Go east."), reference_path=ROUTE),
    )
    return synthetic.header(task_of("vln", Success("distance", 1.0)), replace(episode, **changes))


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


def test_a_measured_drive_has_the_nodes_of_the_exact_one() -> None:
    """A robot that shifts by 1.5 mm in each turn in place, and whose poses have 2 mm of noise."""
    header = vln_header()
    actions = [*[FORWARD] * 4, *[LEFT] * 12, *[FORWARD] * 8, STOP]
    exact, choices = scored(header, actions)
    random = np.random.default_rng(0)
    records, reason = driven(header, actions)
    scorer, shift_m = EpisodeScorer(header), 0.0
    for record in records:
        shift_m += 0.0015 * (record.action is LEFT)
        pose = record.referee.pose
        x_m, y_m = random.normal((pose.x_m, pose.y_m + shift_m), 0.002)
        scorer.on_step(replace(record, referee=replace(record.referee, pose=SE2(x_m, y_m, pose.yaw_rad))))
    scorer.on_end(synthetic.end_of(records, reason))
    measured = scorer.metrics()
    assert measured["ndtw"] == pytest.approx(exact["ndtw"], abs=0.02)
    assert measured["average_deviation_m"] == pytest.approx(exact["average_deviation_m"], abs=0.02)
    assert choices["route"]["repeat_m"] == REPEAT_M


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
    metrics, choices = scored(vln_header(details=Route(Instruction("Go east."))), [FORWARD] * 12 + [STOP])
    assert metrics["success"] is True
    assert metrics["ndtw"] is metrics["cls"] is None
    assert choices["route_reference"] == "none"


def test_same_numbers_as_live(record) -> None:
    header, actions = vln_header(), [*[FORWARD] * 10, STOP]
    with LogReader(record(header, actions)) as log:
        assert score_steps(log).metrics() == scored(header, actions)[0]


def test_words_come_back_from_the_log(record) -> None:
    told = replace(vln_header().task, sensors=("rgb", "instruction"))
    with LogReader(record(replace(vln_header(), task=told), [FORWARD, STOP])) as log:
        seen = [record.observation["instruction"] for record in log.steps()]
    assert [(str(text), text.shape) for text in seen] == [("Go east.", ())] * 3


def test_instructions_for_a_route_share_its_trajectory(record) -> None:
    route = Route.of(vln_header().episode)
    told = [replace(route, instruction=Instruction(f"go {i}", trajectory_id="77")) for i in "ab"]
    headers = [*(vln_header(id=str(i), details=details) for i, details in enumerate(told)), vln_header(goals=())]
    trajectories = [score_log(record(header, [STOP])).trajectory for header in headers]
    assert trajectories == ["two rooms/77", "two rooms/77", "two rooms/1.00,1.90 4.00,1.90"]


class TestInstruction:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        said = synthetic.pointnav_episode(details=Route(instruction=Instruction("Go <east>."), reference_path=ROUTE))
        return recorded(
            tmp_path, header_of("vln", Success("distance", 3.0), said), [FORWARD] * 8 + [LEFT, FORWARD, STOP]
        )

    def test_the_pairs_are_those_that_ndtw_adds(self, path: Path) -> None:
        drawn, data = panels(path), shown(path)
        total_m = sum(math.dist(*pair) for pair in drawn.pairs)
        ndtw = data.score.metrics["ndtw"]
        assert ndtw == pytest.approx(math.exp(-total_m / (len(ROUTE) * 3.0)))
        driven = [(data.poses[0].x_m, data.poses[0].y_m)]
        for pose in data.poses:
            if (pose.x_m, pose.y_m) != driven[-1]:
                driven.append((pose.x_m, pose.y_m))
        assert total_m == pytest.approx(dtw([point[:2] for point in ROUTE], driven))
        assert drawn.pairs[0] == ((1.0, 1.9), (1.0, 1.9))

    def test_page(self, path: Path, tmp_path: Path) -> None:
        text = page(path, tmp_path)
        assert "Go &lt;east&gt;." in text
        assert text.count('class="pair"') == len(panels(path).pairs)
        assert text.count('class="node"') == len(ROUTE)
        assert "aligned by DTW" in text

    def test_without_a_reference_there_is_nothing_to_align(self, tmp_path: Path) -> None:
        said = synthetic.pointnav_episode(details=Route(instruction=Instruction("Go.")))
        drawn = panels(recorded(tmp_path, header_of("vln", Success("distance", 3.0), said), [STOP]))
        assert (drawn.reference, drawn.pairs) == ((), ())
