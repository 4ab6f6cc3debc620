"""The law of a leg under way: from where the base will come to rest to the command of the next tick."""

import math

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2, arc_end, wrap_angle
from robot_runtime.hal import BaseInfo, BaseState, Velocity
from robot_runtime.hal.motion_profile import MotionProfile
from robot_runtime.hal.wheel_motor import STICKING_M_S
from robot_runtime.motion.leg import Leg, approach_speed, braking_speed
from robot_runtime.motion.prediction import MotionPredictor, Wheels

CROSS_GAIN_1_M2 = 30.0
"""Turning per speed and distance from the arc: with the gain of headings, damped well up to 0.5 m/s."""

FINE_CALIBRATED = 0.2
FINE_ASSUMED = 0.1
"""Shares of the tolerances to which a leg is driven, by a model that was measured or assumed."""

BEYOND_ASSUMED = 0.4
"""Share of the tolerances by which the exponential that slows an assumed model ends beyond the goal. It is left at
the goal: one that ended there would take long, and one that is left earlier makes every action short."""

BRAKING = 0.95
"""Share of the acceleration for braking; the rest is for corrections: the limits would otherwise cut them off."""

LEAST_M = 1e-4
"""Distance of a wheel that is not worth a command."""

START_MARGIN = 1.1
"""Multiple of the threshold that must start a wheel, since the threshold is known to a few mm/s only."""

TAIL_S = 0.25
"""Delays of a base that was not calibrated may differ by this from those of its model."""

OPEN_LOOP_M = 0.03
"""Distance of a wheel that takes about as long as the delays: odometry comes too late to correct it."""

STALL_S = 0.35
"""Seconds, beyond the dead time, for which a wheel may do less than the share below of what the model expects."""

COMPARED_M = 0.001
STUCK_SHARE = 0.4
"""A wheel that is to drive at least so far and drives less than this share was held by static friction."""

STARTED_SHARE = 0.1
"""A wheel that drives more than this share of what it is to drive has started: its threshold is not to blame."""

LEAST_RATIO, LARGEST_RATIO = 1 / 3, 2.0
"""Bounds of the ratio of driven to expected distance by which the next short leg is corrected. A wheel whose speed
grows gradually drives with the cube of a short command's duration, far less than a lag of first order expects."""

THRESHOLD_STEP_M_S = 0.015
THRESHOLD_DECREASE = 0.7
LARGEST_THRESHOLD_M_S = 0.15
"""The assumed threshold of a wheel that stuck exceeds the largest command by the first, and is at most the third; that
of a wheel that drove far too much falls to the second, a share."""


