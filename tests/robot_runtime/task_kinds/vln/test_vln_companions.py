"""The file of ground truth next to a split: what is missing, empty, of other ids, or of another place is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from episode_documents import r2r_document, r2r_truth
from kind_episodes import scored
from synthetic import FORWARD, STOP
from test_vln_scores import vln_header

from robot_runtime.cli.main import run_command
from robot_runtime.datasets.files import companion_problems, iter_readable, load_episodes
from robot_runtime.datasets.io import write_json
from robot_runtime.datasets.validate import Report, validate
from robot_runtime.scoring.report.terminal_table import reference_lines
from robot_runtime.scoring.summary import EpisodeScore

Truth = dict[str, Any]


def report(folder: Path, truth: Truth | None, name: str = "val_gt.json") -> Report:
    """The findings of a split whose ground truth is this; None for none."""
    path = folder / "val.json"
    write_json(path, r2r_document())
    if truth is not None:
        write_json(folder / name, truth)
    return validate(iter_readable(path), companions=lambda ids: companion_problems(path, ids))


def found(result: Report) -> dict[str, int]:
    return {finding.check: finding.count for finding in result.findings}


def test_a_complete_companion_is_nothing_to_say(tmp_path: Path) -> None:
    result = report(tmp_path, r2r_truth())
    assert result.companions == ()
    assert "no ground truth" not in found(result)


@pytest.mark.parametrize(
    ("change", "sentence", "episodes"),
    [
        (lambda truth: None, "val_gt.json is missing", 2),
        (lambda truth: {}, "val_gt.json is empty", 2),
        (lambda truth: {"4": truth["1"]}, "'4', may be those of trajectories", 2),
        (lambda truth: {**truth, "99": truth["1"]}, "1 of 3 ids that no episode", 0),
        (lambda truth: {"2": truth["2"]}, "", 1),
        (lambda truth: {"1": truth["1"], "2": {**truth["2"], "locations": []}}, "", 1),
    ],
)
def test_a_companion_that_does_not_fit_is_said(
    tmp_path: Path, change: Callable[[Truth], Truth | None], sentence: str, episodes: int
) -> None:
    result = report(tmp_path, change(r2r_truth()))
    assert sentence in " ".join(result.companions)
    assert bool(result.companions) == bool(sentence)
    assert found(result).get("no ground truth", 0) == episodes


def test_the_companion_of_another_split_is_named(tmp_path: Path) -> None:
    result = report(tmp_path, r2r_truth(), "val_unseen_gt.json")
    assert "val_unseen_gt.json" in result.companions[0]


def test_the_findings_do_not_depend_on_the_order_of_episodes(tmp_path: Path) -> None:
    report(tmp_path, {"2": r2r_truth()["2"]})
    episodes = load_episodes(tmp_path / "val.json")
    forward, backward = validate(episodes), validate(episodes[::-1])
    assert forward.count("no ground truth") == backward.count("no ground truth") == 1


def test_ground_truth_of_another_building_is_found_and_named_in_the_score(tmp_path: Path) -> None:
    truth = r2r_truth()
    truth["1"] = {**truth["1"], "locations": [[40.0, 0.25, 40.0], [41.0, 0.25, 40.0]]}
    assert found(report(tmp_path, truth))["ground truth elsewhere"] == 1
    _, choices = scored(vln_header(info={"ground_truth": {"locations": [[40.0, 0.0, 40.0]]}}), [FORWARD] * 12 + [STOP])
    assert choices["route_reference"] == "positions of a follower that begins elsewhere"


def test_scores_name_what_paths_were_compared_with() -> None:
    _, nodes = scored(vln_header(), [FORWARD, STOP])
    stated = (nodes, nodes, {"rule": "distance"})
    scores = [EpisodeScore(Path(f"{i}.mcap"), choices=choices) for i, choices in enumerate(stated)]
    assert reference_lines(scores) == ["route reference: nodes of the reference path (2 of 3 episodes)"]


def test_validate_says_it_and_is_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(tmp_path, {})
    run_command(["episodes", "validate", str(tmp_path / "val.json")])
    assert "val_gt.json is empty" in capsys.readouterr().out
