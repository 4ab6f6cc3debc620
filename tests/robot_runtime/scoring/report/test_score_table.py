"""The table of scores: whole at 80 columns, and nothing that was not scored is left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from rich.console import Console
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.metrics.measures import COMMON
from robot_runtime.records import EndReason, EpisodeEnd
from robot_runtime.scoring.report.terminal_table import episode_cell, shown_path, table, unscored_line
from robot_runtime.scoring.summary import EpisodeScore, score_logs

GOOD = [FORWARD] * 12 + [STOP]


def text(renderable: object, width: int = 80) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    with console.file:
        console.print(renderable)
    return console.export_text()


@pytest.mark.parametrize("width", [80, 120])
def test_every_heading_and_number_is_whole(record, width: int) -> None:
    header = synthetic.header(agent="[red]robot[/red]")
    paths = [record(header, GOOD), record(header, [LEFT], EpisodeEnd(EndReason.FAULT, 1, 9, "[bold]odd"))]
    shown = text(table(score_logs(paths)), width)
    assert "pointnav_test · [red]robot[/red] · two rooms · 1 episode (+1 not scored)" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["success", "%", "100.0", "–"] in rows, "one episode has no interval"
    assert ["SPL", "1.000", "–"] in rows
    assert "of fewer than 10 episodes, the bootstrap's are too narrow" in " ".join(shown.split())
    assert "not scored: 1 of 2 logs" in shown
    assert "fault: [bold]odd" in " ".join(shown.split())
    assert "…" not in shown


def test_every_block_names_its_robot(record) -> None:
    sources = {"policy": ("odometry",), "referee": ("truth",)}
    headers = [replace(synthetic.header(), robot=robot, localizers=sources) for robot in ("sim", "sim-noisy")]
    shown = text(table(score_logs([record(header, GOOD) for header in headers])))
    assert "robot sim · poses by odometry · judged by truth" in shown
    assert "robot sim-noisy · poses by odometry · judged by truth" in shown


@pytest.mark.parametrize("width", [80, 120])
def test_no_row_is_wrapped_whatever_the_heading(width: int) -> None:
    metrics = {**{metric.name: 123.456 for metric in COMMON}, "success": True}
    for task in ("t", "objectnav_robothor2021_with_a_long_name"):
        scores = [
            EpisodeScore(Path("x"), task=task, metrics=metrics),
            EpisodeScore(Path("y"), task=task, metrics={**metrics, "spl": None, "soft_spl": 0.0}),
        ]
        rows = [line.split() for line in text(table(scores), width).splitlines()]
        assert ["SoftSPL", "61.728", "[0.000,", "123.456]"] in rows
        assert ["SPL", "123.456", "–", "of", "1"] in rows, "one value has no interval"
        assert ["distance", "m", "123.46", "–"] in rows, "equal values leave the bootstrap without one"


def test_a_group_of_which_nothing_was_scored(record) -> None:
    shown = text(table(score_logs([record(synthetic.header(), [LEFT], EpisodeEnd(EndReason.FAULT, 1, 9))])))
    assert "0 episodes (+1 not scored)" in shown
    assert "SPL" not in shown


def test_of_many_without_a_score_some_are_listed_and_all_are_counted() -> None:
    scores = [EpisodeScore(Path(f"{i}.mcap"), reason="no end record") for i in range(100)]
    shown = text(table(scores))
    assert "not scored: 100 of 100 logs" in shown
    assert "0.mcap: no end record" in shown
    assert "... and 70 more" in shown


def test_paths_inside_the_working_folder_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_path(tmp_path / "logs" / "1.mcap") == "logs/1.mcap"
    assert shown_path(Path("/elsewhere/1.mcap")) == "/elsewhere/1.mcap"
    path = tmp_path / "1.mcap"
    assert unscored_line(EpisodeScore(path, reason=f"{path}: is not a log")) == "1.mcap: is not a log"
    assert unscored_line(EpisodeScore(path, "fault", episode="7")) == "1.mcap: episode '7': fault"
    assert unscored_line(EpisodeScore(path, "episode '7': odd", episode="7")) == "1.mcap: episode '7': odd"


def test_cells() -> None:
    assert [episode_cell("spl", value) for value in (None, 0.5, float("inf"))] == ["–", "0.500", "∞"]
    assert episode_cell("collisions", 3) == "3"
