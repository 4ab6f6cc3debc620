"""Map of a function over many items on any number of workers, with results in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from robot_runtime.errors import ConfigError
from robot_runtime.parallel.result_journal import ResultJournal
from robot_runtime.parallel.workers import Function, R, T, WorkerLoss, WorkerPool, available_cores

BATCH_SIZE = 16
"""Items that a worker gets at once. Neighboring items share what is costly to compute."""

LIMIT_S = 300.0
"""Default time limit of an item in seconds; a long log on a slow disk needs much of it."""

RETRIES = 1
"""Repetitions of an item whose worker was lost: a single one distinguishes an accident from a bad item."""

_MIN_BATCHES = 2
"""Batches per worker, so that a slow worker can process fewer than the others."""


@dataclass(frozen=True)
class Workers:
    """Number and location of the workers.

    Attributes:
        count: workers at the same time; None for one per core of this machine, or of the cluster. One without Ray is
            this process itself.
        ray: ``HOST:PORT`` of a Ray cluster that this machine is a node of, ``auto`` for the one that runs here, or
            ``local`` for one that is started and ends with the work; None for processes on this machine.

    Raises:
        ConfigError: ``count`` is not positive.
    """

    count: int | None = 1
    ray: str | None = None

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise ConfigError(f"--workers {self.count} is not positive", "give 1 or more")


ONE = Workers()
"""This process itself."""


@contextmanager
def shared_ray(workers: Workers) -> Iterator[None]:
    """Share a connection to Ray (it takes seconds to make) between the calls of :func:`map_in_order` within.

    Raises:
        ConfigError: as :func:`map_in_order`.
    """
    if workers.ray is None:
        yield
        return
    from robot_runtime.parallel.ray_pool import connected

    with connected(workers.ray, workers.count):
        yield


def map_in_order(
    function: Function[T, R],
    items: Sequence[T],
    workers: Workers,
    lost_result: Callable[[T, WorkerLoss], R],
    batch_size: int = BATCH_SIZE,
    limit_s: float = LIMIT_S,
    retries: int = RETRIES,
    on_retry: Callable[[T, WorkerLoss], None] | None = None,
    required_paths: Callable[[T], Iterable[Path]] | None = None,
    journal: ResultJournal[T, R] | None = None,
    serial_up_to: int = 1,
) -> Iterator[R]:
    """Yield one result per item, in the order of the items; the results are the same for any workers.

    Function, items and results are pickled, and a script that calls this needs ``if __name__ == "__main__"``.

    Args:
        function: takes items and yields the result of each before it takes the next. It is called once per worker, so
            that costly objects can be kept in its local variables; results may not depend on earlier items. An
            exception that it raises ends the work.
        items: the work.
        workers: number and location of the workers.
        lost_result: makes the result of an item whose worker died or exceeded ``limit_s`` at every try.
        batch_size: items that a worker gets at once; fewer if some workers would get none.
        limit_s: time limit of an item in seconds; without effect in this process.
        retries: repetitions of an item whose worker was lost.
        on_retry: called at each repetition with the item and the reason.
        required_paths: files and folders that an item needs, and that each node of a cluster must have.
        journal: results of an earlier command, not computed again; stores the new ones.
        serial_up_to: up to so many items are processed in this process unless Ray is asked for, because a worker takes
            about a second to start.

    Raises:
        RuntimeFault: workers cannot be started.
        ConfigError: Ray or its cluster is missing; or a node has other software or another file system.
        RecordingError: a node lacks a required path, or the journal cannot be written.
    """
    if journal is not None:

        def compute(todo: Sequence[T], lost: Callable[[T, WorkerLoss], R]) -> Iterator[R]:
            options = batch_size, limit_s, retries, on_retry, required_paths
            return map_in_order(function, todo, workers, lost, *options, serial_up_to=serial_up_to)

        yield from journal.results(items, lost_result, compute)
        return
    if not items:
        return
    if workers.ray is None and (len(items) <= serial_up_to or (workers.count or available_cores()) == 1):
        yield from function(iter(items))
        return
    from robot_runtime.parallel.scheduler import Scheduler

    with _pool(function, workers, required_paths) as pool:
        batch_size = max(1, min(batch_size, len(items) // (_MIN_BATCHES * pool.size)))
        yield from Scheduler(pool, items, lost_result, batch_size, limit_s, retries, on_retry).results()


def _pool(
    function: Function[T, R], workers: Workers, required_paths: Callable[[T], Iterable[Path]] | None
) -> WorkerPool[T, R]:
    if workers.ray is None:
        from robot_runtime.parallel.process_pool import ProcessPool

        return ProcessPool(function, workers.count or available_cores())
    from robot_runtime.parallel.ray_pool import RayPool

    return RayPool(function, workers.ray, workers.count, required_paths)
