"""Sources of poses."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.hal.device import Device
from robot_runtime.hal.events import Event


class PoseStatus(str, Enum):
    """How far an estimate can be trusted."""

    OK = "ok"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class PoseEstimate:
    """base_link in ``frame`` at one instant.

    Attributes:
        covariance: float64 (3, 3) of (x, y, yaw) in m², m·rad, rad². Where the yaw's variance is infinite, the source
            knows the position only, and ``pose.yaw_rad`` means nothing.
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
        name: for messages and logs.
        frame: that it reports in: ``map``, ``odom``, or one of its own, which is good for calibrating it only.
        rate_hz: nominal.
        mark_m: of a source that knows positions only, the point of base_link (forward, left) whose positions it
            reports: without a heading, it cannot tell where the robot's center is.
    """

    name: str
    frame: str
    rate_hz: float
    mark_m: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What arrived from a source of poses since an earlier look at it.

    Attributes:
        mark: to ask from, the next time.
        estimates: in the order in which they arrived, which need not be that of their stamps.
        events: what the source noticed about itself, likewise.
        restarted: the source forgot everything since that look (it was connected, or the robot was put somewhere
            else); ``estimates`` are of the time after.
    """

    mark: int
    estimates: tuple[PoseEstimate, ...] = ()
    events: tuple[Event, ...] = ()
    restarted: bool = False


class Localizer(Device):
    """Says where the robot is."""

    @property
    @abstractmethod
    def info(self) -> LocalizerInfo: ...

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
            after: ``Arrivals.mark`` of an earlier look; 0 for all that is kept. Every reader has marks of its own.
        """

    def expect(self, pose: SE2, std_m: float, std_rad: float) -> None:
        """The robot was put at ``pose`` (map), give or take, and stands there: what a heading may begin with.

        A source that measures poses has no use for it.
        """

    @property
    def sources(self) -> tuple[Localizer, ...]:
        """The localizers that this one is made of, whose poses are logged beside its own."""
        return ()