class Drive:
    """A leg under way.

    Where the base will rest, if the command is zero from now on, changes with the command alone: neither dead time nor
    lag stand between them. Without a calibration the command therefore brakes by that distance, never reverses, and
    slows down exponentially at the end, where what the delays differ from the model's would otherwise overshoot. With a
    calibration, the inverse of the lag brings the wheels' speed itself to the wished one within a tick.

    A short leg is driven in open loop: it is over before odometry has seen it.

    Args:
        leg: leg to drive.
        start: start in odom, with the heading that the leg is meant to begin with.
        predictor: predictor of the base's motion.
        info: description of the base.
        profile: parameters of motions.
        calibrated: whether the predictor's model was measured at this base.
        open_loop: whether to predict by the model alone.
        now_ns: beginning.
    """

    def __init__(
        self,
        leg: Leg,
        start: SE2,
        predictor: MotionPredictor,
        info: BaseInfo,
        profile: MotionProfile,
        calibrated: bool,
        open_loop: bool,
        now_ns: int,
    ) -> None:
        self.leg, self.start, self.open_loop = leg, start, open_loop
        self._from_start = start.inverse()
        self.over = False
        """Whether nothing more is commanded."""
        self._predictor, self._info, self._profile, self._calibrated = predictor, info, profile, calibrated
        self._period_s = 1 / info.rate_hz
        model = predictor.model
        self._follows = 1 - math.exp(-self._period_s / model.lag_s) if model.lag_s else 1.0
        """Share of a change of the command that a wheel's speed follows in one period."""
        self._speed_1_s, self._accel_1_s2 = leg.speed_1_s, leg.accel_1_s2
        self._share = self._wish_1_s = 0.0
        self._rounding = [0.0, 0.0]
        self._asked_m_s: list[float] | None = None
        self._begin = predictor.now()
        self._progress = now_ns, self._begin
        self._largest_m_s = [0.0, 0.0]
        self._wheels_m = leg.wheels_m(model.separation_m)
        self._square_m2 = self._wheels_m[0] ** 2 + self._wheels_m[1] ** 2
        self._longest_m = max(map(abs, self._wheels_m))
        # The inverse jumps ahead of the wheels by a tick's acceleration, and behind them by one of braking.
        jump_m_s2 = (1 + BRAKING) * leg.accel_1_s2 * self._longest_m / self._follows
        limited = model.accel_m_s2 is not None and model.accel_m_s2 < jump_m_s2
        self._inverts = calibrated and not open_loop and not limited
        # Commands in steps change a wheel's speed by that much per period: it is never slower while commanded.
        slow_m_s = max(profile.still_m_s, self._follows * model.speed_quantum_m_s)
        self._slow_1_s = slow_m_s / self._longest_m if self._longest_m else 0.0
        tolerances = ((profile.position_m, leg.forward_m), (profile.heading_rad, leg.turn_rad))
        tolerance = min(tolerance / abs(distance) for tolerance, distance in tolerances if distance)
        self._fine = (FINE_CALIBRATED if calibrated or open_loop else FINE_ASSUMED) * tolerance
        self._beyond = BEYOND_ASSUMED * tolerance

    def command(self, state: BaseState, now_ns: int) -> Velocity | None:
        """The command for the next tick; None if the rest of the leg is under way."""
        if self.over or self._longest_m < LEAST_M:
            return None
        if self.open_loop:
            for index, sent_m_s in enumerate(self._predictor.sent):
                self._largest_m_s[index] = max(self._largest_m_s[index], abs(sent_m_s))
        rest = self._rest(state)
        self._share = self.leg.share(rest, self._share)
        lacking = 1.0 - self._share
        speed_1_s = self._inverted_1_s(lacking) if self._inverts else self._direct_1_s(lacking)
        if speed_1_s is None:
            self.over = self._inverts
            return None
        if self._stalls(lacking, now_ns):
            self.over = True
            return None
        return self._velocity(speed_1_s, rest)

    def _rest(self, state: BaseState) -> SE2:
        """Pose at which the robot rests, in the frame of the leg's start, if the command is zero from now on."""
        predictor = self._predictor
        if not self.open_loop:
            return self._from_start @ predictor.rest_pose(state)
        left_m, right_m = predictor.ahead_m(self._begin.model)
        return SE2.arc((left_m + right_m) / 2, (right_m - left_m) / predictor.model.separation_m)

    def _along(self, wheels: Wheels) -> float:
        """A quantity of the wheels, in shares of the leg."""
        return (wheels[0] * self._wheels_m[0] + wheels[1] * self._wheels_m[1]) / self._square_m2

    def _stalls(self, lacking: float, now_ns: int) -> bool:
        """Whether a wheel stands although commanded, so near the end that its commands may be below its threshold."""
        if self.open_loop or lacking * self._longest_m > OPEN_LOOP_M:
            self._progress = now_ns, self._predictor.now()
            return False
        since_ns, then = self._progress
        if (now_ns - since_ns) / NS_PER_S <= STALL_S + self._predictor.model.dead_time_s:
            return False
        now = self._predictor.now()
        self._progress = now_ns, now
        predicted_m, driven_m = now.since(then)
        return any(abs(b) <= STUCK_SHARE * abs(a) for a, b in zip(predicted_m, driven_m, strict=True))

    def _inverted_1_s(self, lacking: float) -> float | None:
        """The speed along the leg that brings the wheels, through the inverse of their lag, to the wished speed."""
        period_s, accel_1_s2 = self._period_s, self._accel_1_s2
        left, right = self._predictor.left, self._predictor.right
        speed_1_s, top_1_s = self._along((left.speed_m_s, right.speed_m_s)), self._speed_1_s
        # The Guard may grant the acceleration of a tick at the next: the command may be that far ahead of the wheels.
        step_1_s = accel_1_s2 * period_s
        coast = self._along(self._predictor.coast_m)
        braking_1_s = braking_speed(lacking + coast, speed_1_s, BRAKING * accel_1_s2, period_s)
        ahead_1_s = max(speed_1_s, min(self._wish_1_s, speed_1_s + step_1_s)) + step_1_s
        self._wish_1_s = wish_1_s = min(top_1_s, ahead_1_s, braking_1_s)
        if abs(speed_1_s) <= self._slow_1_s and (lacking <= self._fine or not wish_1_s):
            return None
        return min(top_1_s, speed_1_s + (wish_1_s - speed_1_s) / self._follows)

    def _direct_1_s(self, lacking: float) -> float | None:
        """The speed along the leg whose command itself brakes, and never reverses: the lag coasts."""
        if lacking <= self._fine:
            return None
        period_s, model = self._period_s, self._predictor.model
        left, right = self._predictor.left, self._predictor.right
        accel_1_s2 = self._accel_1_s2
        if model.accel_m_s2 is not None:
            accel_1_s2 = min(accel_1_s2, BRAKING * model.accel_m_s2 / self._longest_m)
        target_1_s = self._along((left.target_m_s, right.target_m_s))
        if self._calibrated or self.open_loop:
            ramp = self._along((left.ramp_m(), right.ramp_m()))
            braking_1_s = braking_speed(lacking + ramp, target_1_s, accel_1_s2, period_s)
        else:
            braking_1_s = approach_speed(lacking + self._beyond, accel_1_s2, TAIL_S)
        return min(self._speed_1_s, target_1_s + 2 * accel_1_s2 * period_s, braking_1_s)

    def _velocity(self, speed_1_s: float, rest: SE2) -> Velocity:
        """The command for a speed along the leg, corrected by what the robot will be off it.

        Kanayama et al. 1990, "A stable tracking control method for an autonomous mobile robot", equation 8, with
        constant damping. On a turn on the spot the wheels' mean speed is zero, so that no bumper forbids it.
        """
        leg, model, info = self.leg, self._predictor.model, self._info
        linear_m_s, angular_rad_s = leg.forward_m * speed_1_s, leg.turn_rad * speed_1_s
        if leg.forward_m:
            share, yaw_rad = min(max(self._share, 0.0), 1.0), rest.yaw_rad
            x_m, y_m = arc_end(leg.forward_m * share, leg.turn_rad * share)
            behind_rad = wrap_angle(leg.turn_rad * share - yaw_rad)
            behind_m = (y_m - rest.y_m) * math.cos(yaw_rad) - (x_m - rest.x_m) * math.sin(yaw_rad)
            gain_1_s, cross_1_m2 = self._profile.heading_gain_1_s, CROSS_GAIN_1_M2
            if not self._calibrated:
                gain_1_s = min(gain_1_s, 0.5 / TAIL_S)
                cross_1_m2 *= (gain_1_s / self._profile.heading_gain_1_s) ** 2
            angular_rad_s += gain_1_s * behind_rad + cross_1_m2 * linear_m_s * behind_m
            angular_rad_s = clip(angular_rad_s, leg.angular_rad_s)
        speeds_m_s = self._started(model.wheel_speeds(linear_m_s, angular_rad_s), speed_1_s > 0)
        if not leg.forward_m:
            left_m_s, right_m_s = abs(speeds_m_s[0]), abs(speeds_m_s[1])
            mean_m_s = max(left_m_s, right_m_s) if speed_1_s > 0 else (left_m_s + right_m_s) / 2
            mean_m_s = math.copysign(mean_m_s, speed_1_s * leg.turn_rad)
            speeds_m_s = [-mean_m_s, mean_m_s]
        left_m_s, right_m_s = self._rounded(speeds_m_s)
        linear_m_s = (left_m_s + right_m_s) / 2 if leg.forward_m else 0.0
        angular_rad_s = (right_m_s - left_m_s) / model.separation_m
        return Velocity(clip(linear_m_s, info.max_linear_m_s), clip(angular_rad_s, info.max_angular_rad_s))

    def _started(self, driven_m_s: tuple[float, float], ahead: bool) -> list[float]:
        """Commands with which the wheels drive these speeds; those of wheels at rest are at least what starts them."""
        left, right = self._predictor.left, self._predictor.right
        if not ahead or (abs(left.speed_m_s) >= STICKING_M_S and abs(right.speed_m_s) >= STICKING_M_S):
            return [driven_m_s[0] / left.gain, driven_m_s[1] / right.gain]
        speeds_m_s, quantum_m_s = [], self._predictor.model.speed_quantum_m_s
        for wheel, speed_m_s, distance_m in zip((left, right), driven_m_s, self._wheels_m, strict=True):
            command_m_s = speed_m_s / wheel.gain
            if abs(wheel.speed_m_s) < STICKING_M_S and abs(distance_m) > LEAST_M:
                least_m_s = START_MARGIN * wheel.threshold_m_s
                if quantum_m_s:
                    least_m_s = quantum_m_s * math.ceil(least_m_s / quantum_m_s)
                command_m_s = math.copysign(max(abs(command_m_s), least_m_s), distance_m)
            speeds_m_s.append(command_m_s)
        return speeds_m_s

    def _rounded(self, speeds_m_s: list[float]) -> list[float]:
        """Multiples of the base's quantum whose mean over time is the wished speed."""
        quantum_m_s, rounding = self._predictor.model.speed_quantum_m_s, self._rounding
        if not quantum_m_s:
            return speeds_m_s
        for index, asked_m_s in enumerate(self._asked_m_s or ()):
            # The Guard may have let through less, and the base has rounded that in turn.
            withheld_m_s = asked_m_s - quantum_m_s * round(self._predictor.sent[index] / quantum_m_s)
            # At most half a step: it suffices to start, and more would be driven where the leg is to brake.
            rounding[index] = clip(rounding[index] + withheld_m_s, quantum_m_s / 2)
        rounded_m_s = []
        for index, speed_m_s in enumerate(speeds_m_s):
            rounded_m_s.append(quantum_m_s * round((rounding[index] + speed_m_s) / quantum_m_s))
            rounding[index] += speed_m_s - rounded_m_s[index]
        self._asked_m_s = rounded_m_s
        return rounded_m_s if self.leg.forward_m else [-rounded_m_s[1], rounded_m_s[1]]

    # --- after the leg ----------------------------------------------------------------------------------------------

    def moved(self) -> bool:
        """Whether a wheel has driven at all."""
        return max(map(abs, self._predictor.now().since(self._begin)[1])) >= COMPARED_M

    def driven_ratio(self) -> float:
        """Ratio of the driven to the expected distance of the robot at rest, within bounds; 1 where it is unknown."""
        predicted_m, driven_m = self._predictor.now().since(self._begin)
        predicted, driven = self._along(predicted_m), self._along(driven_m)
        if predicted * self._longest_m < COMPARED_M:
            return 1.0
        return min(max(driven / predicted, LEAST_RATIO), LARGEST_RATIO)

    def learned_thresholds_m_s(self) -> tuple[float, float]:
        """Thresholds of the wheels by what they have done; the model's where nothing speaks against those."""
        predictor = self._predictor
        predicted_m, driven_m = predictor.now().since(self._begin)
        learned_m_s = list(predictor.model.threshold_m_s)
        for index in (0, 1):
            expected_m, measured_m = abs(predicted_m[index]), abs(driven_m[index])
            if expected_m < COMPARED_M:
                continue
            if measured_m < STARTED_SHARE * expected_m:
                largest_m_s = max(learned_m_s[index], self._largest_m_s[index])
                learned_m_s[index] = min(largest_m_s + THRESHOLD_STEP_M_S, LARGEST_THRESHOLD_M_S)
            elif measured_m > expected_m / STUCK_SHARE:
                learned_m_s[index] *= THRESHOLD_DECREASE
        return learned_m_s[0], learned_m_s[1]


def clip(value: float, limit: float) -> float:
    """``value``, at most ``limit`` from zero."""
    value = value if value < limit else limit
    return value if value > -limit else -limit
