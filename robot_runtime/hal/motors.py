"""Model of a base's motors: the delay, lag, threshold, gain and resolution between a commanded and a driven speed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from robot_runtime.common.config import Positive, Strict
from robot_runtime.hal.wheel_motor import CREATE_2_DEAD_TIME_S, CREATE_2_LAG_S, CREATE_2_QUANTUM_M_S, WheelMotor

MAX_DEAD_TIME_S = 0.5
MAX_LAG_S = 0.5
"""Bases beyond these cannot be steered usefully: a step of 0.25 m would be half over before its first report."""

MAX_THRESHOLD_M_S = 0.5
"""No wheel needs more to start."""

Gain = Annotated[float, Field(gt=0.5, lt=2.0)]
Threshold = Annotated[float, Field(ge=0, le=MAX_THRESHOLD_M_S)]


@dataclass(frozen=True)
class MotorModel(Strict):
    """The response of both wheels to commands; the default is an ideal base.

    A wheel takes up a command ``dead_time_s`` later, rounded to ``speed_quantum_m_s`` and times ``gain``, with at most
    ``accel_m_s2`` and a first-order lag. A wheel at rest starts only at a command of at least ``threshold_m_s``.

    Attributes:
        dead_time_s: time from a command to the first change of odometry, by the stamps of odometry.
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

    @property
    def settling_s(self) -> float:
        """Time after the last command until the wheels' speed is 1 % of what it was."""
        return self.dead_time_s + math.log(100) * self.lag_s

    def travel_m(self, speed_m_s: float, late_s: float) -> float:
        """Distance that the robot still drives at a speed when it is told to stop ``late_s`` from now."""
        braking_m = speed_m_s**2 / (2 * self.accel_m_s2) if self.accel_m_s2 else 0.0
        return speed_m_s * (late_s + self.dead_time_s + self.lag_s) + braking_m

    def speed_for_travel_m_s(self, travel_m: float, late_s: float) -> float:
        """The speed at which :meth:`travel_m` is this distance."""
        delay_s, accel_m_s2 = late_s + self.dead_time_s + self.lag_s, self.accel_m_s2
        if accel_m_s2 is None:
            return travel_m / delay_s
        return accel_m_s2 * (math.sqrt(delay_s**2 + 2 * travel_m / accel_m_s2) - delay_s)

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


@dataclass(frozen=True)
class KnownMotors:
    """Properties of a base's motors that a controller may assume.

    Attributes:
        model: model of the motors, without their gain's dependence on the battery.
        calibrated: whether the model was measured at this very base; else it is that of the base's type.
    """

    model: MotorModel = field(default_factory=MotorModel)
    calibrated: bool = False


IDEAL_MOTORS = MotorModel()
"""A base without delay, lag or other errors."""

KOBUKI_MOTORS = MotorModel(dead_time_s=0.2, lag_s=0.1)
"""Dead time: yujinrobot/kobuki issue 389, about 200 ms in firmware. The lag is an assumption, not measured."""

CREATE_2_MOTORS = MotorModel(
    dead_time_s=CREATE_2_DEAD_TIME_S, lag_s=CREATE_2_LAG_S, speed_quantum_m_s=CREATE_2_QUANTUM_M_S, separation_m=0.235
)
"""Separation: iRobot Create 2 Open Interface."""


MotorType = Literal["ideal", "kobuki", "create2"]

NOMINAL_MOTORS: Mapping[MotorType, MotorModel] = {
    "ideal": IDEAL_MOTORS,
    "kobuki": KOBUKI_MOTORS,
    "create2": CREATE_2_MOTORS,
}
"""Motors by the type of base."""
