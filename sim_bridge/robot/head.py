"""The simulated pan-tilt: both servos turn at constant speed to their goal and then settle."""

import math
from dataclasses import dataclass

from robot_runtime.common.clock import NS_PER_S, Clock, seconds_to_ns
from robot_runtime.common.config import NonNegative, Positive, Strict
from robot_runtime.common.quantities import ShortTime
from robot_runtime.errors import InvalidStart
from robot_runtime.hal import Head, HeadLimits, HeadState, fresh
from sim_bridge.robot.device import SimDevice


@dataclass(frozen=True)
class HeadOptions(Strict):
    """LoCoBot's reach, pan left and tilt **up** positive; Interbotix states tilt as -90..+75 degrees, down positive.

    Attributes:
        tilt_zero_deg: upward tilt of the camera at servo angle 0, in addition to its mount's.
        tilt_backlash_deg: backlash between servo and camera, half of it in either direction; the servo's encoder does
            not measure it.
    """

    min_pan_deg: float = -90.0
    max_pan_deg: float = 90.0
    min_tilt_deg: float = -75.0
    max_tilt_deg: float = 90.0
    speed_deg_s: Positive = 90.0
    settle_s: ShortTime = 0.1
    tilt_zero_deg: float = 0.0
    tilt_backlash_deg: NonNegative = 0.0

    def __post_init__(self) -> None:
        for axis, low, high in (
            ("pan", self.min_pan_deg, self.max_pan_deg),
            ("tilt", self.min_tilt_deg, self.max_tilt_deg),
        ):
            if not -180 <= low <= 0 <= high <= 180:
                raise ValueError(f"min_{axis}_deg and max_{axis}_deg must enclose 0 within ±180, got {low} and {high}")


class SimHead(SimDevice, Head):
    """The head; its angles are functions of time and need no simulation steps."""

    def __init__(self, clock: Clock, options: HeadOptions) -> None:
        super().__init__("head")
        self._clock = clock
        self._limits = HeadLimits(
            math.radians(options.min_pan_deg),
            math.radians(options.max_pan_deg),
            math.radians(options.min_tilt_deg),
            math.radians(options.max_tilt_deg),
            math.radians(options.speed_deg_s),
            options.settle_s,
        )
        self._zero_rad = math.radians(options.tilt_zero_deg)
        self._half_backlash_rad = math.radians(options.tilt_backlash_deg) / 2
        self._from = self._goal = (0.0, 0.0)
        self._tilted_from_rad = 0.0
        self._commanded_ns = self._rest_ns = clock.now_ns()

    @property
    def limits(self) -> HeadLimits:
        return self._limits

    def angles(self, now_ns: int) -> tuple[float, float]:
        """Pan and tilt at a time not before the last command."""
        if now_ns >= self._rest_ns:
            return self._goal
        reach_rad = self._limits.max_speed_rad_s * (now_ns - self._commanded_ns) / NS_PER_S
        pan_rad, tilt_rad = (
            start + max(-reach_rad, min(reach_rad, goal - start))
            for start, goal in zip(self._from, self._goal, strict=True)
        )
        return pan_rad, tilt_rad

    def camera_angles(self, now_ns: int) -> tuple[float, float]:
        """Pan and tilt of the camera itself, where :meth:`angles` are its servos'."""
        pan_rad, servo_rad = self.angles(now_ns)
        return pan_rad, self._after_backlash_rad(servo_rad) + self._zero_rad

    def _after_backlash_rad(self, servo_rad: float) -> float:
        """Tilt of the camera; it follows the servo once the backlash is taken up."""
        if servo_rad > self._from[1]:
            return max(self._tilted_from_rad, servo_rad - self._half_backlash_rad)
        if servo_rad < self._from[1]:
            return min(self._tilted_from_rad, servo_rad + self._half_backlash_rad)
        return self._tilted_from_rad

    def state(self, max_age_s: float) -> HeadState:
        self._require_connected()
        now_ns = self._clock.now_ns()
        present = HeadState(now_ns, *self.angles(now_ns), moving=now_ns < self._rest_ns)
        return fresh("head", present, now_ns, max_age_s)

    def command(self, pan_rad: float, tilt_rad: float) -> tuple[float, float]:
        self._require_connected()
        limits = self._limits
        goal = limits.clip(pan_rad, tilt_rad)
        now_ns = self._clock.now_ns()
        angles = self.angles(now_ns)
        self._tilted_from_rad = self._after_backlash_rad(angles[1])
        self._from = angles
        self._goal = goal
        travel_rad = max(abs(goal - start) for start, goal in zip(self._from, self._goal, strict=True))
        self._commanded_ns = now_ns
        travel_s = travel_rad / limits.max_speed_rad_s + limits.settle_s if travel_rad else 0.0
        self._rest_ns = now_ns + seconds_to_ns(travel_s)
        return self._goal

    def place(self, tilt_rad: float) -> None:
        """Set the head to a tilt and pan 0, at rest. Raises ``InvalidStart`` outside the limits."""
        self.require_reach(tilt_rad)
        self._from = self._goal = (0.0, tilt_rad)
        self._tilted_from_rad = tilt_rad
        self._commanded_ns = self._rest_ns = self._clock.now_ns()

    def require_reach(self, tilt_rad: float) -> None:
        """Raise ``InvalidStart`` if that tilt is outside the limits."""
        if not self._limits.min_tilt_rad <= tilt_rad <= self._limits.max_tilt_rad:
            raise InvalidStart(
                f"the head cannot start at a tilt of {math.degrees(tilt_rad):g}°: it reaches from "
                f"{math.degrees(self._limits.min_tilt_rad):g}° to {math.degrees(self._limits.max_tilt_rad):g}°",
                "change the start's tilt, or the robot's head limits",
            )
