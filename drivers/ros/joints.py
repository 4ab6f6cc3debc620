"""The head's angles in sensor_msgs/JointState, for the driver and for bags. Pure."""

import math
from typing import Any

from robot_runtime.hal import HeadLimits

BEYOND_RAD = math.radians(20)
"""How far a joint may be beyond its limits: a servo without torque, moved by hand. Farther is a servo bus's garbage."""


def has_joints(message: Any, joints: tuple[str, str]) -> bool:
    """Whether a message is about the head: other nodes publish the wheels on the same topic."""
    return set(joints) <= set(message.name)


def head_angles(message: Any, joints: tuple[str, str], limits: HeadLimits) -> tuple[float, float, str]:
    """Return pan and tilt, left and up positive, and why they are unusable; empty if they are usable.

    Args:
        message: JointState with both joints.
        joints: Names of pan and tilt.
        limits: The head's.
    """
    try:
        # In both stacks a positive tilt of the joint looks down.
        pan_rad, tilt_rad = (float(message.position[message.name.index(joint)]) for joint in joints)
    except IndexError:
        return 0.0, 0.0, "the head's joints have no position"
    tilt_rad = -tilt_rad
    if not (math.isfinite(pan_rad) and math.isfinite(tilt_rad)):
        return 0.0, 0.0, f"the head's joints are at ({pan_rad}, {tilt_rad}) rad"
    ends = ((pan_rad, limits.min_pan_rad, limits.max_pan_rad), (tilt_rad, limits.min_tilt_rad, limits.max_tilt_rad))
    if not all(low - BEYOND_RAD <= angle_rad <= high + BEYOND_RAD for angle_rad, low, high in ends):
        return pan_rad, tilt_rad, f"the head's joints are at ({pan_rad:.3g}, {tilt_rad:.3g}) rad, beyond its limits"
    return pan_rad, tilt_rad, ""
