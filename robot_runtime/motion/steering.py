"""A continuous action becomes closed-loop velocity commands: an arc for a velocity, legs for a waypoint.

A simulator that takes ``velocity_control`` integrates it over the control period from rest to rest, without inertia.
Here the robot drives the same arc as one leg of :class:`~robot_runtime.motion.follower.LegFollower`, no faster than
the command asks: both wheels' speeds ramp up and down together, so it takes one ramp and the base's delays longer than
the period, ends where the simulated robot would be, and stands still for the next observation.

A waypoint is reached in three legs, each planned from where the one before ended: turn to face it, drive straight,
turn to the heading asked for. The robot never backs into it: bumper and camera look ahead.
"""

import math
from dataclasses import replace

from robot_runtime.actions.discrete import Displacement
from robot_runtime.actions.timed import Control, Range, TimedAction, WaypointControl
from robot_runtime.common.clock import Clock, Stopwatch, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Base, BaseState, Head, HeadState, Zone
from robot_runtime.motion.controller import MotionController
from robot_runtime.motion.follower import OVER_TIME, Ended
from robot_runtime.motion.leg import Leg
from robot_runtime.records import ActionResult, Outcome

NEAR_M = 0.01
"""A waypoint that is nearer is reached already, whatever its direction: the challenge's ``lin_error_tol``."""


