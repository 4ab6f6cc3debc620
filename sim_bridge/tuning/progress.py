"""Parallel work on logs with reports of its progress."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from robot_runtime.parallel.map import Workers, map_in_order
from robot_runtime.parallel.result_journal import ResultJournal
from robot_runtime.parallel.workers import Function, WorkerLoss

CHUNK = 4
"""Items in a worker's batch; a learned policy takes a minute for each."""

LIMIT_S = 1800.0
"""Time limit of an item: a learned policy with software rendering over the steps of the longest tasks."""


@dataclass(frozen=True)
class ProgressListener:
    """Receivers of progress reports.

    Attributes:
        on_step: function that is called with the name of the work, the number of items done, and their total.
        on_retry: function that is called when a worker was lost and its log is given to another.
    """

    on_step: Callable[[str, int, int], None]
    on_retry: Callable[[Path, WorkerLoss], None]


SILENT = ProgressListener(lambda *_: None, lambda *_: None)


class HasLog(Protocol):
    """An item of work on a log."""

    @property
    def log(self) -> Path:
        """The log."""


T = TypeVar("T", bound=HasLog)
R = TypeVar("R")


def map_with_progress(
    function: Function[T, R],
    items: Sequence[T],
    workers: Workers,
    lost: Callable[[T, WorkerLoss], R],
    journal: ResultJournal[T, R] | None,
    listener: ProgressListener,
    what: str,
) -> list[R]:
    """The results of :func:`map_in_order`, each reported to the listener as ``what``."""
    results: list[R] = []
    done = map_in_order(
        function,
        items,
        workers,
        lost,
        batch_size=CHUNK,
        limit_s=LIMIT_S,
        on_retry=lambda item, how: listener.on_retry(item.log, how),
        required_paths=lambda item: [item.log],
        journal=journal,
    )
    for result in done:
        results.append(result)
        listener.on_step(what, len(results), len(items))
    return results
