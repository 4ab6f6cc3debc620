"""Limits of the checks of a pose source."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PoseLimits:
    """Limits beyond which a source counts as having lost the robot (``hal.pose_checks``).

    Attributes:
        max_std_m: largest standard deviation of a coordinate.
        max_std_rad: largest standard deviation of the heading.
        max_jump_m: largest deviation of the path from odometry's, over the last meter.
        max_jump_rad: largest deviation of the heading from odometry's, over the last meter.
        recover_s: duration for which poses after a jump must agree with odometry until they are accepted: longer than
            any action, so that no jump is missed between two reads.
    """

    max_std_m: float = 0.5
    max_std_rad: float = math.radians(20)
    max_jump_m: float = 0.3
    max_jump_rad: float = math.radians(20)
    recover_s: float = 5.0
