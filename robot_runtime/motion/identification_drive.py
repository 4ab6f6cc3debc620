"""Drive that excites a base's motors: slow ramps of the command, and moves from rest to rest.

Turns on the spot and moves forward and back alternate, so that the robot stays within a square meter.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from robot_runtime.common.clock import Clock, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Base, BaseState, Velocity
from robot_runtime.hal.motors import MAX_DEAD_TIME_S, MAX_LAG_S, MotorModel
from robot_runtime.motion.identification import MotorFit, fit_motors
from robot_runtime.motion.wheel_record import WheelRecord, WheelRecorder

RAMP_M_S2 = 0.1
"""Ramp slow enough for the time of a wheel's start to show its threshold."""

MAX_RAMP_M_S = 0.25
STARTED_M = 0.008
"""A ramp ends when both wheels have driven this far, or some time after this command without an effect."""

STATE_MAX_AGE_S = 0.5
REPORTS_LATE_S = 0.5
"""Reports may be this old; a drive is not steered by them."""

QUIET_S = 0.35
QUIET_M = 2e-4
REST_TIMEOUT_S = 4.0
"""The robot rests when odometry has changed by no more than this for this long."""

LINEAR_M_S = 0.3
ANGULAR_RAD_S = 1.5
"""Speeds of moves; less if the base allows less."""

ACCEL_SHARE = 0.8
"""Share of the acceleration that the Guard allows. A second Guard on the robot gets commands unevenly, and would delay
a start with all of it, but not the stop: over ROS gains were found 2 % too small."""

MOVES = (
    (1.0, 0.0, 0.7),
    (-1.0, 0.0, 0.7),
    (0.0, 1.0, 0.8),
    (0.0, -1.0, 0.8),
    (0.6, 0.0, 0.9),
    (-0.6, 0.0, 0.9),
    (0.0, 0.5, 0.9),
    (0.0, -0.5, 0.9),
)
"""Shares of both speeds, and seconds."""

TEST_MOVES = ((0.8, 0.5, 0.6), (-0.8, -0.5, 0.6), (0.9, -0.3, 0.7), (-0.9, 0.3, 0.7), (0.0, 0.7, 0.7), (0.0, -0.7, 0.7))
"""Others, to test a model on: arcs, too."""


AT_LIMIT_S = 0.005
"""A dead time or a lag this near its limit is beyond it."""

HELD_OUT_LIMITS: Mapping[str, float] = {"rms_mm": 5.0, "rest_mm": 10.0}
"""Greatest accepted errors of a model in moves that it was not fitted to."""


