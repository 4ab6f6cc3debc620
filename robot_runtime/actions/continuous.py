"""Continuous actions: velocities held for a control period, and waypoints; what the Habitat challenge took in 2023.

A policy may return one of these where its task has a :class:`Control`, in place of an
:class:`~robot_runtime.actions.discrete.Action`. They are in SI units and in the robot's own frame, scaled and
clipped already:
a policy's numbers from -1 to 1 mean nothing without the task's ranges. ``robot_runtime.motion.continuous`` carries
them out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import ClassVar

from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common import config
from robot_runtime.common.quantities import AngularAcceleration, ControlPeriod, ShortTime, StillSpeed, StillTurnRate
from robot_runtime.errors import UnknownAction

Range = tuple[float, float]
"""Lowest and highest value."""


@dataclass(frozen=True, slots=True)
class VelocityCommand:
    """Drive an arc: both velocities at once, for ``duration_s``.

    Attributes:
        linear_m_s: forward positive.
        angular_rad_s: left positive.
        tilt_rad_s: tilt velocity of the camera, up positive.
    """

    linear_m_s: float
    angular_rad_s: float
    tilt_rad_s: float
    duration_s: float

    action: ClassVar[Action] = Action.VELOCITY_CONTROL

    @property
    def displacement(self) -> Displacement:
        """Distance along the arc, and angles."""
        time_s = self.duration_s
        return Displacement(self.linear_m_s * time_s, self.angular_rad_s * time_s, self.tilt_rad_s * time_s)


@dataclass(frozen=True, slots=True)
class WaypointCommand:
    """A motion to a pose in base_link, for ``max_duration_s`` at most.

    Attributes:
        x_m: forward.
        y_m: left.
        yaw_rad: final heading, left positive.
        tilt_rad: change of the camera's tilt, up positive.
        max_duration_s: longest duration.
    """

    x_m: float
    y_m: float
    yaw_rad: float
    tilt_rad: float
    max_duration_s: float

    action: ClassVar[Action] = Action.WAYPOINT_CONTROL

    @property
    def displacement(self) -> Displacement:
        """Distance ahead and angles; a displacement has no component to the side."""
        return Displacement(self.x_m, self.yaw_rad, self.tilt_rad)


Command = VelocityCommand | WaypointCommand

Decision = Action | VelocityCommand | WaypointCommand
"""Return value of a policy."""


def _check_ranges(owner: object, *names: str) -> None:
    for name in names:
        low, high = getattr(owner, name)
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ValueError(f"{name} must be [lowest, highest], got [{low}, {high}]")


@dataclass(frozen=True)
class VelocityControl:
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

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        _check_ranges(self, "linear_m_s", "angular_rad_s", "tilt_rad_s")
        config.check_positive(self, "time_step_s")
        if (self.stop_below_m_s is None) != (self.stop_below_rad_s is None):
            raise ValueError("stop_below_m_s and stop_below_rad_s go together")

    def is_stop(self, command: VelocityCommand) -> bool:
        """Whether the command is so slow that it means stop."""
        if self.stop_below_m_s is None or self.stop_below_rad_s is None:
            return False
        return abs(command.linear_m_s) < self.stop_below_m_s and abs(command.angular_rad_s) < self.stop_below_rad_s


@dataclass(frozen=True)
class WaypointControl:
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

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        _check_ranges(self, "position_m", "yaw_rad", "tilt_rad", "duration_s")
        names = ("min_duration_s", "linear_m_s", "angular_rad_s", "linear_accel_m_s2", "angular_accel_rad_s2")
        config.check_positive(self, *names)


@dataclass(frozen=True)
class Control:
    """The continuous actions of a task.

    Attributes:
        tilt_range_rad: how far the camera can look down and up.
    """

    tilt_range_rad: Range
    velocity: VelocityControl | None = None
    waypoint: WaypointControl | None = None

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        _check_ranges(self, "tilt_range_rad")
        if self.velocity is None and self.waypoint is None:
            raise ValueError("it needs 'velocity', 'waypoint' or both")


def scaled(value: float, given: Range, wanted: Range) -> float:
    """``value`` mapped from one range onto another, and clipped there: what lies outside does not count."""
    share = (value - given[0]) / (given[1] - given[0])
    return min(max(wanted[0] + share * (wanted[1] - wanted[0]), wanted[0]), wanted[1])


def check_command(command: Command, control: Control | None, task: str) -> None:
    """Whether a task has a command.

    Raises:
        UnknownAction: it has not, or a number of the command is not finite.
    """
    allowed = control and (control.velocity if isinstance(command, VelocityCommand) else control.waypoint)
    if not allowed:
        raise UnknownAction(
            f"the policy asked for {command.action}, which task {task!r} does not have",
            "use a task with 'control', for instance objectnav_hm3d2023, or the task's discrete actions",
        )
    for field in fields(command):
        value = getattr(command, field.name)
        if not math.isfinite(value):
            raise UnknownAction(
                f"the policy asked for {command.action} with {field.name} = {value}",
                "correct the policy: it must return finite numbers",
            )
