"""Rearrangement end to end in physics: episodes, run, log, score, report, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robot_runtime.cli.main import run_command
from robot_runtime.recording.reader import LogReader
from robot_runtime.task_kinds.rearrangement.task import Layout


def metrics_of(folder: Path, task: str, agent: str, *more: str, count: int = 1, seed: int = 0) -> list[dict[str, Any]]:
    """Output of ``score --json`` for episodes that are generated for the task, and a report could be written."""
    episodes, out, scores = folder / "episodes.yaml", folder / "logs", folder / "scores.json"
    if not episodes.exists():
        generate = [
            "episodes",
            "generate",
            "--out",
            str(episodes),
            "--task",
            task,
            "--count",
            str(count),
            "--seed",
            str(seed),
        ]
        assert run_command(generate) == 0
    arguments = ["--task", task, "--episodes", str(episodes), "--agent", agent, "--count", str(count), *more]
    assert run_command(["run", "--out", str(out), *arguments]) == 0
    assert run_command(["score", str(out), "--json", str(scores)]) == 0
    assert run_command(["report", str(out), "--out", str(folder / "report.html")]) == 0
    return [episode["metrics"] for episode in json.loads(scores.read_text(encoding="utf-8"))["episodes"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "criterion"),
    [
        pytest.param("rearrangement_geometric", "criterion_translation", marks=pytest.mark.exhaustive),
        ("rearrangement_predicate", None),
        pytest.param("rearrangement_experience", "criterion_iou", marks=pytest.mark.exhaustive),
        ("rearrangement_image", "criterion_iou"),
        pytest.param("room_rearrangement_2021", "criterion_iou", marks=pytest.mark.exhaustive),
        ("house_cleanup_locobot", "criterion_translation"),
        pytest.param("house_cleanup_paper", "criterion_translation", marks=pytest.mark.exhaustive),
    ],
)
def test_the_oracle_tidies_up(task: str, criterion: str | None, tmp_path: Path) -> None:
    (metrics,) = metrics_of(tmp_path, task, "oracle", seed=SEEDS.get(task, 0))
    assert metrics["success"] is True
    assert metrics["completion"] == metrics["targets_met"] == 1.0
    assert metrics["held_at_end"] == 0
    assert 0.4 < metrics["spl"] <= 1
    if criterion is not None:
        assert metrics[criterion] is True
    if not task.startswith("house_cleanup"):
        assert metrics["criterion_no_harm"] is True


SEEDS = {"house_cleanup_locobot": 4, "room_rearrangement_2021": 5}
"""Of episodes with few objects, which take little time."""


@pytest.mark.slow
def test_acting_at_random_changes_nothing_and_is_scored(tmp_path: Path) -> None:
    (metrics,) = metrics_of(tmp_path, "house_cleanup_tutorial", "random-actions")
    assert (metrics["success"], metrics["completion"], metrics["steps"]) == (False, 0.0, 50)
    assert metrics["failed_grabs"] > 0


@pytest.mark.slow
def test_a_walkthrough_is_in_the_log_and_shows_the_goal_state(tmp_path: Path) -> None:
    (tmp_path / "walker.py").write_text(
        "class Walker:\n    def reset(self): self.left = 3\n"
        "    def act(self, seen):\n        self.left -= 1\n        return 'turn_left' if self.left >= 0 else 'stop'\n"
    )
    task = "rearrangement_experience"
    (metrics,) = metrics_of(tmp_path, task, f"{tmp_path / 'walker.py'}:Walker")
    assert (metrics["success"], metrics["steps"], metrics["path_length_m"]) == (False, 1, 0.0)
    (log,) = (tmp_path / "logs").rglob("*.mcap")
    with LogReader(log) as reader:
        records = list(reader.steps(images=False))
        objects = Layout.of(reader.header.episode).objects
    assert [record.state.phase for record in records] == ["walkthrough"] * 4 + ["unshuffle"] * 2
    for record in records:
        for item in objects:
            wanted = item.start if record.state.phase == "unshuffle" else item.goal
            assert wanted is not None
            assert record.state.poses[item.id].position == pytest.approx(wanted.position, abs=1e-6)
