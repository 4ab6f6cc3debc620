"""Work on many items in several processes: results in order, whatever happens to a process."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

CHUNK = 16
"""Items that a process gets at once: enough to share what they have in common, few enough to keep all busy."""

_AHEAD = 2  # chunks per process that are under way at once, which bounds what is held


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_in_order(
    function: Callable[[Sequence[T]], list[R]],
    items: Sequence[T],
    workers: int,
    died: Callable[[T], R],
    chunk: int = CHUNK,
) -> Iterator[R]:
    """One result per item, in the order of the items; the same for any number of workers.

    Processes are spawned, not forked, so that no thread's lock is inherited: ``function`` and its results are pickled,
    and a script that calls this needs ``if __name__ == "__main__"``.

    Args:
        function: results for a few items, in their order; what it raises ends the iteration.
        workers: processes; with one, or for a single chunk, everything happens in this process.
        died: the result for an item whose process was killed, also when it was alone with it.
    """
    chunks = [items[i : i + chunk] for i in range(0, len(items), chunk)]
    if workers <= 1 or len(chunks) <= 1:
        for part in chunks:
            yield from function(part)
        return
    pool = _Pool(function, min(workers, len(chunks)))
    under_way: deque[tuple[Sequence[T], Future[list[R]]]] = deque()
    try:
        for part in chunks:
            under_way.append((part, pool.submit(part)))
            if len(under_way) >= _AHEAD * pool.workers:
                yield from _next(pool, under_way, died)
        while under_way:
            yield from _next(pool, under_way, died)
    finally:
        pool.close()


def _next(pool: _Pool[T, R], under_way: deque[tuple[Sequence[T], Future[list[R]]]], died: Callable[[T], R]) -> list[R]:
    """The results of the oldest chunk; if the pool broke meanwhile, a new one carries on with the others."""
    part, future = under_way.popleft()
    try:
        return future.result()
    except BrokenProcessPool:
        pool.restart()
        for _ in range(len(under_way)):
            other, other_future = under_way.popleft()
            under_way.append((other, other_future if _succeeded(other_future) else pool.submit(other)))
        return _one_by_one(pool.function, part, died)


def _one_by_one(function: Callable[[Sequence[T]], list[R]], items: Sequence[T], died: Callable[[T], R]) -> list[R]:
    """Each item alone with a process, so that it is known which one kills it."""
    pool = _Pool(function, 1)

    def alone(item: T) -> list[R]:
        try:
            return pool.submit([item]).result()
        except BrokenProcessPool:
            pool.restart()
            return [died(item)]

    try:
        return [result for item in items for result in alone(item)]
    finally:
        pool.close()


def _succeeded(future: Future[list[R]]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


class _Pool(Generic[T, R]):
    """A process pool that can be started again."""

    def __init__(self, function: Callable[[Sequence[T]], list[R]], workers: int) -> None:
        self.function = function
        self.workers = workers
        self._executor = self._start()

    def submit(self, items: Sequence[T]) -> Future[list[R]]:
        """As ``Executor.submit``, but a pool that broke meanwhile says so in the future only."""
        try:
            return self._executor.submit(self.function, items)
        except BrokenProcessPool as error:
            future: Future[list[R]] = Future()
            future.set_exception(error)
            return future

    def restart(self) -> None:
        self.close()
        self._executor = self._start()

    def close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _start(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.workers, mp_context=context, initializer=_ignore_ctrl_c)


def _ignore_ctrl_c() -> None:
    # Ctrl-C reaches every process of the terminal; the parent alone ends the work, with one message.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
