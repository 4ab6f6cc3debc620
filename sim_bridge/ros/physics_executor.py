"""Transfer of work from rospy's threads to the physics thread, the only one that accesses the world."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class PhysicsExecutor:
    """Work that is executed before the next physics step."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], object], Future[object]]] = deque()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue ``work``; the future gets its result or its exception."""
        future: Future[T] = Future()
        self._waiting.append((work, future))  # type: ignore[arg-type]
        return future

    def run_pending(self) -> None:
        """Execute the queued work; to be called by the physics thread."""
        while self._waiting:
            work, future = self._waiting.popleft()
            try:
                future.set_result(work())
            except Exception as error:  # noqa: BLE001 - passed on with the future
                future.set_exception(error)
