"""Plots of reports, and outcomes of episodes in words."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from kind_episodes import page, shown
from synthetic import FORWARD, STOP

from robot_runtime.common.geometry import SE2
from robot_runtime.recording.writer import Recorder
from robot_runtime.scoring.report import index_page
from robot_runtime.scoring.report.panels import outcome
from robot_runtime.scoring.statistics.intervals import Interval
from robot_runtime.scoring.summary import EpisodeScore
from robot_runtime.tasks.state import StepState


@dataclass(frozen=True)
class Phase(StepState):
    phase: str = ""


class TestPlots:
    @given(st.lists(st.tuples(st.floats(0, 1e3), st.booleans()), min_size=1, max_size=30))
    def test_success_by_distance_counts_every_episode(self, episodes: list[tuple[float, bool]]) -> None:
        tips = re.findall(r"<title>.*?: (\d+) of (\d+),", str(index_page.success_by_distance(episodes)))
        assert sum(int(won) for won, _ in tips) == sum(won for _, won in episodes)
        assert sum(int(count) for _, count in tips) == len(episodes)

    @given(
        st.lists(st.floats(0, 1), min_size=1, max_size=30),
        st.sampled_from([1.0, None]),
        st.floats(0, 1) | st.just(math.nan),
    )
    def test_a_distribution_counts_every_episode(self, values: list[float], high: float | None, low: float) -> None:
        svg = str(index_page.distribution("x", values, Interval(sum(values) / len(values), low, 1.0), high))
        counts = re.findall(r": (\d+) episodes?</title>", svg)
        assert sum(map(int, counts)) == len(values)
        assert "nan" not in svg

    @given(st.lists(st.integers(0, 600), min_size=1, max_size=30))
    def test_counts_fall_into_classes_that_double(self, counts: list[int]) -> None:
        svg = str(index_page.count_plot("x", counts))
        classes = re.findall(r"<title>(\d+)(?:–(\d+))?: (\d+) episode", svg)
        assert sum(int(number) for _, _, number in classes) == len(counts)
        for low, high, number in classes:
            inside = [count for count in counts if int(low) <= count <= int(high or low)]
            assert len(inside) == int(number)

    def test_what_cannot_be_plotted_is_empty(self) -> None:
        assert index_page.distribution("x", [math.inf], Interval(math.inf, math.inf, math.inf)) == ""

    @pytest.mark.parametrize(
        ("metrics", "end", "text"),
        [
            ({"success": True}, "stop", "success"),
            ({"success": False}, "max_steps", "failed: step limit"),
            ({"success": False}, "stop", "failed: stopped elsewhere"),
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

    def test_between_phases_the_track_is_interrupted(self, record) -> None:
        data = shown(record(synthetic.header(), [FORWARD] * 3))
        walked = [replace(one, state=Phase("look" if one.index < 2 else "act")) for one in data.records]
        assert [len(track) for track in replace(data, records=tuple(walked)).tracks] == [2, 2]
