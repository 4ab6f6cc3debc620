"""Memory of contacts, inferred from forward moves that ended short.

A round robot that touches something stays in touch while it turns, and the Guard refuses every forward move into a
pressed bumper, whose zones reach 90 degrees to either side. So the way out leads more than 90 degrees away from where
the obstacle touches. No observation contains that place; but every refused heading leaves fewer possibilities.
"""

import math

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common.geometry import SE2

Floats = NDArray[np.float64]

BLOCKED_FRACTION = 0.8
"""A forward move that got less far than this part of its length has hit something."""

_SAME_PLACE_M = 0.04
_BUMPER_RAD = math.radians(90.0)
_SAME_HEADING_RAD = math.radians(10.0)
_DIRECTIONS_RAD = np.radians(np.arange(0.0, 360.0, 2.0))


class ContactMemory:
    """Tells blocked forward moves from others, and which headings are worth trying next.

    Call :meth:`observe` with each new pose and :meth:`acted` with each action decided on.
    """

    def __init__(self, forward_m: float) -> None:
        self._forward_m = forward_m
        self._moving = False
        self._pose = SE2()
        self._failed_rad: list[float] = []

    def observe(self, pose: SE2) -> bool:
        """Take note of where the last action led; whether it was a forward move that something blocked."""
        previous, self._pose = self._pose, pose
        if not self._moving:
            return False
        self._moving = False
        travelled_m = pose.distance_to(previous)
        if travelled_m > _SAME_PLACE_M:
            self._failed_rad.clear()
        blocked = travelled_m < BLOCKED_FRACTION * self._forward_m
        if blocked:
            self._failed_rad.append(pose.yaw_rad)
        return blocked

    def acted(self, decision: Decision) -> None:
        """Take note of the action that the robot carries out next."""
        self._moving = decision is Action.MOVE_FORWARD

    def allowed(self, angles_rad: Floats) -> NDArray[np.bool_] | None:
        """Headings that a forward move from here may take; None for all.

        Those that one obstacle, touching within reach of the bumper on every refused move, might not refuse too. If no
        single obstacle explains all the refusals, every heading not refused yet.
        """
        if not self._failed_rad:
            return None
        failed_rad = np.array(self._failed_rad)
        untried = _apart(angles_rad, failed_rad).min(axis=1) > _SAME_HEADING_RAD
        touching_rad = _DIRECTIONS_RAD[(_apart(_DIRECTIONS_RAD, failed_rad) <= _BUMPER_RAD).all(axis=1)]
        possible = (_apart(angles_rad, touching_rad) > _BUMPER_RAD).any(axis=1) & untried
        if possible.any():
            return np.asarray(possible)
        return np.asarray(untried) if untried.any() else None


def _apart(angles_rad: Floats, others_rad: Floats) -> Floats:
    """The angle between each and each, (angles, others), in [0, pi]."""
    difference = angles_rad[:, None] - others_rad[None, :]
    return np.asarray(np.abs((difference + math.pi) % (2 * math.pi) - math.pi))
