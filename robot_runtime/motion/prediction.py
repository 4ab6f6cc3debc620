"""Prediction of where the base comes to rest: the commands that are under way, through its motors' model.

The same model tells whether each wheel does what it is commanded to do, by odometry.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import NamedTuple

from robot_runtime.common.clock import NS_PER_S, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import BaseState, MotorModel, Velocity
from robot_runtime.motion.wheel_record import WheelRecorder

HISTORY_NS = seconds_to_ns(1.5)
"""Duration beyond the largest dead time and the latest report that a base may have."""

CHECKED_M = 0.05
"""Predicted distance of a wheel from which on odometry must agree: more than what may be under way."""

BACKWARD_M = 0.02
"""Distance against its command that no wheel is pushed by accident."""

NEGLIGIBLE_M = 0.001
"""Distance below which a wheel counts as standing."""

STANDING_SHARE = 0.1
DRIVING_SHARE = 0.5
"""Shares of the predicted distance: less is a wheel that stands, more is one that drives."""

LATE_SIGMA_S = 0.01
OFFSET_SIGMA_M = 0.004
ERROR_SIGMA_M = 0.002
"""Standard deviations in one motion: of the lateness, of what a wheel loses at its start, of the error of a report.
The last is large, because the errors of neighboring reports have much in common."""

_OFFSET_WEIGHT, _LATE_WEIGHT = (ERROR_SIGMA_M / OFFSET_SIGMA_M) ** 2, (ERROR_SIGMA_M / LATE_SIGMA_S) ** 2

MAX_LATE_S = 0.03
"""Largest lateness: more is a wrong model, for the calibration or the adaptation to correct."""

SPEED_S = 0.01
"""The model's speed is the mean of this time."""

SPEED_NS = seconds_to_ns(SPEED_S)

Wheels = tuple[float, float]
"""A quantity of the left and the right wheel."""


class Positions(NamedTuple):
    """Positions of the wheels at one instant, by the model and by odometry."""

    model: Wheels
    driven: Wheels

    def since(self, earlier: Positions) -> tuple[Wheels, Wheels]:
        """Distances from earlier positions, by the model and by odometry."""
        (model_left_m, model_right_m), (left_m, right_m) = self
        (model_from_left_m, model_from_right_m), (from_left_m, from_right_m) = earlier
        return (
            (model_left_m - model_from_left_m, model_right_m - model_from_right_m),
            (left_m - from_left_m, right_m - from_right_m),
        )


class Lateness:
    """Seconds by which the wheels follow later than by the model's dead time, in one motion.

    A base takes up commands in a cycle of its own, whose phase differs from motion to motion by up to 20 ms; 10 ms at
    1.5 rad/s are 0.9°. The error of the model is minus the lateness times the wheels' speed, plus what they lost at
    their start. Both are estimated by least squares; zero is expected of both.
    """

    def __init__(self) -> None:
        self._seconds: float | None = 0.0
        self._count = self._speed = self._square = self._error = self._product = 0.0

    def add(self, error_m: float, speed_m_s: float) -> None:
        """Take note of what a wheel has driven more than by the model, and of the model's speed."""
        if speed_m_s < 0:
            error_m, speed_m_s = -error_m, -speed_m_s
        self._count += 1
        self._speed += speed_m_s
        self._square += speed_m_s**2
        self._error += error_m
        self._product += speed_m_s * error_m
        self._seconds = None

    @property
    def seconds(self) -> float:
        """Estimate."""
        if self._seconds is None:
            count, square = self._count + _OFFSET_WEIGHT, self._square + _LATE_WEIGHT
            late_s = (self._speed * self._error - count * self._product) / (count * square - self._speed**2)
            self._seconds = min(max(late_s, -MAX_LATE_S), MAX_LATE_S)
        return self._seconds


