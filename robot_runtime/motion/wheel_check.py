"""Check that each wheel does what it is commanded to do, by odometry."""

from __future__ import annotations

from robot_runtime.errors import DeviceFault
from robot_runtime.motion.prediction import MotionPredictor

CHECKED_M = 0.05
"""Predicted distance of a wheel from which on odometry must agree: more than what may be under way."""

BACKWARD_M = 0.02
"""Distance against its command that no wheel is pushed by accident."""

STANDING_SHARE = 0.1
DRIVING_SHARE = 0.5
"""Of the predicted distance: less is a wheel that stands, more is one that drives."""


class WheelCheck:
    """Comparison of what the model's wheels have driven since the beginning of a motion with what odometry measures.

    Args:
        predictor: predictor of the base's motion.
    """

    def __init__(self, predictor: MotionPredictor) -> None:
        self._predictor, self._begin = predictor, predictor.now()

    def check(self) -> None:
        """Compare now.

        Raises:
            DeviceFault: a wheel drives the wrong way, or stands while the other one drives as predicted.
        """
        predicted_m, driven_m = self._predictor.now().since(self._begin)
        for name, this, other in (("left", 0, 1), ("right", 1, 0)):
            expected_m = predicted_m[this]
            if abs(expected_m) < CHECKED_M or driven_m[this] / expected_m >= STANDING_SHARE:
                continue
            measured = f"was to drive {expected_m:.3f} m, and odometry measures {driven_m[this]:.3f} m"
            if driven_m[this] * expected_m < 0 and abs(driven_m[this]) > BACKWARD_M:
                raise DeviceFault(
                    f"base: the {name} wheel turns the wrong way: it {measured}",
                    "check the polarity of its motor and its encoder; the wheels were stopped",
                )
            other_drives = driven_m[other] * predicted_m[other] > DRIVING_SHARE * predicted_m[other] ** 2
            if other_drives and predicted_m[other]:
                raise DeviceFault(
                    f"base: the {name} wheel does not turn: it {measured}",
                    "check its motor, its cable and what blocks it; the wheels were stopped",
                )
