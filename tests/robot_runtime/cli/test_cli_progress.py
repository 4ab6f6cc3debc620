"""Remaining time of progress bars."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.progress import Task, TaskID

from robot_runtime.cli.main import run_command
from robot_runtime.common.console import TimeLeft, progress_bar

AGENT = """
class Stops:
    def reset(self): pass
    def act(self, observations): return "STOP"
"""


@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        ([(0, 10.0)], "-:--:--"),
        ([(0.25, 10.0)], "-:--:--"),
        ([(0.25, 10.0), (1, 60.0)], "0:03:00"),
        ([(1, 60.0), (1.5, 90.0)], "0:02:30"),
        ([(1, 60.0), (1.9, 400.0)], "0:00:00"),
        ([(2, 7200.0)], "2:00:00"),
        ([(4, 80.0)], "0:00:00"),
    ],
)
def test_the_rest_takes_as_long_as_the_items_that_were_done(progress: list[tuple[float, float]], shown: str) -> None:
    now_s = 0.0
    task = Task(TaskID(0), "episodes", total=4, completed=0, _get_time=lambda: now_s)
    task.start_time = 0.0
    column = TimeLeft()
    for completed, elapsed_s in progress:
        task.completed, now_s = completed, elapsed_s
        text = column.render(task).plain
    assert text == shown


def test_what_is_no_terminal_gets_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now_s = 0.0
    with progress_bar(lambda: now_s) as progress:
        meshes, starts = progress.add_task("meshes", total=9, note=""), progress.add_task("starts", total=None, note="")
        for done in range(9):
            now_s = 6.0 * done
            progress.update(meshes, completed=done)
        progress.update(starts, note="battery 0.9")
        progress.advance(starts)
    out, err = capsys.readouterr()
    assert out == ""
    told = ["meshes: 2 of 9", "meshes: 4 of 9", "meshes: 6 of 9", "meshes: 8 of 9", "starts: 0 · battery 0.9"]
    assert err.splitlines() == told


def test_what_is_soon_done_tells_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as progress:
        progress.advance(progress.add_task("episodes", total=1, note=""))
    assert capsys.readouterr() == ("", "")


def test_a_run_without_a_terminal_tells_the_end_of_each_episode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = tmp_path / "agents.py"
    agent.write_text(AGENT, encoding="utf-8")
    run = ["run", "--robot", "fake", "--agent", f"{agent}:Stops", "--count", "2", "--out", str(tmp_path / "logs")]
    assert run_command(run) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("episode ")]
    assert [line.partition(":")[0] for line in lines] == ["episode 1 of 2", "episode 2 of 2"]
    assert all(re.fullmatch(r"episode \d of 2: \w+ after \d+ steps", line) for line in lines)
