"""From rospy's threads to the physics thread, which alone touches the world."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class PhysicsExecutor:
    """Work that waits for the next physics step."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], object], Future[object]]] = deque()

    def post(self, work: Callable[[], T]) -> Future[T]:
        """Have ``work()`` done between two steps; its result, or what it raises, comes with the future."""
        future: Future[T] = Future()
        self._waiting.append((work, future))  # type: ignore[arg-type]
        return future

    def do_all(self) -> None:
        """Do what has been posted; for the physics thread."""
        while self._waiting:
            work, future = self._waiting.popleft()
            try:
                future.set_result(work())
            except Exception as error:  # noqa: BLE001 - handed to whoever waits for the result
                future.set_exception(error)
