"""Comparison of two policies: pairing, tests, and unused logs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from raising import raises_naming
from rich.console import Console

from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.scoring.report.comparison_table import more_text, p_text, significance, table
from robot_runtime.scoring.statistics.comparison import LEAST_DIFFERING, Comparison, compare, write_comparison
from robot_runtime.scoring.summary import EpisodeScore, RobotSetting

CHOICES = {"scorer": 1, "scene_digest": "0"}


def scores(agent: str, spls: Sequence[float], **changes: object) -> list[EpisodeScore]:
    """One scored log per value, of the episodes 0, 1, ..."""
    return [
        replace(
            EpisodeScore(
                Path(f"{agent}/{i}.mcap"),
                task="pointnav",
                agent=agent,
                scene="flat",
                episode=str(i),
                key=f"flat/{i}",
                metrics={"success": spl > 0, "spl": spl, "distance_to_goal": 1 - spl},
                choices=CHOICES,
            ),
            **changes,
        )
        for i, spl in enumerate(spls)
    ]


def metric(comparison: Comparison, name: str):
    (found,) = (metric for metric in comparison.groups[0].metrics if metric.metric == name)
    return found


def text(comparison: Comparison) -> str:
    console = Console(width=80, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    with console.file:
        console.print(table(comparison))
    return console.export_text()


class TestCompare:
    def test_a_clear_difference(self) -> None:
        comparison = compare(scores("one", [0.2] * 10), scores("two", [0.9] * 10))
        spl = metric(comparison, "spl")
        assert (spl.pairs, spl.mean_a, spl.mean_b) == (10, pytest.approx(0.2), pytest.approx(0.9))
        assert spl.difference.mean == pytest.approx(0.7)
        assert (spl.p_value, spl.exact, spl.further, spl.differs) == (pytest.approx(2 / 2**10), True, 0, True)
        assert significance(spl) == "SPL: B is higher (p = 0.0020)."
        assert "A is higher" in significance(metric(comparison, "distance_to_goal")), "each metric has its own sign"

    def test_no_difference(self) -> None:
        comparison = compare(scores("one", [0.5, 0.7]), scores("two", [0.5, 0.7]))
        spl = metric(comparison, "spl")
        assert (spl.p_value, spl.further, spl.differs) == (1.0, None, False)
        assert "no difference was seen" in significance(spl)

    def test_few_pairs_cannot_tell_however_large_the_difference(self) -> None:
        spl = metric(compare(scores("one", [0.0] * 4), scores("two", [1.0] * 4)), "spl")
        assert spl.p_value == pytest.approx(2 / 2**4)
        assert (spl.differs, spl.further) == (False, LEAST_DIFFERING - 4)
        enough = metric(compare(scores("one", [0.0] * 6), scores("two", [1.0] * 6)), "spl")
        assert enough.differs

    def test_a_single_pair(self) -> None:
        spl = metric(compare(scores("one", [0.1]), scores("two", [0.4])), "spl")
        assert (spl.pairs, spl.p_value, spl.further) == (1, 1.0, LEAST_DIFFERING - 1)

    def test_a_small_difference_needs_many_more_episodes(self) -> None:
        one = [0.5 + 0.3 * math.sin(i) for i in range(40)]
        two = [0.52 + 0.3 * math.sin(3 * i) for i in range(40)]
        spl = metric(compare(scores("one", one), scores("two", two)), "spl")
        assert not spl.differs
        assert spl.further is not None
        assert spl.further > 1000

    def test_pairs_are_made_by_key_whatever_the_order(self) -> None:
        one = scores("one", [0.1, 0.2, 0.3])
        comparison = compare(one, scores("two", [0.2, 0.3, 0.4])[::-1])
        assert metric(comparison, "spl").difference.low == pytest.approx(0.1)
        assert metric(comparison, "spl").difference.high == pytest.approx(0.1)

    def test_several_runs_of_an_episode_are_averaged(self) -> None:
        one = scores("one", [0.1, 0.3]) + [replace(score, path=Path("again")) for score in scores("one", [0.5, 0.3])]
        comparison = compare(one, scores("two", [0.3, 0.3]))
        assert metric(comparison, "spl").mean_a == pytest.approx(0.3)
        assert (comparison.groups[0].runs_a, comparison.groups[0].runs_b, comparison.groups[0].episodes) == (4, 2, 2)
        assert "A one (4 runs, averaged per episode), B two" in text(comparison)

    def test_tasks_and_splits_are_compared_by_themselves(self) -> None:
        other = {"task": "objectnav", "dataset": "val.json.gz"}
        one = scores("one", [0.1]) + scores("one", [0.2], **other)
        two = scores("two", [0.3]) + scores("two", [0.4], **other)
        groups = compare(one, two).groups
        assert [(g.task, g.split, g.episodes) for g in groups] == [("pointnav", "", 1), ("objectnav", "val", 1)]


class TestRobots:
    def test_one_robot_on_both_sides_is_named_once(self) -> None:
        same = {"robot": "sim", "referee": "truth"}
        shown = text(compare(scores("one", [0.1], **same), scores("two", [0.1], **same)))
        assert "robot sim · judged by truth" in shown
        assert "mixes" not in shown
        assert "policies' alone" not in shown

    def test_sides_with_other_robots_are_named(self) -> None:
        comparison = compare(scores("one", [0.1], robot="sim"), scores("two", [0.1], robot="sim-noisy"))
        (group,) = comparison.groups
        assert (group.settings_a, group.settings_b) == ((RobotSetting("sim"),), (RobotSetting("sim-noisy"),))
        shown = " ".join(text(comparison).split())
        assert "A robot sim B robot sim-noisy the difference is not the policies' alone" in shown

    def test_a_side_that_mixes_robots_is_named(self) -> None:
        mixed = [*scores("one", [0.1], robot="sim"), *scores("one", [0.5], robot="sim", localizer="wheels")]
        shown = " ".join(text(compare(mixed, scores("two", [0.1], robot="sim"))).split())
        assert "A mixes 2 robots: robot sim; robot sim · poses by wheels" in shown


class TestLeftOut:
    def test_what_has_no_partner_is_listed_with_its_reason(self) -> None:
        one = scores("one", [0.1, 0.2, 0.3])
        one[1] = replace(one[1], reason="no end record", metrics={})
        two = scores("two", [0.1, 0.2])
        two[0] = replace(two[0], choices={**CHOICES, "scene_digest": "1"})
        two += [replace(two[0], key="flat/9", episode="9", choices=CHOICES)]
        one += [replace(one[0], key="flat/9", episode="9")]
        comparison = compare(one, two)
        assert comparison.groups[0].episodes == 1
        assert {(u.side, u.episode, u.reason) for u in comparison.unpaired} == {
            ("A", "0", "scored by different choices: scene_digest"),
            ("B", "0", "scored by different choices: scene_digest"),
            ("A", "1", "not scored: no end record"),
            ("B", "1", "the other side has no score of this episode"),
            ("A", "2", "the other side has no score of this episode"),
        }
        shown = " ".join(text(comparison).split())
        assert "not paired: 5 logs" in shown
        assert "A one/1.mcap: episode '1': not scored: no end record" in shown

    def test_an_infinite_distance_is_left_out_of_that_metric_only(self) -> None:
        one = scores("one", [0.1, 0.2])
        one[0].metrics["distance_to_goal"] = math.inf
        comparison = compare(one, scores("two", [0.1, 0.2]))
        assert (metric(comparison, "distance_to_goal").pairs, metric(comparison, "spl").pairs) == (1, 2)
        assert "distance: of 2 episodes 1 have a finite value on both sides" in text(comparison)

    def test_no_episode_in_common(self) -> None:
        one, two = scores("one", [0.1]), scores("two", [0.1], key="house/0", scene="house")
        with raises_naming(RecordingError, "A has 1 scored episode of 1 logs") as caught:
            compare(one, two)
        assert "pointnav in flat" in caught.value.message
        assert "pointnav in house" in caught.value.message

    def test_no_episode_in_common_because_of_choices(self) -> None:
        with raises_naming(RecordingError, "scorer"):
            compare(scores("one", [0.1]), scores("two", [0.1], choices={**CHOICES, "scorer": 2}))

    def test_several_agents_on_one_side(self) -> None:
        with raises_naming(ConfigError, "B", "two, three"):
            compare(scores("one", [0.1]), scores("two", [0.1]) + scores("three", [0.1]))


class TestOutput:
    def test_table_is_whole_at_80_columns(self) -> None:
        shown = text(compare(scores("one", [0.0] * 12), scores("two", [0.9] * 12)))
        assert "pointnav · 12 episodes run by both" in shown
        lines = [line.split() for line in shown.splitlines()]
        assert ["success", "%", "0.0", "100.0", "+100.0", "–", "0.0005", "0"] in lines
        assert ["distance", "m", "1.00", "0.10", "-0.90", "–", "0.0005", "0"] in lines
        assert "…" not in shown

    def test_numbers(self) -> None:
        assert [p_text(p) for p in (0.5, 0.00001)] == ["0.5000", "<0.0001"]
        assert [more_text(n) for n in (None, 12, 10**9)] == ["–", "12", ">100000"]

    def test_json(self, tmp_path: Path) -> None:
        comparison = compare(scores("one", [0.1, 0.2]), scores("two", [0.3, 0.2, 0.1]))
        write_comparison(tmp_path / "c.json", comparison)
        document = json.loads((tmp_path / "c.json").read_text())
        assert document["groups"][0]["metrics"][1]["metric"] == "spl"
        assert document["unpaired"][0]["reason"] == "the other side has no score of this episode"
        assert document["test"]["alpha"] == 0.05
        (tmp_path / "no").write_text("a file")
        with raises_naming(RecordingError, tmp_path):
            write_comparison(tmp_path / "no" / "c.json", comparison)
