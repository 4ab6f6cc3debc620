"""Interface of localizers: sources of poses."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.hal.device import Device
from robot_runtime.hal.events import Event

if TYPE_CHECKING:
    from robot_runtime.hal.pose_limits import PoseLimits


class PoseStatus(str, Enum):
    """Quality of an estimate."""

    OK = "ok"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class PoseEstimate:
    """base_link in ``frame`` at one instant.

    Attributes:
        covariance: float64 (3, 3) of (x, y, yaw) in m², m·rad, rad². Where the yaw's variance is infinite, the source
            measures the position only, and ``pose.yaw_rad`` means nothing.
    """

    stamp_ns: int
    pose: SE2
    frame: str
    covariance: NDArray[np.float64] = field(default_factory=lambda: np.zeros((3, 3)))
    status: PoseStatus = PoseStatus.OK


@dataclass(frozen=True, slots=True)
class LocalizerInfo:
    """A source of poses.

    Attributes:
        name: name for messages and logs.
        frame: frame that it reports in: ``map``, ``odom``, or one of its own, good for calibrating it only.
        rate_hz: nominal.
        mark_m: point of base_link (forward, left) whose positions a source reports that measures positions only:
            without a heading, the robot's center is unknown.
        is_truth: whether its poses are a simulator's and need no checks.
        limits: limits of the checks; None for the defaults.
    """

    name: str
    frame: str
    rate_hz: float
    mark_m: tuple[float, float] = (0.0, 0.0)
    is_truth: bool = False
    limits: PoseLimits | None = None


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Arrivals from a source of poses since an earlier call.

    Attributes:
        mark: argument of the next call.
        estimates: estimates in the order in which they arrived; it may differ from that of their stamps.
        events: events of the source itself, in the order in which they arrived.
        restarted: the source discarded its history since that call (it was connected, or the robot was placed
            elsewhere); ``estimates`` are of the time after.
    """

    mark: int
    estimates: tuple[PoseEstimate, ...] = ()
    events: tuple[Event, ...] = ()
    restarted: bool = False


class Localizer(Device):
    """A source of the robot's pose."""

    @property
    @abstractmethod
    def info(self) -> LocalizerInfo:
        """Name, frame and rate, also while disconnected."""

    @abstractmethod
    def latest(self, max_age_s: float) -> PoseEstimate:
        """The newest estimate. Raises ``StaleData``."""

    @abstractmethod
    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        """The pose at ``stamp_ns``, interpolated between the measurements around it; waits for the later one.

        Raises:
            StaleData: if that takes longer than ``timeout_s``, or ``stamp_ns`` lies before the kept history.
        """

    @abstractmethod
    def arrivals(self, after: int = 0) -> Arrivals:
        """Everything that arrived after a mark, without waiting; at least the last 10 s are kept.

        Args:
            after: ``Arrivals.mark`` of an earlier call; 0 for the complete history. Every reader has marks of its own.
        """

    def expect(self, pose: SE2, std_m: float, std_rad: float) -> None:
        """Take note that the robot was placed at ``pose`` and stands there: a prior for sources without a heading.

        A source that measures poses ignores it.

        Args:
            pose: pose of base_link in ``map``.
            std_m: standard deviation of the position.
            std_rad: standard deviation of the heading.
        """

    @property
    def sources(self) -> tuple[Localizer, ...]:
        """The localizers that this one fuses, whose poses are logged in addition to its own."""
        return ()
