"""Shortest possible time of an action on a base: no controller that keeps the profile's limits is faster.

The command grows with the profile's acceleration up to its speed; from the best instant on it is as far reversed as the
Guard allows, until the wheels stand, which lose speed no faster than by the profile's acceleration. To that come the
dead time and the delay of the first report that can tell. Gain, threshold and tolerance are left out.
"""

from __future__ import annotations

import math

from robot_runtime.actions.discrete import Displacement
from robot_runtime.hal.motion_profile import DEFAULT_PROFILE
from tests.benchmarks.motion.bases import INFO, RandomBase

STEP_S = 0.002
LIMIT_S = 10.0


def shortest_s(base: RandomBase, displacement: Displacement) -> float:
    """Seconds from the command to the report of rest at the goal."""
    model, profile = base.motors.true, DEFAULT_PROFILE
    half_m = model.separation_m / 2
    if displacement.forward_m:
        way_m = abs(displacement.forward_m)
        speed_m_s = min(profile.linear_m_s, INFO.max_linear_m_s)
        accel_m_s2 = min(profile.linear_accel_m_s2, INFO.max_linear_accel_m_s2)
    else:
        way_m = abs(displacement.turn_rad) * half_m
        speed_m_s = min(profile.angular_rad_s, INFO.max_angular_rad_s) * half_m
        accel_m_s2 = min(profile.angular_accel_rad_s2, INFO.max_angular_accel_rad_s2) * half_m
    # Below, the switch comes too early to reach the goal; above, too late to stop there.
    low_s, high_s = 0.0, LIMIT_S
    while high_s - low_s > STEP_S:
        switch_s = (low_s + high_s) / 2
        driven_m, _ = _stop(switch_s, speed_m_s, accel_m_s2, model.lag_s, model.accel_m_s2)
        low_s, high_s = (switch_s, high_s) if driven_m < way_m else (low_s, switch_s)
    _, seconds = _stop(high_s, speed_m_s, accel_m_s2, model.lag_s, model.accel_m_s2)
    return model.dead_time_s + seconds + base.motors.report_delay_s


def _stop(
    switch_s: float, speed_m_s: float, accel_m_s2: float, lag_s: float, firmware_m_s2: float | None
) -> tuple[float, float]:
    """Way of a wheel until it stands, and seconds, if braking begins at an instant."""
    decay = math.exp(-STEP_S / lag_s) if lag_s else 0.0
    slowest = math.inf if firmware_m_s2 is None else firmware_m_s2 * STEP_S
    driven_m = wheel_m_s = command_m_s = target_m_s = now_s = 0.0
    while now_s < LIMIT_S:
        if now_s < switch_s:
            command_m_s = min(speed_m_s, command_m_s + accel_m_s2 * STEP_S)
        else:
            # The Guard lets a command fall to zero at once and grow to the other side with its acceleration.
            command_m_s = max(-speed_m_s, min(0.0, command_m_s) - accel_m_s2 * STEP_S) if lag_s else 0.0
        change_m_s = max(-slowest, min(slowest, command_m_s - target_m_s))
        target_m_s += change_m_s
        slowed_m_s = wheel_m_s - accel_m_s2 * STEP_S
        wheel_m_s = max(slowed_m_s, target_m_s + (wheel_m_s - target_m_s) * decay)
        if now_s >= switch_s and wheel_m_s <= 0:
            break
        driven_m += wheel_m_s * STEP_S
        now_s += STEP_S
    return driven_m, now_s
