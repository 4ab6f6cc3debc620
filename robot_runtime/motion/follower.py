"""Closed loop that drives a leg: from predicted rest to wheel commands, at the base's own rate.

At each tick a :class:`~robot_runtime.motion.prediction.MotionPredictor` gives where the robot would come to rest if
nothing more were commanded. What the leg lacks from there is what remains to be commanded, so that commands under way
are never sent twice, however late the base is (:class:`~robot_runtime.motion.drive.Drive`).

Then the command is zero, and the robot at rest is compared with the goal. If the distance or the heading is out of
tolerance, what is missing is another, short leg. The direction changes only at rest: the robot does not hunt.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import NS_PER_S, Clock, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal import Base, BaseState, Event, Halt, MotorModel, Velocity, Zone
from robot_runtime.hal.motion_profile import MotionProfile
from robot_runtime.motion.adaptation import LEAST_M, adapted, described
from robot_runtime.motion.drive import LARGEST_THRESHOLD_M_S, OPEN_LOOP_M, TAIL_S, Drive
from robot_runtime.motion.leg import Leg
from robot_runtime.motion.prediction import MotionPredictor, WheelCheck, Wheels
from robot_runtime.records import Outcome, SentCommand

MAX_CORRECTIONS = 10
"""Legs after the first whose time limit is added to the action's: static friction may have to be learned."""

PIVOT_RAD = math.radians(3)
"""Missing turn below which one wheel makes it: its smallest step is half as large as that of both."""

UNKNOWN_S = 0.1
"""Seconds by which the dead time of a base that was not calibrated may exceed its model's."""

OVER_TIME = "its time was over"

_HELD_BY_PERSON = (Halt.E_STOP, Halt.WHEEL_DROP, Halt.CLIFF)

_NO_ZONE, _NO_HALT, _NO_FEEDBACK = Zone.NONE, Halt.NONE, Halt.NO_FEEDBACK
"""Compared by identity, which costs a tenth of a flag's truth."""


@dataclass(frozen=True, slots=True)
class Ended:
    """End of a leg: as in :class:`~robot_runtime.records.ActionResult`.

    Attributes:
        state: state of the base at rest, where the outcome is ``reached``; else None, and the wheels may still turn.
    """

    outcome: Outcome
    contact: Zone = Zone.NONE
    detail: str = ""
    state: BaseState | None = None


