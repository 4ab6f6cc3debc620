"""Where the simulated robot truly was, and when it last moved: what every stop is judged by."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ros_processes import Program, eventually

from robot_runtime.geometry import SE2, wrap_angle

MOVED_M, MOVED_RAD = 0.0002, math.radians(0.05)
"""Within one period of 20 ms: a hundredth of a metre per second, 2.5 degrees per second."""

PERIOD_S = 0.02
"""Of the simulated robot's ground truth. Time is counted here, not read from stamps, which faults may falsify."""


class Truth:
    """What ``truth_program.py`` prints. Times are the robot's, in seconds since it was first heard."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._poses: list[SE2] = []
        self._read = 0

    def poses(self) -> Sequence[SE2]:
        """All so far, in order."""
        lines = self._program.lines
        while self._read < len(lines):
            words = lines[self._read].split()
            self._read += 1
            if words[:1] == ["truth"]:
                self._poses.append(SE2(*map(float, words[1:4])))
        return self._poses

    def now_s(self) -> float:
        """When the newest pose was."""
        return PERIOD_S * len(self.poses())

    def wait_for_motion(self, alive: Program | None) -> float:
        """Return once it has been moving for 0.2 s: when that was."""

        def moves() -> bool:
            recent = self.poses()[-11:]
            return len(recent) == 11 and all(_driven(before, after) for before, after in itertools.pairwise(recent))

        assert eventually(moves, alive=alive), f"it never moved:\n{alive.output if alive else ''}"
        return self.now_s()

    def rest_after(self, since_s: float, watch_s: float) -> float:
        """Seconds from ``since_s`` to the last motion, having watched until ``watch_s`` after it."""
        assert eventually(lambda: self.now_s() >= since_s + watch_s), "time stands still"
        poses = self.poses()
        first = round(since_s / PERIOD_S)
        moved = [i for i in range(first, len(poses)) if _moved(poses[i - 1], poses[i])]
        return PERIOD_S * (moved[-1] + 1) - since_s if moved else 0.0


def _moved(before: SE2, after: SE2) -> bool:
    return before.distance_to(after) > MOVED_M or abs(wrap_angle(after.yaw_rad - before.yaw_rad)) > MOVED_RAD


def _driven(before: SE2, after: SE2) -> bool:
    """Rather than placed."""
    return _moved(before, after) and before.distance_to(after) < 0.05
