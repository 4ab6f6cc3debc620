"""Benchmark of a poor network: actions and starts across a cut of the link, and starts while packets are lost.

Robot, guard node and master run in one network namespace, the runtime in another; between them is a link of
``lossy_link.py``. Time is real. It needs root and ``/dev/net/tun``.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from robot_runtime.common.clock import SystemClock
from robot_runtime.errors import DeviceFault
from tests.benchmarks.report import Row
from tests.benchmarks.ros_locobot.lossy_link import ADDRESSES
from tests.benchmarks.ros_locobot.network import MASTER, end_program

PRESET = "locobot-ros-pyrobot"
ROBOT = ("-m", "sim_bridge.ros", "--clock", "real", "--camera", "80x60@79", "--manner", "command_timeout_s=0.6")
GUARD = "{'family': 'pyrobot-kobuki'}"
PROGRAMS = "tests.benchmarks.ros_locobot"
DELAY_S = (0.01, 0.02)
CUT_S = 3.0
LOSS = 0.02
TURNING_S = 0.7
"""From the command of a turn to the cut: the robot turns."""


class Link:
    """Two namespaces and the link between them, and the programs at its ends."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self._names = tuple(f"link{os.getpid()}{end}" for end in ("robot", "desk"))
        self._master = ""
        for name in self._names:
            stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=False)
            subprocess.run(["ip", "netns", "add", name], check=True)
        self._link = self._started([sys.executable, "-m", f"{PROGRAMS}.lossy_link", *self._names])
        self.line(self._link)

    def start(self, end: int, *arguments: str) -> subprocess.Popen[str]:
        """Run this Python at the robot's end (0) or the desk's (1) until the benchmark ends."""
        return self._started(["ip", "netns", "exec", self._names[end], sys.executable, *arguments], ADDRESSES[end])

    def change(self, command: str) -> None:
        """Give the link a command of ``lossy_link.py``."""
        self.tell(self._link, command)
        self.line(self._link)

    def start_robot(self) -> None:
        """Start master, robot and guard; the link's delay holds from then on."""
        self._master = self.line(self.start(0, "-c", MASTER))
        parameter = f"import rosgraph; rosgraph.Master('/bench').setParam('/robot_runtime_guard', {GUARD})"
        self.start(0, "-c", parameter).wait()
        self.line(self.start(0, *ROBOT), "ready")
        self.start(0, "-m", "drivers.ros_locobot.guard")
        self.change("delay {} {}".format(*DELAY_S))

    def tell(self, program: subprocess.Popen[str], line: str) -> None:
        """Write a line to a program."""
        assert program.stdin is not None
        program.stdin.write(line + "\n")
        program.stdin.flush()

    def line(self, program: subprocess.Popen[str], start: str = "") -> str:
        """Return the next line of a program that begins so; empty if it ended."""
        assert program.stdout is not None
        return next((line.strip() for line in program.stdout if line.startswith(start)), "")

    def output_tail(self) -> str:
        """Return the end of what the programs wrote to standard error."""
        return "\n".join(path.read_text(errors="replace")[-1500:] for path in sorted(self._home.glob("*.txt")))

    def _started(self, command: list[str], address: str = "") -> subprocess.Popen[str]:
        home = str(self._home)
        more = {"ROS_IP": address, "ROS_MASTER_URI": self._master, "ROS_HOME": home, "ROS_LOG_DIR": home}
        environment = {name: value for name, value in os.environ.items() if name != "ROS_HOSTNAME"} | more
        with (self._home / f"{len(list(self._home.glob('*.txt'))):03}.txt").open("w") as errors:
            program = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=errors, text=True, env=environment)
        self._stack.callback(end_program, program)
        return program


@contextmanager
def lossy_network() -> Iterator[Link]:
    """Run robot, guard and master behind a link."""
    with ExitStack() as stack:
        link = Link(stack)
        link.start_robot()
        yield link


def link_rows(trials: int, advance: Callable[[], None]) -> list[Row]:
    """Return the rows over ``trials`` actions across a cut, starts across a cut, and starts with losses."""
    rows = (
        ("gap_survived_s", f"cut of the link that actions and starts survive, {trials} of each", "s", CUT_S),
        ("starts_at_2pct_loss", "connections to the robot at 2 % loss that succeed", f"of {trials}", float(trials)),
    )
    if os.geteuid() or not os.path.exists("/dev/net/tun"):
        why = "not run: it needs root and /dev/net/tun"
        return [Row(name, label, None, unit, target, note=why) for name, label, unit, target in rows]
    with lossy_network() as link:
        actions = across_cuts(link, trials, advance)
        starts, whole_s = [], connect(link, None)
        chance = random.Random(0)
        for _ in range(trials):
            starts.append(connect(link, chance.uniform(0.0, whole_s or 5.0)))
            advance()
        link.change(f"loss {LOSS}")
        lossy = []
        for _ in range(trials):
            lossy.append(connect(link, None))
            advance()
    survived = [end == "reached" for end in actions] + [seconds is not None for seconds in starts]
    started_s = [seconds for seconds in lossy if seconds is not None]
    low_s, high_s = (1000 * 2 * delay_s for delay_s in DELAY_S)
    how = f"delay {low_s:.0f} to {high_s:.0f} ms to and fro"
    known = "" if whole_s is None else f"; without a cut a start takes {whole_s:.1f} s"
    count = f"{survived[:trials].count(True)} actions, {survived[trials:].count(True)} starts of {trials} each, {how}"
    values = CUT_S if all(survived) else 0.0, float(len(started_s))
    longest = f"{how}; a start takes {median(started_s):.1f} s, at most {max(started_s):.1f} s" if started_s else how
    notes = count + known, longest
    return [
        Row(name, label, value, unit, target, note=note)
        for (name, label, unit, target), value, note in zip(rows, values, notes, strict=True)
    ]


def across_cuts(link: Link, trials: int, advance: Callable[[], None]) -> list[str]:
    """Cut the link in each of ``trials`` turns; return how the action ended, or the one after it if that failed."""
    runtime = link.start(1, "-m", f"{PROGRAMS}.link_runtime", PRESET)
    if not link.line(runtime, "connected"):
        raise DeviceFault(f"the robot cannot be reached: {link.output_tail()}", "solve the problem in that output")
    ends = []
    for _ in range(trials):
        link.tell(runtime, "turn")
        SystemClock().sleep(TURNING_S)
        link.change(f"cut {CUT_S}")
        outcome = _outcome(link.line(runtime, "ended"))
        link.tell(runtime, "turn")
        after = _outcome(link.line(runtime, "ended"))
        ends.append(after if outcome == "reached" else outcome)
        advance()
    end_program(runtime)
    return ends


def connect(link: Link, cut_after_s: float | None) -> float | None:
    """Connect a new runtime, with a cut some time after the start; return the seconds it took, None if it failed."""
    runtime = link.start(1, "-m", f"{PROGRAMS}.link_runtime", PRESET)
    try:
        link.line(runtime, "connecting")
        if cut_after_s is not None:
            SystemClock().sleep(cut_after_s)
            link.change(f"cut {CUT_S}")
        connected = link.line(runtime, "connected")
        if not connected:
            return None
        link.tell(runtime, "turn")
        return float(connected.split()[1]) if _outcome(link.line(runtime, "ended")) == "reached" else None
    finally:
        end_program(runtime)


def _outcome(line: str) -> str:
    return line.split()[1] if line else "ended early"