class IdentificationDrive:
    """Records of commands and odometry of a base that drives alone.

    The base must be at rest; ``on_record`` is called after each ramp and move.

    Attributes:
        seconds: time since the first command.
        extent_m: greatest distance from the start, by odometry.
        report_delay_s: greatest age of a report when it arrived.
    """

    def __init__(
        self, clock: Clock, base: Base, separation_m: float, on_record: Callable[[], None] = lambda: None
    ) -> None:
        self.seconds = self.extent_m = self.report_delay_s = 0.0
        self._clock, self._base, self._separation_m = clock, base, separation_m
        self._recorder = WheelRecorder(separation_m)
        self._period_ns = seconds_to_ns(1 / base.info.rate_hz)
        self._begin_ns = self._tick_ns = clock.now_ns()
        self._home: SE2 | None = None
        self._on_record = on_record
        info = base.info
        self._linear_m_s = min(LINEAR_M_S, 0.9 * info.max_linear_m_s)
        self._angular_rad_s = min(ANGULAR_RAD_S, 0.9 * info.max_angular_rad_s)

    def ramps(self, count: int = 4) -> list[WheelRecord]:
        """Turn to alternate sides, each time with a slowly growing command until both wheels turn.

        Raises:
            CalibrationFailed: a wheel does not turn or turns the wrong way, or something touches the robot.
            StaleData: the base is silent.
            DeviceFault: odometry is not finite.
        """
        return [self._recorded(self._ramp, (-1.0) ** number) for number in range(count)]

    def moves(self, moves: tuple[tuple[float, float, float], ...] = MOVES) -> list[WheelRecord]:
        """Drive moves from rest to rest.

        Args:
            moves: shares of the linear and angular speed, and seconds.

        Raises:
            CalibrationFailed: a wheel turns the wrong way, or something touches the robot.
            StaleData: the base is silent.
            DeviceFault: odometry is not finite.
        """
        return [self._recorded(self._move, *move) for move in moves]

    def _recorded(self, drive: Callable[..., None], *arguments: float) -> WheelRecord:
        self._recorder.clear()
        self._tick_ns = self._clock.now_ns()
        try:
            self._tick(Velocity())
            drive(*arguments)
            self._rest()
        finally:
            self._base.stop()
        self._on_record()
        return self._recorder.record()

    def _ramp(self, side: float) -> None:
        begin_m, sent_m_s = self._recorder.driven_m, 0.0
        limit_m_s = min(MAX_RAMP_M_S, 0.9 * self._base.info.max_angular_rad_s * self._separation_m / 2)
        patience_s = MAX_DEAD_TIME_S + REPORTS_LATE_S
        while True:
            sent_m_s = min(limit_m_s, sent_m_s + RAMP_M_S2 * self._period_ns / 1e9)
            self._tick(Velocity(0.0, side * 2 * sent_m_s / self._separation_m))
            driven_m = [after - before for after, before in zip(self._recorder.driven_m, begin_m, strict=True)]
            toward_m = [-side * driven_m[0], side * driven_m[1]]
            for name, way_m in zip(("left", "right"), toward_m, strict=True):
                if way_m < -STARTED_M:
                    raise CalibrationFailed(
                        f"the {name} wheel turns the wrong way: {1000 * way_m:.0f} mm along its command",
                        "check the polarity of its motor and encoder; the wheels were stopped",
                    )
            if min(toward_m) >= STARTED_M:
                return
            if sent_m_s >= limit_m_s:
                patience_s -= self._period_ns / 1e9
            if patience_s < 0:
                still = " and ".join(
                    name for name, way_m in zip(("left", "right"), toward_m, strict=True) if way_m < STARTED_M
                )
                raise CalibrationFailed(
                    f"{still}: no motion of the wheel at a command of {limit_m_s:.2f} m/s",
                    "check the motors' power, the wheels and what blocks them; a threshold above this cannot be used",
                )

    def _move(self, linear: float, angular: float, seconds: float) -> None:
        linear_m_s, angular_rad_s, info = linear * self._linear_m_s, angular * self._angular_rad_s, self._base.info
        ramp_s = max(abs(linear_m_s) / info.max_linear_accel_m_s2, abs(angular_rad_s) / info.max_angular_accel_rad_s2)
        ramp_ticks = ramp_s / ACCEL_SHARE * info.rate_hz
        for tick in range(1, math.ceil(seconds * info.rate_hz) + 1):
            share = min(1.0, tick / ramp_ticks)
            self._tick(Velocity(share * linear_m_s, share * angular_rad_s))

    def _rest(self) -> None:
        """Command zero until odometry has not changed for a while."""
        begin_ns, quiet_ns, quiet_m = self._tick_ns, self._tick_ns, self._recorder.driven_m
        self._base.stop()
        while True:
            state = self._tick(Velocity())
            driven_m = self._recorder.driven_m
            if max(abs(driven_m[0] - quiet_m[0]), abs(driven_m[1] - quiet_m[1])) > QUIET_M:
                quiet_ns, quiet_m = state.stamp_ns, driven_m
            if state.stamp_ns - max(quiet_ns, begin_ns) >= seconds_to_ns(QUIET_S):
                return
            if self._tick_ns - begin_ns >= seconds_to_ns(REST_TIMEOUT_S):
                raise CalibrationFailed(
                    f"the robot still moves {REST_TIMEOUT_S:g} s after it was stopped",
                    "check the base's driver and whether something pushes the robot",
                )

    def _tick(self, velocity: Velocity) -> BaseState:
        """Command a velocity and read the base one tick later."""
        clock, recorder = self._clock, self._recorder
        recorder.command(self._base.command(velocity), clock.now_ns())
        self._tick_ns = max(self._tick_ns + self._period_ns, clock.now_ns())
        clock.sleep_until(self._tick_ns)
        state = self._base.state(STATE_MAX_AGE_S)
        state.check_finite()
        if state.bumper or state.cliff or state.wheel_drop:
            raise CalibrationFailed(
                f"the base reports contact or a missing floor while it drives alone (halt: {state.halt.value})",
                "put the robot on free floor, with half a meter around it",
            )
        recorder.report(state.odom, state.stamp_ns)
        self._home = self._home or state.odom
        away = state.odom.relative_to(self._home)
        self.extent_m = max(self.extent_m, math.hypot(away.x_m, away.y_m))
        self.seconds = ns_to_seconds(clock.now_ns() - self._begin_ns)
        self.report_delay_s = max(self.report_delay_s, ns_to_seconds(clock.now_ns() - state.stamp_ns))
        return state


def fit_drive(records: Sequence[WheelRecord], start: MotorModel) -> MotorFit:
    """Fit a model as :func:`fit_motors`. Raises ``CalibrationFailed``: a delay that no controller can drive with."""
    fit = fit_motors(records, start)
    for name, value, limit in (
        ("dead time", fit.model.dead_time_s, MAX_DEAD_TIME_S),
        ("lag", fit.model.lag_s, MAX_LAG_S),
    ):
        if value > limit - AT_LIMIT_S:
            raise CalibrationFailed(
                f"motors: the {name} is {limit:g} s or more; such a base cannot be steered",
                "look for what delays commands or odometry: the network, a velocity smoother, the driver's rate",
            )
    return fit


def held_out_errors(model: MotorModel, records: Sequence[WheelRecord]) -> dict[str, float]:
    """Errors of a model in other records: ``rms_mm``, at all times, and ``rest_mm``, the greatest at a move's end."""
    errors_m = [record.errors_m(model) for record in records]
    return {
        "rms_mm": 1000 * float(np.sqrt(np.mean(np.concatenate([part.ravel() for part in errors_m]) ** 2))),
        "rest_mm": 1000 * max(float(np.abs(part[-1]).max()) for part in errors_m),
    }
