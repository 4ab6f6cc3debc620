"""Work on many items in several processes: results in order, whatever happens to a process.

A process that dies, or that is silent for too long, costs the one item that it was at; the rest of its share goes to a
new process. ``concurrent.futures`` can do neither: it does not know which item a process was at, and never ends one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Generic, Literal, TypeVar

from robot_runtime.clock import Stopwatch
from robot_runtime.errors import ConfigError

T = TypeVar("T")
R = TypeVar("R")

CHUNK = 16
"""Items that a process gets at once: enough to share what they have in common, few enough to keep all busy."""

LIMIT_S = 300.0
"""Seconds that an item may take, by default; a long log on a slow disk takes some."""

START_LIMIT_S = 120.0
"""Seconds that a process may take to start: importing the program on a busy machine."""

Lost = Literal["died", "hung"]
"""What became of the process that was at an item."""

_AHEAD = 4  # chunks per process whose results may wait for an earlier one, which bounds what is held


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_in_order(
    function: Callable[[Sequence[T]], Iterator[R]],
    items: Sequence[T],
    workers: int,
    lost: Callable[[T, Lost], R],
    chunk: int = CHUNK,
    limit_s: float = LIMIT_S,
) -> Iterator[R]:
    """One result per item, in the order of the items; the same for any number of workers.

    Processes are spawned, not forked, so that no thread's lock is inherited: ``function`` and its results are pickled,
    and a script that calls this needs ``if __name__ == "__main__"``.

    Args:
        function: yields results for a few items, in their order; what it raises ends the iteration.
        workers: processes; with one, or for a single chunk, everything happens in this process, without a limit.
        lost: the result for an item whose process died, or took more than ``limit_s`` seconds for it.

    Raises:
        ConfigError: processes cannot be started.
    """
    chunks = [range(i, min(i + chunk, len(items))) for i in range(0, len(items), chunk)]
    if workers <= 1 or len(chunks) <= 1:
        for part in chunks:
            yield from function([items[i] for i in part])
        return
    pool = _Pool(function, items, deque(chunks), min(workers, len(chunks)), lost, limit_s)
    try:
        yield from pool.results(_AHEAD * chunk * pool.size)
    finally:
        pool.close()


class _Pool(Generic[T, R]):
    def __init__(
        self,
        function: Callable[[Sequence[T]], Iterator[R]],
        items: Sequence[T],
        todo: deque[range],
        size: int,
        lost: Callable[[T, Lost], R],
        limit_s: float,
    ) -> None:
        self.size = size
        self._function, self._items, self._todo, self._lost, self._limit_s = function, items, todo, lost, limit_s
        self._workers: list[_Worker[T, R]] = []
        self._done: dict[int, R] = {}

    def results(self, ahead: int) -> Iterator[R]:
        """All results in order; work goes on up to ``ahead`` items beyond the one that is waited for."""
        for index in range(len(self._items)):
            while index not in self._done:
                self._employ(index + ahead)
                self._collect()
            yield self._done.pop(index)

    def close(self) -> None:
        for worker in self._workers:
            worker.end()

    def _employ(self, until: int) -> None:
        """Give every idle process a chunk, if one is due."""
        while len(self._workers) < self.size and self._todo:
            self._workers.append(_Worker(self._function))
        for worker in self._workers:
            if worker.idle and self._todo and self._todo[0].start < until:
                worker.give(self._todo.popleft(), self._items)

    def _collect(self) -> None:
        """Take in what some process says; end those that say nothing for too long."""
        busy = [worker for worker in self._workers if not worker.idle]
        left_s = min(worker.left_s(self._limit_s) for worker in busy)
        ready = wait([worker.pipe for worker in busy], max(0.0, left_s))
        for worker in busy:
            if worker.pipe in ready:
                self._take(worker)
            elif worker.left_s(self._limit_s) <= 0:
                self._replace(worker, "hung")

    def _take(self, worker: _Worker[T, R]) -> None:
        try:
            said = worker.pipe.recv()
        except (EOFError, OSError):
            self._replace(worker, "died")
            return
        if isinstance(said, BaseException):
            raise said
        worker.heard()
        if said is not None:
            self._done[worker.share.popleft()] = said[0]

    def _replace(self, worker: _Worker[T, R], how: Lost) -> None:
        """Without its process, an item is lost; what had been given to it beside that is to be done again."""
        worker.end()
        self._workers.remove(worker)
        if not worker.started:
            raise ConfigError(
                f"a process for scoring {'did not start in time' if how == 'hung' else 'died while it started'}",
                "use --workers 1, which needs none",
            )
        index = worker.share.popleft()
        self._done[index] = self._lost(self._items[index], how)
        if worker.share:
            self._todo.appendleft(range(worker.share[0], worker.share[-1] + 1))


class _Worker(Generic[T, R]):
    """One process, and the items that it is at, the first of them now.

    Attributes:
        share: numbers of the items not yet done. started: it has said that it is there.
    """

    def __init__(self, function: Callable[[Sequence[T]], Iterator[R]]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(function, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self.share: deque[int] = deque()
        self.started = False
        self._silence = Stopwatch()

    @property
    def idle(self) -> bool:
        return not self.share

    def give(self, share: range, items: Sequence[T]) -> None:
        self.share = deque(share)
        if self.started:
            self._silence.restart()
        try:
            self.pipe.send([items[i] for i in share])
        except OSError:  # it died between two chunks: the pipe's end says so to whoever reads
            return

    def heard(self) -> None:
        self.started = True
        self._silence.restart()

    def left_s(self, limit_s: float) -> float:
        """Seconds that it may still be silent."""
        return (limit_s if self.started else START_LIMIT_S) - self._silence.elapsed_s()

    def end(self) -> None:
        """Without asking: it may not be able to answer, and it holds nothing that is not done again."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _work(function: Callable[[Sequence[T]], Iterator[R]], pipe: Connection) -> None:
    """A process's life: says None when it is there, then (result,) per item; or the error that ends everything."""
    # Ctrl-C reaches every process of the terminal; the parent alone ends the work, with one message.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe.send(None)
    while True:
        try:
            items = pipe.recv()
        except EOFError:  # the parent is gone
            return
        try:
            for result in function(items):
                pipe.send((result,))
        except Exception as error:
            pipe.send(error)
            raise
