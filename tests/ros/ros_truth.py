"""The simulated robot's true poses, and the time of its last motion, for tests of stops."""

from __future__ import annotations

import itertools
import math
import time
from bisect import bisect_left
from collections.abc import Sequence

from ros_processes import Program, eventually

from robot_runtime.common.geometry import SE2, wrap_angle

MOVED_M, MOVED_RAD = 0.0002, math.radians(0.05)
"""Within one period of 20 ms: a hundredth of a metre per second, 2.5 degrees per second."""

PERIOD_S = 0.02
"""Of the simulated robot's ground truth. Time is counted here, not read from stamps, which faults may falsify."""


class Truth:
    """What ``truth_program.py`` prints. Durations are the robot's; instants are ``time.monotonic()``, which all
    programs of a computer share: however late this process reads, it knows what was heard before and what after."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._poses: list[SE2] = []
        self._heard_s: list[float] = []
        self._read = 0

    def poses(self) -> Sequence[SE2]:
        """All so far, in order."""
        lines = self._program.lines
        while self._read < len(lines):
            words = lines[self._read].split()
            self._read += 1
            if words[:1] == ["truth"]:
                self._poses.append(SE2(*map(float, words[1:4])))
                self._heard_s.append(float(words[4]))
        return self._poses

    def wait_for_motion(self, alive: Program | None) -> None:
        """Return once it has been moving for 0.2 s."""

        def moves() -> bool:
            recent = self.poses()[-11:]
            return len(recent) == 11 and all(_driven(before, after) for before, after in itertools.pairwise(recent))

        assert eventually(moves, alive=alive), f"it never moved:\n{alive.output if alive else ''}"

    def rest_after(self, since_s: float, watch_s: float) -> float:
        """Seconds from the instant ``since_s`` to the last motion, having watched until ``watch_s`` after it."""

        def seen() -> Sequence[SE2]:
            poses = self.poses()
            return poses[max(0, bisect_left(self._heard_s, since_s) - 1) :]

        assert eventually(lambda: len(seen()) > watch_s / PERIOD_S), "time stands still"
        moved = [i for i, (before, after) in enumerate(itertools.pairwise(seen()), 1) if _moved(before, after)]
        return PERIOD_S * moved[-1] if moved else 0.0

    def rest_from_now(self, watch_s: float) -> float:
        """The same from now on."""
        return self.rest_after(time.monotonic(), watch_s)


def _moved(before: SE2, after: SE2) -> bool:
    return before.distance_to(after) > MOVED_M or abs(wrap_angle(after.yaw_rad - before.yaw_rad)) > MOVED_RAD


def _driven(before: SE2, after: SE2) -> bool:
    """Rather than placed."""
    return _moved(before, after) and before.distance_to(after) < 0.05
