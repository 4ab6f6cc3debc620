"""What placing by a person and placing by driving share.

A source of poses in ``map`` that knows the heading watches (the referee if it does, else the policy's localizer), a
:class:`Guide` is told how far off the robot is, and nothing is begun before the robot stands within the tolerance, at
rest.
"""

from __future__ import annotations

import math
from abc import abstractmethod

from robot_runtime.common.clock import Clock, wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, InvalidStart, StaleData
from robot_runtime.hal import Base, Head, HeadState, Localizer, Placer, PoseEstimate, PoseStatus, Robot
from robot_runtime.hal.streams import STREAMS
from robot_runtime.placement.guide import Guide
from robot_runtime.placement.offset import Tolerance

HEAD_TIMEOUT_S = 30.0
POLL_S = 0.1


class GuidedPlacer(Placer):
    """What both ways share.

    Args:
        referee, localizer: who may see where the robot is; the first that knows a heading in ``map`` does.
    """

    def __init__(
        self,
        clock: Clock,
        base: Base,
        head: Head,
        localizer: Localizer,
        referee: Localizer,
        tolerance: Tolerance | None = None,
        guide: Guide | None = None,
    ) -> None:
        self.tolerance = tolerance or Tolerance()
        self.guide = guide or Guide()
        self._clock, self._base, self._head = clock, base, head
        in_map = [source for source in (referee, localizer) if source.info.frame == "map"]
        self._sources = tuple(dict.fromkeys(in_map))

    @abstractmethod
    def fitted(self, robot: Robot) -> GuidedPlacer: ...

    def place(self, pose: SE2, tilt_rad: float) -> None:
        limits = self._head.limits
        if not limits.min_tilt_rad <= tilt_rad <= limits.max_tilt_rad:
            raise InvalidStart(
                f"the head cannot tilt to {tilt_rad:.3f} rad",
                f"start between {limits.min_tilt_rad:.3f} and {limits.max_tilt_rad:.3f} rad",
            )
        self._base.stop()
        self.bring(pose)
        tilt_head(self._clock, self._head, tilt_rad)

    @abstractmethod
    def bring(self, pose: SE2) -> None:
        """Have the base at ``pose``, at rest.

        Raises:
            PlacementFailed: it did not get there. DeviceFault: a device failed.
        """

    def look(self) -> tuple[SE2 | None, str]:
        """Where the robot is now; None with the reason if nobody sees it."""
        why = "no source of poses knows the map"
        for source in self._sources:
            try:
                estimate = source.latest(STREAMS["pose"].max_age_s)
            except StaleData as error:
                why = error.message
                continue
            if estimate.status is PoseStatus.OK and math.isfinite(estimate.covariance[2, 2]):
                return estimate.pose, ""
            why = f"{source.info.name} {_lacks(estimate)}"
        return None, why


def tilt_head(clock: Clock, head: Head, tilt_rad: float) -> None:
    """Look straight ahead at this tilt, and wait until the head rests. Raises ``DeviceFault``."""
    head.command(0.0, tilt_rad)

    def settled() -> HeadState | None:
        state = head.state(STREAMS["head"].max_age_s)
        return None if state.moving else state

    if wait_for(clock, settled, HEAD_TIMEOUT_S, POLL_S / 5) is None:
        raise DeviceFault(
            f"head: has not reached tilt {tilt_rad:.3f} rad in {HEAD_TIMEOUT_S:g} s",
            "check the pan-tilt's servos, their torque and their load",
        )


def _lacks(estimate: PoseEstimate) -> str:
    if estimate.status is not PoseStatus.OK:
        return "has lost the robot"
    return "does not know the robot's heading"
