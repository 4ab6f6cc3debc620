"""A continuous action becomes closed-loop velocity commands: an arc for a velocity, legs for a waypoint.

A simulator that takes ``velocity_control`` integrates it over the control period from rest to rest, without inertia.
Here the robot drives the same arc, and no faster than the command asks: both wheels' speeds ramp up and down together
(a trapezoid in the share of the arc that is done), so it takes one ramp longer than the period, ends where the
simulated robot would be, and stands still for the next observation. Deviations from the arc are corrected by odometry
as in :mod:`robot_runtime.motion.controller`, whose rules for contact, holds, faults and rest are the ones here.

A waypoint is reached in three legs, each planned from where the one before ended: turn to face it, drive straight,
turn to the heading asked for. The robot never backs into it: bumper and camera look ahead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from robot_runtime.actions.continuous import Command, Control, Range, VelocityCommand, WaypointCommand, WaypointControl
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import NS_PER_S, Clock, Stopwatch, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import Base, BaseState, Head, HeadState, Velocity, Zone
from robot_runtime.hal.streams import STREAMS
from robot_runtime.motion.controller import MotionController, carry, clip, ending
from robot_runtime.motion.trapezoid import Trapezoid
from robot_runtime.records import ActionResult, Outcome

CROSS_GAIN_1_M2 = 30.0
"""Turning per speed and distance from the arc: with the gain of headings, damped well up to 0.5 m/s."""

NEAR_M = 0.01
"""A waypoint that is nearer is reached already, whatever its direction: the challenge's ``lin_error_tol``."""

_OVER_TIME = "its time was over"


@dataclass(frozen=True, slots=True)
class Leg:
    """One arc, or a straight line, or a turn on the spot: what to cover, and the limits on the way. Limits are > 0."""

    forward_m: float
    turn_rad: float
    linear_m_s: float
    angular_rad_s: float
    linear_accel_m_s2: float
    angular_accel_rad_s2: float

    def plan(self) -> Trapezoid:
        """The share of the leg that is done, over time."""
        forward, turn = abs(self.forward_m), abs(self.turn_rad)
        speeds = [limit / way for limit, way in ((self.linear_m_s, forward), (self.angular_rad_s, turn)) if way]
        accels = [
            limit / way for limit, way in ((self.linear_accel_m_s2, forward), (self.angular_accel_rad_s2, turn)) if way
        ]
        return Trapezoid.plan(1.0, min(speeds), min(accels))

    def pose(self, share: float) -> SE2:
        """Where the robot should be when that share is done, seen from where the leg begins."""
        return SE2.arc(self.forward_m * share, self.turn_rad * share)


@dataclass(frozen=True, slots=True)
class _Ended:
    outcome: Outcome
    contact: Zone = Zone.NONE
    detail: str = ""


