"""A function over many items, on any number of workers: results in order, whatever happens to a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from robot_runtime.errors import ConfigError
from robot_runtime.parallel.checkpoint import Ledger
from robot_runtime.parallel.engine import Engine, Function, Lost, R, T, cores
from robot_runtime.parallel.process_pool import Processes
from robot_runtime.parallel.scheduler import Shift

CHUNK = 16
"""Items that a worker gets at once: neighbours, which share what is costly to make."""

LIMIT_S = 300.0
"""Seconds that an item may take, by default; a long log on a slow disk takes some."""

_LEAST_SHARES = 2  # per worker, so that a slow one may end with fewer

RETRIES = 1
"""How often an item that cost its worker is done again: once tells bad luck from a bad item."""


@dataclass(frozen=True)
class Workers:
    """Who does the work.

    Attributes:
        count: how many at once; None for one per core of this machine, or of the cluster. One without Ray is this very
            process.
        ray: ``HOST:PORT`` of a cluster that this machine is a node of, ``auto`` for the one that runs here, or
            ``local`` for one of our own that ends with the work; None for processes of our own.

    Raises:
        ConfigError: count is not positive.
    """

    count: int | None = 1
    ray: str | None = None

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise ConfigError(f"--workers {self.count}: work needs somebody to do it", "give 1 or more")


ONE = Workers()
"""This very process."""


@contextmanager
def employed(workers: Workers) -> Iterator[None]:
    """Several calls of :func:`map_in_order` within share one connection to Ray, which takes seconds to make.

    Raises:
        ConfigError: as there.
    """
    if workers.ray is None:
        yield
        return
    from robot_runtime.parallel.ray_cluster import connected

    with connected(workers.ray, workers.count):
        yield


def map_in_order(
    function: Function[T, R],
    items: Sequence[T],
    workers: Workers,
    lost: Callable[[T, Lost], R],
    chunk: int = CHUNK,
    limit_s: float = LIMIT_S,
    retries: int = RETRIES,
    on_retry: Callable[[T, Lost], None] | None = None,
    reads: Callable[[T], Iterable[Path]] | None = None,
    ledger: Ledger[T, R] | None = None,
    alone: int = 1,
) -> Iterator[R]:
    """One result per item, in the order of the items; the same for any workers.

    Function, items and results are pickled on their way to and from workers, and a script that calls this needs
    ``if __name__ == "__main__"``.

    Args:
        function: takes items and yields the result of each before it asks for the next. It is called once per worker,
            so what is costly to make is kept in its local variables; results may not depend on what came before. What
            it raises ends the work, in the same way anywhere.
        lost: the result of an item whose worker died, or took more than ``limit_s`` seconds for it, each time.
        chunk: items that a worker gets at once; fewer, where that leaves workers without any.
        limit_s: without effect in this process, which nobody ends.
        retries: how often an item that cost its worker is given to another.
        on_retry: told of each time.
        reads: files and folders that an item needs, which each node of a cluster must see.
        ledger: holds results of an earlier command, which are not made again, and takes in the others as they come.
        alone: so few items are done in this process, unless Ray is asked for: a process takes a second to start.

    Raises:
        RuntimeFault: workers cannot be started.
        ConfigError: Ray is missing, or there is no such cluster; or one of its nodes has other software or another
            file system.
        RecordingError: a node does not see what an item needs, and names both; or the ledger cannot be written.
    """
    if ledger is not None:

        def others(todo: Sequence[T], told: Callable[[T, Lost], R]) -> Iterator[R]:
            return map_in_order(function, todo, workers, told, chunk, limit_s, retries, on_retry, reads, alone=alone)

        yield from ledger.results(items, lost, others)
        return
    if not items:
        return
    if workers.ray is None and (len(items) <= alone or (workers.count or cores()) == 1):
        yield from function(iter(items))
        return
    with _engine(function, workers, reads) as engine:
        chunk = max(1, min(chunk, len(items) // (_LEAST_SHARES * engine.size)))
        yield from Shift(engine, items, lost, chunk, limit_s, retries, on_retry).results()


def _engine(function: Function[T, R], workers: Workers, reads: Callable[[T], Iterable[Path]] | None) -> Engine[T, R]:
    if workers.ray is None:
        return Processes(function, workers.count or cores())
    from robot_runtime.parallel.ray_cluster import RayCluster

    return RayCluster(function, workers.ray, workers.count, reads)
