"""Interface of workers, which process items elsewhere, one after another, and of the pools that start them."""

import os
import pickle
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from robot_runtime.common.closing import Closing
from robot_runtime.errors import RuntimeFault

T = TypeVar("T")
R = TypeVar("R")

Function: TypeAlias = Callable[[Iterable[T]], Iterator[R]]
"""Yields the result of an item before it takes the next. Its local variables last as long as its worker."""

WorkerLoss = Literal["died", "hung"]
"""The reason for which a worker did not finish an item."""


@dataclass(frozen=True)
class Ready:
    """First message of a worker: it has started."""


@dataclass(frozen=True)
class Done(Generic[R]):
    """Result of an item."""

    result: R


@dataclass(frozen=True)
class Failed:
    """Exception that the function raised, and its traceback in the worker; it ends all work."""

    error: BaseException
    trace: str


class WorkerTraceback(Exception):
    """Cause of an exception that was raised in a worker: the traceback there, as text."""

    def __str__(self) -> str:
        return "\n" + str(self.args[0])


class WorkerDied(Exception):
    """The worker has ended and sends no more messages."""


class Worker(ABC, Generic[T, R]):
    """A process that sends :class:`Ready` once, then :class:`Done` per item; :class:`Failed` is its last message."""

    @abstractmethod
    def submit(self, items: Sequence[T]) -> None:
        """Send a batch of items, and return at once. If the worker is dead, :meth:`receive` raises."""

    @abstractmethod
    def receive(self) -> Ready | Done[R] | Failed:
        """Return the next message, after :meth:`WorkerPool.wait` has reported this worker.

        Raises:
            WorkerDied: there is no further message.
        """

    @abstractmethod
    def kill(self) -> None:
        """End the process without its cooperation; unfinished items are repeated elsewhere."""


class WorkerPool(Closing, Generic[T, R]):
    """Starts workers and waits for them; a context that releases its resources."""

    size: int

    @abstractmethod
    def start_worker(self) -> Worker[T, R]:
        """Return a new worker; it starts in the background. Raises ``RuntimeFault``: no worker can be started."""

    @abstractmethod
    def wait(self, workers: Sequence[Worker[T, R]], timeout_s: float) -> Sequence[Worker[T, R]]:
        """Return the workers that have a message or have died; after ``timeout_s`` possibly none."""

    def close(self) -> None:
        """Release the pool's resources. All workers were killed before."""


def run_items(function: Function[T, R], items: Iterable[T]) -> Iterator[Done[R] | Failed]:
    """Yield the messages of a worker about its items."""
    try:
        for result in function(items):
            yield Done(result)
    except Exception as error:  # noqa: BLE001 (every exception is reported to the caller of map_in_order)
        yield Failed(_picklable(error), traceback.format_exc())


def _picklable(error: Exception) -> Exception:
    """The exception; if it cannot be pickled, one with the same text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 (reduce, init and str of any class may raise anything)
        return RuntimeFault(f"{type(error).__name__}: {error}", "run with --debug for the traceback")
    return error


def available_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
