"""Consoles and progress bar of all commands.

What they print can come from policies, servers and logs of unknown origin: no escape sequence in it reaches the
terminal.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from rich import progress
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import Progress, ProgressColumn, Task, TaskID
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from typing_extensions import override

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters but tab and line feed, and those that reverse the direction of text."""


class PlainTextConsole(Console):
    """Console that cuts no table, and shows the control characters of texts as escapes.

    Only its own styles control the terminal. A table that is too wide wraps between words; where its longest words do
    not fit side by side, each row becomes a block with a line per column.
    """

    @override
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Table):
            from robot_runtime.common.tables import fitted

            renderable = fitted(renderable, self, options or self.options)
        for segment in super().render(renderable, options):
            if segment.control is None and _CONTROLS.search(segment.text):
                yield Segment(_CONTROLS.sub(lambda match: ascii(match[0])[1:-1], segment.text), segment.style)
            else:
                yield segment


LINE_PERIOD_S = 10.0
"""Time between lines of progress where there is no terminal."""

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


def say(line: str) -> None:
    """Print a line on stdout as it is, however long."""
    console.print(line, soft_wrap=True, markup=False)


def tell(line: str) -> None:
    """Print a line on stderr as it is, above a progress bar."""
    error_console.print(line, soft_wrap=True, markup=False)


def print_retry(log: object, how: str) -> None:
    """Print on stderr, above a progress bar, that a log's worker was lost and another one takes the log."""
    error_console.print(f"{log}: its worker {how}; done again", style="yellow", soft_wrap=True, markup=False)


class _ProgressLines(Progress):
    """Progress as a line now and then, for a stream that is no terminal: silence looks like a program that hangs."""

    def __init__(self, *columns: ProgressColumn, **options: Any) -> None:
        super().__init__(*columns, disable=True, **options)
        self._told_s: dict[TaskID, float] = {}

    @override
    def add_task(self, description: str, *args: Any, **fields: Any) -> TaskID:
        task = super().add_task(description, *args, **fields)
        self._told_s[task] = self.get_time()
        return task

    @override
    def update(self, task_id: TaskID, **fields: Any) -> None:
        super().update(task_id, **fields)
        self._tell(task_id)

    @override
    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        super().advance(task_id, advance)
        self._tell(task_id)

    def _tell(self, task_id: TaskID) -> None:
        now_s = self.get_time()
        if now_s - self._told_s[task_id] < LINE_PERIOD_S:
            return
        self._told_s[task_id] = now_s
        task = self._tasks[task_id]
        of = "" if task.total is None else f" of {task.total:g}"
        note = task.fields.get("note") or ""
        tell(f"{task.description}: {int(task.completed)}{of}{note and f' · {note}'}")


def progress_bar(now_s: Callable[[], float] | None = None) -> Progress:
    """Count and times of work, on stderr, so that stdout stays data; what is no terminal gets a line every ten seconds.

    Args:
        now_s: the time in seconds; None: that of the system.
    """
    made = Progress if error_console.is_terminal else _ProgressLines
    return made(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("eta"),
        TimeLeft(),
        progress.TextColumn("{task.fields[note]}"),
        console=error_console,
        transient=True,
        get_time=now_s,
    )
