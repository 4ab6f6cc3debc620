"""Movable objects: poses, sources of poses, and the result of grasping.

An object's frame has its origin in the center of its box (``scene.SceneObject``) and the axes of the box's edges: the
object of ``scene.yaml`` lies at ``center``, rotated by ``yaw_deg`` about z. Poses are in ``map``.
"""

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
    """Pose and state of an object.

    Attributes:
        position: position of the origin, in map.
        quaternion: rotation, w, x, y, z.
        openness: 0 closed .. 1 open; None for objects that do not open.
    """

    position: Point3
    quaternion: Quaternion = (1.0, 0.0, 0.0, 0.0)
    openness: float | None = None

    @classmethod
    def upright(cls, position: Point3, yaw_rad: float) -> "ObjectPose":
        """A pose rotated about z only, counter-clockwise."""
        return cls(position, (math.cos(yaw_rad / 2), 0.0, 0.0, math.sin(yaw_rad / 2)))

    @property
    def yaw_rad(self) -> float:
        """Rotation about z, the first of the angles about z, y, x."""
        w, x, y, z = self.quaternion
        return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))

    def moved(self, by: SE2) -> "ObjectPose":
        """The pose after a motion in the plane, or the pose in ``map`` of a pose given in the frame ``by``."""
        x_m, y_m = by.apply(self.position[0], self.position[1])
        c, s = math.cos(by.yaw_rad / 2), math.sin(by.yaw_rad / 2)
        w, x, y, z = self.quaternion
        turned = (c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w)
        return ObjectPose((x_m, y_m, self.position[2]), turned, self.openness)

    @property
    def fault(self) -> str | None:
        """The reason why this pose is invalid, such as a quaternion that is not a rotation; None if it is valid."""
        if not all(map(math.isfinite, self.position)):
            return f"position {list(self.position)} is not finite"
        if not abs(math.hypot(*self.quaternion) - 1) <= UNIT_TOLERANCE:
            return f"quaternion {list(self.quaternion)} is not of length 1"
        if self.openness is not None and not 0 <= self.openness <= 1:
            return f"openness {self.openness} is not between 0 and 1"
        return None


class ObjectSource(str, Enum):
    """Origin of objects' poses: physics, cameras or markers on the site, or manual measurement."""

    SIMULATOR = "simulator"
    TRACKER = "tracker"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class TrackedObjects:
    """All tracked objects at one instant.

    Attributes:
        stamp_ns: stamp of the oldest measurement among them.
        poses: poses by object id, without those that are held.
        held: ids of objects in the robot's hand or backpack, in the order of grasping.
    """

    stamp_ns: int
    poses: Mapping[str, ObjectPose] = field(default_factory=dict)
    held: tuple[str, ...] = ()


class GrabOutcome(str, Enum):
    """Outcome of ``grab_release``."""

    GRABBED = "grabbed"
    RELEASED = "released"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Grab:
    """Result of a ``grab_release``.

    Attributes:
        outcome: grabbed, released, or nothing.
        object_id: grabbed or released; with ``nothing``, the object that could not be, or None without one.
        detail: the reason of ``nothing``.
    """

    outcome: GrabOutcome
    object_id: str | None = None
    detail: str = ""
