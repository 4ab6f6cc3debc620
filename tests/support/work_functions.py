"""Functions for workers in tests; a module of its own with few imports, because every worker imports it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.parallel.workers import Done, Ready, Worker, WorkerDied, WorkerLoss, WorkerPool

DEADLY = (5, 21)
ENDLESS = (6, 23)


def square(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        yield number * number


def square_or_die(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        if number in DEADLY:
            os.kill(os.getpid(), signal.SIGKILL)
        yield number * number


def square_or_hang(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        if number in ENDLESS:
            threading.Event().wait(3600)
        yield number * number


def square_or_die_once(numbers: Iterable[int], folder: Path, always: tuple[int, ...] = ()) -> Iterator[int]:
    """Kill the first worker of each item in DEADLY, and every worker of the items in ``always``."""
    for number in numbers:
        mark = folder / str(number)
        if number in always or (number in DEADLY and not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield number * number


def refuse_from_3(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        if number >= 3:
            raise ValueError(f"not {number}")
        yield number


class Unpicklable(Exception):
    """Cannot be unpickled: it takes two arguments and stores one."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what)


def raise_unpicklable(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        raise Unpicklable(f"not {number}", "")
        yield 0


def count_on(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Count the items of each worker."""
    for count, _ in enumerate(numbers):
        yield os.getpid(), count


def never_called(numbers: Iterable[int]) -> Iterator[int]:
    raise AssertionError("never called")


def minus(number: int, how: WorkerLoss) -> int:
    return -number if how == "died" else -1000 - number


def slow_square(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        threading.Event().wait(0.01)
        yield number * number


def meet(numbers: Iterable[int], folder: Path) -> Iterator[bool]:
    """Yield whether another worker processes an item at the same time."""
    for number in numbers:
        (folder / str(number)).touch()
        yield wait_for(SystemClock(), lambda: len(list(folder.iterdir())) > 1 or None, 60.0, 0.01) or False


class ExitsOnUnpickling:
    """A function whose process ends when it unpickles it."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (3,)

    def __call__(self, numbers: Iterable[int]) -> Iterator[int]:
        raise AssertionError("never received")


class HangsOnUnpickling:
    """A function that no process finishes unpickling."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return time.sleep, (3600,)

    def __call__(self, numbers: Iterable[int]) -> Iterator[int]:
        raise AssertionError("never received")


class FakePool(WorkerPool[int, int]):
    """Workers without processes.

    Args:
        scripts: one per worker, in the order of their start: ``fine``, ``absent`` (never starts), or the error of one
            that dies while it starts.
        size: number of workers at the same time.
    """

    def __init__(self, *scripts: str, size: int = 2) -> None:
        self.size = size
        self._scripts = iter(scripts)

    def start_worker(self) -> Worker[int, int]:
        return FakeWorker(next(self._scripts))

    def wait(self, workers: Sequence[Worker[int, int]], timeout_s: float) -> list[Worker[int, int]]:
        return [worker for worker in workers if isinstance(worker, FakeWorker) and worker.script != "absent"]


class FakeWorker(Worker[int, int]):
    """See :class:`FakePool`."""

    def __init__(self, script: str) -> None:
        self.script = script
        self._messages: list[Ready | Done[int]] = [Ready()]

    def submit(self, items: Sequence[int]) -> None:
        self._messages += [Done(item * item) for item in items]

    def receive(self) -> Ready | Done[int]:
        if self.script != "fine":
            raise WorkerDied(self.script)
        return self._messages.pop(0)

    def kill(self) -> None:
        pass
