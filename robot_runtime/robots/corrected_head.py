"""What a tilt servo makes of the angle that it is told: its zero, its scale, its play; and a head that allows for it.

Found by ``robot-runtime calibrate tilt-servo``. A robot's YAML that says ``tilt_servo: servo.yaml`` gets the
:class:`CorrectedHead`: what it is told and says are then angles of the camera, not of the servo.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from robot_runtime.common import config
from robot_runtime.hal import Head, HeadLimits, HeadState
from robot_runtime.robots.calibration_file import read_calibration

KIND = "tilt-servo"

MAX_AGE_S = 1.0
"""Of the head's state, from which the side is told that a command comes from."""

SAME_RAD = math.radians(0.05)
"""A command this near to where the camera looks turns nothing round."""


@dataclass(frozen=True)
class TiltServo:
    """Where the camera looks is ``zero_deg + scale * commanded``, and half the backlash behind it.

    Attributes:
        zero_deg: where the camera looks at command 0, tilt up positive.
        backlash_deg: between coming from below and coming from above.
    """

    zero_deg: float = 0.0
    scale: float = 1.0
    backlash_deg: float = 0.0

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not (0.5 < self.scale < 2 and abs(self.zero_deg) < 90 and 0 <= self.backlash_deg < 90):
            raise ValueError(f"no servo is like this: {self}")

    def camera_tilt_rad(self, commanded_rad: float, upward: bool) -> float:
        """Where the camera looks once the servo has come to a command from below (``upward``) or from above."""
        side = -0.5 if upward else 0.5
        return math.radians(self.zero_deg) + self.scale * commanded_rad + side * math.radians(self.backlash_deg)

    def command_rad(self, wanted_rad: float, upward: bool) -> float:
        """What to command so that the camera looks there: the inverse of :meth:`camera_tilt_rad`."""
        return (wanted_rad - self.camera_tilt_rad(0.0, upward)) / self.scale


def load_tilt_servo(path: Path, robot: str) -> TiltServo:
    """The servo in a calibration file.

    Raises:
        ConfigError: malformed. CalibrationError: changed, another robot's, or too old.
    """
    file = read_calibration(path, KIND, robot)
    return config.parse(file.content, TiltServo, str(path))


class CorrectedHead(Head):
    """A head whose angles are those of its camera.

    The play is allowed for by the side from which an angle is approached: the camera lags behind the servo, so the
    servo goes half the play farther.
    """

    def __init__(self, servos: Head, servo: TiltServo) -> None:
        self._servos, self._servo = servos, servo
        self._upward = True

    @property
    def limits(self) -> HeadLimits:
        """What the camera can reach from either side."""
        limits, servo = self._servos.limits, self._servo
        return replace(
            limits,
            min_tilt_rad=servo.camera_tilt_rad(limits.min_tilt_rad, upward=False),
            max_tilt_rad=servo.camera_tilt_rad(limits.max_tilt_rad, upward=True),
        )

    def connect(self) -> None:
        self._servos.connect()

    def close(self) -> None:
        self._servos.close()

    def state(self, max_age_s: float) -> HeadState:
        state = self._servos.state(max_age_s)
        return replace(state, tilt_rad=self._servo.camera_tilt_rad(state.tilt_rad, self._upward))

    def command(self, pan_rad: float, tilt_rad: float) -> tuple[float, float]:
        pan_rad, tilt_rad = self.limits.clip(pan_rad, tilt_rad)
        camera_tilt_rad = self.state(MAX_AGE_S).tilt_rad
        if abs(tilt_rad - camera_tilt_rad) > SAME_RAD:
            self._upward = tilt_rad > camera_tilt_rad
        pan_rad, servo_rad = self._servos.command(pan_rad, self._servo.command_rad(tilt_rad, self._upward))
        return pan_rad, self._servo.camera_tilt_rad(servo_rad, self._upward)
