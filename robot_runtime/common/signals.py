"""Signals that end a command: all of them end it as Ctrl-C does, so that every ``finally`` on the way out runs."""

import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import RuntimeFault

REPEATED_S = 5.0
"""Seconds in which further signals are taken for repetitions: a closed terminal sends two, impatient people several."""

RAISED_AGAIN_S = 0.1
"""Seconds from the end of an interruption that foreign code swallowed to the next one, and between attempts."""

T = TypeVar("T")

_STANDARD_STREAMS = (0, 1, 2)


class _Interruption(KeyboardInterrupt):
    """What a signal raises; an exception whose end can be watched."""


@contextmanager
def interrupted_by_signals(until_exit: bool = False) -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` in the main thread for SIGINT, SIGTERM and SIGHUP; its text says which one.

    A signal that the process was started to ignore (``nohup``, a script's background jobs) stays ignored. Repetitions
    do not interrupt the clean-up that the first one began; one that comes later than ``REPEATED_S`` does.
    Foreign code may swallow what is raised in it (a bare ``except``, a ``__del__``): then a timer (``SIGALRM``) raises
    it again, outside of every handler of exceptions.

    Args:
        until_exit: whether the process ends with the context: a terminal closed after it does not change the exit code.
    """
    terminals = [stream for stream in _STANDARD_STREAMS if os.isatty(stream)]
    interrupted: Stopwatch | None = None
    text = ""
    raised: weakref.ref[_Interruption] | None = None
    again = is_over = False

    def interrupt(number: int, _: FrameType | None) -> None:
        nonlocal interrupted, text
        if number == signal.SIGHUP:
            _leave(terminals)
        if interrupted is not None and interrupted.elapsed_s() < REPEATED_S:
            return
        interrupted = Stopwatch()
        by_key = number == signal.SIGINT
        text = "interrupted from the keyboard" if by_key else f"ended by {signal.Signals(number).name}"
        raise_()

    def raise_() -> None:
        nonlocal raised
        error = _Interruption(text)
        raised = weakref.ref(error, swallowed)
        try:
            raise error
        finally:
            del error  # else its own traceback would keep it

    def swallowed(_: object) -> None:
        nonlocal again
        again = not is_over
        if again:
            signal.setitimer(signal.ITIMER_REAL, RAISED_AGAIN_S, RAISED_AGAIN_S)

    def raise_again(number: int, frame: FrameType | None) -> None:
        nonlocal again
        others = before[signal.SIGALRM]
        if not again and callable(others):
            others(number, frame)
        elif again and sys.exc_info()[1] is None:  # else this is the clean-up after the error that it became
            again = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise_()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: handler for number in numbers if (handler := signal.getsignal(number)) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, interrupt)
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, raise_again)
    try:
        yield
    except Exception as error:
        if interrupted is None or isinstance(error, RuntimeFault):
            raise
        raise KeyboardInterrupt("interrupted") from error  # foreign native code turned it into an error of its own
    finally:
        is_over = True
        if again:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if until_exit and number == signal.SIGHUP else handler)


def interruptible(work: Callable[[], T]) -> T:
    """The result of foreign code that may block: it runs in a thread, which a signal leaves behind."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 (raised again in the caller's thread)
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result.result()


def exit_within(seconds: float, code: int) -> None:
    """End the process with a code after some seconds, even if foreign code blocks its exit."""
    limit = threading.Timer(seconds, os._exit, (code,))
    limit.daemon = True
    limit.start()


def _leave(terminals: list[int]) -> None:
    """Let streams to a closed terminal lead nowhere: every message to it would be an error."""
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for stream in terminals:
        os.dup2(nowhere, stream)
    os.close(nowhere)
