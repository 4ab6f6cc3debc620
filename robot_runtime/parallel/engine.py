"""What an engine is: it hires workers, each of which does one item after another somewhere else."""

from __future__ import annotations

import os
import pickle
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from typing_extensions import Self

from robot_runtime.errors import RuntimeFault

T = TypeVar("T")
R = TypeVar("R")

Function: TypeAlias = Callable[[Iterable[T]], Iterator[R]]
"""Yields the result of an item before it asks for the next; what it keeps meanwhile lasts as long as its worker."""

Lost = Literal["died", "hung"]
"""What became of the worker that was at an item."""


@dataclass(frozen=True)
class Ready:
    """The first thing that a worker says: it is there."""


@dataclass(frozen=True)
class Done(Generic[R]):
    """An item's result."""

    result: R


@dataclass(frozen=True)
class Failed:
    """The function itself raised, which ends all work. trace: where, in the worker."""

    error: BaseException
    trace: str


class WorkerTraceback(Exception):
    """The cause of an error that was raised elsewhere: where it was raised, as text."""

    def __str__(self) -> str:
        return "\n" + str(self.args[0])


class WorkerDied(Exception):
    """A worker will say nothing more."""


class Worker(ABC, Generic[T, R]):
    """One process somewhere. Says :class:`Ready` once, then :class:`Done` per item, or :class:`Failed` and no more."""

    @abstractmethod
    def give(self, items: Sequence[T]) -> None:
        """Have it do these, in order. Returns at once; a worker that is dead says so when it is listened to."""

    @abstractmethod
    def take(self) -> Ready | Done[R] | Failed:
        """The next thing that it says, which :meth:`Engine.wait` has announced.

        Raises:
            WorkerDied: nothing more will come.
        """

    @abstractmethod
    def end(self) -> None:
        """End it without asking: it may not be able to answer, and it holds nothing that is not done again."""


class Engine(ABC, Generic[T, R]):
    """Where workers come from; a context that gives back what it holds. size: how many workers are wanted at once."""

    size: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def hire(self) -> Worker[T, R]:
        """A new worker, which starts by itself.

        Raises:
            RuntimeFault: there can be none.
        """

    @abstractmethod
    def wait(self, workers: Sequence[Worker[T, R]], timeout_s: float) -> Sequence[Worker[T, R]]:
        """Those that have something to say, or have died; after ``timeout_s`` at the latest, then maybe none."""

    @abstractmethod
    def close(self) -> None:
        """Give back whatever the engine holds; workers have ended before."""


def answers(function: Function[T, R], items: Iterable[T]) -> Iterator[Done[R] | Failed]:
    """What a worker says of its items, as they come."""
    try:
        for result in function(items):
            yield Done(result)
    except Exception as error:  # noqa: BLE001 (whatever it is, who asked for the work is told)
        yield Failed(_portable(error), traceback.format_exc())


def _portable(error: Exception) -> Exception:
    """The error, or, where it cannot travel between processes, one that says the same."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 (reduce, init and str of any class may raise anything)
        return RuntimeFault(f"{type(error).__name__}: {error}", "see where it was raised, with --debug")
    return error


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
