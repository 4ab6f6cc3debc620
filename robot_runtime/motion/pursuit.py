"""Pursuit of velocities and trajectories while the robot moves, at the base's own rate, while policy and camera work.

A trajectory lies in the robot's frame at the exposure that it was computed from, by odometry. The command that is sent
now acts one dead time later; the motors' model predicts where the robot will be then, and how fast its wheels turn.
From there, the nearest point of the curve gives the speeds and the errors to correct (Kanayama et al. 1990, equation 8,
with constant damping), and the time that is lacking makes it drive faster or slower: who is late cuts no corner.

What is too old, reached, or touches something is over: the wheels go to zero. On a clock that only passes while
somebody sleeps on it, the loop runs within those sleeps; on any other, in a thread of its own.
"""

import math
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from robot_runtime.actions.discrete import Displacement
from robot_runtime.actions.timed import APART_M, Control, TimedAction, TimedPoint
from robot_runtime.common.clock import SimulatedClock, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import DeviceFault, PolicyError, UnknownAction
from robot_runtime.hal import BaseState, Robot, Velocity, Zone
from robot_runtime.motion.controller import MotionController
from robot_runtime.motion.drive import CROSS_GAIN_1_M2, clip
from robot_runtime.motion.follower import Ended, LegFollower, ending
from robot_runtime.motion.leg import TURNING_M, braking_speed
from robot_runtime.motion.prediction import WheelCheck, Wheels
from robot_runtime.records import ActionResult, Outcome, Pursued, SentCommand, Subscriber

ITERATIONS = 3
"""Projections onto an arc, each from the share that the one before found."""


@dataclass(frozen=True, slots=True)
class Arc:
    """A piece of a curve, in the robot's frame at an exposure.

    Attributes:
        begin_s: time of its beginning, after the exposure.
        begin: pose at its beginning, along the arc: where a policy's heading differs, it is that of the way.
        forward_m: length, below 0 backward.
    """

    begin_s: float
    end_s: float
    begin: SE2
    forward_m: float
    turn_rad: float

    def pose(self, share: float) -> SE2:
        """Pose where a share of it is done."""
        return self.begin.after_arc(share * self.forward_m, share * self.turn_rad)

    def project(self, robot: SE2) -> tuple[float, float]:
        """The nearest share, and the square of the distance from it; a radian counts as ``TURNING_M``."""
        square, share = self.forward_m**2 + (TURNING_M * self.turn_rad) ** 2, 1.0
        for _ in range(ITERATIONS if square else 0):
            off = robot.relative_to(self.pose(share))
            share += (off.x_m * self.forward_m + TURNING_M**2 * off.yaw_rad * self.turn_rad) / square
            share = min(max(share, 0.0), 1.0)
        off = robot.relative_to(self.pose(share))
        return share, off.x_m**2 + off.y_m**2 + (TURNING_M * off.yaw_rad) ** 2


def arcs(points: Sequence[TimedPoint]) -> list[Arc]:
    """The arcs from the robot's pose at the exposure through the poses of a trajectory, in the order of their times."""
    made, before_s, before = [], 0.0, SE2()
    for point in points:
        assert point.pose is not None
        moved, turn_rad = point.pose.relative_to(before), wrap_angle(point.pose.yaw_rad - before.yaw_rad)
        chord_m, half_rad = math.hypot(moved.x_m, moved.y_m), turn_rad / 2
        begin, forward_m = before, 0.0
        if chord_m > APART_M:
            way_rad = math.atan2(moved.y_m, moved.x_m)
            backward = abs(wrap_angle(way_rad - half_rad)) > math.pi / 2
            heading_rad = before.yaw_rad + way_rad + backward * math.pi - half_rad
            begin = SE2(before.x_m, before.y_m, wrap_angle(heading_rad))
            forward_m = math.copysign(chord_m * (half_rad / math.sin(half_rad) if half_rad else 1.0), 0.5 - backward)
        made.append(Arc(before_s, point.after_s, begin, forward_m, turn_rad))
        before_s, before = point.after_s, point.pose
    return made


QUICK_S = 0.04
"""Time constant to which the inverse of the wheels' lag shortens it."""

