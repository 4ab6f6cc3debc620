"""The processing of velocity commands by a base's ROS driver and firmware: latency, timeout, ramp, rounding."""

import math
from collections import deque

from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.hal import Velocity
from robot_runtime.safety.guard import STILL
from sim_bridge.ros.robot_variants import DriverTiming

KOBUKI_WHEEL_BASE_MM = 230.0
MIN_TURN_RAD_S = 1e-4
INT16_MAX = 32767

LIMITER_LINEAR_M_S2, LIMITER_ANGULAR_RAD_S2, LIMITER_BRAKING = 0.5, 3.5, 1.2
"""kobuki_core's acceleration limiter: its accelerations, and the factor by which decelerations may be larger."""


class VelocityCommandModel:
    """Computes the wheels' velocity from the velocity messages received."""

    def __init__(self, timing: DriverTiming, max_linear_m_s: float, max_angular_rad_s: float) -> None:
        self._timing = timing
        self._max_linear_m_s, self._max_angular_rad_s = max_linear_m_s, max_angular_rad_s
        self._delayed: deque[tuple[int, Velocity]] = deque()
        self._target = STILL
        self._output = STILL
        self._received_ns: int | None = None
        self._next_check_ns = 0
        self._last_tick_ns = 0
        self._powered = True

    def command(self, linear_m_s: float, angular_rad_s: float, now_ns: int) -> None:
        """Process a velocity message. A number that is not finite stops the wheels, as in the firmware."""
        if not self._powered:
            return
        finite = math.isfinite(linear_m_s) and math.isfinite(angular_rad_s)
        target = Velocity(linear_m_s, angular_rad_s) if finite else STILL
        self._delayed.append((now_ns + seconds_to_ns(self._timing.command_latency_s), target))
        self._received_ns = now_ns

    def power(self, on: bool) -> None:
        """Switch the motors; without power the wheels stand, and commands are ignored."""
        self._powered = on
        if not on:
            self.reset()

    def reset(self) -> None:
        """Discard every command: the robot has been placed elsewhere."""
        self._delayed.clear()
        self._target = self._output = STILL
        self._received_ns = None

    def tick(self, now_ns: int) -> Velocity:
        """Return the wheels' velocity until the next tick; call it at the base's ``command_hz``."""
        while self._delayed and self._delayed[0][0] <= now_ns:
            self._target = self._delayed.popleft()[1]
        if now_ns >= self._next_check_ns:
            self._next_check_ns = now_ns + seconds_to_ns(self._timing.timeout_check_s)
            timeout_ns = seconds_to_ns(self._timing.command_timeout_s)
            if self._received_ns is not None and now_ns - self._received_ns > timeout_ns:
                self._target = STILL
        velocity = Velocity(
            max(-self._max_linear_m_s, min(self._max_linear_m_s, self._target.linear_m_s)),
            max(-self._max_angular_rad_s, min(self._max_angular_rad_s, self._target.angular_rad_s)),
        )
        if self._timing.acceleration_limiter:
            elapsed_s = min(0.1, (now_ns - self._last_tick_ns) / 1e9)
            velocity = Velocity(
                _ramped(self._output.linear_m_s, velocity.linear_m_s, LIMITER_LINEAR_M_S2 * elapsed_s),
                _ramped(self._output.angular_rad_s, velocity.angular_rad_s, LIMITER_ANGULAR_RAD_S2 * elapsed_s),
            )
        self._last_tick_ns = now_ns
        self._output = velocity
        return through_radius(velocity) if self._timing.radius_commands else velocity


def through_radius(velocity: Velocity) -> Velocity:
    """Return a velocity as rounded by Kobuki's command to integer mm/s and mm of radius.

    Kobuki's protocol ("base control"; conversion as in kobuki_core's ``DiffDrive``): radius 0 is straight on, 1 is
    turning on the spot, and the speed is that of the outer wheel.
    """
    speed_mm_s, radius_mm = speed_and_radius(velocity)
    half_mm = KOBUKI_WHEEL_BASE_MM / 2
    if radius_mm == 0:
        return Velocity(speed_mm_s / 1000, 0.0)
    if radius_mm in (1, -1):
        return Velocity(0.0, radius_mm * speed_mm_s / half_mm)
    angular_rad_s = speed_mm_s / (radius_mm + math.copysign(half_mm, radius_mm))
    return Velocity(angular_rad_s * radius_mm / 1000, angular_rad_s)


def speed_and_radius(velocity: Velocity) -> tuple[int, int]:
    """Return Kobuki's base control command: (speed mm/s, radius mm), each a signed 16-bit integer."""
    v, w = velocity.linear_m_s, velocity.angular_rad_s
    half_mm = KOBUKI_WHEEL_BASE_MM / 2
    if abs(w) < MIN_TURN_RAD_S:
        return _int16(1000 * v), 0
    radius_mm = 1000 * v / w
    if abs(v) < MIN_TURN_RAD_S or abs(radius_mm) <= 1:
        return _int16(half_mm * w), 1
    return _int16((radius_mm + math.copysign(half_mm, radius_mm)) * w), _int16(radius_mm)


def _int16(value: float) -> int:
    return math.trunc(max(-INT16_MAX - 1.0, min(float(INT16_MAX), value)))


def _ramped(present: float, target: float, step: float) -> float:
    """Move towards ``target``, faster where that means decelerating."""
    slowing = abs(target) < abs(present) or target * present < 0
    limit = step * LIMITER_BRAKING if slowing else step
    return present + max(-limit, min(limit, target - present))