class LegFollower:
    """Reads, drives and stops a base.

    Callbacks get every state that is read, and every command as the Guard let it through, in order; they must return
    quickly. ``on_event`` gets adaptations of the motors' model.
    """

    def __init__(
        self,
        clock: Clock,
        base: Base,
        profile: MotionProfile,
        on_state: Callable[[BaseState], None] | None = None,
        on_command: Callable[[SentCommand], None] | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self.predictor = MotionPredictor(base.motors.model, clock.now_ns())
        self.paused_s = 0.0
        """Seconds of the present action for which there were no reports of the base that were new enough."""
        self._first: tuple[SE2, Wheels] | None = None
        self._newest_odom = SE2()
        self._newest_ns: int | None = None
        self._gap_ns = seconds_to_ns(profile.state_max_age_s)
        self._interrupted = False
        self._missed_rad, self._overshoots = 0.0, 0
        self._clock = clock
        self._base = base
        self._profile = profile
        self._on_state, self._on_command = on_state, on_command
        self._period_ns = seconds_to_ns(1 / base.info.rate_hz)
        self._period_s = self._period_ns / NS_PER_S
        self._tick_ns = 0
        self._calibrated = base.motors.calibrated
        self._announced = base.motors.model
        self._on_event = on_event

    # --- reading and resting ----------------------------------------------------------------------------------------

    def read(self) -> BaseState:
        """The base's state; listeners see it too.

        While reports are late or the Guard lacks feedback, the wheels are held at zero, for at most ``patience_s``.

        Raises:
            StaleData: the base is silent.
            DeviceFault: odometry is not finite, or the Guard gets no feedback.
        """
        state = self._newest() or self._await_reports()
        state.check_finite()
        if (touched := self._base.touched()) is not _NO_ZONE:
            state = replace(state, bumper=state.bumper | touched)
        predictor, stamp_ns = self.predictor, state.stamp_ns
        predictor.advance(self._clock.now_ns())
        predictor.observe(state.odom, stamp_ns)
        before_ns, self._newest_ns = self._newest_ns, stamp_ns
        if before_ns is not None and stamp_ns - before_ns > self._gap_ns and not self._interrupted:
            self._interrupted = True  # this process was held up, and the reports are new again
            self.paused_s += ns_to_seconds(stamp_ns - before_ns)
        self._newest_odom = state.odom
        if self._first is None:
            self._first = state.odom, self.predictor.driven
        if self._on_state is not None:
            self._on_state(state)
        return state

    def read_if_new(self) -> BaseState | None:
        """As :meth:`read`, without waiting: None while reports are late or the Guard lacks feedback."""
        return None if self._newest() is None else self.read()

    def forget(self) -> None:
        """Go on from rest with the model that the base came with: an episode does not depend on those before it."""
        self.predictor = MotionPredictor(self._base.motors.model, self._clock.now_ns())
        self._announced = self._base.motors.model

    def begin_action(self) -> None:
        """Forget contacts and pauses before an action."""
        self.paused_s = 0.0
        self._first = self._newest_ns = None
        self._base.touched()
        self._base.obstructed()

    def with_obstruction(self, ended: Ended) -> Ended:
        """The end of an action at rest: a contact also where obstacles have shortened the way of a sliding robot."""
        zones = self._base.obstructed()
        counts = zones is not None and ended.outcome in (Outcome.REACHED, Outcome.TIMED_OUT, Outcome.MOVING)
        return replace(ended, outcome=Outcome.CONTACT, contact=zones or Zone.NONE) if counts else ended

    def moved(self) -> Displacement:
        """The motion from the first to the last report of the present action; zero without a report."""
        if self._first is None:
            return Displacement()
        odom, driven = self._first
        return Displacement(self._newest_odom.relative_to(odom).x_m, self.predictor.turned_rad(driven))

    def paused_detail(self) -> str:
        """A sentence for the action's result if the base's reports were late; else an empty string."""
        return f"paused for {self.paused_s:.2f} s, because the base's reports were late" if self.paused_s else ""

    def _newest(self) -> BaseState | None:
        """The newest state; None if it is too old to drive by."""
        try:
            state = self._base.state(self._profile.state_max_age_s)
        except StaleData:
            return None
        return None if state.halt is _NO_FEEDBACK else state

    def _await_reports(self) -> BaseState:
        self.stop()
        clock, begin_ns = self._clock, self._clock.now_ns()
        deadline_ns = begin_ns + seconds_to_ns(self._profile.patience_s)
        while (state := self._newest()) is None:
            if clock.now_ns() >= deadline_ns:
                self._base.state(self._profile.state_max_age_s)  # raises StaleData
                raise DeviceFault(
                    "base: the Guard gets no feedback from the wheels", "check the base's power and cable"
                )
            clock.sleep(self._period_s)
        self.paused_s += ns_to_seconds(clock.now_ns() - begin_ns)
        self._tick_ns = clock.now_ns()
        self._interrupted = True
        return state

    def stop(self) -> None:
        """Wheels to zero now."""
        self._base.stop()
        self._sent(Velocity())

    def _sent(self, velocity: Velocity) -> None:
        now_ns = self._clock.now_ns()
        self.predictor.send(velocity, now_ns)
        if self._on_command is not None:
            self._on_command(SentCommand(now_ns, velocity.linear_m_s, velocity.angular_rad_s))

    def rest(self) -> BaseState:
        """Wheels to zero, and the first state measured after that in which the base rests.

        Raises:
            DeviceFault: it still moves after ``rest_timeout_s`` and its settling time.
        """
        self.stop()
        profile, clock = self._profile, self._clock
        stopped_ns = self._tick_ns = clock.now_ns()
        limit_s = profile.rest_timeout_s + self.predictor.model.settling_s
        while True:
            state = self._wait()
            if state.stamp_ns > stopped_ns and self._rests(state):
                return state
            if self._tick_ns >= stopped_ns + seconds_to_ns(limit_s):
                raise DeviceFault(
                    f"base: still measures {state.velocity} {limit_s:g} s after it was stopped",
                    "check the base's driver and whether something pushes the robot",
                )

    def _rests(self, state: BaseState) -> bool:
        profile, velocity = self._profile, state.velocity
        return (
            self.predictor.is_over(state, 0.0 if self._calibrated else UNKNOWN_S)
            and abs(velocity.linear_m_s) <= profile.still_m_s
            and abs(velocity.angular_rad_s) <= profile.still_rad_s
        )

    def _wait(self) -> BaseState:
        """The state one tick later."""
        # After a stall of the host the next tick is now: a burst of late ticks would be useless.
        self._tick_ns = max(self._tick_ns + self._period_ns, self._clock.now_ns())
        self._clock.sleep_until(self._tick_ns)
        return self.read()

    def _tick(self, velocity: Velocity) -> BaseState:
        """Command a velocity, and return the state one tick later."""
        self._sent(self._base.command(velocity))
        return self._wait()

    def send(self, velocity: Velocity) -> None:
        """Command a velocity."""
        self._sent(self._base.command(velocity))

    # --- following --------------------------------------------------------------------------------------------------

    def follow(self, leg: Leg, state: BaseState, aim_rad: float, deadline_ns: int | None = None) -> Ended:
        """Drive a leg until the robot rests at its end, or something ends the motion.

        Args:
            leg: leg to drive.
            state: state of the base at the leg's start.
            aim_rad: the heading, in odom, with which the leg is meant to begin.
            deadline_ns: end of the command; None for the leg's own time limit.

        Raises:
            DeviceFault: the base is silent, or a wheel does not turn as commanded.
        """
        predictor = self.predictor
        self._check_thresholds(leg)
        begin_ns = self._tick_ns = self._clock.now_ns()
        predictor.recorder.clear()
        self._sent(Velocity())
        predictor.begin(late=self._calibrated)
        drive = self._drive(leg, SE2(state.odom.x_m, state.odom.y_m, aim_rad), open_loop=False)
        goal = drive.start @ leg.pose(1.0)
        wheels = WheelCheck(predictor)
        self._interrupted = gap = False
        limit_ns = begin_ns + self._limit_ns(leg)
        corrections = 0
        model: MotorModel | None = None
        self._missed_rad, self._overshoots = 0.0, 0
        while True:
            if (over := ending(state, leg.forward_m)) is not None:
                return over
            if self._interrupted:  # nobody knows what the base did meanwhile: nothing is concluded from before
                self._interrupted, gap = False, True
                wheels = WheelCheck(predictor)
                predictor.begin(late=False)
            wheels.check()
            if deadline_ns is not None and self._tick_ns >= deadline_ns:
                return Ended(Outcome.TIMED_OUT, detail=OVER_TIME)
            if self._tick_ns >= limit_ns and self._tick_ns >= limit_ns + seconds_to_ns(self.paused_s):
                return Ended(Outcome.TIMED_OUT, detail=f"in {ns_to_seconds(self._tick_ns - begin_ns):.1f} s")
            velocity = drive.command(state, self._tick_ns)
            if velocity is not None or not self._rests(state):
                state = self._tick(velocity or Velocity())
                continue
            if model is None:
                model = predictor.model if gap else self._adapted(leg)
            missing = self._missing(leg, goal, state)
            if missing is None:
                self._adopt(model)
                return Ended(Outcome.REACHED, state=state)
            corrections += 1
            held = min(predictor.model.threshold_m_s) >= LARGEST_THRESHOLD_M_S and not drive.moved()
            if corrections <= MAX_CORRECTIONS and not held:
                limit_ns = max(limit_ns, self._tick_ns + self._limit_ns(missing))
            wheels.rebase()
            drive = self._correction(missing, goal, state, drive)

    def _check_thresholds(self, leg: Leg) -> None:
        """Raise ``DeviceFault`` if the limits of a leg forbid the speed at which a wheel starts."""
        info, profile, model = self._base.info, self._profile, self.predictor.model
        limit_m_s = min(info.max_linear_m_s, profile.linear_m_s)
        setting = "linear_m_s"
        if not leg.forward_m:
            limit_m_s = min(info.max_angular_rad_s, profile.angular_rad_s) * model.separation_m / 2
            setting = "angular_rad_s"
        for name, threshold_m_s in zip(("left", "right"), model.threshold_m_s, strict=True):
            if threshold_m_s > limit_m_s:
                raise DeviceFault(
                    f"base: its {name} wheel starts at {threshold_m_s:.3f} m/s, above the limit of {limit_m_s:.3f} m/s",
                    "find what brakes the wheel and repeat `robot-runtime calibrate motors`, "
                    f"or raise motion.{setting} in the robot's file",
                )

    def _adapted(self, leg: Leg) -> MotorModel:
        """The model after the leg that was recorded; the present one if that was too short."""
        model = self.predictor.model
        if min(map(abs, leg.wheels_m(model.separation_m))) < LEAST_M:
            return model
        return adapted(model, self.predictor.recorder.record(), self._base.motors)

    def _adopt(self, model: MotorModel) -> None:
        """Go on with a model, and with the thresholds learned meanwhile; the robot rests."""
        predictor, now_ns = self.predictor, self._clock.now_ns()
        model = replace(model, threshold_m_s=predictor.model.threshold_m_s)
        if model != predictor.model:
            predictor.adopt(model, now_ns)
        if self._on_event is not None and (change := described(self._announced, model)):
            self._announced = model
            self._on_event(Event(now_ns, "motion", "motors_adapted", f"the model of the motors has changed: {change}"))

    def _correction(self, missing: Leg, goal: SE2, state: BaseState, drive: Drive) -> Drive:
        """The drive of what a robot at rest lacks, with what the drive before has shown of static friction."""
        if drive.open_loop:
            self.predictor.assume_thresholds(*drive.learned_thresholds_m_s())
            ratio = drive.driven_ratio()
            missing = replace(missing, forward_m=missing.forward_m / ratio, turn_rad=missing.turn_rad / ratio)
        longest_m = max(map(abs, missing.wheels_m(self.predictor.model.separation_m)))
        heading_rad = state.odom.yaw_rad if missing.turn_rad else goal.yaw_rad
        return self._drive(missing, SE2(state.odom.x_m, state.odom.y_m, heading_rad), longest_m < OPEN_LOOP_M)

    def _missing(self, leg: Leg, goal: SE2, state: BaseState) -> Leg | None:
        """Leg that a robot at rest lacks of its goal: a distance first, then a turn; None within tolerance."""
        end = self.predictor.rest_pose(state) if self._calibrated else state.odom
        left, profile = goal.relative_to(end), self._profile
        if leg.forward_m and abs(left.x_m) > profile.position_m:
            return replace(leg, forward_m=left.x_m, turn_rad=0.0)
        if abs(left.yaw_rad) <= profile.heading_rad:
            return None
        pivot_m = 0.0
        if abs(left.yaw_rad) < PIVOT_RAD:
            model = self.predictor.model
            pivot_m = left.yaw_rad * model.separation_m / 2
            self._overshoots += self._missed_rad * left.yaw_rad < 0
            self._missed_rad = left.yaw_rad
            # One wheel alone may step to and fro for ever; the smallest step of the other differs.
            swapped = self._overshoots // 2 % 2 == 1
            # The wheel that starts more readily; while a bumper is pressed, the one that drives backward.
            if state.bumper:
                pivot_m = -abs(pivot_m)
            elif (model.threshold_m_s[0] <= model.threshold_m_s[1]) is not swapped:
                pivot_m = -pivot_m
        return replace(leg, forward_m=pivot_m, turn_rad=left.yaw_rad)

    def _drive(self, leg: Leg, start: SE2, open_loop: bool) -> Drive:
        info, profile = self._base.info, self._profile
        return Drive(leg, start, self.predictor, info, profile, self._calibrated, open_loop, self._tick_ns)

    def _limit_ns(self, leg: Leg) -> int:
        approach_s = 0.0 if self._calibrated else 4 * TAIL_S
        return seconds_to_ns(self._profile.timeout_s(leg.duration_s + self.predictor.model.settling_s + approach_s))


def ending(state: BaseState, forward_m: float) -> Ended | None:
    """End of the motion that the base's state demands; None if it demands none.

    ``EXPIRED`` does not: it is over with the next command, and the timeout bounds it. Neither does contact on a turn
    or in reverse, where the Guard allows it.
    """
    halt = state.halt
    if halt is _NO_HALT and state.bumper is _NO_ZONE:
        return None
    if halt in _HELD_BY_PERSON:
        return Ended(Outcome.STOPPED, detail=f"base: held by {halt.value}")
    if forward_m > 0 and (state.bumper or halt is Halt.CONTACT):
        return Ended(Outcome.CONTACT, state.bumper)
    return None
