"""Stalls of the computer itself, seen by processes that only sleep: ``python -m … CORE``.

A virtual machine stands still while its host runs others, and no process on it can react meanwhile. A slow reaction
says nothing of the guard process where one of these sleepers, each on its core with real-time priority, was as late.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from robot_runtime.common.clock import SystemClock

PRIORITY = 90
SLEEP_S = 0.002
LATE_NS = 2_000_000
"""Lateness from which a wake-up counts as a stall."""

Stall = tuple[int, int]
"""Instants at which a sleeper should have woken up and at which it did, in nanoseconds of the host."""


@contextmanager
def stalls() -> Iterator[list[Stall]]:
    """Stalls of every core meanwhile; the list is filled when the block ends."""
    found: list[Stall] = []
    command = [sys.executable, "-m", __name__]
    processes = [
        subprocess.Popen([*command, str(core)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for core in sorted(os.sched_getaffinity(0))
    ]
    try:
        yield found
        for process in processes:
            out, _ = process.communicate(timeout=20.0)
            found.extend((begin_ns, end_ns) for begin_ns, end_ns in json.loads(out))
    finally:
        for process in processes:
            process.kill()
            process.wait()


def longest_ms(found: Sequence[Stall]) -> float:
    """Return the length of the longest stall, 0 if there is none."""
    return max((end_ns - begin_ns for begin_ns, end_ns in found), default=0) / 1e6


def stalled_ms(found: Sequence[Stall], begin_ns: int, end_ns: int) -> float:
    """Return how long the longest stall that overlaps with a time was, 0 if none does."""
    return longest_ms([stall for stall in found if stall[0] < end_ns and stall[1] > begin_ns])


def main() -> None:
    """Sleep until standard input ends, then print the stalls."""
    clock, ended, found = SystemClock(), threading.Event(), []
    os.sched_setaffinity(0, {int(sys.argv[1])})
    with suppress(OSError):  # without the permission, other processes' load counts as stalls
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    while not ended.is_set():
        due_ns = clock.now_ns() + int(SLEEP_S * 1e9)
        clock.sleep(SLEEP_S)
        woken_ns = clock.now_ns()
        if woken_ns - due_ns > LATE_NS:
            found.append((due_ns, woken_ns))
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
