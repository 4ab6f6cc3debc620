"""What a tilt servo makes of the angle that it is told: its zero, its scale, its play.

Found by ``robot-runtime calibrate tilt-servo``; read with :func:`load_tilt_servo`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from robot_runtime import config
from robot_runtime.calibration_file import read_calibration

KIND = "tilt-servo"


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

    def looks_rad(self, commanded_rad: float, upward: bool) -> float:
        """Where the camera looks once the servo has come to a command from below (``upward``) or from above."""
        side = -0.5 if upward else 0.5
        return math.radians(self.zero_deg) + self.scale * commanded_rad + side * math.radians(self.backlash_deg)

    def command_rad(self, wanted_rad: float, upward: bool) -> float:
        """What to command so that the camera looks there: the inverse of :meth:`looks_rad`."""
        return (wanted_rad - self.looks_rad(0.0, upward)) / self.scale


def load_tilt_servo(path: Path, robot: str) -> TiltServo:
    """The servo in a calibration file.

    Raises:
        ConfigError: malformed. CalibrationError: changed, another robot's, or too old.
    """
    file = read_calibration(path, KIND, robot)
    return config.parse(file.content, TiltServo, str(path))
