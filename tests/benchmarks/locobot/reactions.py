"""Reactions of the guard process to contacts, lost commands and a killed runtime, and the evenness of its loop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from drivers.kobuki.driver import KOBUKI_BASE, KobukiOptions
from drivers.kobuki.protocol import BAUD_RATE, PERIOD_S
from drivers.kobuki.serial_port import KOBUKI
from drivers.serial_base.base import GuardProcessBase
from drivers.serial_wire.port import Port
from drivers.serial_wire.pty_emulation import Pty, read_exactly
from robot_runtime.common.clock import NS_PER_S, SystemClock
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Velocity
from tests.benchmarks.locobot.stalls import Stall, longest_ms, stalled_ms, stalls
from tests.benchmarks.report import Row

SPEED = Velocity(0.2, 0.0)
EMULATED = "tests.benchmarks.locobot.emulated"
STALL_S = 20.0
"""Time without progress after which a measurement is given up."""

SLOWEST_MS = 20.0
"""Longest time from a contact to zero."""

HOPS = 200
BURN = "while True: pass"
Advance = Callable[..., None]


def make_base(port: str) -> GuardProcessBase:
    """Return a Kobuki behind a guard process."""
    options = KobukiOptions(port, stop_button=None)
    return GuardProcessBase(SystemClock(), KOBUKI_BASE.info(options), KOBUKI_BASE.settings(options), 0.0)


@contextmanager
def burning(count: int) -> Iterator[None]:
    """Processes that burn a core each meanwhile."""
    processes = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


class Emulated:
    """The emulated base's process.

    Args:
        folder: folder of its port.
        contacts: number of contacts.
    """

    def __init__(self, folder: Path, contacts: int = 0) -> None:
        self.port = str(folder / "base")
        command = [sys.executable, "-m", EMULATED, self.port, str(contacts)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._process.stdout.readline()
        self._out = self._process.stdout.fileno()
        os.set_blocking(self._out, False)
        self._printed = b""

    @property
    def contacts(self) -> int:
        """Number of contacts so far."""
        with suppress(BlockingIOError):
            self._printed += os.read(self._out, 65536)
        return self._printed.count(b"contact")

    def finish(self) -> dict[str, Any]:
        """End the process and return its measurements."""
        os.set_blocking(self._out, True)
        out, _ = self._process.communicate(timeout=STALL_S)
        return json.loads((self._printed + out).splitlines()[-1])  # type: ignore[no-any-return]

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()


@contextmanager
def emulated(contacts: int = 0) -> Iterator[Emulated]:
    """An emulated base that ends with the block."""
    with tempfile.TemporaryDirectory() as folder:
        device = Emulated(Path(folder), contacts)
        try:
            yield device
        finally:
            device.kill()


def _drive(base: GuardProcessBase, seconds: float) -> int:
    """Repeat a command, and return the instant of the last one."""
    clock = SystemClock()
    last_ns = clock.now_ns()
    end_ns = last_ns + int(seconds * NS_PER_S)
    while (now_ns := clock.now_ns()) < end_ns:
        last_ns = now_ns
        base.command(SPEED)
        clock.sleep(PERIOD_S)
    return last_ns


def _contacts(count: int, advance: Advance) -> dict[str, Any]:
    clock, done = SystemClock(), 0
    with emulated(count) as device:
        with make_base(device.port) as base:
            progress_ns = clock.now_ns()
            while done < count:
                base.command(SPEED)
                clock.sleep(PERIOD_S)
                before, done = done, device.contacts
                for _ in range(done - before):
                    advance()
                if done > before:
                    progress_ns = clock.now_ns()
                elif clock.now_ns() - progress_ns > STALL_S * NS_PER_S:
                    raise DeviceFault(f"bench control: no contact for {STALL_S:g} s", "reduce this computer's load")
        return device.finish()


def contact_rows(contacts: int, load: int, advance: Advance) -> list[Row]:
    """Return the rows of contacts, half of them without and half of them under load."""
    with stalls() as stalled:
        idle = _contacts(contacts // 2, advance)
        with burning(load):
            busy = _contacts(contacts - contacts // 2, advance)
            hop_ms = _pty_hop_p99_ms()
    p99_idle, p99_busy = (np.percentile(found["contact_ms"], 99) for found in (idle, busy))
    every = idle["contact_ms"] + busy["contact_ms"]
    total = np.asarray(idle["pressed_ms"] + busy["pressed_ms"])
    note = (
        f"{len(every)} contacts, half under load: {p99_idle:.2f} ms without, {p99_busy:.2f} ms while {load} processes "
        f"burn a core each, and one hop of a pty alone then {hop_ms:.2f} ms; load average {os.getloadavg()[0]:.1f}"
    )
    from_contact = f"from the contact itself, with the wait for the next message and its 8 ms: {total.max():.1f} ms"
    return [
        Row(
            "contact_to_zero_p99_ms",
            "contact in the port to zero at the base, beyond the sensor period; 99 of 100 are faster",
            float(max(p99_idle, p99_busy)),
            "ms",
            5,
            "<=",
            note=note,
        ),
        Row(
            "contact_to_zero_max_ms",
            "the slowest",
            float(max(every)),
            "ms",
            SLOWEST_MS,
            "<=",
            note=f"{len(every)} contacts; {slow_contacts(idle, busy, stalled)}; {from_contact}",
        ),
        Row(
            "machine_stall_max_ms",
            "lateness of a real-time process that only sleeps, meanwhile, on the core where it was latest",
            longest_ms(stalled),
            "ms",
            note="what this computer adds to any reaction",
        ),
        Row(
            "contacts_missed",
            "contacts that stopped nothing",
            float(idle["missed"] + busy["missed"]),
            "",
            0,
            "<=",
            note=note,
        ),
    ]


def slow_contacts(idle: dict[str, Any], busy: dict[str, Any], stalled: Sequence[Stall]) -> str:
    """Tell how many contacts took too long, and during how many of them the computer itself stood still."""
    ends = zip(idle["contact_ms"] + busy["contact_ms"], idle["contact_ns"] + busy["contact_ns"], strict=True)
    slow = [(ms, stalled_ms(stalled, end_ns - round(ms * 1e6), end_ns)) for ms, end_ns in ends if ms > SLOWEST_MS]
    excused = sum(ms - stall_ms <= SLOWEST_MS for ms, stall_ms in slow)
    return f"{len(slow)} above {SLOWEST_MS:g} ms, {excused} of them only by a stall of this computer"


def _pty_hop_p99_ms() -> float:
    """Return the time that the kernel takes from a write to a pty to its arrival, 99 of 100 are less.

    It delivers through a work queue without priority, so that a busy computer delays all reactions over a pty. This
    process's own wait for a core is in the time as well; the guard process has real-time priority and waits less.
    """
    terminal, clock, hops_ns = Pty(), SystemClock(), []
    try:
        port = Port(terminal.path, BAUD_RATE, KOBUKI)
        for _ in range(HOPS):
            begin_ns = clock.now_ns()
            terminal.write(b"x")
            read_exactly(port, 1)
            hops_ns.append(clock.now_ns() - begin_ns)
            clock.sleep(PERIOD_S / 4)
        port.close()
    finally:
        terminal.unplug()
    return float(np.percentile(hops_ns, 99)) / 1e6


def loss_rows(trials: int, advance: Advance) -> list[Row]:
    """Return the times to zero after the last command, and after the runtime was killed, its guard stopped or not."""
    with emulated() as device:
        marks = []
        with make_base(device.port) as base:
            for _ in range(trials):
                marks.append(_drive(base, 0.4))
                SystemClock().sleep(0.5)
                advance()
        lost = _delays_ms(marks, device.finish()["stopped_ns"])
    killed, orphaned = (_killed_ms(trials, stopped, advance) for stopped in (False, True))
    note = f"{trials} trials, the slowest"
    return [
        Row("command_loss_to_zero_ms", "last command to zero at the base", max(lost), "ms", 220, "<=", note=note),
        Row("killed_to_zero_ms", "runtime killed with -9 to zero at the base", max(killed), "ms", 250, "<=", note=note),
        Row(
            "orphan_guard_ended_s",
            "likewise, its guard process stopped just before",
            max(orphaned) / 1000,
            "s",
            1,
            "<=",
            note=note,
        ),
    ]


def _killed_ms(trials: int, stopped: bool, advance: Advance) -> list[float]:
    """Return the times to zero after the runtime was killed."""
    with emulated() as device:
        marks = []
        for _ in range(trials):
            marks.append(_killed(device.port, stopped))
            advance()
        return _delays_ms(marks, device.finish()["stopped_ns"])


def _killed(port: str, stopped: bool) -> int:
    """Drive in another process, kill it, its guard process stopped before or not, and return the instant."""
    code = (
        f"from {__name__} import make_base, _drive\nbase = make_base({port!r})\nbase.connect()\n_drive(base, 0.5)\n"
        "print(base.guard_process_id, flush=True)\n_drive(base, 60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as runtime:
        assert runtime.stdout is not None
        guard = int(runtime.stdout.readline())
        if stopped:
            os.kill(guard, signal.SIGSTOP)
        killed_ns = SystemClock().now_ns()
        os.kill(runtime.pid, signal.SIGKILL)
    SystemClock().sleep(1.5)
    return killed_ns


def _delays_ms(marks_ns: list[int], stopped_ns: list[int]) -> list[float]:
    """Milliseconds from each mark to the stop that follows it; infinite if there is none."""
    return [
        min((stop_ns - mark_ns for stop_ns in stopped_ns if stop_ns > mark_ns), default=float("inf")) / 1e6
        for mark_ns in marks_ns
    ]


def loop_rows(minutes: float, load: int, advance: Advance) -> list[Row]:
    """Return lost messages and the evenness of the loop under load."""
    with emulated() as device:
        with burning(load), make_base(device.port) as base:
            _drive(base, 0.5)
            before = base.newest
            _drive(base, 60 * minutes)
            after = base.newest
        measured = device.finish()
    advance()
    assert before is not None
    assert after is not None
    response_ns = np.asarray(measured["response_ns"][25:], np.float64)
    jitter_ms = np.abs(np.diff(response_ns) / 1e6 - 1000 * PERIOD_S)
    note = (
        f"{minutes:g} min, {load} processes burn a core each, load average {os.getloadavg()[0]:.1f}, "
        f"scheduling {after.scheduling}"
    )
    return [
        Row(
            "missed_frames",
            "messages of the base that the guard process missed",
            float(after.missed - before.missed),
            "",
            0,
            "<=",
            note=note,
        ),
        Row(
            "jitter_p99_ms",
            "deviation of the 50 Hz loop's commands from 20 ms, 99 of 100 are less",
            float(np.percentile(jitter_ms, 99)),
            "ms",
            5,
            "<=",
            note=f"{note}; largest {jitter_ms.max():.1f} ms",
        ),
    ]
