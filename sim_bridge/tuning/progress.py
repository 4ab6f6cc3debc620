"""How long work tells how far it is."""

from __future__ import annotations

from pathlib import Path

from robot_runtime.workers.worker import Lost

LIMIT_S = 1800.0
"""Seconds that one item may take: a learned policy, drawn by software, over the steps of the longest tasks."""


class Watcher:
    """Told how far long work is; this one does nothing about it."""

    def on_step(self, what: str, done: int, total: int) -> None:
        """What is being done, how much of it is done, and of how much."""

    def on_retry(self, log: Path, how: Lost) -> None:
        """What a log was needed for has cost its worker, and is given to another."""


SILENT = Watcher()
