"""Scores divided by facets of episodes, copies of logs, and repeated runs of an episode."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from raising import raises_naming
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.actions.discrete import Action
from robot_runtime.cli.main import run_command
from robot_runtime.errors import ConfigError
from robot_runtime.records import EpisodeHeader
from robot_runtime.scoring.groups import summarize_groups
from robot_runtime.scoring.statistics.comparison import compare
from robot_runtime.scoring.statistics.intervals import wilson
from robot_runtime.scoring.summary import EpisodeScore, check_facets, score_log, without_copies

Record = Callable[[EpisodeHeader, list[Action]], Path]


def score(number: int, success: bool, key: str = "", **facets: str) -> EpisodeScore:
    metrics = {"success": success, "spl": 0.5 * success, "collisions": number}
    name = Path(f"{number}.mcap")
    return EpisodeScore(name, task="t", agent="a", scene="s", key=key or str(number), metrics=metrics, facets=facets)


SCORES = [
    score(0, True, category="chair", difficulty="easy"),
    score(1, True, category="chair", difficulty="hard"),
    score(2, False, category="plant", difficulty="easy"),
    score(3, True, difficulty="easy"),
]


def shown(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run_command([*words]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_facet_divides_groups() -> None:
    groups = summarize_groups(SCORES, by=["category"])
    assert [(group.parts, group.episodes) for group in groups] == [
        (("without category",), 1),
        (("category chair",), 2),
        (("category plant",), 1),
    ]
    assert groups[1].intervals["success"] == wilson(2, 2)
    both = summarize_groups(SCORES, by=["difficulty", "category"])
    assert [group.part for group in both][:2] == [
        (("difficulty", "easy"), ("category", "")),
        (("difficulty", "easy"), ("category", "chair")),
    ]


def test_a_facet_that_no_episode_has_is_named_with_those_that_they_have() -> None:
    with raises_naming(ConfigError, "'colour'", "category, difficulty, split"):
        check_facets(SCORES, ["colour"])
    with raises_naming(ConfigError, "'colour'"):
        compare(SCORES, SCORES, by=["colour"])


def test_a_comparison_is_divided_too() -> None:
    found = compare(SCORES, SCORES, by=["difficulty"])
    assert [(group.part, group.episodes) for group in found.groups] == [
        ((("difficulty", "easy"),), 3),
        ((("difficulty", "hard"),), 1),
    ]


@pytest.mark.parametrize("command", [["score"], ["report"]])
def test_facets_in_commands(
    command: list[str], record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = synthetic.header(synthetic.objectnav_task("distance"))
    for seed in (1, 2):
        record(replace(header, seed=seed), [FORWARD] * 2 + [STOP])
    record(synthetic.header(), [FORWARD] * 12 + [STOP])
    logs, out = str(tmp_path / "logs"), tmp_path / "report.html"
    more = ["--out", str(out)] if command == ["report"] else ["--json", str(tmp_path / "scores.json")]
    printed = shown(*command, logs, *more, "--by", "category", "--by", "difficulty", capsys=capsys)
    text = out.read_text(encoding="utf-8") if out.exists() else printed
    assert "category mug" in text.lower()
    assert "without category" in text
    assert "difficulty easy" in text
    if command == ["score"]:
        document = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
        assert document["by"] == ["category", "difficulty"]
        assert document["episodes"][0]["facets"]["room"] == "east"
    assert run_command([*command, logs, *more, "--by", "colour"]) == ConfigError.exit_code
    assert "difficulty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("length_m", "info", "expected"),
    [
        (2.9, {}, "easy"),
        (3.1, {}, "medium"),
        (6.1, {}, "hard"),
        (2.9, {"difficulty": "hard"}, "hard"),
        (2.9, {"info": {"difficulty": "medium"}}, "medium"),
        (2.9, {"info": {"difficulty": 3}}, "easy"),
    ],
)
def test_difficulty_is_the_datasets_or_by_the_shortest_path(
    length_m: float, info: dict[str, Any], expected: str, record: Record
) -> None:
    episode = synthetic.pointnav_episode(shortest_path_m=length_m, info=info)
    from robot_runtime.metrics.settings import Rules

    path = record(synthetic.header(episode=episode), [FORWARD, STOP])
    assert score_log(path, Rules(shortest_path="dataset")).facets["difficulty"] == expected


def test_collisions_of_successful_episodes(record: Record) -> None:
    good = score_log(record(synthetic.header(), [FORWARD] * 12 + [STOP]))
    bad = score_log(record(synthetic.header(), [LEFT] * 3 + [FORWARD] * 4))
    assert good.metrics["success_collisions"] == good.metrics["collisions"] == 0
    assert bad.metrics["collisions"]
    assert bad.metrics["success_collisions"] is None
    (group,) = summarize_groups([good, bad])
    assert (group.counts["success_collisions"], group.counts["collisions"]) == (1, 2)


def test_a_copy_of_a_log_is_no_second_episode(
    record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = synthetic.header()
    first = record(header, [FORWARD] * 12 + [STOP])
    again = record(replace(header, seed=header.seed + 1), [FORWARD] * 12 + [STOP])  # another run of the episode
    copy = tmp_path / "logs" / "sub" / "copy.mcap"
    copy.parent.mkdir()
    shutil.copyfile(first, copy)
    scores = [score_log(path) for path in (first, again, copy)]
    kept = without_copies(scores)
    assert [one.path for one in kept] == [first, again]
    assert "copy.mcap has the same content" in kept[0].notes[-1]
    assert kept[1] == scores[1]
    printed = shown("score", str(tmp_path / "logs"), capsys=capsys)
    assert "2 runs of 1 episode" in printed
    assert "counted once" in printed


def test_logs_that_cannot_be_read_are_no_copies_of_each_other(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.mcap", "b.mcap")]
    for path in paths:
        path.write_bytes(b"torn")
    assert len(without_copies(map(score_log, paths))) == 2


def test_runs_of_one_episode_are_drawn_together() -> None:
    """Five episodes of eight runs each say less than forty episodes do."""
    repeated = [score(i, i // 8 % 2 == 0, key=str(i // 8)) for i in range(40)]
    independent = [score(i, i // 8 % 2 == 0) for i in range(40)]
    (few,), (many,) = summarize_groups(repeated), summarize_groups(independent)
    assert (few.episodes, few.clusters, many.clusters) == (40, 5, 40)
    widths = [group.intervals["success"].high - group.intervals["success"].low for group in (few, many)]
    assert widths[0] > 1.5 * widths[1]


def test_equal_runs_of_few_episodes_leave_an_interval() -> None:
    (group,) = summarize_groups([score(i, True, key=str(i // 8)) for i in range(40)])
    assert group.intervals["success"] == wilson(5, 5)


def test_runs_of_a_single_episode_say_how_often_it_succeeds() -> None:
    (group,) = summarize_groups([score(i, i < 6, key="0") for i in range(8)])
    assert group.intervals["success"] == wilson(6, 8)
    assert not math.isnan(group.intervals["spl"].low)
