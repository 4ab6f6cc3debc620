"""Scheduler: batches of items for workers, ordered results, and retries of items whose worker was lost."""

from __future__ import annotations

from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Generic

from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import RuntimeFault
from robot_runtime.parallel.workers import (
    Done,
    Failed,
    R,
    Ready,
    T,
    Worker,
    WorkerDied,
    WorkerLoss,
    WorkerPool,
    WorkerTraceback,
)

START_LIMIT_S = 120.0
"""Longest time in seconds in which all workers may be starting: importing the program on a busy machine takes long."""

_MAX_FALSE_STARTS = 3
"""Workers that may die one after another while they start; a single one can be an accident, such as a lost node."""

_LOOKAHEAD_BATCHES = 4
"""Batches per worker whose results may wait for an earlier one; bounds the memory for results."""


class Scheduler(Generic[T, R]):
    """Processes all items with the workers of a pool.

    Args:
        pool: starts the workers.
        items: the work.
        lost_result: makes the result of an item that cost ``retries`` + 1 workers.
        batch_size: items that a worker gets at once.
        limit_s: seconds that an item may take.
        retries: repetitions of an item whose worker was lost.
        on_retry: called with each item that is repeated, and the reason.
    """

    def __init__(
        self,
        pool: WorkerPool[T, R],
        items: Sequence[T],
        lost_result: Callable[[T, WorkerLoss], R],
        batch_size: int,
        limit_s: float,
        retries: int,
        on_retry: Callable[[T, WorkerLoss], None] | None,
    ) -> None:
        self._pool, self._items, self._lost_result, self._limit_s = pool, items, lost_result, limit_s
        self._retries, self._on_retry = retries, on_retry
        self._todo = [range(i, min(i + batch_size, len(items))) for i in range(0, len(items), batch_size)]  # sorted
        self._size = min(pool.size, len(self._todo))
        self._lookahead = _LOOKAHEAD_BATCHES * batch_size * self._size
        self._workers: list[_Scheduled[T, R]] = []
        self._done: dict[int, Done[R] | Failed] = {}
        self._first_failed = len(items)  # later items are not needed any more
        self._losses: Counter[int] = Counter()
        self._false_starts = 0
        self._idle_time = Stopwatch()

    def results(self) -> Iterator[R]:
        """Yield all results in order. Work runs ahead of the next result by a bounded number of items."""
        try:
            for index in range(len(self._items)):
                while index not in self._done:
                    self._dispatch(min(index + self._lookahead, self._first_failed))
                    self._poll()
                done = self._done.pop(index)
                if isinstance(done, Failed):  # raised in order, so that the same item is named for any timing
                    raise done.error from WorkerTraceback(done.trace)
                yield done.result
        finally:
            for scheduled in self._workers:
                scheduled.worker.kill()

    def _dispatch(self, until: int) -> None:
        """Give every idle worker a batch that begins before item ``until``; start workers as needed."""
        due = list(takewhile(lambda batch: batch.start < until, islice(self._todo, self._size)))
        idle = [scheduled for scheduled in self._workers if not scheduled.batch]
        for _ in range(min(len(due) - len(idle), self._size - len(self._workers))):
            self._workers.append(_Scheduled(self._pool.start_worker()))
        for scheduled, batch in zip([scheduled for scheduled in idle if scheduled.started], due, strict=False):
            self._todo.remove(batch)
            scheduled.submit(batch, self._items)

    def _poll(self) -> None:
        """Receive messages; kill workers that exceed the time limit."""
        starting = [scheduled for scheduled in self._workers if not scheduled.started]
        busy = [scheduled for scheduled in self._workers if scheduled.batch]
        if busy:
            self._idle_time.restart()
        left_s = min(
            [self._limit_s - scheduled.silence.elapsed_s() for scheduled in busy]
            or [START_LIMIT_S - self._idle_time.elapsed_s()]
        )
        reporting = self._pool.wait([scheduled.worker for scheduled in busy + starting], max(0.0, left_s))
        for scheduled in busy + starting:
            if scheduled.worker in reporting:
                self._receive(scheduled)
            elif scheduled.batch and scheduled.silence.elapsed_s() >= self._limit_s:
                self._lose(scheduled, "hung")
        if not busy and not reporting and self._idle_time.elapsed_s() >= START_LIMIT_S:
            raise _no_workers(f"no worker started within {START_LIMIT_S:.0f} s")

    def _receive(self, scheduled: _Scheduled[T, R]) -> None:
        try:
            message = scheduled.worker.receive()
        except WorkerDied as death:
            if scheduled.started:
                self._lose(scheduled, "died")
            else:
                self._count_false_start(scheduled, death)
            return
        scheduled.silence.restart()
        if isinstance(message, Ready):
            scheduled.started = True
            self._false_starts = 0
        elif scheduled.started:
            index = scheduled.batch.popleft()
            self._done[index] = message
            if isinstance(message, Failed):
                self._first_failed = min(self._first_failed, index)
                self._release(scheduled)
        elif isinstance(message, Failed):
            raise message.error from WorkerTraceback(message.trace)

    def _count_false_start(self, scheduled: _Scheduled[T, R], death: WorkerDied) -> None:
        self._release(scheduled)
        self._false_starts += 1
        if self._false_starts >= _MAX_FALSE_STARTS:
            reason = "".join(f": {line}" for line in str(death).splitlines()[-1:])
            raise _no_workers(f"{_MAX_FALSE_STARTS} workers, one after another, died while they started{reason}")

    def _lose(self, scheduled: _Scheduled[T, R], reason: WorkerLoss) -> None:
        """Kill a worker; repeat its current item unless that has used up its retries."""
        index = scheduled.batch.popleft()
        self._release(scheduled)
        self._losses[index] += 1
        if self._losses[index] > self._retries:
            self._done[index] = Done(self._lost_result(self._items[index], reason))
            return
        self._put_back(range(index, index + 1))
        if self._on_retry is not None:
            self._on_retry(self._items[index], reason)

    def _release(self, scheduled: _Scheduled[T, R]) -> None:
        """Kill a worker and put the rest of its batch back."""
        if scheduled.batch:
            self._put_back(range(scheduled.batch[0], scheduled.batch[-1] + 1))
        scheduled.worker.kill()
        self._workers.remove(scheduled)

    def _put_back(self, batch: range) -> None:
        insort(self._todo, batch, key=lambda other: other.start)


def _no_workers(problem: str) -> RuntimeFault:
    return RuntimeFault(
        problem, "use --workers 1: it needs none; or free memory and processors, and install the same on every node"
    )


class _Scheduled(Generic[T, R]):
    """A worker and its batch.

    Attributes:
        batch: indices of the items that are not done; the worker processes the first.
        started: whether it has sent :class:`Ready`.
        silence: time since its last message or the last batch.
    """

    def __init__(self, worker: Worker[T, R]) -> None:
        self.worker = worker
        self.batch: deque[int] = deque()
        self.started = False
        self.silence = Stopwatch()

    def submit(self, batch: range, items: Sequence[T]) -> None:
        self.batch = deque(batch)
        self.silence.restart()
        self.worker.submit([items[i] for i in batch])