class MotionPredictor:
    """The motors' model, fed with the commands that were sent and the odometry that came back.

    The model runs without dead time: what its wheels have done by now, the robot will have done one dead time later.
    The difference between odometry and the model at one dead time earlier is the error of the model, and is added to
    what is predicted (O. J. M. Smith 1957, "Closer control of loops with dead time").

    Attributes:
        model: model of the base's motors.
        left, right: the model's wheels.
        moved_ns: when a command other than zero was last in force.
        sent: the command to the wheels that is in force.
        coast_m: coasting of the model's wheels as of the last :meth:`ahead_m`.
        recorder: recorder of commands and odometry.
    """

    def __init__(self, model: MotorModel, now_ns: int) -> None:
        self.moved_ns = -(10**18)
        self.recorder = WheelRecorder(model.separation_m)
        self._lateness: Lateness | None = None
        self.adopt(model, now_ns)

    def adopt(self, model: MotorModel, now_ns: int) -> None:
        """Go on with another model, from rest."""
        self.model = model
        self.left, self.right = model.wheels()
        self._dead_time_ns = seconds_to_ns(model.dead_time_s)
        self._now_ns = now_ns
        self.sent: Wheels = 0.0, 0.0
        self.coast_m: Wheels = 0.0, 0.0
        # Stamps, and the positions of the model's wheels at these instants.
        self._stamps_ns, self._positions_m = [now_ns], [(0.0, 0.0)]

    def send(self, velocity: Velocity, now_ns: int) -> None:
        """Take note of the velocity that the Guard let through at ``now_ns`` and that holds from then on."""
        self.advance(now_ns)
        self.sent = self.model.wheel_speeds(velocity.linear_m_s, velocity.angular_rad_s)
        self.recorder.command(velocity, now_ns)

    def assume_thresholds(self, left_m_s: float, right_m_s: float) -> None:
        """Go on with other thresholds."""
        self.model = replace(self.model, threshold_m_s=(left_m_s, right_m_s))
        self.left.threshold_m_s, self.right.threshold_m_s = left_m_s, right_m_s

    def advance(self, now_ns: int) -> None:
        """Turn the model's wheels until ``now_ns``."""
        if now_ns <= self._now_ns:
            return
        seconds = (now_ns - self._now_ns) / NS_PER_S
        left_m_s, right_m_s = self.sent
        if left_m_s or right_m_s:
            self.moved_ns = now_ns
        left, right, stamps_ns = self.left, self.right, self._stamps_ns
        left.step(left_m_s, seconds)
        right.step(right_m_s, seconds)
        self._now_ns = now_ns
        stamps_ns.append(now_ns)
        self._positions_m.append((left.position_m, right.position_m))
        if stamps_ns[0] < now_ns - 2 * HISTORY_NS:
            forgotten = min(bisect_right(stamps_ns, now_ns - HISTORY_NS), len(stamps_ns) - 2)
            del stamps_ns[:forgotten], self._positions_m[:forgotten]

    def begin(self, late: bool) -> None:
        """Begin a motion at rest.

        Args:
            late: whether to estimate its lateness; else the model's dead time holds.
        """
        self._lateness = Lateness() if late else None
        self._begin = self.now()
        self._observed_ns = self._now_ns

    def observe(self, odom: SE2, stamp_ns: int) -> None:
        """Take note of odometry."""
        self.recorder.report(odom, stamp_ns)
        lateness = self._lateness
        if lateness is None or stamp_ns <= self._observed_ns:
            return
        self._observed_ns = stamp_ns
        at_ns = stamp_ns - self._dead_time_ns
        left_m, right_m = self._position_at(at_ns)
        before_left_m, before_right_m = self._position_at(at_ns - SPEED_NS)
        (begin, driven_from), driven = self._begin, self.recorder.driven_m
        if speed_m_s := (left_m - before_left_m) / SPEED_S:
            lateness.add((driven[0] - driven_from[0]) - (left_m - begin[0]), speed_m_s)
        if speed_m_s := (right_m - before_right_m) / SPEED_S:
            lateness.add((driven[1] - driven_from[1]) - (right_m - begin[1]), speed_m_s)

    @property
    def driven(self) -> Wheels:
        """Distance of each wheel that odometry has measured, meters."""
        return self.recorder.driven_m

    def now(self) -> Positions:
        """Distances that the wheels have driven so far, meters."""
        return Positions((self.left.position_m, self.right.position_m), self.recorder.driven_m)

    def seen(self, state: BaseState) -> Positions:
        """Distances by the model as of a report, its dead time earlier, and by odometry."""
        return Positions(self._position_at(state.stamp_ns - self._dead_time_ns), self.recorder.driven_m)

    def ahead_m(self, position_m: Wheels) -> Wheels:
        """Distances that the model's wheels drive from a position until rest, if the command is zero from now on."""
        left, right = self.left, self.right
        self.coast_m = left_m, right_m = left.coast_m(), right.coast_m()
        return left.position_m + left_m - position_m[0], right.position_m + right_m - position_m[1]

    def rest_pose(self, state: BaseState) -> SE2:
        """Pose at which the robot comes to rest, in ``odom``, if the command is zero from now on."""
        late_ns = self._dead_time_ns
        if self._lateness is not None:
            late_ns += round(self._lateness.seconds * NS_PER_S)
        left_m, right_m = self.ahead_m(self._position_at(state.stamp_ns - late_ns))
        return state.odom.after_arc((left_m + right_m) / 2, (right_m - left_m) / self.model.separation_m)

    def ahead(self, state: BaseState) -> tuple[SE2, float, float]:
        """Pose in ``odom``, linear and angular velocity one dead time from now, when the next command takes effect."""
        left, right = self.left, self.right
        left_m, right_m = self.seen(state).model
        left_m, right_m = left.position_m - left_m, right.position_m - right_m
        pose = state.odom.after_arc((left_m + right_m) / 2, (right_m - left_m) / self.model.separation_m)
        turning_rad_s = (right.speed_m_s - left.speed_m_s) / self.model.separation_m
        return pose, (left.speed_m_s + right.speed_m_s) / 2, turning_rad_s

    def turned_rad(self, before: Wheels, now: Wheels | None = None) -> float:
        """Angle that odometry has turned since ``driven`` was ``before``, also by more than a full turn."""
        driven = now or self.driven
        turned_m = driven[1] - before[1] - (driven[0] - before[0])
        return turned_m / self.model.separation_m

    def is_over(self, state: BaseState, margin_s: float) -> bool:
        """Whether every command other than zero has had its effect by ``margin_s`` before a report."""
        return not any(self.sent) and state.stamp_ns > self.moved_ns + self._dead_time_ns + seconds_to_ns(margin_s)

    def _position_at(self, stamp_ns: int) -> Wheels:
        stamps_ns, positions_m = self._stamps_ns, self._positions_m
        if stamp_ns >= stamps_ns[-1]:  # a base without dead time
            return positions_m[-1]
        index = bisect_right(stamps_ns, stamp_ns)
        if not index:
            return positions_m[0]
        earlier_ns, (left_m, right_m) = stamps_ns[index - 1], positions_m[index - 1]
        later_left_m, later_right_m = positions_m[index]
        share = (stamp_ns - earlier_ns) / (stamps_ns[index] - earlier_ns)
        return left_m + share * (later_left_m - left_m), right_m + share * (later_right_m - right_m)