CATCH_UP_1_S = 1.0
"""Relative change of the speed per second that the robot is late."""

BACK_S, AHEAD_S = 0.1, 1.0
"""Times by which the nearest point may go back, and be ahead of where the robot is to be."""

CHECK_S = 2.0
"""Time after which the comparison of the wheels with their model starts again."""

HISTORY_S = 2.0
"""Time beyond the largest age for which odometry is kept."""


class Pursuit:
    """Drives without coming to rest between decisions.

    Args:
        robot: connected.
        motion: controller of its base and head; it ends the pursuit before it drives or stops.
        control: the task's, with ``trajectory``.
        listener: gets states and commands of the base, in the thread of the decisions.
    """

    def __init__(self, robot: Robot, motion: MotionController, control: Control, listener: Subscriber) -> None:
        assert control.trajectory is not None
        clock, base = robot.clock, robot.base
        self._limits, self._tilt_range_rad = control.trajectory, control.tilt_range_rad
        self._clock, self._base, self._head, self._motion, self._listener = clock, base, robot.head, motion, listener
        self._period_s = 1 / base.info.rate_hz
        self._period_ns = seconds_to_ns(self._period_s)
        model, (low_m_s, high_m_s) = base.motors.model, self._limits.linear_m_s
        top_m_s = min(
            base.info.max_linear_m_s, model.speed_for_travel_m_s(motion.profile.contact_travel_m, self._period_s)
        )
        self._linear_m_s = max(low_m_s, -top_m_s), min(high_m_s, top_m_s)
        self._angular_rad_s = min(self._limits.angular_rad_s, base.info.max_angular_rad_s)
        # The wheels' speed reaches the wished one with this time constant; the command is that far ahead of the speed.
        self._quick_s = min(QUICK_S, max(model.lag_s, self._period_s))
        self._lead = max(1.0, model.lag_s / self._quick_s)
        self._heard: deque[BaseState | SentCommand] = deque()
        self._follower = LegFollower(clock, base, motion.profile, self._heard.append, self._heard.append)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._running = False
        self._error: BaseException | None = None
        self._action: TimedAction | None = None
        self._ended = Ended(Outcome.REACHED)
        self._standing_ns = self._stepped_ns = clock.now_ns()
        motion.end_beside = self._end

    # --- in the thread of the decisions -----------------------------------------------------------------------------

    def decided(self, infer_s: float, observed_ns: int) -> None:
        """Take note that a decision has come; on a simulated clock, let its time pass.

        Args:
            infer_s: host seconds that it took.
            observed_ns: when its observation was made.

        Raises:
            PolicyError: the robot has stood for longer than the task allows.
            DeviceFault: of the pursuit meanwhile.
        """
        limits = self._limits
        if isinstance(self._clock, SimulatedClock):
            latency_s = infer_s if limits.latency_s is None else limits.latency_s
            self._clock.sleep_until(observed_ns + seconds_to_ns(latency_s))
        self._check()
        # While it was observed, perhaps across a gap of the link, no decision was wanting.
        self._standing_ns += max(0, observed_ns - max(self._standing_ns, self._stepped_ns))
        if (stood_s := self._stood_s()) > limits.max_standing_s:
            raise PolicyError(
                f"the robot stood for {stood_s:.1f} s for want of a decision; {self._ended.detail or 'none came'}",
                f"make the policy faster, or raise the task's max_standing_s from {limits.max_standing_s:g} s",
            )

    def step(self, action: TimedAction, exposed_ns: int) -> ActionResult:
        """Pursue an action from now on, and return what was driven since the last step when its time is over.

        Args:
            action: velocities, or a trajectory, with the stamp of its image.
            exposed_ns: exposure of the newest image that the policy was given. The step ends one period later, or when
                the action ends.

        Raises:
            UnknownAction: it was computed from an image of the future.
            DeviceFault: a device failed; the wheels are at zero.
        """
        clock, now_ns = self._clock, self._clock.now_ns()
        exposure_ns = action.exposure_ns
        assert exposure_ns is not None
        if exposure_ns > now_ns:
            raise UnknownAction(
                f"the policy's image is from {ns_to_seconds(exposure_ns - now_ns):.3f} s after its decision",
                "return the stamp of an observation, in nanoseconds of the robot's clock, or none",
            )
        if not self._running:
            self._begin()
        standing_s = self._stood_s()
        with self._lock:
            self._replace(action, exposure_ns, now_ns)
        if tilt_rad := action.points[-1].tilt_rad:
            head, (low_rad, high_rad) = self._motion.head_state(), self._tilt_range_rad
            self._head.command(head.pan_rad, min(max(head.tilt_rad + tilt_rad, low_rad), high_rad))
        until_ns, tick_ns = exposed_ns + seconds_to_ns(self._limits.period_s), now_ns
        while self._action is not None and clock.now_ns() < until_ns:
            tick_ns += self._period_ns
            clock.sleep_until(min(tick_ns, until_ns))
            self._check()
        self._stepped_ns = clock.now_ns()
        with self._lock:
            return self._result(action, ns_to_seconds(now_ns - exposure_ns), standing_s)

    def _begin(self) -> None:
        """Start the loop, at rest."""
        motion, clock, follower = self._motion, self._clock, self._follower
        motion.begin_action()
        motion.forget()
        follower.forget()
        follower.predictor.adopt(motion.follower.predictor.model, clock.now_ns())
        follower.begin_action()
        state = follower.read()
        self._mark = state.stamp_ns, state.odom, follower.predictor.driven
        self._history = deque([self._mark])
        self._contact, self._late_s = Zone.NONE, 0.0
        self._wheels, self._checked_ns = WheelCheck(follower.predictor), clock.now_ns()
        self._due_ns, self._running = clock.now_ns(), True
        if isinstance(clock, SimulatedClock):
            clock.add_listener(self._on_step)
        else:
            self._thread = threading.Thread(target=self._run, name="pursuit", daemon=True)
            self._thread.start()

    def _end(self, rest: bool) -> None:
        """Stop the loop, if it runs, and perhaps come to rest."""
        self._standing_ns = self._clock.now_ns()
        if not self._running:
            return
        self._running, self._action = False, None
        if isinstance(self._clock, SimulatedClock):
            self._clock.remove_listener(self._on_step)
        elif self._thread is not None:
            self._thread.join(self._motion.profile.patience_s + 1)
            if self._thread.is_alive():
                raise DeviceFault("base: a command to the wheels does not return", "check the base's cable and driver")
        if rest:
            self._follower.rest()
        self._check()

    def _check(self) -> None:
        """Hand over what the loop has read and sent, and raise the error that ended it."""
        while self._heard:
            heard = self._heard.popleft()
            (self._listener.on_command if isinstance(heard, SentCommand) else self._listener.on_base_state)(heard)  # type: ignore[arg-type]
        error, self._error = self._error, None
        if error is not None:
            self._end(rest=False)
            raise error

    def _stood_s(self) -> float:
        return ns_to_seconds(self._clock.now_ns() - self._standing_ns) if self._action is None else 0.0

    def _result(self, action: TimedAction, age_s: float, standing_s: float) -> ActionResult:
        """What was driven since the last step."""
        follower, (from_ns, origin, wheels) = self._follower, self._mark
        stamp_ns, odom, driven = self._mark = self._history[-1]
        ended, moved = follower.with_obstruction(self._ended), odom.relative_to(origin)
        contact, self._contact = self._contact | ended.contact, Zone.NONE
        detail, follower.paused_s = "; ".join(filter(None, (ended.detail, follower.paused_detail()))), 0.0
        return ActionResult(
            ended.outcome,
            action.displacement,
            Displacement(moved.x_m, follower.predictor.turned_rad(wheels, driven)),
            contact,
            ns_to_seconds(stamp_ns - from_ns),
            detail,
            Pursued(age_s, standing_s, moved, self._error_m, self._error_rad),
        )

    # --- the loop ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._running and self._error is None:
                self._clock.sleep_until(self._due_ns)
                self._on_step(self._clock.now_ns())
        except BaseException as error:  # noqa: BLE001  # raised again in the thread of the decisions
            self._failed(error)

    def _on_step(self, now_ns: int) -> None:
        if now_ns < self._due_ns or not self._running or self._error is not None:
            return
        self._due_ns = max(self._due_ns + self._period_ns, now_ns)
        try:
            with self._lock:
                self._tick(now_ns)
        except BaseException as error:  # noqa: BLE001  # raised again in the thread of the decisions
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        self._error, self._action = error, None
        with suppress(DeviceFault):
            self._base.stop()

    def _tick(self, now_ns: int) -> None:
        follower, history = self._follower, self._history
        state = follower.read_if_new()
        if state is None:
            self._await_reports()
            return
        self._late_s = 0.0
        if state.stamp_ns > history[-1][0]:
            history.append((state.stamp_ns, state.odom, follower.predictor.driven))
            while len(history) > 2 and history[1][0] < now_ns - seconds_to_ns(self._limits.max_age_s + HISTORY_S):
                history.popleft()
        follower.send(Velocity() if self._action is None else self._command(self._action, state, now_ns))

    def _await_reports(self) -> None:
        """Hold the wheels at zero while reports are late; for too long it is a fault."""
        follower, profile = self._follower, self._motion.profile
        follower.stop()
        self._late_s += self._period_s
        follower.paused_s += self._period_s
        if self._late_s > profile.patience_s:
            self._base.state(profile.state_max_age_s)  # raises StaleData
            raise DeviceFault("base: the Guard gets no feedback from the wheels", "check the base's power and cable")

    def _replace(self, action: TimedAction, exposure_ns: int, now_ns: int) -> None:
        self._action, self._ended, self._exposure_ns = action, Ended(Outcome.MOVING), exposure_ns
        self._anchor = self._odom_at(exposure_ns)
        self._arcs = arcs(action.points) if action.points[0].pose is not None else []
        self._done_s = self._error_m = self._error_rad = 0.0
        limit_s = self._limits.max_age_s if action.max_age_s is None else min(action.max_age_s, self._limits.max_age_s)
        self._oldest_ns = exposure_ns + seconds_to_ns(limit_s)
        self._follower.predictor.recorder.clear()
        self._check_age(now_ns)

    def _odom_at(self, stamp_ns: int) -> SE2:
        """Pose in ``odom`` at an exposure; before the loop began, the robot stood where it began."""
        history: deque[tuple[int, SE2, Wheels]] = self._history
        index = bisect_left(history, stamp_ns, key=lambda entry: entry[0])
        if index in (0, len(history)):
            return history[0 if index == 0 else -1][1]
        (before_ns, before, _), (after_ns, after, _) = history[index - 1], history[index]
        return before.interpolate(after, (stamp_ns - before_ns) / (after_ns - before_ns))

    def _check_age(self, now_ns: int) -> bool:
        """End an action that is too old, and return whether it is."""
        if now_ns <= self._oldest_ns:
            return False
        age_s, limit_s = (ns_to_seconds(ns - self._exposure_ns) for ns in (now_ns, self._oldest_ns))
        self._over(Ended(Outcome.TIMED_OUT, detail=f"its image is {age_s:.2f} s old, and {limit_s:g} s are allowed"))
        return True

    def _over(self, ended: Ended) -> Velocity:
        """End the action: the wheels go to zero until another one comes."""
        self._action, self._ended = None, ended
        self._contact |= ended.contact
        if ended.outcome in (Outcome.CONTACT, Outcome.STOPPED):
            self._follower.stop()
        return Velocity()

    def _command(self, action: TimedAction, state: BaseState, now_ns: int) -> Velocity:
        age_s, predictor, motion = ns_to_seconds(now_ns - self._exposure_ns), self._follower.predictor, self._motion
        if self._check_age(now_ns):
            return Velocity()
        self._standing_ns = now_ns
        if now_ns - self._checked_ns > seconds_to_ns(CHECK_S):
            self._wheels, self._checked_ns = WheelCheck(predictor, predictor.seen(state)), now_ns
        self._wheels.check(predictor.seen(state))
        here, speed_m_s, turning_rad_s = predictor.ahead(state)
        if self._arcs:
            after_s = age_s + predictor.model.dead_time_s + self._quick_s
            wished = self._along(here.relative_to(self._anchor), after_s, speed_m_s, turning_rad_s)
            if wished is None:
                return self._over(Ended(Outcome.REACHED, detail="its last point is reached"))
        else:
            point = next((point for point in action.points if age_s < point.after_s), action.points[-1])
            wished = point.linear_m_s, point.angular_rad_s
        low_m_s, high_m_s = self._linear_m_s
        linear_m_s, angular_rad_s = min(max(wished[0], low_m_s), high_m_s), clip(wished[1], self._angular_rad_s)
        if (over := ending(state, linear_m_s)) is not None:
            return self._over(over)
        change_m_s = clip(linear_m_s - speed_m_s, motion.linear_accel_m_s2 * self._quick_s)
        change_rad_s = clip(angular_rad_s - turning_rad_s, motion.angular_accel_rad_s2 * self._quick_s)
        return self._of_wheels(speed_m_s + self._lead * change_m_s, turning_rad_s + self._lead * change_rad_s)

    def _along(self, robot: SE2, after_s: float, speed_m_s: float, turning_rad_s: float) -> tuple[float, float] | None:
        """The speeds for a predicted pose in the frame of the exposure; None at the end of the curve."""
        motion, last, to_s = self._motion, self._arcs[-1], max(self._done_s, after_s) + AHEAD_S
        near = [arc for arc in self._arcs if arc.end_s >= self._done_s and arc.begin_s <= to_s] or [last]
        found: list[tuple[float, float, Arc]] = [(*arc.project(robot)[::-1], arc) for arc in near]
        _, share, arc = min(reversed(found), key=lambda entry: entry[0])
        duration_s, pose = arc.end_s - arc.begin_s, arc.pose(share)
        at_s = arc.begin_s + share * duration_s
        self._done_s = max(self._done_s, at_s - BACK_S)
        if min(at_s, after_s) >= last.end_s:
            return None
        off = pose.relative_to(robot)
        self._error_m, self._error_rad = max(self._error_m, abs(off.y_m)), max(self._error_rad, abs(off.yaw_rad))
        speed_1_s = max(0.0, 1 + CATCH_UP_1_S * (after_s - at_s)) / duration_s
        rest = [replace(arc, forward_m=(1 - share) * arc.forward_m, turn_rad=(1 - share) * arc.turn_rad)]
        rest += [later for later in self._arcs if later.begin_s >= arc.end_s]
        left_m, left_rad = sum(abs(part.forward_m) for part in rest), sum(abs(part.turn_rad) for part in rest)
        limit_m_s = abs(self._linear_m_s[arc.forward_m > 0])
        # Both speeds grow together: a turn that is ahead of the way leaves the curve.
        for way, left, now, limit, accel in (
            (abs(arc.forward_m), left_m, speed_m_s, limit_m_s, motion.linear_accel_m_s2),
            (abs(arc.turn_rad), left_rad, turning_rad_s, self._angular_rad_s, motion.angular_accel_rad_s2),
        ):
            if way:
                speed_1_s = min(speed_1_s, min(limit, abs(now) + accel * self._quick_s) / way)
            if way and (left == left_m or not arc.forward_m):
                left -= abs(now) * self._quick_s
                speed_1_s = min(speed_1_s, braking_speed(left, speed_1_s * way, accel, self._period_s) / way)
        linear_m_s = speed_1_s * arc.forward_m
        correction_rad_s = motion.profile.heading_gain_1_s * off.yaw_rad + CROSS_GAIN_1_M2 * linear_m_s * off.y_m
        return linear_m_s, speed_1_s * arc.turn_rad + correction_rad_s

    def _of_wheels(self, linear_m_s: float, angular_rad_s: float) -> Velocity:
        """The command with which the wheels drive these speeds."""
        predictor, info = self._follower.predictor, self._base.info
        left_m_s, right_m_s = predictor.model.wheel_speeds(linear_m_s, angular_rad_s)
        left_m_s, right_m_s = left_m_s / predictor.left.gain, right_m_s / predictor.right.gain
        turn_rad_s = (right_m_s - left_m_s) / predictor.model.separation_m
        mean_m_s = (left_m_s + right_m_s) / 2
        return Velocity(clip(mean_m_s, info.max_linear_m_s), clip(turn_rad_s, info.max_angular_rad_s))
