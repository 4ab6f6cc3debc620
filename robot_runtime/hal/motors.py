"""Model of a base's motors: the delay, lag, threshold, gain and resolution between a commanded and a driven speed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from robot_runtime.common import config
from robot_runtime.common.config import Positive

MAX_DEAD_TIME_S = 0.5
MAX_LAG_S = 0.5
"""Bases beyond these cannot be steered usefully: a step of 0.25 m would be half over before its first report."""

STICKING_M_S = 0.003
"""Speed below which static friction holds a wheel whose command is below its threshold."""

Gain = Annotated[float, Field(gt=0.5, lt=2.0)]
Threshold = Annotated[float, Field(ge=0, le=0.5)]


@dataclass(frozen=True)
class MotorModel:
    """The response of both wheels to commands; the default is an ideal base.

    A wheel takes up a command ``dead_time_s`` later, rounded to ``speed_quantum_m_s`` and times ``gain``, with at most
    ``accel_m_s2`` and a first-order lag. A wheel at rest starts only at a command of at least ``threshold_m_s``.

    Attributes:
        dead_time_s: from a command to the first change of odometry, by the stamps of odometry.
        lag_s: time constant.
        gain: driven per commanded speed, of the left and the right wheel.
        threshold_m_s: smallest command that starts the left and the right wheel.
        speed_quantum_m_s: resolution of the base's speed controller; 0 for none.
        accel_m_s2: acceleration limit of the base's firmware, per wheel; None for none.
        separation_m: distance between the wheels.
    """

    dead_time_s: Annotated[float, Field(ge=0, le=MAX_DEAD_TIME_S)] = 0.0
    lag_s: Annotated[float, Field(ge=0, le=MAX_LAG_S)] = 0.0
    gain: tuple[Gain, Gain] = (1.0, 1.0)
    threshold_m_s: tuple[Threshold, Threshold] = (0.0, 0.0)
    speed_quantum_m_s: Annotated[float, Field(ge=0, le=0.1)] = 0.0
    accel_m_s2: Positive | None = None
    separation_m: Positive = 0.23

    __pydantic_config__ = config.STRICT

    def wheel_speeds(self, linear_m_s: float, angular_rad_s: float) -> tuple[float, float]:
        """Speeds of the left and the right wheel."""
        half_m_s = angular_rad_s * self.separation_m / 2
        return linear_m_s - half_m_s, linear_m_s + half_m_s

    def wheels(self) -> tuple[WheelMotor, WheelMotor]:
        """The left and the right wheel, at rest."""
        left, right = (
            WheelMotor(self.lag_s, gain, threshold_m_s, self.speed_quantum_m_s, self.accel_m_s2 or math.inf)
            for gain, threshold_m_s in zip(self.gain, self.threshold_m_s, strict=True)
        )
        return left, right


IDEAL_MOTORS = MotorModel()
"""A base without delay, lag or other errors."""

KOBUKI_MOTORS = MotorModel(dead_time_s=0.2, lag_s=0.1)
"""Dead time: yujinrobot/kobuki issue 389, about 200 ms in firmware. The lag is an assumption, not measured."""

CREATE_2_MOTORS = MotorModel(dead_time_s=0.05, lag_s=0.1, speed_quantum_m_s=0.0285, separation_m=0.235)
"""Quantum: iRobot Create 2 Open Interface, opcode 137. Separation: the same document. Dead time (three reports of
15 ms) and lag are assumptions, not measured."""


NOMINAL_MOTORS = {"ideal": IDEAL_MOTORS, "kobuki": KOBUKI_MOTORS, "create2": CREATE_2_MOTORS}
"""Motors by the type of base."""


class WheelMotor:
    """One wheel of a :class:`MotorModel` without its dead time.

    Args:
        lag_s: time constant.
        gain: driven per commanded speed.
        threshold_m_s: smallest command that starts it.
        quantum_m_s: resolution of commands; 0 for none.
        accel_m_s2: acceleration limit.

    Attributes:
        position_m: driven so far.
        speed_m_s: present speed.
    """

    __slots__ = (
        "_accel_m_s2",
        "_gain",
        "_lag_s",
        "_quantum_m_s",
        "_target_m_s",
        "_threshold_m_s",
        "position_m",
        "speed_m_s",
    )

    def __init__(
        self, lag_s: float, gain: float, threshold_m_s: float, quantum_m_s: float = 0.0, accel_m_s2: float = math.inf
    ) -> None:
        self.position_m = self.speed_m_s = self._target_m_s = 0.0
        self._gain, self._threshold_m_s = gain, threshold_m_s
        self._lag_s, self._quantum_m_s, self._accel_m_s2 = lag_s, quantum_m_s, accel_m_s2

    def step(self, command_m_s: float, seconds: float) -> None:
        """Turn for a time under a constant command."""
        speed_m_s = self.speed_m_s
        if abs(command_m_s) < self._threshold_m_s and abs(speed_m_s) < STICKING_M_S:
            self.speed_m_s = self._target_m_s = 0.0
            return
        if self._quantum_m_s:
            command_m_s = self._quantum_m_s * round(command_m_s / self._quantum_m_s)
        target_m_s = self._gain * command_m_s
        change_m_s = self._accel_m_s2 * seconds
        if abs(target_m_s - self._target_m_s) > change_m_s:
            target_m_s = self._target_m_s + math.copysign(change_m_s, target_m_s - self._target_m_s)
        self._target_m_s = target_m_s
        decay = math.exp(-seconds / self._lag_s) if self._lag_s else 0.0
        self.speed_m_s = target_m_s + (speed_m_s - target_m_s) * decay
        self.position_m += target_m_s * seconds + self._lag_s * (speed_m_s - target_m_s) * (1 - decay)
