"""The LoCoBot's pan-tilts: ids, registers and limits of PyRobot's and of Interbotix'.

Sources: PyRobot's ``dynamixels.yaml`` and ``locobot_config.py``, Interbotix' ``modes_all.yaml`` and ``locobot_*.yaml``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from drivers.dynamixel.protocol import PROFILE_RAD_S
from robot_runtime.hal import HeadLimits

VariantName = Literal["pyrobot", "interbotix"]


@dataclass(frozen=True)
class ServoVariant:
    """One of the two servos.

    Attributes:
        sign: direction in which positions count: 1 for left or up.
        reversed: whether the drive mode must have its reversing bit, without which ``sign`` does not hold.
    """

    id: int
    sign: int
    reversed: bool = False


@dataclass(frozen=True)
class PanTiltVariant:
    """A pan-tilt as its robot's stack configures it.

    Attributes:
        limits: reach, and speed by ``profile_velocity``.
        profile_velocity: register 112, units of 0.229 revolutions per minute.
        profile_acceleration: register 108, units of 214.577 revolutions per minute squared.
        position_limits: registers 52 and 48, in counts.
    """

    pan: ServoVariant
    tilt: ServoVariant
    limits: HeadLimits
    profile_velocity: int
    profile_acceleration: int
    position_limits: tuple[int, int] = (0, 4095)


_PYROBOT_LIMITS = HeadLimits(
    # Less than PyRobot's software allows (pan -2.7..2.6, tilt 1.75 down): the URDF ends at 1.57, and further down the
    # camera sees the robot itself.
    min_pan_rad=-math.pi / 2,
    max_pan_rad=math.pi / 2,
    min_tilt_rad=-math.radians(75),
    max_tilt_rad=1.4,
    max_speed_rad_s=10 * PROFILE_RAD_S,
    settle_s=0.2,
)

VARIANTS: Mapping[VariantName, PanTiltVariant] = {
    "pyrobot": PanTiltVariant(
        pan=ServoVariant(8, sign=1),
        tilt=ServoVariant(9, sign=-1),
        limits=_PYROBOT_LIMITS,
        profile_velocity=10,
        profile_acceleration=30,
    ),
    "interbotix": PanTiltVariant(
        pan=ServoVariant(10, sign=1),
        tilt=ServoVariant(11, sign=-1, reversed=True),
        limits=replace(_PYROBOT_LIMITS, max_tilt_rad=math.pi / 2, max_speed_rad_s=131 * PROFILE_RAD_S),
        profile_velocity=131,
        profile_acceleration=15,
        position_limits=(1024, 3072),
    ),
}
