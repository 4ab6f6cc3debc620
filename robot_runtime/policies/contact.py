"""What an agent can know about contact: it moved less than it asked for.

A round robot that touches something stays in touch while it turns, and the Guard refuses every forward move into a
pressed bumper, whose zones span 90 degrees to either side. The way out therefore leads more than 90 degrees away from
where the obstacle touches, which the agent has to guess.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions import Action
from robot_runtime.geometry import SE2

Floats = NDArray[np.float64]

BLOCKED_FRACTION = 0.8
"""A forward move that got less far than this part of its length has hit something."""

_SAME_PLACE_M = 0.04
_BUMPER_RAD = math.radians(91.0)
_SAME_HEADING_RAD = math.radians(20.0)


class ContactMemory:
    """Tells blocked forward moves from others, and which headings are worth trying next.

    Call :meth:`observe` with each new pose and :meth:`acted` with each action decided on.

    Args:
        forward_m: length of an unhindered move.
    """

    def __init__(self, forward_m: float) -> None:
        self._forward_m = forward_m
        self._last: SE2 | None = None
        self._moving = False
        self._pose = SE2()
        self._failed_rad: list[float] = []
        self._touching_rad: list[float] = []

    def observe(self, pose: SE2) -> bool:
        """Take note of where the last action led; whether it was a forward move that something blocked."""
        previous, self._pose = self._pose, pose
        if not self._moving:
            return False
        self._moving = False
        travelled_m = pose.distance_to(previous)
        blocked = travelled_m < BLOCKED_FRACTION * self._forward_m
        if travelled_m > _SAME_PLACE_M:
            self._failed_rad.clear()
            self._touching_rad.clear()
        if blocked:
            self._failed_rad.append(pose.yaw_rad)
            self._touching_rad.append(pose.yaw_rad)
        return blocked

    def touching(self, direction_rad: float) -> None:
        """Say where the obstacle of the contact just reported probably is (it is ahead, unless told)."""
        self._touching_rad[-1] = direction_rad

    def acted(self, action: Action) -> None:
        """Take note of the action that the robot carries out next."""
        self._moving = action is Action.MOVE_FORWARD

    def allowed(self, angles_rad: Floats) -> NDArray[np.bool_] | None:
        """Which headings a forward move from here may take; None for all.

        Away from every contact at this place; where that leaves none, any heading that has not failed yet.
        """
        if not self._failed_rad:
            return None
        away = _apart(angles_rad, self._touching_rad) > _BUMPER_RAD
        untried = _apart(angles_rad, self._failed_rad) > _SAME_HEADING_RAD
        if (away & untried).any():
            return away & untried
        return untried if untried.any() else None


def _apart(angles_rad: Floats, others_rad: list[float]) -> Floats:
    """The smallest angle between each heading and any of the others."""
    difference = angles_rad[:, None] - np.array(others_rad)
    return np.asarray(np.abs((difference + math.pi) % (2 * math.pi) - math.pi).min(axis=1))
