"""The head: it tilts the camera."""

import math
from abc import abstractmethod
from collections import deque
from dataclasses import dataclass

from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.errors import InvalidCommand, InvalidStart
from robot_runtime.hal.device import Device


@dataclass(frozen=True, slots=True)
class HeadLimits:
    """Reach and speed of the pan-tilt. Tilt is up positive; pan is left positive."""

    min_pan_rad: float
    max_pan_rad: float
    min_tilt_rad: float
    max_tilt_rad: float
    max_speed_rad_s: float
    settle_s: float

    def check_start(self, tilt_rad: float) -> None:
        """Raise ``InvalidStart`` for a tilt out of reach."""
        if not self.min_tilt_rad <= tilt_rad <= self.max_tilt_rad:
            raise InvalidStart(
                f"the head cannot tilt to {tilt_rad:.3f} rad",
                f"start between {self.min_tilt_rad:.3f} and {self.max_tilt_rad:.3f} rad",
            )

    def clip(self, pan_rad: float, tilt_rad: float) -> tuple[float, float]:
        """The nearest angles within reach. Raises ``InvalidCommand`` for NaN or infinity."""
        if not (math.isfinite(pan_rad) and math.isfinite(tilt_rad)):
            raise InvalidCommand(
                f"head angles ({pan_rad}, {tilt_rad}) rad are not finite",
                "check the controller or policy that computed them; the head was left as it is",
            )
        return (
            min(max(pan_rad, self.min_pan_rad), self.max_pan_rad),
            min(max(tilt_rad, self.min_tilt_rad), self.max_tilt_rad),
        )


@dataclass(frozen=True, slots=True)
class HeadState:
    """The pan-tilt at one instant. ``moving`` is true until it has come to rest at its goal."""

    stamp_ns: int
    pan_rad: float
    tilt_rad: float
    moving: bool


class Head(Device):
    """A pan-tilt unit."""

    @property
    @abstractmethod
    def limits(self) -> HeadLimits:
        """Reach and speed, also while disconnected."""

    @abstractmethod
    def state(self, max_age_s: float) -> HeadState:
        """The newest state. Raises ``StaleData``."""

    @abstractmethod
    def command(self, pan_rad: float, tilt_rad: float) -> tuple[float, float]:
        """Move to these angles and return at once with the angles actually commanded, clipped to ``limits``.

        Raises:
            InvalidCommand: for NaN or infinity; the head stays where it is.
        """


class Stillness:
    """Detects that the head is still: all samples of the last ``settle_s`` are within the tolerance of the goal.

    Before the first goal, of each other. Samples from before the goal was set do not count.
    """

    def __init__(self, tolerance_rad: float, settle_s: float) -> None:
        self._tolerance_rad = tolerance_rad
        self._settle_ns = seconds_to_ns(settle_s)
        self._goal: tuple[float, float] | None = None
        self._goal_set_ns = 0
        self._samples: deque[tuple[int, tuple[float, float]]] = deque()

    @property
    def still(self) -> bool:
        """Whether the head is still, as of the newest sample."""
        if not self._samples or self._samples[-1][0] - self._samples[0][0] < self._settle_ns:
            return False
        goal = self._samples[-1][1] if self._goal is None else self._goal
        return all(
            max(abs(pan_rad - goal[0]), abs(tilt_rad - goal[1])) <= self._tolerance_rad
            for _, (pan_rad, tilt_rad) in self._samples
        )

    def set_goal(self, goal: tuple[float, float], now_ns: int) -> None:
        """Set a commanded goal; the same one again changes nothing."""
        if goal != self._goal:
            self._goal = goal
            self._samples.clear()
            self._goal_set_ns = now_ns

    def sample(self, angles: tuple[float, float], stamp_ns: int) -> None:
        """Add measured angles."""
        if self._goal is not None and stamp_ns <= self._goal_set_ns:
            return
        self._samples.append((stamp_ns, angles))
        while len(self._samples) > 2 and self._samples[1][0] <= stamp_ns - self._settle_ns:
            self._samples.popleft()

    def reset(self) -> None:
        """Discard goal and samples of a connection that has ended."""
        self._goal = None
        self._samples.clear()
