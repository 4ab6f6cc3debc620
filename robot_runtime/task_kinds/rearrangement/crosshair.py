"""Geometry of the crosshair: the places from which an object can be grabbed.

``grab_release`` casts a ray from the optical center through the crosshair
(:class:`~robot_runtime.task_kinds.rearrangement.settings.Rearrangement`). Here the camera stands above the robot's axis
and the object is an upright cylinder inside its box; occlusion is ignored.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.task_kinds.rearrangement.settings import Rearrangement
from robot_runtime.tasks.task import Task

MAX_TILT_DEG = 60.0
"""A LoCoBot's head can do more, but published agents do not."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ray:
    """The crosshair's ray at one tilt of the camera, seen from the robot: x forward, y left, z up.

    Attributes:
        tilt_rad: up positive.
        direction: direction of length 1.
    """

    tilt_rad: float
    direction: tuple[float, float, float]

    @property
    def azimuth_rad(self) -> float:
        """Direction over the floor, left of the robot's heading positive."""
        return math.atan2(self.direction[1], self.direction[0])

    @property
    def along(self) -> float:
        """Meters over the floor per meter of ray."""
        return math.hypot(self.direction[0], self.direction[1])


@dataclass(frozen=True)
class Pointer:
    """The crosshair of a task.

    Attributes:
        rays: one per tilt that the task's actions reach.
        height_m: height of the optical center.
        reach_m: distance from the optical center, along the ray.
    """

    rays: tuple[Ray, ...]
    height_m: float
    reach_m: float

    @classmethod
    def of(cls, task: Task) -> "Pointer":
        """The pointer of a task of the kind rearrangement."""
        camera, hand = task.camera, settings(task)
        right = (hand.crosshair[0] - 0.5) * camera.width / camera.intrinsics.fx
        down = (hand.crosshair[1] - 0.5) * camera.height / camera.intrinsics.fy
        rays = tuple(Ray(tilt_rad, _direction(right, down, tilt_rad)) for tilt_rad in _tilts_rad(task))
        return cls(rays, camera.height_m, hand.reach_m)

    def spans(self, low_m: float, high_m: float, radius_m: float) -> list[tuple[Ray, float, float]]:
        """Distances from which an upright cylinder can be grabbed when its axis lies in the direction of the ray.

        Args:
            low_m: height of its lower end.
            high_m: height of its upper end.
            radius_m: radius of the cylinder.

        Returns:
            Per ray that can meet it, the least and the largest distance between its axis and the robot's, in meters.
        """
        found = []
        for ray in self.rays:
            near_m, far_m = 0.0, self.reach_m * ray.along
            rise = ray.direction[2] / ray.along
            if abs(rise) > 1e-9:
                ends = sorted(((low_m - self.height_m) / rise, (high_m - self.height_m) / rise))
                near_m, far_m = max(near_m, ends[0]), min(far_m, ends[1])
            elif not low_m <= self.height_m <= high_m:
                continue
            if near_m <= far_m:
                found.append((ray, max(0.0, near_m - radius_m), far_m + radius_m))
        return found

    def hits(self, x: Floats, y: Floats, yaw: Floats, ray: Ray, box: "UprightBox") -> Floats:
        """Score of a ray at a box from each pose: 1 through the middle, 0 along an edge, negative next to it.

        Args:
            x: x coordinates of the robot's poses; the three arrays broadcast.
            y: y coordinates of the robot's poses.
            yaw: headings of the robot's poses.
            ray: ray of the crosshair.
            box: box to be met.

        Returns:
            Of their common shape: one minus the ray's offset from the middle, as a fraction of the box's half size;
            -inf where the middle's distance is beyond the reach.
        """
        c, s = np.cos(yaw), np.sin(yaw)
        direction = (c * ray.direction[0] - s * ray.direction[1], s * ray.direction[0] + c * ray.direction[1])
        to_x, to_y, to_z = box.center[0] - x, box.center[1] - y, box.center[2] - self.height_m
        along = to_x * direction[0] + to_y * direction[1] + to_z * ray.direction[2]
        off = (to_x - along * direction[0], to_y - along * direction[1], to_z - along * ray.direction[2])
        c_box, s_box = math.cos(box.yaw_rad), math.sin(box.yaw_rad)
        u, v = off[0] * c_box + off[1] * s_box, off[1] * c_box - off[0] * s_box
        worst = np.maximum(np.abs(u) / box.size[0], np.abs(v) / box.size[1])
        worst = 2 * np.maximum(worst, np.abs(off[2]) / box.size[2])
        return np.asarray(np.where((along > 0) & (along <= self.reach_m), 1 - worst, -np.inf))


@dataclass(frozen=True)
class UprightBox:
    """A box turned about z: center, full edge lengths, yaw."""

    center: tuple[float, float, float]
    size: tuple[float, float, float]
    yaw_rad: float

    @property
    def radius_m(self) -> float:
        """Of the largest upright cylinder inside."""
        return min(self.size[0], self.size[1]) / 2

    @property
    def low_m(self) -> float:
        """Height of the lower face."""
        return self.center[2] - self.size[2] / 2

    @property
    def high_m(self) -> float:
        """Height of the upper face."""
        return self.center[2] + self.size[2] / 2


def settings(task: Task) -> Rearrangement:
    """The settings of a task of the kind rearrangement; every such task has them."""
    assert isinstance(task.settings, Rearrangement), task.name
    return task.settings


def _tilts_rad(task: Task) -> list[float]:
    """The tilts that looking up and down reaches from the one at the start; the start's own first."""
    start, step = task.camera.tilt_deg, task.magnitudes.tilt_deg
    up = [start + step * k for k in range(1, 13) if Action.LOOK_UP in task.actions]
    down = [start - step * k for k in range(1, 13) if Action.LOOK_DOWN in task.actions]
    return [math.radians(tilt) for tilt in (start, *down, *up) if tilt == start or abs(tilt) <= MAX_TILT_DEG + 1e-9]


def _direction(right: float, down: float, tilt_rad: float) -> tuple[float, float, float]:
    """Of the ray through a point of the image plane at distance 1."""
    c, s = math.cos(tilt_rad), math.sin(tilt_rad)
    x, y, z = c + down * s, -right, s - down * c
    length = math.hypot(x, y, z)
    return x / length, y / length, z / length
