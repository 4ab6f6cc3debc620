"""Base class of placement by a person and by driving.

A source of poses in ``map`` with a heading (the referee if it has one, else the policy's localizer) measures the offset
from the goal, a :class:`Guide` shows it, and the episode starts once the robot stands within the tolerance.
"""

import math
from abc import abstractmethod

from typing_extensions import Self, override

from robot_runtime.common.clock import NS_PER_S, Clock, wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, PlacementFailed, StaleData
from robot_runtime.hal import STREAMS, Base, Head, HeadState, Localizer, Placer, PoseStatus, Robot
from robot_runtime.hal.streams import across_gap
from robot_runtime.placement.guide import Guide
from robot_runtime.placement.offset import Offset, Tolerance

HEAD_TIMEOUT_S = 30.0
POLL_S = 0.1


class GuidedPlacer(Placer):
    """Placement with measured offsets.

    The referee is preferred to the localizer where it measures a heading in ``map``.
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

    @override
    def fitted(self, robot: Robot) -> Self:
        devices = (robot.clock, robot.base, robot.head, robot.localizer, robot.referee)
        return type(self)(*devices, self.tolerance, self.guide)

    @override
    def place(self, pose: SE2, tilt_rad: float) -> None:
        self._head.limits.check_start(tilt_rad)
        self._base.stop()
        self.move_to(pose)
        tilt_head(self._clock, self._head, tilt_rad)

    @abstractmethod
    def move_to(self, pose: SE2) -> None:
        """Move the base to ``pose``, and leave it at rest.

        Raises:
            PlacementFailed: it did not get there.
            DeviceFault: a device failed.
        """

    def current_pose(self) -> tuple[SE2 | None, str]:
        """The robot's pose, or None with the reason why it is unknown."""
        reason = "no source reports poses in the map"
        for source in self._sources:
            try:
                estimate = source.latest(STREAMS["pose"].max_age_s)
            except StaleData as error:
                reason = error.message
                continue
            if estimate.status is PoseStatus.OK and math.isfinite(estimate.covariance[2, 2]):
                return estimate.pose, ""
            lost = estimate.status is not PoseStatus.OK
            problem = "has lost the robot" if lost else "does not measure the robot's heading"
            reason = f"{source.info.name} {problem}"
        return None, reason


def tilt_head(clock: Clock, head: Head, tilt_rad: float) -> None:
    """Turn the head straight ahead at this tilt, and wait until it rests. Raises ``DeviceFault``."""
    head.command(0.0, tilt_rad)

    def settled() -> HeadState | None:
        state = across_gap(clock, lambda: head.state(STREAMS["head"].max_age_s), HEAD_TIMEOUT_S)
        return None if state.moving else state

    if wait_for(clock, settled, HEAD_TIMEOUT_S, POLL_S / 5) is None:
        raise DeviceFault(
            f"head: did not reach tilt {tilt_rad:.3f} rad within {HEAD_TIMEOUT_S:g} s",
            "check the pan-tilt servos, their torque and their load",
        )


STILL_M = 0.01
STILL_S = 1.0
"""The operator has let go of a robot that moved less than ``STILL_M`` during this time."""


class OperatorPlacer(GuidedPlacer):
    """A person pushes, carries or drives the robot; it counts as placed once it has stood at the goal for a second.

    The Guard limits only what this runtime commands meanwhile.
    """

    way = "operator"

    @override
    def move_to(self, pose: SE2) -> None:
        tolerance, guide = self.tolerance, self.guide
        guide.begin(pose, tolerance, drives=False)
        since: tuple[int, SE2] | None = None
        last = "its pose is not known yet"

        def arrived() -> Offset | None:
            nonlocal since, last
            now_ns = self._clock.now_ns()
            here, reason = self.current_pose()
            offset = None if here is None else Offset.of(here, pose)
            last = reason if offset is None else str(offset)
            if offset is None or not offset.within(tolerance):
                since = None
            elif since is None or since[1].distance_to(offset.here) > STILL_M:
                since = (now_ns, offset.here)
            guide.show(now_ns, offset, reason if since is None else "let go of it")
            return offset if since is not None and now_ns - since[0] >= STILL_S * NS_PER_S else None

        placed = wait_for(self._clock, arrived, tolerance.timeout_s, POLL_S)
        if placed is None:
            raise PlacementFailed(
                f"the robot was not brought to ({pose.x_m:.2f}, {pose.y_m:.2f}) in {tolerance.timeout_s:g} s: {last}",
                "move it there, or allow more time or a wider tolerance",
            )
        guide.done(placed)
