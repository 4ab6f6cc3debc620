"""Intervals and tests over scenes or trajectories in place of episodes, as asked for, and stored with the choice."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from raising import raises_naming
from rich.console import Console

from robot_runtime.errors import ConfigError
from robot_runtime.scoring.groups import summarize_groups
from robot_runtime.scoring.report.export import write_json
from robot_runtime.scoring.report.terminal_table import table
from robot_runtime.scoring.statistics.comparison import compare, write_comparison
from robot_runtime.scoring.statistics.intervals import bootstrap_mean, wilson
from robot_runtime.scoring.summary import EpisodeScore, score_log

# Ten scenes of four episodes; in a scene all go well or all go badly.
SCORES = [
    EpisodeScore(
        Path(f"{i}.mcap"),
        task="t",
        agent="a",
        dataset="val.json.gz",
        scene=f"s{i // 4}",
        episode=str(i),
        key=f"k{i}",
        trajectory=f"t{i // 2}",
        metrics={"success": i // 4 % 2 == 0, "spl": 0.5 + 0.01 * i if i // 4 % 2 == 0 else 0.0},
    )
    for i in range(40)
]


def printed(scores: list[EpisodeScore], cluster: str) -> str:
    console = Console(width=80, file=io.StringIO())
    with console.capture() as captured:
        console.print(table(scores, cluster))
    return captured.get()


def test_by_default_episodes_are_independent() -> None:
    (group,) = summarize_groups(SCORES)
    assert group.intervals["success"] == wilson(20, 40)
    assert (group.cluster, group.clusters) == ("none", 40)


@pytest.mark.parametrize(("cluster", "count"), [("scene", 10), ("trajectory", 20)])
def test_clusters_are_drawn_whole(cluster, count: int) -> None:
    (group,) = summarize_groups(SCORES, cluster)
    values = [float(score.metrics["spl"] or 0) for score in SCORES]
    drawn = [score.scene if cluster == "scene" else score.trajectory for score in SCORES]
    assert group.intervals["spl"] == bootstrap_mean(values, clusters=drawn)
    assert group.clusters == count
    by_episode = summarize_groups(SCORES)[0].intervals["success"]
    wider = group.intervals["success"]
    assert wider.mean == by_episode.mean
    assert wider.high - wider.low > by_episode.high - by_episode.low


def test_a_single_scene_has_a_mean_and_no_interval() -> None:
    (group,) = summarize_groups(SCORES[:4], "scene")
    assert group.intervals["success"].mean == 1.0
    assert math.isnan(group.intervals["success"].low)
    assert "–" in printed(SCORES[:4], "scene")


def test_the_table_says_what_was_drawn_and_warns_of_few() -> None:
    text = " ".join(printed(SCORES, "scene").split())
    assert "10 clusters by scene" in text
    assert "bootstrap over scenes; of fewer than 20, too narrow" in text
    assert "Wilson" in printed(SCORES, "none")


def test_the_choice_is_stored(tmp_path: Path) -> None:
    write_json(tmp_path / "s.json", SCORES, "scene")
    document = json.loads((tmp_path / "s.json").read_text())
    assert document["intervals"]["cluster"] == document["groups"][0]["cluster"] == "scene"
    assert document["intervals"]["shares"] == "as others"


class TestCompare:
    def test_scenes_change_sign_together(self, tmp_path: Path) -> None:
        better = [
            replace(score, agent="b", metrics={"success": True, "spl": 0.6 if int(score.episode) % 4 else 0.3})
            for score in SCORES
        ]
        by_episode, by_scene = compare(SCORES, better), compare(SCORES, better, "scene")
        p = [comparison.groups[0].metrics[0].p_value for comparison in (by_episode, by_scene)]
        assert p[0] < p[1] == 2 * 0.5**5
        assert by_scene.groups[0].metrics[0].further
        write_comparison(tmp_path / "c.json", by_scene)
        assert json.loads((tmp_path / "c.json").read_text())["units"] == "clusters of episodes by scene"

    def test_one_scene_cannot_speak_for_others(self) -> None:
        one = SCORES[:4]
        with raises_naming(ConfigError, "scene", "--cluster"):
            compare(one, [replace(score, agent="b") for score in one], "scene")


class TestTrajectory:
    def test_it_is_start_and_goals(self, record) -> None:
        header = synthetic.header()
        elsewhere = replace(header, episode=replace(header.episode, start=synthetic.SE2(1.5, 1.9, 0.0)))
        again = replace(header, seed=9)
        first, second, third = (
            score_log(record(one, [synthetic.STOP])).trajectory for one in (header, again, elsewhere)
        )
        assert first == second != third
