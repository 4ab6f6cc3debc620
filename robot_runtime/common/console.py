"""Consoles and progress bar of all commands.

What they print can come from policies, servers and logs of unknown origin: no escape sequence in it reaches the
terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.segment import Segment
from rich.text import Text
from typing_extensions import override

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters but tab and line feed, and those that reverse the direction of text."""


class PlainTextConsole(Console):
    """Console that shows the control characters of texts as escapes; only its own styles control the terminal."""

    @override
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control is None and _CONTROLS.search(segment.text):
                yield Segment(_CONTROLS.sub(lambda match: ascii(match[0])[1:-1], segment.text), segment.style)
            else:
                yield segment


console = PlainTextConsole(highlight=False)
error_console = PlainTextConsole(stderr=True, highlight=False)


class TimeLeft(ProgressColumn):
    """Remaining time at the mean pace of the completed items; rich's own column ignores those of more than 30 s.

    The item in progress is not extrapolated, because an episode can end long before its step limit.
    """

    max_refresh = 0.5

    def __init__(self) -> None:
        super().__init__()
        self._measured: dict[TaskID, tuple[int, float]] = {}

    @override
    def render(self, task: Task) -> Text:
        done, elapsed_s = int(task.completed), task.elapsed or 0.0
        if done != self._measured.get(task.id, (0, 0.0))[0]:
            self._measured[task.id] = done, elapsed_s
        if not done or task.total is None:
            return Text("-:--:--", style="progress.remaining")
        _, measured_s = self._measured[task.id]
        left_s = round(max(0.0, measured_s * task.total / done - elapsed_s))
        return Text(f"{left_s // 3600}:{left_s // 60 % 60:02}:{left_s % 60:02}", style="progress.remaining")


def tell(line: str) -> None:
    """Print a line on stderr, above a progress bar."""
    error_console.print(line, soft_wrap=True, markup=False)


def print_retry(log: object, how: str) -> None:
    """Print on stderr, above a progress bar, that a log's worker was lost and another one takes the log."""
    error_console.print(f"{log}: its worker {how}; done again", style="yellow", soft_wrap=True, markup=False)


def progress_bar() -> Progress:
    """Count, elapsed and remaining time; on stderr, so that stdout stays data, and only where that is a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("eta"),
        TimeLeft(),
        TextColumn("{task.fields[note]}"),
        console=error_console,
        transient=True,
        disable=not error_console.is_terminal,
    )
