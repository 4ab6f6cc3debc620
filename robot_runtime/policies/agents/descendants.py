"""End of an agent's process with all its descendants: by the runtime, or, if that was killed, by a process next to it.

Descendants have a mark in their environment, by which those in sessions of their own are found, too. As a program, of
the standard library alone, this file waits until the runtime has ended: ``descendants.py MARK PID_OF_THE_RUNTIME``.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

VARIABLE = "ROBOT_RUNTIME_AGENT_PROCESS"
"""Variable of an agent's environment, and so of all its descendants', that has the mark."""

_KILL_ROUNDS = 100
_LOOK_S = 10
_PR_SET_PDEATHSIG = 1


def kill_marked(mark: str) -> list[int]:
    """Kill the processes with a mark, until none is left; those that end may have forked.

    Returns:
        The processes that cannot be ended; usually none.
    """
    found: list[int] = []
    for _ in range(_KILL_ROUNDS):
        found = list(_marked(f"{VARIABLE}={mark}".encode()))
        if not found:
            break
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return found


def _marked(mark: bytes) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended, or is another user's
            if mark in path.read_bytes():
                yield int(path.parent.name)


def main(mark: str, runtime: int) -> None:
    """Wait until the runtime has ended, then kill the processes with a mark."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    # The signal comes with the end of the thread, too, that started this process.
    while os.getppid() == runtime:
        signal.sigtimedwait({signal.SIGTERM}, _LOOK_S)
    kill_marked(mark)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
