"""Decisions: discrete actions, and timed ones relative to the exposure of the image that they were computed from.

One type has all continuous actions. A point is a pose in the robot's frame at that exposure, or a velocity, each with
a time after the exposure. What settles ends at rest before the next observation, as the actions of the Habitat
challenge of 2023 do (``robot_runtime.motion.steering``); all else is pursued while the robot moves, until it is
replaced, reached or too old (``robot_runtime.motion.pursuit``). Numbers are in SI units, scaled and clipped already: a
policy's -1 to 1 mean nothing without the task's ranges.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.common.quantities import AngularAcceleration, ControlPeriod, ShortTime, StillSpeed, StillTurnRate

Range = tuple[float, float]
"""Lowest and highest value."""

APART_M = 0.001
"""Distance of points below which their order gives no direction."""


@dataclass(frozen=True, slots=True)
class TimedPoint:
    """A pose to be at, or a velocity to have until then.

    Attributes:
        after_s: time after the exposure; where the action settles, the longest duration from its beginning.
        pose: pose of base_link in base_link at the exposure; None for a velocity.
        linear_m_s: forward positive.
        angular_rad_s: left positive.
        tilt_rad: change of the camera's tilt by then, up positive.
    """

    after_s: float
    pose: SE2 | None = None
    linear_m_s: float = 0.0
    angular_rad_s: float = 0.0
    tilt_rad: float = 0.0


@dataclass(frozen=True, slots=True)
class TimedAction:
    """A continuous action. :func:`velocity`, :func:`waypoint` and :func:`trajectory` make it.

    Attributes:
        points: points in the order of their times; at least one, and poses or velocities alone.
        settle: whether it ends at rest before the next observation.
        exposure_ns: stamp of the newest image that it was computed from; None for the newest that the policy was given.
        max_age_s: time after the exposure beyond which it is not pursued; None for the task's limit.
    """

    points: tuple[TimedPoint, ...]
    settle: bool = True
    exposure_ns: int | None = None
    max_age_s: float | None = None

    @property
    def action(self) -> Action:
        """Name in logs."""
        if self.points[0].pose is None:
            return Action.VELOCITY_CONTROL
        return Action.WAYPOINT_CONTROL if self.settle else Action.TRAJECTORY_CONTROL

    @property
    def displacement(self) -> Displacement:
        """Distance along an arc, or ahead, and angles; a displacement has no component to the side."""
        last = self.points[-1]
        if last.pose is not None:
            return Displacement(last.pose.x_m, last.pose.yaw_rad, last.tilt_rad)
        forward_m = turn_rad = before_s = 0.0
        for point in self.points:
            forward_m += point.linear_m_s * (point.after_s - before_s)
            turn_rad += point.angular_rad_s * (point.after_s - before_s)
            before_s = point.after_s
        return Displacement(forward_m, turn_rad, last.tilt_rad)

    def __str__(self) -> str:
        first, last = self.points[0], self.points[-1]
        if last.pose is None:
            speed = f"{first.linear_m_s:.2f} m/s, {math.degrees(first.angular_rad_s):.0f}°/s for {last.after_s:g} s"
            return speed if len(self.points) == 1 else f"{len(self.points)} velocities, first {speed}"
        place = f"to {last.pose.x_m:.2f} m, {last.pose.y_m:.2f} m, {math.degrees(last.pose.yaw_rad):.0f}°"
        return place if self.settle else f"{place} in {last.after_s:g} s by {len(self.points)} points"


Decision = Action | TimedAction
"""What the robot is to do in one step: the return value of a policy."""


def stamped(action: TimedAction, exposed_ns: int) -> TimedAction:
    """The action with the stamp of the newest image that the policy was given, where it has none and needs one."""
    return action if action.settle or action.exposure_ns is not None else replace(action, exposure_ns=exposed_ns)


def velocity(
    linear_m_s: float,
    angular_rad_s: float,
    tilt_rad_s: float = 0.0,
    duration_s: float = 0.25,
    settle: bool = True,
    exposure_ns: int | None = None,
    max_age_s: float | None = None,
) -> TimedAction:
    """An arc: both velocities at once, from rest to rest in ``duration_s``, or until another decision replaces it."""
    point = TimedPoint(duration_s, None, linear_m_s, angular_rad_s, tilt_rad_s * duration_s)
    return TimedAction((point,), settle, exposure_ns, max_age_s)


def waypoint(
    x_m: float, y_m: float, yaw_rad: float, tilt_rad: float = 0.0, max_duration_s: float = 10.0
) -> TimedAction:
    """A motion to a pose in base_link, at rest there, for ``max_duration_s`` at most."""
    return TimedAction((TimedPoint(max_duration_s, SE2(x_m, y_m, yaw_rad), tilt_rad=tilt_rad),))


def trajectory(
    points: Sequence[Sequence[float]], period_s: float, exposure_ns: int | None = None, max_age_s: float | None = None
) -> TimedAction:
    """Poses at equal times after the exposure, which the robot passes without stopping.

    Args:
        points: x forward, y left and, if the policy gives it, yaw; else the curve through the points is followed.
        period_s: time from the exposure to the first point, and from each to the next.
        exposure_ns: stamp of the image; None for the newest that the policy was given.
        max_age_s: largest age; None for the task's limit.

    Raises:
        ValueError: there is no point, or one has neither two nor three numbers.
    """
    rows = [tuple(map(float, point)) for point in points]
    if not rows or not (all(len(row) == 3 for row in rows) or all(len(row) == 2 for row in rows)):
        raise ValueError("a trajectory has points of x, y or of x, y, yaw")
    times_s = [period_s * number for number in range(1, len(rows) + 1)]
    yaws_rad = [row[2] for row in rows] if len(rows[0]) == 3 else _tangents(rows)
    poses = [SE2(row[0], row[1], yaw_rad) for row, yaw_rad in zip(rows, yaws_rad, strict=True)]
    return TimedAction(tuple(map(TimedPoint, times_s, poses)), False, exposure_ns, max_age_s)


def _tangents(points: Sequence[Sequence[float]]) -> list[float]:
    """Headings of the circles through three neighboring points each; the robot is one of them where these are too few.

    Else it is none: it may be off the curve. Points that coincide have no direction of their own.
    """
    chain = points if len(points) > 2 else [(0.0, 0.0), *points]
    lengths_m, ways_rad = [], [0.0]
    for (from_x_m, from_y_m), (x_m, y_m) in pairwise(chain):
        lengths_m.append(math.hypot(x_m - from_x_m, y_m - from_y_m))
        apart = lengths_m[-1] > APART_M
        ways_rad.append(math.atan2(y_m - from_y_m, x_m - from_x_m) if apart else ways_rad[-1])
    del ways_rad[0]
    inner_rad = []
    for (before_m, after_m), (before_rad, after_rad) in zip(pairwise(lengths_m), pairwise(ways_rad), strict=True):
        share = before_m / (before_m + after_m) if before_m > APART_M else 1.0
        inner_rad.append(before_rad + share * math.remainder(after_rad - before_rad, 2 * math.pi))
    last_rad = ways_rad[-1] + math.remainder(ways_rad[-1] - (inner_rad or [0.0])[-1], 2 * math.pi)
    if len(points) < 3:
        return [*inner_rad, last_rad]
    return [ways_rad[0] + math.remainder(ways_rad[0] - inner_rad[0], 2 * math.pi), *inner_rad, last_rad]


def _check_ranges(owner: object, *names: str) -> None:
    for name in names:
        low, high = getattr(owner, name)
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ValueError(f"{name} must be [lowest, highest], got [{low}, {high}]")


@dataclass(frozen=True)
class VelocityControl(config.Strict):
    """The ranges of ``velocity_control``, onto which a policy's -1 .. 1 are scaled, and its control period.

    Attributes:
        time_step_s: duration of a command.
        stop_below_m_s: a command below this and ``stop_below_rad_s`` means stop; None where stop is an action.
        stop_below_rad_s: see ``stop_below_m_s``.
    """

    linear_m_s: Range
    angular_rad_s: Range
    tilt_rad_s: Range
    time_step_s: ControlPeriod
    stop_below_m_s: StillSpeed | None = None
    stop_below_rad_s: StillTurnRate | None = None

    def __post_init__(self) -> None:
        _check_ranges(self, "linear_m_s", "angular_rad_s", "tilt_rad_s")
        config.check_positive(self, "time_step_s")
        if (self.stop_below_m_s is None) != (self.stop_below_rad_s is None):
            raise ValueError("stop_below_m_s and stop_below_rad_s go together")

    def is_stop(self, command: TimedPoint) -> bool:
        """Whether the command is so slow that it means stop."""
        if self.stop_below_m_s is None or self.stop_below_rad_s is None:
            return False
        return abs(command.linear_m_s) < self.stop_below_m_s and abs(command.angular_rad_s) < self.stop_below_rad_s


@dataclass(frozen=True)
class WaypointControl(config.Strict):
    """The ranges of ``waypoint_control``, and the robot's speeds on the way to a waypoint.

    Attributes:
        position_m: range of x and of y.
        duration_s: range onto which a policy's 0 .. 1 is scaled; the others take -1 .. 1.
        min_duration_s: shortest duration, whatever the command asks for.
    """

    position_m: Range
    yaw_rad: Range
    tilt_rad: Range
    duration_s: tuple[ShortTime, ShortTime]
    min_duration_s: ShortTime
    linear_m_s: float
    angular_rad_s: float
    linear_accel_m_s2: float
    angular_accel_rad_s2: AngularAcceleration

    def __post_init__(self) -> None:
        _check_ranges(self, "position_m", "yaw_rad", "tilt_rad", "duration_s")
        names = ("min_duration_s", "linear_m_s", "angular_rad_s", "linear_accel_m_s2", "angular_accel_rad_s2")
        config.check_positive(self, *names)


@dataclass(frozen=True)
class TrajectoryControl(config.Strict):
    """Limits of what is carried out in motion: velocities and trajectories that do not settle.

    Attributes:
        linear_m_s: speeds, below 0 backward; faster points are followed late.
        angular_rad_s: largest turning speed.
        period_s: time from one observation to the next while the robot moves.
        max_age_s: time after an image beyond which what was computed from it is not pursued: the wheels stop.
        max_standing_s: longest time for which the robot stands for want of a decision before the episode ends.
        latency_s: time from an observation to the decision on a simulated robot's clock, which stands still meanwhile;
            None for the host's.
    """

    linear_m_s: Range = (0.0, 0.5)
    angular_rad_s: float = 1.0
    period_s: ControlPeriod = 0.25
    max_age_s: ShortTime = 1.0
    max_standing_s: ShortTime = 30.0
    latency_s: ShortTime | None = None

    def __post_init__(self) -> None:
        _check_ranges(self, "linear_m_s")
        config.check_positive(self, "angular_rad_s", "period_s", "max_age_s", "max_standing_s")


@dataclass(frozen=True)
class Control(config.Strict):
    """The continuous actions of a task.

    Attributes:
        tilt_range_rad: how far the camera can look down and up.
    """

    tilt_range_rad: Range
    velocity: VelocityControl | None = None
    waypoint: WaypointControl | None = None
    trajectory: TrajectoryControl | None = None

    def __post_init__(self) -> None:
        _check_ranges(self, "tilt_range_rad")
        if self.velocity is None and self.waypoint is None and self.trajectory is None:
            raise ValueError("it needs 'velocity', 'waypoint' or 'trajectory'")


def scaled(value: float, given: Range, wanted: Range) -> float:
    """``value`` mapped from one range onto another, and clipped there: what lies outside does not count."""
    share = (value - given[0]) / (given[1] - given[0])
    return min(max(wanted[0] + share * (wanted[1] - wanted[0]), wanted[0]), wanted[1])
