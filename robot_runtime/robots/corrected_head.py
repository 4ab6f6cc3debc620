"""Tilt servo calibration: zero, scale and backlash, and a head that corrects them.

``robot-runtime calibrate tilt-servo`` writes the file. A robot's YAML with ``tilt_servo: servo.yaml`` gets the
:class:`CorrectedHead`, whose angles are those of the camera instead of the servo.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from typing_extensions import override

from robot_runtime.common import config
from robot_runtime.common.host_checks import Finding
from robot_runtime.hal import Head, HeadLimits, HeadState

KIND = "tilt-servo"

MAX_AGE_S = 1.0
"""Largest age of the head's state from which the direction of approach is determined."""

SAME_RAD = math.radians(0.05)
"""A command this close to the current angle does not change the direction of approach."""


@dataclass(frozen=True)
class TiltServo(config.Strict):
    """The camera's tilt is ``zero_deg + scale * commanded``, less half the backlash in the direction of approach.

    Attributes:
        zero_deg: the camera's tilt at command 0, up positive.
        scale: tilt per commanded angle.
        backlash_deg: difference between approaching from below and from above.
    """

    zero_deg: float = 0.0
    scale: float = 1.0
    backlash_deg: float = 0.0

    def __post_init__(self) -> None:
        if not (0.5 < self.scale < 2 and abs(self.zero_deg) < 90 and 0 <= self.backlash_deg < 90):
            raise ValueError(f"scale must lie within 0.5 to 2, zero_deg and backlash_deg below 90, got {self}")

    def camera_tilt_rad(self, commanded_rad: float, upward: bool) -> float:
        """The camera's tilt after the servo approached a command from below (``upward``) or from above."""
        side = -0.5 if upward else 0.5
        return math.radians(self.zero_deg) + self.scale * commanded_rad + side * math.radians(self.backlash_deg)

    def command_rad(self, camera_rad: float, upward: bool) -> float:
        """The command for a tilt of the camera: the inverse of :meth:`camera_tilt_rad`."""
        return (camera_rad - self.camera_tilt_rad(0.0, upward)) / self.scale


class CorrectedHead(Head):
    """A head whose angles are those of its camera.

    The camera lags behind the servo by half the backlash, so the servo moves that much farther in the direction of
    approach.
    """

    def __init__(self, servos: Head, servo: TiltServo) -> None:
        self._servos, self._servo = servos, servo
        self._upward = True

    @property
    def limits(self) -> HeadLimits:
        """The angles that the camera reaches from either side."""
        limits, servo = self._servos.limits, self._servo
        return replace(
            limits,
            min_tilt_rad=servo.camera_tilt_rad(limits.min_tilt_rad, upward=False),
            max_tilt_rad=servo.camera_tilt_rad(limits.max_tilt_rad, upward=True),
        )

    @override
    def connect(self) -> None:
        self._servos.connect()

    @override
    def close(self) -> None:
        self._servos.close()

    @override
    def diagnose(self) -> Sequence[Finding]:
        return self._servos.diagnose()

    @override
    def state(self, max_age_s: float) -> HeadState:
        state = self._servos.state(max_age_s)
        return replace(state, tilt_rad=self._servo.camera_tilt_rad(state.tilt_rad, self._upward))

    @override
    def command(self, pan_rad: float, tilt_rad: float) -> tuple[float, float]:
        pan_rad, tilt_rad = self.limits.clip(pan_rad, tilt_rad)
        camera_tilt_rad = self.state(MAX_AGE_S).tilt_rad
        if abs(tilt_rad - camera_tilt_rad) > SAME_RAD:
            self._upward = tilt_rad > camera_tilt_rad
        pan_rad, servo_rad = self._servos.command(pan_rad, self._servo.command_rad(tilt_rad, self._upward))
        return pan_rad, self._servo.camera_tilt_rad(servo_rad, self._upward)
