"""Objects that can be moved: where they are, who says so, and what a hand did to them.

An object's own frame stands in the middle of its box (``scene.SceneObject``) along the box's edges, so that the object
as ``scene.yaml`` has it lies at ``center``, turned by ``yaw_deg`` about z. Poses are in ``map``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from robot_runtime.common.geometry import SE2

Point3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

UNIT_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class ObjectPose:
    """Where an object is and in what state: position of its origin in map, rotation as quaternion w, x, y, z.

    Attributes:
        openness: 0 closed .. 1 open; None for what does not open.
    """

    position: Point3
    quaternion: Quaternion = (1.0, 0.0, 0.0, 0.0)
    openness: float | None = None

    @classmethod
    def upright(cls, position: Point3, yaw_rad: float) -> ObjectPose:
        """Standing, turned counter-clockwise about z."""
        return cls(position, (math.cos(yaw_rad / 2), 0.0, 0.0, math.sin(yaw_rad / 2)))

    def moved(self, by: SE2) -> ObjectPose:
        """After a motion in the plane; or, in ``map``, a pose that was given in the frame that stands at ``by``."""
        x_m, y_m = by.apply(self.position[0], self.position[1])
        c, s = math.cos(by.yaw_rad / 2), math.sin(by.yaw_rad / 2)
        w, x, y, z = self.quaternion
        turned = (c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w)
        return ObjectPose((x_m, y_m, self.position[2]), turned, self.openness)

    @property
    def fault(self) -> str | None:
        """What makes this no pose: a number that is not finite, a quaternion that is no rotation; None if nothing."""
        if not all(map(math.isfinite, self.position)):
            return f"position {list(self.position)} is not finite"
        if not abs(math.hypot(*self.quaternion) - 1) <= UNIT_TOLERANCE:
            return f"quaternion {list(self.quaternion)} is not of length 1"
        if self.openness is not None and not 0 <= self.openness <= 1:
            return f"openness {self.openness} is not between 0 and 1"
        return None


class ObjectSource(str, Enum):
    """Who says where the objects are: physics, cameras or markers on the site, or a person with a tape measure."""

    SIMULATOR = "simulator"
    TRACKER = "tracker"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class TrackedObjects:
    """All tracked objects at one instant.

    Attributes:
        stamp_ns: of the oldest measurement among them.
        poses: by object id; without those that are held.
        held: in the robot's hand or backpack, in the order in which they were taken.
    """

    stamp_ns: int
    poses: Mapping[str, ObjectPose] = field(default_factory=dict)
    held: tuple[str, ...] = ()


class GrabOutcome(str, Enum):
    """What ``grab_release`` came to."""

    GRABBED = "grabbed"
    RELEASED = "released"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Grab:
    """What one ``grab_release`` did.

    Attributes:
        object_id: taken or let go; with ``nothing``, the object that could not be, or None if there was none.
        detail: with ``nothing``, why.
    """

    outcome: GrabOutcome
    object_id: str | None = None
    detail: str = ""
