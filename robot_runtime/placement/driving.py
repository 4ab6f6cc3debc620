"""The robot drives to the start itself."""

from __future__ import annotations

import math

from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import Clock, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import PlacementFailed
from robot_runtime.hal import Base, Head, Localizer, Robot
from robot_runtime.motion.controller import MotionController
from robot_runtime.placement.guide import Guide
from robot_runtime.placement.offset import Offset, Tolerance
from robot_runtime.placement.placer import POLL_S, GuidedPlacer
from robot_runtime.records import ActionResult, Outcome
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.occupancy_map import OccupancyMap

LEG_M = 1.0
"""The longest way driven before the robot is looked at again."""
SPARE = 0.5
"""Share of the tolerance that driving aims at, so that noise does not undo what it has reached."""
AIM_RAD = math.radians(3)
"""A way that begins with this error of heading ends 5 % of its length beside its end."""
WATCH_S = 1.0
"""How long the robot is watched, standing, before each of its motions."""
MARGINS_M = (0.1, 0.05, 0.0)
"""Beside the robot's radius, the first that leaves a way is kept from walls."""
FIND_M = 0.5
"""How far a robot that does not know its heading drives at a time to learn it."""
FIND_LEGS = 4


class DrivingPlacer(GuidedPlacer):
    """The robot turns, drives straight and turns, leg by leg, along a shortest path where the map is known.

    Every motion is one of :class:`~robot_runtime.motion.controller.MotionController`'s behind the base's Guard: a
    contact stops
    the robot, and ends the placement. A robot whose source learns the heading from motion first drives straight on for
    it.

    Args:
        occupancy: of the scene; None drives straight lines.
    """

    way = "drive"

    def __init__(
        self,
        clock: Clock,
        base: Base,
        head: Head,
        localizer: Localizer,
        referee: Localizer,
        tolerance: Tolerance | None = None,
        guide: Guide | None = None,
        occupancy: OccupancyMap | None = None,
    ) -> None:
        super().__init__(clock, base, head, localizer, referee, tolerance, guide)
        self._occupancy = occupancy
        self._spaces: dict[float, GeodesicMap] = {}

    def fitted(self, robot: Robot) -> DrivingPlacer:
        return DrivingPlacer(
            robot.clock,
            robot.base,
            robot.head,
            robot.localizer,
            robot.referee,
            self.tolerance,
            self.guide,
            self._occupancy,
        )

    def bring(self, pose: SE2) -> None:
        clock, tolerance = self._clock, self.tolerance
        deadline_ns = clock.now_ns() + seconds_to_ns(tolerance.timeout_s)
        self.guide.begin(pose, tolerance, drives=True)
        motion = MotionController(clock, self._base, self._head)
        offset = Offset.of(self._found(motion), pose)
        while not offset.within(tolerance, SPARE):
            if clock.now_ns() > deadline_ns:
                if offset.within(tolerance):
                    break
                raise PlacementFailed(
                    f"the robot is still {offset} after {tolerance.timeout_s:g} s",
                    "allow more time or a wider tolerance, or look at the noise of its localizer",
                )
            self._carry_out(motion, next_motion(offset, self._waypoint(offset.here, pose), tolerance), offset)
            offset = Offset.of(self._standing(), pose)
            self.guide.show(clock.now_ns(), offset, "")
        self.guide.done(offset)

    def _found(self, motion: MotionController) -> SE2:
        """Where the robot is, after driving on a little if that is what it takes to know."""
        for _ in range(FIND_LEGS):
            self._clock.sleep(WATCH_S)
            here, why = self.look()
            if here is not None:
                return here
            self.guide.show(self._clock.now_ns(), None, why)
            self._carry_out(motion, Displacement(forward_m=FIND_M), None)
        return self._standing()

    def _standing(self) -> SE2:
        """Where the robot stands: the mean of what is measured in :data:`WATCH_S`. Raises ``PlacementFailed``."""
        seen: list[SE2] = []
        why = ""
        for _ in range(round(WATCH_S / POLL_S)):
            self._clock.sleep(POLL_S)
            here, reason = self.look()
            why = reason or why
            if here is not None:
                seen.append(here)
        if not seen:
            raise PlacementFailed(f"nobody sees where the robot is: {why}", "bring it where it can localize itself")
        yaw_rad = math.atan2(sum(math.sin(p.yaw_rad) for p in seen), sum(math.cos(p.yaw_rad) for p in seen))
        return SE2(sum(p.x_m for p in seen) / len(seen), sum(p.y_m for p in seen) / len(seen), yaw_rad)

    def _waypoint(self, here: SE2, goal: SE2) -> tuple[float, float]:
        """Where to drive next: the goal, or the first corner on the way to it. Raises ``PlacementFailed``."""
        if self._occupancy is None:
            return goal.x_m, goal.y_m
        for margin_m in MARGINS_M:
            if margin_m not in self._spaces:
                self._spaces[margin_m] = GeodesicMap(self._occupancy, self._base.info.radius_m + margin_m)
            path = self._spaces[margin_m].field([(goal.x_m, goal.y_m)]).path(here.x_m, here.y_m)
            if len(path):
                near_m = SPARE * self.tolerance.within_m
                corners = [(float(x), float(y)) for x, y in path if math.hypot(x - here.x_m, y - here.y_m) > near_m]
                # The last corner may have been moved to where the margin fits.
                return corners[0] if len(corners) > 1 else (goal.x_m, goal.y_m)
        raise PlacementFailed(
            f"no way leads from ({here.x_m:.2f}, {here.y_m:.2f}) to ({goal.x_m:.2f}, {goal.y_m:.2f}) on the map",
            "bring the robot there, or look at the map and at where the robot believes to be",
        )

    def _carry_out(self, motion: MotionController, displacement: Displacement, offset: Offset | None) -> None:
        result = motion.execute(displacement)
        if motion.fault is not None:
            raise motion.fault
        if result.outcome is not Outcome.REACHED:
            where = "" if offset is None else f", {100 * offset.distance_m:.0f} cm from the start"
            raise PlacementFailed(
                f"the robot did not get to the start: {_ended(result)}{where}",
                "clear its way, release what holds it, or bring it there by hand",
            )


def next_motion(offset: Offset, waypoint: tuple[float, float], tolerance: Tolerance) -> Displacement:
    """One turn or one straight way that brings a robot nearer to its goal. Pure."""
    if offset.distance_m <= SPARE * tolerance.within_m:
        return Displacement(turn_rad=offset.turn_rad)
    here = offset.here
    bearing_rad = wrap_angle(math.atan2(waypoint[1] - here.y_m, waypoint[0] - here.x_m) - here.yaw_rad)
    if abs(bearing_rad) > AIM_RAD:
        return Displacement(turn_rad=bearing_rad)
    return Displacement(forward_m=min(LEG_M, math.hypot(waypoint[0] - here.x_m, waypoint[1] - here.y_m)))


def _ended(result: ActionResult) -> str:
    if result.outcome is Outcome.CONTACT:
        zones = result.contact.name or str(result.contact)
        return f"it touched something ({zones.lower()}) and stopped after {result.measured.forward_m:.2f} m"
    return f"a motion ended as {result.outcome.value} after {result.duration_s:.1f} s {result.detail}".rstrip()