class WheelCheck:
    """Comparison of what the model's wheels have driven since the beginning of a motion with what odometry measures.

    Args:
        predictor: predictor of the base's motion.
        begin: positions at the beginning; None for those of a base at rest.
    """

    def __init__(self, predictor: MotionPredictor, begin: Positions | None = None) -> None:
        self._predictor, self._begin = predictor, begin or predictor.now()
        self._leg = self._begin

    def rebase(self) -> None:
        """Expect what was measured of the leg that ended, unless a wheel drove backward: friction is not a fault."""
        now = self._predictor.now()
        (left_m, right_m), (driven_left_m, driven_right_m) = now.since(self._leg)
        self._leg = now
        if min(left_m * driven_left_m, right_m * driven_right_m) >= -(NEGLIGIBLE_M**2):
            from_left_m, from_right_m = self._begin.model
            model = from_left_m + left_m - driven_left_m, from_right_m + right_m - driven_right_m
            self._begin = Positions(model, self._begin.driven)

    def check(self, now: Positions | None = None) -> None:
        """Compare positions, None for those of a motion that began at rest.

        Raises:
            DeviceFault: a wheel drives the wrong way, or stands while the other one drives as predicted.
        """
        predicted_m, driven_m = (now or self._predictor.now()).since(self._begin)
        for name, this, other in (("left", 0, 1), ("right", 1, 0)):
            expected_m = predicted_m[this]
            if abs(expected_m) < CHECKED_M or driven_m[this] / expected_m >= STANDING_SHARE:
                continue
            measured = f"was to drive {expected_m:.3f} m, and odometry measures {driven_m[this]:.3f} m"
            if driven_m[this] * expected_m < 0 and abs(driven_m[this]) > BACKWARD_M:
                raise DeviceFault(
                    f"base: the {name} wheel turns the wrong way: it {measured}",
                    "check the polarity of its motor and its encoder; the wheels were stopped",
                )
            other_drives = driven_m[other] * predicted_m[other] > DRIVING_SHARE * predicted_m[other] ** 2
            if other_drives and predicted_m[other]:
                raise DeviceFault(
                    f"base: the {name} wheel does not turn: it {measured}",
                    "check its motor, its cable and what blocks it; the wheels were stopped",
                )
