"""Placement by driving: the robot drives to the start of the episode itself."""

import math

from typing_extensions import Self, override

from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import Clock, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import PlacementFailed
from robot_runtime.hal import Base, Head, Localizer, Robot
from robot_runtime.hal.motion_profile import DEFAULT_PROFILE, MotionProfile
from robot_runtime.motion.controller import MotionController
from robot_runtime.placement.guide import Guide
from robot_runtime.placement.offset import Offset, Tolerance
from robot_runtime.placement.placer import POLL_S, GuidedPlacer
from robot_runtime.records import ActionResult, Outcome
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.occupancy_map import OccupancyMap

LEG_M = 1.0
"""Longest distance driven before the pose is measured again."""
SAFETY_FACTOR = 0.5
"""Fraction of the tolerance that driving aims at, so that noise does not undo the result."""
AIM_RAD = math.radians(3)
"""Largest heading error at the start of a leg: it misses its goal by 5 % of its length."""
OBSERVE_S = 1.0
"""Duration of the pose measurement, standing, before each motion."""
MARGINS_M = (0.1, 0.05, 0.0)
"""Distances to walls beyond the robot's radius; the first one that leaves a path is used."""
SEARCH_M = 0.5
"""Distance that a robot without a known heading drives at a time to determine it."""
SEARCH_LEGS = 4


class DrivingPlacer(GuidedPlacer):
    """The robot turns, drives straight and turns, leg by leg, along a shortest path where the map is known.

    Every motion is executed by a :class:`~robot_runtime.motion.controller.MotionController` behind the base's Guard: a
    contact stops the robot and ends the placement. A robot whose heading is estimated from motion first drives
    straight.

    Args:
        occupancy: map of the scene; without it, the robot drives straight lines.
        profile: parameters of motions. The others are as for :class:`GuidedPlacer`.
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
        profile: MotionProfile = DEFAULT_PROFILE,
    ) -> None:
        super().__init__(clock, base, head, localizer, referee, tolerance, guide)
        self._occupancy, self._profile = occupancy, profile
        self._spaces: dict[float, GeodesicMap] = {}

    @override
    def fitted(self, robot: Robot) -> Self:
        devices = (robot.clock, robot.base, robot.head, robot.localizer, robot.referee)
        return type(self)(*devices, self.tolerance, self.guide, self._occupancy, robot.motion)

    @override
    def move_to(self, pose: SE2) -> None:
        clock, tolerance = self._clock, self.tolerance
        deadline_ns = clock.now_ns() + seconds_to_ns(tolerance.timeout_s)
        self.guide.begin(pose, tolerance, drives=True)
        motion = MotionController(clock, self._base, self._head, self._profile)
        offset = Offset.of(self._located(motion), pose)
        while not offset.within(tolerance, SAFETY_FACTOR):
            if clock.now_ns() > deadline_ns:
                if offset.within(tolerance):
                    break
                raise PlacementFailed(
                    f"the robot is still {offset} after {tolerance.timeout_s:g} s",
                    "allow more time or a wider tolerance, or check the noise of its localizer",
                )
            self._execute(motion, next_motion(offset, self._waypoint(offset.here, pose), tolerance), offset)
            offset = Offset.of(self._mean_pose(), pose)
            self.guide.show(clock.now_ns(), offset, "")
        self.guide.done(offset)

    def _located(self, motion: MotionController) -> SE2:
        """The robot's pose, after driving a little if the heading is not known yet."""
        for _ in range(SEARCH_LEGS):
            self._clock.sleep(OBSERVE_S)
            here, reason = self.current_pose()
            if here is not None:
                return here
            self.guide.show(self._clock.now_ns(), None, reason)
            self._execute(motion, Displacement(forward_m=SEARCH_M), None)
        return self._mean_pose()

    def _mean_pose(self) -> SE2:
        """The mean pose of the standing robot over :data:`OBSERVE_S`. Raises ``PlacementFailed``."""
        seen: list[SE2] = []
        reason = ""
        for _ in range(round(OBSERVE_S / POLL_S)):
            self._clock.sleep(POLL_S)
            here, problem = self.current_pose()
            reason = problem or reason
            if here is not None:
                seen.append(here)
        if not seen:
            raise PlacementFailed(
                f"the robot's pose is unknown: {reason}", "move the robot to where it can localize itself"
            )
        yaw_rad = math.atan2(sum(math.sin(p.yaw_rad) for p in seen), sum(math.cos(p.yaw_rad) for p in seen))
        return SE2(sum(p.x_m for p in seen) / len(seen), sum(p.y_m for p in seen) / len(seen), yaw_rad)

    def _waypoint(self, here: SE2, goal: SE2) -> tuple[float, float]:
        """The next point to drive to: the goal, or the first corner of the path. Raises ``PlacementFailed``."""
        if self._occupancy is None:
            return goal.x_m, goal.y_m
        for margin_m in MARGINS_M:
            if margin_m not in self._spaces:
                self._spaces[margin_m] = GeodesicMap(self._occupancy, self._base.info.radius_m + margin_m)
            path = self._spaces[margin_m].field([(goal.x_m, goal.y_m)]).path(here.x_m, here.y_m)
            if len(path):
                near_m = SAFETY_FACTOR * self.tolerance.within_m
                corners = [(float(x), float(y)) for x, y in path if math.hypot(x - here.x_m, y - here.y_m) > near_m]
                # The last corner may differ from the goal, because it was moved to satisfy the margin.
                return corners[0] if len(corners) > 1 else (goal.x_m, goal.y_m)
        raise PlacementFailed(
            f"no path leads from ({here.x_m:.2f}, {here.y_m:.2f}) to ({goal.x_m:.2f}, {goal.y_m:.2f}) on the map",
            "move the robot there by hand, or check the map and the robot's pose on it",
        )

    def _execute(self, motion: MotionController, displacement: Displacement, offset: Offset | None) -> None:
        result = motion.execute(displacement)
        if motion.fault is not None:
            raise motion.fault
        if result.outcome is not Outcome.REACHED:
            where = "" if offset is None else f", {100 * offset.distance_m:.0f} cm from the start"
            raise PlacementFailed(
                f"the robot did not get to the start: {_description(result)}{where}",
                "clear its path, release the emergency stop, or move it there by hand",
            )


def next_motion(offset: Offset, waypoint: tuple[float, float], tolerance: Tolerance) -> Displacement:
    """The next turn or straight motion toward the waypoint."""
    if offset.distance_m <= SAFETY_FACTOR * tolerance.within_m:
        return Displacement(turn_rad=offset.turn_rad)
    here = offset.here
    bearing_rad = wrap_angle(math.atan2(waypoint[1] - here.y_m, waypoint[0] - here.x_m) - here.yaw_rad)
    if abs(bearing_rad) > AIM_RAD:
        return Displacement(turn_rad=bearing_rad)
    return Displacement(forward_m=min(LEG_M, math.hypot(waypoint[0] - here.x_m, waypoint[1] - here.y_m)))


def _description(result: ActionResult) -> str:
    if result.outcome is Outcome.CONTACT:
        zones = result.contact.name or str(result.contact)
        return f"it touched something ({zones.lower()}) and stopped after {result.measured.forward_m:.2f} m"
    return f"a motion ended as {result.outcome.value} after {result.duration_s:.1f} s {result.detail}".rstrip()
