"""Placement by the operator: a person moves the robot to the start of the episode."""

from typing_extensions import override

from robot_runtime.common.clock import NS_PER_S, wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import PlacementFailed
from robot_runtime.placement.offset import Offset
from robot_runtime.placement.placer import POLL_S, GuidedPlacer

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