class Steering:
    """Carries out continuous actions.

    Args:
        motion: of the same base and head; lends its limits, tolerances and the heading that it aimed at last.
    """

    def __init__(self, clock: Clock, base: Base, head: Head, motion: MotionController) -> None:
        self.settle_s = 0.0
        """Host seconds of the last action from the end of its motion to rest."""
        self._clock = clock
        self._base = base
        self._head = head
        self._motion = motion
        self._period_s = 1 / base.info.rate_hz

    def execute(self, command: Command, control: Control) -> ActionResult:
        """Move as commanded and come to rest; the wheels are at zero when this is left, an exception included.

        ``timed_out`` is also how a waypoint ends that was not reached in the time that the policy gave it.

        Raises:
            DeviceFault: a device failed or went silent.
        """
        motion = self._motion
        start_ns = self._clock.now_ns()
        try:
            motion.begin()
            start = motion.read_base()
            tilt = self._look(command, control.tilt_range_rad)
            if isinstance(command, VelocityCommand):
                ended = self._velocity(command, start)
            else:
                assert control.waypoint is not None
                ended = self._waypoint(command, control.waypoint, start)
            timer = Stopwatch()
            end = motion.rest_base()
            tilted_rad, detail = self._looked(tilt)
            self.settle_s = timer.elapsed_s()
        except BaseException:
            motion.forget()
            raise
        finally:
            self._base.stop()
        moved = end.odom.relative_to(start.odom)
        contact = ended.contact
        if ended.outcome is Outcome.CONTACT:
            contact |= end.bumper  # the tick that stopped the robot may have seen the first of two zones only
        return ActionResult(
            ended.outcome,
            command.displacement,
            Displacement(moved.x_m, moved.yaw_rad, tilted_rad),
            contact,
            ns_to_seconds(self._clock.now_ns() - start_ns),
            "; ".join(filter(None, (ended.detail, detail, motion.paused_detail()))),
        )

    # --- velocity and waypoint --------------------------------------------------------------------------------------

    def _velocity(self, command: VelocityCommand, start: BaseState) -> _Ended:
        limits, asked = self._motion, command.displacement
        if not (asked.forward_m or asked.turn_rad):
            self._clock.sleep(command.duration_s)
            return _Ended(Outcome.REACHED)
        leg = Leg(
            asked.forward_m,
            asked.turn_rad,
            min(abs(command.linear_m_s), limits.linear_m_s) or limits.linear_m_s,
            min(abs(command.angular_rad_s), limits.angular_rad_s) or limits.angular_rad_s,
            limits.linear_accel_m_s2,
            limits.angular_accel_rad_s2,
        )
        return self._follow(leg, start, self._aim(start), None)

    def _waypoint(self, command: WaypointCommand, control: WaypointControl, start: BaseState) -> _Ended:
        duration_s = max(command.max_duration_s, control.min_duration_s)
        deadline_ns = self._clock.now_ns() + seconds_to_ns(duration_s)
        origin = SE2(start.odom.x_m, start.odom.y_m, self._aim(start))
        goal = origin @ SE2(command.x_m, command.y_m, command.yaw_rad)
        state, aim_rad = start, origin.yaw_rad
        ended = _Ended(Outcome.REACHED)
        if math.hypot(command.x_m, command.y_m) > NEAR_M:
            bearing_rad = math.atan2(goal.y_m - state.odom.y_m, goal.x_m - state.odom.x_m)
            ended, state, aim_rad = self._leg(0.0, bearing_rad, control, state, aim_rad, deadline_ns)
            if ended.outcome is Outcome.REACHED:
                away_m = state.odom.distance_to(goal)
                ended, state, aim_rad = self._leg(away_m, aim_rad, control, state, aim_rad, deadline_ns)
        if ended.outcome is Outcome.REACHED:
            ended, state, aim_rad = self._leg(0.0, goal.yaw_rad, control, state, aim_rad, deadline_ns)
        if ended.detail == _OVER_TIME:
            left_m = state.odom.distance_to(goal)
            left_deg = math.degrees(abs(wrap_angle(goal.yaw_rad - state.odom.yaw_rad)))
            return _Ended(Outcome.TIMED_OUT, detail=f"{left_m:.3f} m and {left_deg:.1f}° short after {duration_s:g} s")
        return ended

    def _leg(
        self,
        forward_m: float,
        heading_rad: float,
        control: WaypointControl,
        state: BaseState,
        aim_rad: float,
        deadline_ns: int,
    ) -> tuple[_Ended, BaseState, float]:
        """One leg of a waypoint, the state after it, and the heading that was aimed at."""
        limits = self._motion
        turn_rad = wrap_angle(heading_rad - aim_rad)
        if not forward_m and abs(turn_rad) <= limits.profile.heading_rad:
            return _Ended(Outcome.REACHED), state, aim_rad
        leg = Leg(
            forward_m,
            0.0 if forward_m else turn_rad,
            min(control.linear_m_s, limits.linear_m_s),
            min(control.angular_rad_s, limits.angular_rad_s),
            min(control.linear_accel_m_s2, limits.linear_accel_m_s2),
            min(control.angular_accel_rad_s2, limits.angular_accel_rad_s2),
        )
        ended = self._follow(leg, state, aim_rad, deadline_ns)
        return ended, limits.read_base(), aim_rad if forward_m else heading_rad

    # --- one leg ----------------------------------------------------------------------------------------------------

    def _aim(self, state: BaseState) -> float:
        motion = self._motion
        return carry(motion.intended_yaw_rad, state.odom.yaw_rad, motion.profile.carry_rad)

    def _follow(self, leg: Leg, state: BaseState, aim_rad: float, deadline_ns: int | None) -> _Ended:
        """Track a leg until it is done or something ends it; leaves the wheels' halt to the caller.

        Args:
            leg: to track.
            state: of the base at its start.
            aim_rad: the heading, in odom, with which the leg is meant to begin.
            deadline_ns: end of the command; None for the leg's own.
        """
        motion, clock, profile = self._motion, self._clock, self._motion.profile
        motion.intended_yaw_rad = None  # set again only by an arrival
        origin = SE2(state.odom.x_m, state.odom.y_m, aim_rad)
        plan = leg.plan()
        timeout_s = profile.timeout_s(plan.duration_s)
        begin_ns = tick_ns = clock.now_ns()
        paused_ns = motion.paused_ns
        while True:
            if (over := ending(state, leg.forward_m)) is not None:
                return _Ended(*over)
            begin_ns, paused_ns = begin_ns + motion.paused_ns - paused_ns, motion.paused_ns
            elapsed_s = (tick_ns - begin_ns) / NS_PER_S
            if elapsed_s >= plan.duration_s:
                if self._has_arrived(origin @ leg.pose(1.0), leg, state):
                    motion.intended_yaw_rad = wrap_angle(aim_rad + leg.turn_rad)
                    return _Ended(Outcome.REACHED)
                if elapsed_s > timeout_s:
                    return _Ended(Outcome.TIMED_OUT, detail=f"not there after {elapsed_s:.1f} s")
            if deadline_ns is not None and tick_ns >= deadline_ns:
                return _Ended(Outcome.TIMED_OUT, detail=_OVER_TIME)
            measured_s = (state.stamp_ns - begin_ns) / NS_PER_S
            behind = (origin @ leg.pose(plan.position(measured_s))).relative_to(state.odom)
            share_1_s = (plan.position(elapsed_s + self._period_s) - plan.position(elapsed_s)) / self._period_s
            self._base.command(self._velocity_for(leg, share_1_s, behind))
            tick_ns = max(tick_ns + seconds_to_ns(self._period_s), clock.now_ns())
            clock.sleep_until(tick_ns)
            state = motion.read_base()

    def _velocity_for(self, leg: Leg, share_1_s: float, behind: SE2) -> Velocity:
        """The leg's own velocity, plus what brings the robot to where it should be by now (``behind``, in base_link).

        Kanayama et al. 1990, "A stable tracking control method for an autonomous mobile robot", equation 8, with
        constant damping. On a turn on the spot the wheels' mean speed is zero, so that no bumper forbids it.
        """
        profile, limits = self._motion.profile, self._motion
        ahead_m_s, turning_rad_s = leg.forward_m * share_1_s, leg.turn_rad * share_1_s
        linear_m_s = ahead_m_s + profile.linear_gain_1_s * behind.x_m if leg.forward_m else 0.0
        angular_rad_s = (
            turning_rad_s + profile.angular_gain_1_s * behind.yaw_rad + CROSS_GAIN_1_M2 * ahead_m_s * behind.y_m
        )
        return Velocity(clip(linear_m_s, limits.linear_m_s), clip(angular_rad_s, limits.angular_rad_s))

    def _has_arrived(self, goal: SE2, leg: Leg, state: BaseState) -> bool:
        profile, left = self._motion.profile, goal.relative_to(state.odom)
        return (
            abs(left.yaw_rad) <= profile.heading_rad
            and (not leg.forward_m or abs(left.x_m) <= profile.position_m)
            and abs(state.velocity.linear_m_s) <= profile.still_m_s
            and abs(state.velocity.angular_rad_s) <= profile.still_rad_s
        )

    # --- looking ----------------------------------------------------------------------------------------------------

    def _look(self, command: Command, range_rad: Range) -> tuple[HeadState, float, int, str] | None:
        """Send the camera on its way, which it makes while the robot drives; None if it stays where it is."""
        asked_rad = command.displacement.tilt_rad
        if not asked_rad:
            return None
        self._motion.forget_head()
        start = self._head.state(STREAMS["head"].max_age_s)
        requested_rad = start.tilt_rad + asked_rad
        _, goal_rad = self._head.command(start.pan_rad, min(max(requested_rad, range_rad[0]), range_rad[1]))
        detail = ""
        if abs(goal_rad - requested_rad) > self._motion.profile.heading_rad:
            detail = (
                f"the camera's limit is {math.degrees(goal_rad):.1f}°; {math.degrees(requested_rad):.1f}° was asked for"
            )
        return start, asked_rad, self._clock.now_ns(), detail

    def _looked(self, tilt: tuple[HeadState, float, int, str] | None) -> tuple[float, str]:
        """Return the tilt that the camera has made, at rest, and a detail for the result."""
        if tilt is None:
            return 0.0, ""
        start, asked_rad, commanded_ns, detail = tilt
        limits = self._head.limits
        nominal_s = abs(asked_rad) / limits.max_speed_rad_s + limits.settle_s
        end = self._motion.rest_head(commanded_ns, self._motion.profile.timeout_s(nominal_s))
        if end.moving:
            detail = f"head: still moving at tilt {math.degrees(end.tilt_rad):.1f}°"
        return end.tilt_rad - start.tilt_rad, detail
