"""Wheels of a motors' model under many commands, compiled: what an identification repeats thousands of times."""

import math

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.jit import compiled
from robot_runtime.hal.wheel_motor import STICKING_M_S


@compiled
def wheel_positions(
    command_m_s: NDArray[np.float64],
    seconds: NDArray[np.float64],
    lag_s: float,
    gain: float,
    threshold_m_s: float,
    quantum_m_s: float,
    accel_m_s2: float,
) -> NDArray[np.float64]:
    """Positions of a :class:`~robot_runtime.hal.motors.WheelMotor` after each of many steps.

    Args:
        command_m_s: (n,) float64, one per step.
        seconds: (n,) float64, duration of the steps.
        lag_s: lag of the wheel.
        gain: gain of the wheel.
        threshold_m_s: threshold of the wheel.
        quantum_m_s: quantum of the wheel's speed; 0 for none.
        accel_m_s2: limit of the wheel's acceleration; infinite for none.

    Returns:
        (n + 1,) float64, meters; the first is 0.
    """
    positions_m = np.zeros(command_m_s.size + 1)
    position_m, speed_m_s, target_m_s = 0.0, 0.0, 0.0
    for index in range(command_m_s.size):
        command, step_s = command_m_s[index], seconds[index]
        if (abs(command) < threshold_m_s or command == 0.0) and abs(speed_m_s) < STICKING_M_S:
            speed_m_s = target_m_s = 0.0
        else:
            if quantum_m_s > 0:
                command = quantum_m_s * np.rint(command / quantum_m_s)
            wanted_m_s = gain * command
            ramp_s = min(abs(wanted_m_s - target_m_s) / accel_m_s2, step_s)
            if ramp_s > 0:
                accel = math.copysign(accel_m_s2, wanted_m_s - target_m_s)
                behind_m_s, decay = accel * lag_s, math.exp(-ramp_s / lag_s) if lag_s > 0 else 0.0
                off_m_s = speed_m_s - target_m_s + behind_m_s
                position_m += (target_m_s + accel * ramp_s / 2 - behind_m_s) * ramp_s + lag_s * off_m_s * (1 - decay)
                target_m_s += accel * ramp_s
                speed_m_s = target_m_s - behind_m_s + off_m_s * decay
                step_s -= ramp_s
            if step_s > 0:
                target_m_s = wanted_m_s
            decay = math.exp(-step_s / lag_s) if lag_s > 0 else 0.0
            position_m += target_m_s * step_s + lag_s * (speed_m_s - target_m_s) * (1 - decay)
            speed_m_s = target_m_s + (speed_m_s - target_m_s) * decay
        positions_m[index + 1] = position_m
    return positions_m
