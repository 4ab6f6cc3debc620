"""Long work on logs, which tells how far it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from robot_runtime.parallel.map import Workers, map_in_order
from robot_runtime.parallel.result_journal import ResultJournal
from robot_runtime.parallel.workers import Function, WorkerLoss

CHUNK = 4
"""Items that a worker gets at once: a learned policy takes a minute for each."""

LIMIT_S = 1800.0
"""Seconds that one item may take: a learned policy, drawn by software, over the steps of the longest tasks."""


class Watcher:
    """Told how far long work is; this one does nothing about it."""

    def on_step(self, what: str, done: int, total: int) -> None:
        """What is being done, how much of it is done, and of how much."""

    def on_retry(self, log: Path, how: WorkerLoss) -> None:
        """What a log was needed for has cost its worker, and is given to another."""


SILENT = Watcher()


class OfLog(Protocol):
    """An item of work that needs a log."""

    @property
    def log(self) -> Path: ...


T = TypeVar("T", bound=OfLog)
R = TypeVar("R")


def all_done(
    function: Function[T, R],
    items: Sequence[T],
    workers: Workers,
    lost: Callable[[T, WorkerLoss], R],
    ledger: ResultJournal[T, R] | None,
    watcher: Watcher,
    what: str,
) -> list[R]:
    """The results of :func:`map_in_order`, told of as ``what`` one by one."""
    results: list[R] = []
    done = map_in_order(
        function,
        items,
        workers,
        lost,
        batch_size=CHUNK,
        limit_s=LIMIT_S,
        on_retry=lambda item, how: watcher.on_retry(item.log, how),
        required_paths=lambda item: [item.log],
        journal=ledger,
    )
    for result in done:
        results.append(result)
        watcher.on_step(what, len(results), len(items))
    return results
