"""Remaining time of progress bars."""

from __future__ import annotations

import pytest
from rich.progress import Task, TaskID

from robot_runtime.common.console import TimeLeft, progress_bar


@pytest.mark.parametrize(
    ("completed", "elapsed_s", "shown"),
    [
        (0, 10.0, "-:--:--"),
        (0.25, 10.0, "≤ 0:02:30"),
        (1, 60.0, "0:03:00"),
        (1.5, 90.0, "0:02:30"),
        (2, 7200.0, "2:00:00"),
        (4, 80.0, "0:00:00"),
    ],
)
def test_the_rest_takes_as_long_as_what_was_done(completed: float, elapsed_s: float, shown: str) -> None:
    task = Task(TaskID(0), "episodes", total=4, completed=completed, _get_time=lambda: elapsed_s)
    task.start_time = 0.0
    assert TimeLeft().render(task).plain == shown


def test_what_is_no_terminal_gets_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as progress:
        progress.advance(progress.add_task("episodes", total=1, note=""))
    assert capsys.readouterr() == ("", "")
