"""Messages to the operator during placement."""

import math
import sys
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.placement.offset import Offset, Tolerance


class Guide:
    """Messages to the operator, one line at a time, by default on stderr.

    Args:
        write: function of a line.
        every_s: shortest interval between lines about an offset, seconds of the robot's clock.
    """

    def __init__(self, write: Callable[[str], None] | None = None, every_s: float = 2.0) -> None:
        self._write = write or _to_stderr
        self._every_ns = seconds_to_ns(every_s)
        self._next_ns = 0
        self._last = ""

    def begin(self, goal: SE2, tolerance: Tolerance, drives: bool) -> None:
        """Announce the goal."""
        self._next_ns, self._last = 0, ""
        what = "The robot drives itself" if drives else "Bring the robot"
        self._write(
            f"{what} to x {goal.x_m:.2f} m, y {goal.y_m:.2f} m, heading {math.degrees(goal.yaw_rad):.0f}° in map, "
            f"within {100 * tolerance.within_m:g} cm and {tolerance.within_deg:g}°{'' if drives else ', and let go'}."
        )

    def show(self, now_ns: int, offset: Offset | None, note: str) -> None:
        """Show the offset from the goal, or ``note`` with the reason why it is unknown."""
        line = "; ".join(str(item) for item in (offset, note) if item)
        if now_ns >= self._next_ns and line != self._last:
            self._next_ns, self._last = now_ns + self._every_ns, line
            self._write(line)

    def done(self, offset: Offset) -> None:
        """Announce that the robot stands at the goal."""
        degrees = math.degrees(abs(offset.turn_rad))
        self._write(f"The robot stands at the start, {100 * offset.distance_m:.1f} cm and {degrees:.1f}° off.")


@runtime_checkable
class Guided(Protocol):
    """A placer with messages to the operator."""

    guide: Guide


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
