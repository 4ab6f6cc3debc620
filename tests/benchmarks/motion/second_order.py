"""Motors that the controller's model does not contain: wheels of second order, static friction, jitter.

The model of :mod:`robot_runtime.hal.motors` has one dead time, a lag of first order and one threshold. Here a wheel's
speed loop may overshoot, a standing wheel needs a larger command to start than a turning one to go on, and the dead
time differs from command to command.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.hal.motors import KOBUKI_MOTORS, MotorModel
from robot_runtime.hal.simulated_motors import MotorOptions
from tests.benchmarks.motion.bases import GAIN, MAX_DEAD_TIME_S, MAX_THRESHOLD_M_S, REPORT_DELAY_S, RandomBase

JITTER_S = 0.02
"""Largest deviation of a dead time: a Kobuki's cycle."""

NATURAL_1_S = (8.0, 25.0)
"""Natural frequency of a wheel's speed loop: it follows as late as lags of 0.25 to 0.06 s do, at most."""

DAMPING = (0.5, 1.2)
"""From an overshoot of 16 % to none."""

KINETIC_SHARE = (0.2, 0.6)
"""Friction of a turning wheel per that of a standing one."""

STANDING_M_S = 1e-3
"""Speed of a wheel below which static friction holds it."""

STEP_S = 0.0025
"""Step of the integration: a fortieth of the shortest period."""


@dataclass(frozen=True)
class SecondOrder:
    """Parameters of both wheels.

    Attributes:
        dead_time_s: mean dead time.
        natural_1_s: natural frequency, rad/s.
        damping: damping ratio.
        breakaway_m_s: driven speed of the smallest command that starts each wheel.
        kinetic_m_s: speed below which a command of less stops each wheel.
        gain: driven per commanded speed.
        seed: random seed of the jitter.
    """

    dead_time_s: float
    natural_1_s: float
    damping: float
    breakaway_m_s: tuple[float, float]
    kinetic_m_s: tuple[float, float]
    gain: tuple[float, float]
    seed: int


class SecondOrderMotors:
    """Both wheels, in place of :class:`~robot_runtime.hal.simulated_motors.SimulatedMotors`.

    Args:
        parameters: parameters of the wheels.
        separation_m: distance between the wheels.
    """

    def __init__(self, parameters: SecondOrder, separation_m: float) -> None:
        self._parameters, self._geometry = parameters, MotorModel(separation_m=separation_m)
        self._random = np.random.default_rng(parameters.seed)
        self.restart()

    def restart(self) -> None:
        """Stand still, with no command under way."""
        self._under_way: deque[tuple[int, tuple[float, float]]] = deque()
        self._newest = self._command = (0.0, 0.0)
        self._speed_m_s, self._accel_m_s2 = [0.0, 0.0], [0.0, 0.0]

    def drive(
        self, linear_m_s: float, angular_rad_s: float, now_ns: int, step_s: float, battery_fraction: float = 1.0
    ) -> tuple[float, float]:
        """Turn the wheels for one step, as ``SimulatedMotors.drive`` does; the battery has no effect."""
        newest = self._geometry.wheel_speeds(linear_m_s, angular_rad_s)
        if newest != self._newest:
            self._newest = newest
            late_s = self._parameters.dead_time_s + float(self._random.uniform(-JITTER_S, JITTER_S))
            due_ns = now_ns + seconds_to_ns(max(0.0, late_s))
            self._under_way.append((max(due_ns, self._under_way[-1][0]) if self._under_way else due_ns, newest))
        driven_m = [0.0, 0.0]
        count = max(1, round(step_s / STEP_S))
        for index in range(count):
            while self._under_way and ns_to_seconds(self._under_way[0][0] - now_ns) <= index * step_s / count:
                self._command = self._under_way.popleft()[1]
            for wheel in (0, 1):
                self._step(wheel, step_s / count)
                driven_m[wheel] += self._speed_m_s[wheel] * step_s / count
        left_m_s, right_m_s = driven_m[0] / step_s, driven_m[1] / step_s
        return (left_m_s + right_m_s) / 2, (right_m_s - left_m_s) / self._geometry.separation_m

    def _step(self, wheel: int, seconds: float) -> None:
        parameters = self._parameters
        wanted_m_s, speed_m_s = parameters.gain[wheel] * self._command[wheel], self._speed_m_s[wheel]
        kinetic_m_s = parameters.kinetic_m_s[wheel]
        held = abs(speed_m_s) < STANDING_M_S and abs(wanted_m_s) < parameters.breakaway_m_s[wheel]
        if held or (abs(wanted_m_s) < kinetic_m_s and abs(speed_m_s) < kinetic_m_s):
            self._speed_m_s[wheel] = self._accel_m_s2[wheel] = 0.0
            return
        stiffness_1_s2 = parameters.natural_1_s**2
        damping_1_s = 2 * parameters.damping * parameters.natural_1_s
        change = stiffness_1_s2 * (wanted_m_s - speed_m_s) - damping_1_s * self._accel_m_s2[wheel]
        self._accel_m_s2[wheel] += change * seconds
        self._speed_m_s[wheel] += self._accel_m_s2[wheel] * seconds


@dataclass(frozen=True)
class SecondOrderBase(RandomBase):
    """One base with such motors; a controller takes it for a Kobuki.

    Attributes:
        parameters: true motor parameters; ``motors`` has the delay of its reports.
    """

    parameters: SecondOrder

    @property
    @override
    def nominal(self) -> MotorModel:
        return KOBUKI_MOTORS

    @override
    def simulated(self) -> SecondOrderMotors:
        return SecondOrderMotors(self.parameters, self.nominal.separation_m)


def second_order_base(number: int, seed: int) -> SecondOrderBase:
    """The base of a number; the same for the same seed."""
    random = np.random.default_rng((seed, number, 2))
    breakaway_m_s = random.uniform(0, MAX_THRESHOLD_M_S, 2)
    left, right = random.uniform(1 - GAIN, 1 + GAIN, 2).tolist()
    low_m_s, high_m_s = breakaway_m_s.tolist()
    kinetic = float(random.uniform(*KINETIC_SHARE))
    parameters = SecondOrder(
        dead_time_s=float(random.uniform(JITTER_S, MAX_DEAD_TIME_S)),
        natural_1_s=float(random.uniform(*NATURAL_1_S)),
        damping=float(random.uniform(*DAMPING)),
        breakaway_m_s=(low_m_s, high_m_s),
        kinetic_m_s=(kinetic * low_m_s, kinetic * high_m_s),
        gain=(left, right),
        seed=number,
    )
    return SecondOrderBase(number, MotorOptions(report_delay_s=float(random.uniform(*REPORT_DELAY_S))), 1.0, parameters)