class Steering:
    """Carries out continuous actions.

    Args:
        motion: controller of the same base and head; lends its limits, tolerances and the heading that it aimed at
            last.
    """

    def __init__(self, clock: Clock, base: Base, head: Head, motion: MotionController) -> None:
        self.settle_s = 0.0
        """Host seconds of the last action from the end of its motion to rest."""
        self._clock = clock
        self._base = base
        self._head = head
        self._motion = motion

    def execute(self, command: TimedAction, control: Control) -> ActionResult:
        """Move as commanded and come to rest; the wheels are at zero when this is left, an exception included.

        ``timed_out`` is also how a waypoint ends that was not reached in the time that the policy gave it. Errors of
        devices become the outcome ``fault``, and the controller's ``fault``.
        """
        motion, follower = self._motion, self._motion.follower
        start_ns = self._clock.now_ns()
        try:
            motion.begin_action()
            start = follower.read()
            tilt = self._look(command, control.tilt_range_rad)
            if command.points[0].pose is None:
                ended = self._velocity(command, start)
            else:
                assert control.waypoint is not None
                ended = self._waypoint(command, control.waypoint, start)
            timer = Stopwatch()
            end = ended.state or follower.rest()
            tilted_rad, detail = self._looked(tilt)
            self.settle_s = timer.elapsed_s()
        except DeviceFault as error:
            motion.forget()
            motion.fault = error
            duration_s = ns_to_seconds(self._clock.now_ns() - start_ns)
            return ActionResult(
                Outcome.FAULT, command.displacement, motion.moved(), Zone.NONE, duration_s, error.message
            )
        except BaseException:
            motion.forget()
            raise
        finally:
            self._base.stop()
        moved = end.odom.relative_to(start.odom)
        ended = follower.with_obstruction(ended)
        contact = ended.contact
        if ended.outcome is Outcome.CONTACT:
            contact |= end.bumper  # the tick that stopped the robot may have seen the first of two zones only
        return ActionResult(
            ended.outcome,
            command.displacement,
            Displacement(moved.x_m, moved.yaw_rad, tilted_rad),
            contact,
            ns_to_seconds(self._clock.now_ns() - start_ns),
            "; ".join(filter(None, (ended.detail, detail, follower.paused_detail()))),
        )

    # --- velocity and waypoint --------------------------------------------------------------------------------------

    def _velocity(self, command: TimedAction, start: BaseState) -> Ended:
        motion, asked, point = self._motion, command.displacement, command.points[0]
        if not (asked.forward_m or asked.turn_rad):
            self._clock.sleep(point.after_s)
            return Ended(Outcome.REACHED)
        leg = motion.leg(asked.forward_m, asked.turn_rad)
        leg = replace(
            leg,
            linear_m_s=min(abs(point.linear_m_s), leg.linear_m_s) or leg.linear_m_s,
            angular_rad_s=min(abs(point.angular_rad_s), leg.angular_rad_s) or leg.angular_rad_s,
        )
        return self._follow(leg, start, motion.aim_rad(start), None)

    def _waypoint(self, command: TimedAction, control: WaypointControl, start: BaseState) -> Ended:
        (point,) = command.points
        assert point.pose is not None
        duration_s = max(point.after_s, control.min_duration_s)
        deadline_ns = self._clock.now_ns() + seconds_to_ns(duration_s)
        origin = SE2(start.odom.x_m, start.odom.y_m, self._motion.aim_rad(start))
        goal = origin @ point.pose
        state, aim_rad = start, origin.yaw_rad
        ended = Ended(Outcome.REACHED, state=start)
        if math.hypot(point.pose.x_m, point.pose.y_m) > NEAR_M:
            bearing_rad = math.atan2(goal.y_m - state.odom.y_m, goal.x_m - state.odom.x_m)
            ended, state, aim_rad = self._leg(0.0, bearing_rad, control, state, aim_rad, deadline_ns)
            if ended.outcome is Outcome.REACHED:
                away_m = state.odom.distance_to(goal)
                ended, state, aim_rad = self._leg(away_m, aim_rad, control, state, aim_rad, deadline_ns)
        if ended.outcome is Outcome.REACHED:
            ended, state, aim_rad = self._leg(0.0, goal.yaw_rad, control, state, aim_rad, deadline_ns)
        if ended.detail == OVER_TIME:
            left_m = state.odom.distance_to(goal)
            left_deg = math.degrees(abs(wrap_angle(goal.yaw_rad - state.odom.yaw_rad)))
            return Ended(Outcome.TIMED_OUT, detail=f"{left_m:.3f} m and {left_deg:.1f}° short after {duration_s:g} s")
        return ended

    def _leg(
        self,
        forward_m: float,
        heading_rad: float,
        control: WaypointControl,
        state: BaseState,
        aim_rad: float,
        deadline_ns: int,
    ) -> tuple[Ended, BaseState, float]:
        """One leg of a waypoint, the state after it, and the heading that was aimed at."""
        motion = self._motion
        turn_rad = wrap_angle(heading_rad - aim_rad)
        if not forward_m and abs(turn_rad) <= motion.profile.heading_rad:
            return Ended(Outcome.REACHED, state=state), state, aim_rad
        leg = motion.leg(forward_m, 0.0 if forward_m else turn_rad)
        leg = replace(
            leg,
            linear_m_s=min(control.linear_m_s, leg.linear_m_s),
            angular_rad_s=min(control.angular_rad_s, leg.angular_rad_s),
            linear_accel_m_s2=min(control.linear_accel_m_s2, leg.linear_accel_m_s2),
            angular_accel_rad_s2=min(control.angular_accel_rad_s2, leg.angular_accel_rad_s2),
        )
        ended = self._follow(leg, state, aim_rad, deadline_ns)
        return ended, ended.state or motion.follower.read(), aim_rad if forward_m else heading_rad

    def _follow(self, leg: Leg, state: BaseState, aim_rad: float, deadline_ns: int | None) -> Ended:
        """Drive a leg, and keep what it aimed at for the next motion; leaves the wheels' halt to the caller."""
        motion = self._motion
        motion.intended_yaw_rad = None  # set again only by an arrival
        ended = motion.follower.follow(leg, state, aim_rad, deadline_ns)
        if ended.outcome is Outcome.REACHED:
            motion.intended_yaw_rad = wrap_angle(aim_rad + leg.turn_rad)
        return ended

    # --- looking ----------------------------------------------------------------------------------------------------

    def _look(self, command: TimedAction, range_rad: Range) -> tuple[HeadState, float, int, str] | None:
        """Send the camera on its way; it moves while the robot drives. None if it stays where it is."""
        asked_rad = command.displacement.tilt_rad
        if not asked_rad:
            return None
        self._motion.forget_head()
        start = self._motion.head_state()
        self._motion.note_tilt(start.tilt_rad)
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
