"""What the tests of workers have them do; apart, because a worker imports it, and it imports little."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.parallel.engine import Done, Engine, Lost, Ready, Worker, WorkerDied

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
    """Each of the deadly ones costs its first worker; those in ``always`` every one."""
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


class Thorny(Exception):
    """Cannot be pickled back: it takes two arguments, and keeps one."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what)


def refuse_thornily(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        raise Thorny(f"not {number}", "")
        yield 0


def count_on(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """What a worker keeps lasts as long as it does."""
    for count, _ in enumerate(numbers):
        yield os.getpid(), count


def end_at_birth(numbers: Iterable[int]) -> Iterator[int]:
    raise AssertionError("never called")


def minus(number: int, how: Lost) -> int:
    return -number if how == "died" else -1000 - number


def slow_square(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        threading.Event().wait(0.01)
        yield number * number


def meet(numbers: Iterable[int], folder: Path) -> Iterator[bool]:
    """Whether another worker comes while this one waits."""
    for number in numbers:
        (folder / str(number)).touch()
        yield wait_for(SystemClock(), lambda: len(list(folder.iterdir())) > 1 or None, 60.0, 0.01) or False


class Vanishing:
    """A function whose process ends as it receives it."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (3,)

    def __call__(self, numbers: Iterable[int]) -> Iterator[int]:
        raise AssertionError("never received")


class Endless:
    """A function that no process ever finishes receiving."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return time.sleep, (3600,)

    def __call__(self, numbers: Iterable[int]) -> Iterator[int]:
        raise AssertionError("never received")


class Imagined(Engine[int, int]):
    """Workers without processes: each says what its script says, or nothing for ever.

    Args:
        scripts: of the workers, in the order of their hiring: ``fine``, ``absent`` (never starts), or the last words
            of one that dies at birth.
    """

    def __init__(self, *scripts: str, size: int = 2) -> None:
        self.size = size
        self._scripts = iter(scripts)

    def hire(self) -> Worker[int, int]:
        return ImaginedWorker(next(self._scripts))

    def wait(self, workers: Sequence[Worker[int, int]], timeout_s: float) -> list[Worker[int, int]]:
        return [worker for worker in workers if isinstance(worker, ImaginedWorker) and worker.script != "absent"]

    def close(self) -> None:
        pass


class ImaginedWorker(Worker[int, int]):
    """See :class:`Imagined`."""

    def __init__(self, script: str) -> None:
        self.script = script
        self._says: list[Ready | Done[int]] = [Ready()]

    def give(self, items: Sequence[int]) -> None:
        self._says += [Done(item * item) for item in items]

    def take(self) -> Ready | Done[int]:
        if self.script != "fine":
            raise WorkerDied(self.script)
        return self._says.pop(0)

    def end(self) -> None:
        pass
