"""Workers that are processes of our own on this machine.

``concurrent.futures`` could be no such engine: it does not know which item a process was at, and never ends one.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait

from robot_runtime.parallel.engine import Done, Engine, Failed, Function, R, Ready, T, Worker, WorkerDied, answers


class Processes(Engine[T, R]):
    """Spawned processes, not forked, so that no thread's lock is inherited; what they do and say is pickled."""

    def __init__(self, function: Function[T, R], size: int) -> None:
        self.size = size
        self._function = function

    def hire(self) -> Worker[T, R]:
        return _Process(self._function)

    def wait(self, workers: Sequence[Worker[T, R]], timeout_s: float) -> Sequence[Worker[T, R]]:
        pipes = {worker.pipe: worker for worker in workers if isinstance(worker, _Process)}
        return [pipes[pipe] for pipe in wait(list(pipes), timeout_s)]  # type: ignore[index]

    def close(self) -> None:
        pass  # a process of its own is all that a worker holds


class _Process(Worker[T, R]):
    def __init__(self, function: Function[T, R]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(function, theirs), daemon=True)
        with _deaf_to_ctrl_c():
            self._process.start()
        theirs.close()

    def give(self, items: Sequence[T]) -> None:
        try:
            self.pipe.send(list(items))
        except OSError:  # it died between two shares: the pipe's end says so to whoever reads
            return

    def take(self) -> Ready | Done[R] | Failed:
        try:
            said: Ready | Done[R] | Failed = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise WorkerDied(str(error)) from error
        return said

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self.pipe.close()


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """What starts meanwhile does not hear of it, though it reaches all processes of a terminal; the parent does after.

    The parent alone ends the work, with one message.
    """
    resource_tracker.ensure_running()  # else the first start would, and it unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(function: Function[T, R], pipe: Connection) -> None:
    """A process's life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    pipe.send(Ready())
    for answer in answers(function, _given(pipe)):
        pipe.send(answer)


def _given(pipe: Connection) -> Iterator[T]:
    """The items as they come; none once the parent is gone."""
    while True:
        try:
            items = pipe.recv()
        except EOFError:
            return
        yield from items
