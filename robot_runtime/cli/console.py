"""What every command prints through: two consoles and one look of progress."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

console = Console(highlight=False)
error_console = Console(stderr=True, highlight=False)


def progress_bar() -> Progress:
    """A progress bar with count, elapsed and remaining time, on stderr so that stdout stays data."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("eta"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=error_console,
        transient=True,
    )
