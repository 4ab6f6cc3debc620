"""``robot-runtime stop``, and the keys for the same while a robot runs."""

from __future__ import annotations

import os
import select
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.common.clock import Stopwatch
from robot_runtime.common.console import say, tell
from robot_runtime.errors import RuntimeFault

if TYPE_CHECKING:
    from robot_runtime.estop.requests import Request
    from robot_runtime.hal import Robot
STOP_KEY = " "
KEYS: dict[str, Request] = {STOP_KEY: "stop", "r": "release"}

_STDIN = 0


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("stop")(stop)


def stop(
    release: Annotated[
        bool,
        typer.Option("--release", help="Let the wheels turn again, of your robots that no other user has stopped."),
    ] = False,
    process: Annotated[
        list[int] | None,
        typer.Option(
            metavar="PID",
            help="Of the command that runs the robot; repeatable. It is released whoever stopped it. Default: all.",
        ),
    ] = None,
) -> None:
    """Emergency stop: hold the wheels of every robot that a command on this machine runs, until they are released.

    The running episode ends as interrupted, and the next one waits for the release. In the terminal of `run`, the space
    bar and r do the same. It does not replace a button that cuts the motors' power.

    Examples:
        robot-runtime stop
        robot-runtime stop --release
    """
    from robot_runtime.estop.server import stop_everywhere

    stop_everywhere(release, process or (), say)


@contextmanager
def stop_keys(robot: Robot, on_key: Callable[[str], object] | None = None) -> Iterator[None]:
    """Stop the robot at the space bar and release it at ``r`` while the context lasts, if this is a terminal's job.

    The terminal passes keys on at once and does not show them; Ctrl-C works as before.

    Args:
        robot: the connected robot.
        on_key: callback that gets the names of all other keys, see :mod:`robot_runtime.common.terminal_keys`.
    """
    from robot_runtime.common.terminal_keys import PASTING_OFF, PASTING_ON

    if not _is_in_foreground(tell):
        yield
        return

    before = termios.tcgetattr(_STDIN)
    woken, wake = os.pipe()
    reader = threading.Thread(target=_read_keys, args=(robot, woken, tell, on_key), name="keys", daemon=True)
    try:
        tty.setcbreak(_STDIN)
        with suppress(OSError):  # a terminal that is open for reading only
            os.write(_STDIN, PASTING_ON)
        reader.start()
        tell("space: emergency stop · r: release it · Ctrl-C: end")
        yield
    finally:
        os.close(wake)
        reader.join()
        os.close(woken)
        with suppress(termios.error, OSError):  # the terminal was closed
            os.write(_STDIN, PASTING_OFF)
            termios.tcsetattr(_STDIN, termios.TCSAFLUSH, before)


def _is_in_foreground(tell: Callable[[str], None]) -> bool:
    """Whether keys of the terminal are this job's: in the background, reading would stop the job."""
    if not os.isatty(_STDIN):
        return False
    try:
        return os.tcgetpgrp(_STDIN) == os.getpgrp()
    except OSError:
        tell("keys are not read: this terminal is not the session's own; start the command in one (not by setsid)")
        return False


def _read_keys(
    robot: Robot, woken: int, tell: Callable[[str], None], on_key: Callable[[str], object] | None = None
) -> None:
    """Read keys until the other end of the pipe ``woken`` is closed, or the terminal."""
    from robot_runtime.common.terminal_keys import KeyStream
    from robot_runtime.estop.requests import carry_out

    keys, timer = KeyStream(), Stopwatch()
    while _STDIN in select.select([_STDIN, woken], [], [])[0]:
        try:
            pressed = os.read(_STDIN, 64)
        except OSError:  # the terminal was closed
            return
        if not pressed:
            return
        names = keys.feed(pressed, timer.elapsed_s())
        # A space stops, wherever it stands; pasted text does not release.
        for key, request in KEYS.items():
            if key in names or (key == STOP_KEY and b" " in pressed):
                try:
                    tell(carry_out(request, robot))
                except RuntimeFault as error:
                    tell(error.message)
        if on_key is not None:
            for name in names:
                on_key(name)
