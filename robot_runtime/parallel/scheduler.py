"""Who does what: shares of items for workers, results in order, and what becomes of items whose worker is lost."""

from __future__ import annotations

from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Generic

from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import RuntimeFault
from robot_runtime.parallel.engine import Done, Engine, Failed, Lost, R, Ready, T, Worker, WorkerDied, WorkerTraceback

START_LIMIT_S = 120.0
"""Seconds that may pass while nobody works because all are starting: importing the program on a busy machine."""

_FALSE_STARTS = 3  # in a row; one may be bad luck, as on a cluster's node that goes down
_AHEAD = 4  # shares per worker whose results may wait for an earlier one, which bounds what is held


class Shift(Generic[T, R]):
    """All items, done once by the workers of an engine.

    Args:
        chunk: items that a worker gets at once. limit_s: seconds that an item may take.
        lost: the result of an item that cost its worker ``retries`` + 1 times.
        on_retry: told of an item that is to be done again, and why.
    """

    def __init__(
        self,
        engine: Engine[T, R],
        items: Sequence[T],
        lost: Callable[[T, Lost], R],
        chunk: int,
        limit_s: float,
        retries: int,
        on_retry: Callable[[T, Lost], None] | None,
    ) -> None:
        self._engine, self._items, self._lost, self._limit_s = engine, items, lost, limit_s
        self._retries, self._on_retry = retries, on_retry
        self._todo = [range(i, min(i + chunk, len(items))) for i in range(0, len(items), chunk)]  # sorted
        self._size = min(engine.size, len(self._todo))
        self._ahead = _AHEAD * chunk * self._size
        self._hands: list[_Hand[T, R]] = []
        self._done: dict[int, Done[R] | Failed] = {}
        self._first_failed = len(items)  # what comes after it is not needed any more
        self._losses: Counter[int] = Counter()
        self._false_starts = 0
        self._nobody_works = Stopwatch()

    def results(self) -> Iterator[R]:
        """All results in order; work goes on some way beyond the item that is waited for, and no further."""
        try:
            for index in range(len(self._items)):
                while index not in self._done:
                    self._employ(min(index + self._ahead, self._first_failed))
                    self._listen()
                done = self._done.pop(index)
                if isinstance(done, Failed):  # in its turn, so that the same item is blamed whoever was first
                    raise done.error from WorkerTraceback(done.trace)
                yield done.result
        finally:
            for hand in self._hands:
                hand.worker.end()

    def _employ(self, until: int) -> None:
        """Give every idle worker a share of what is due; hire as many as that takes."""
        due = list(takewhile(lambda share: share.start < until, islice(self._todo, self._size)))
        free = [hand for hand in self._hands if not hand.share]
        for _ in range(min(len(due) - len(free), self._size - len(self._hands))):
            self._hands.append(_Hand(self._engine.hire()))
        for hand, share in zip([hand for hand in free if hand.started], due, strict=False):
            self._todo.remove(share)
            hand.give(share, self._items)

    def _listen(self) -> None:
        """Take in what workers say; end those that say nothing for too long."""
        starting = [hand for hand in self._hands if not hand.started]
        busy = [hand for hand in self._hands if hand.share]
        if busy:
            self._nobody_works.restart()
        left_s = min(
            [self._limit_s - hand.silence.elapsed_s() for hand in busy]
            or [START_LIMIT_S - self._nobody_works.elapsed_s()]
        )
        talking = self._engine.wait([hand.worker for hand in busy + starting], max(0.0, left_s))
        for hand in busy + starting:
            if hand.worker in talking:
                self._take(hand)
            elif hand.share and hand.silence.elapsed_s() >= self._limit_s:
                self._lose(hand, "hung")
        if not busy and not talking and self._nobody_works.elapsed_s() >= START_LIMIT_S:
            raise _no_workers(f"no worker started within {START_LIMIT_S:.0f} s")

    def _take(self, hand: _Hand[T, R]) -> None:
        try:
            said = hand.worker.take()
        except WorkerDied as death:
            if hand.started:
                self._lose(hand, "died")
            else:
                self._start_again(hand, death)
            return
        hand.silence.restart()
        if isinstance(said, Ready):
            hand.started = True
            self._false_starts = 0
        elif hand.started:
            index = hand.share.popleft()
            self._done[index] = said
            if isinstance(said, Failed):
                self._first_failed = min(self._first_failed, index)
                self._dismiss(hand)
        elif isinstance(said, Failed):
            raise said.error from WorkerTraceback(said.trace)

    def _start_again(self, hand: _Hand[T, R], death: WorkerDied) -> None:
        self._dismiss(hand)
        self._false_starts += 1
        if self._false_starts >= _FALSE_STARTS:
            reason = "".join(f": {line}" for line in str(death).splitlines()[-1:])
            raise _no_workers(f"{_FALSE_STARTS} workers, one after another, died while they started{reason}")

    def _lose(self, hand: _Hand[T, R], how: Lost) -> None:
        """The item that the worker was at is to be done again, if it has not been too often."""
        index = hand.share.popleft()
        self._dismiss(hand)
        self._losses[index] += 1
        if self._losses[index] > self._retries:
            self._done[index] = Done(self._lost(self._items[index], how))
            return
        self._put_back(range(index, index + 1))
        if self._on_retry is not None:
            self._on_retry(self._items[index], how)

    def _dismiss(self, hand: _Hand[T, R]) -> None:
        """What is left of its share is to be done by others."""
        if hand.share:
            self._put_back(range(hand.share[0], hand.share[-1] + 1))
        hand.worker.end()
        self._hands.remove(hand)

    def _put_back(self, share: range) -> None:
        insort(self._todo, share, key=lambda one: one.start)


def _no_workers(what: str) -> RuntimeFault:
    return RuntimeFault(
        what, "use --workers 1, which needs none; or free memory and processors, and install the same on every node"
    )


class _Hand(Generic[T, R]):
    """A worker and its share: numbers of the items not yet done, the first of which it is at.

    Attributes:
        started: it has said that it is there. silence: since it last said anything, or was given something to do.
    """

    def __init__(self, worker: Worker[T, R]) -> None:
        self.worker = worker
        self.share: deque[int] = deque()
        self.started = False
        self.silence = Stopwatch()

    def give(self, share: range, items: Sequence[T]) -> None:
        self.share = deque(share)
        self.silence.restart()
        self.worker.give([items[i] for i in share])
