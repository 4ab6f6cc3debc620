"""Relocation of an object: the planar motion that lays its shape over surfaces that have appeared.

A robot sees one or two sides of an object, so the shape is fitted from many headings and offsets. A fit is scored by
the share of the new surface that it explains, and by where it puts surface: for surface that was measured, against
space that the robot looked through. The answer is a guess: of two equal chairs that changed places each has
"possibly" moved to the other's place.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.scenes.scene import Scene, SceneObject
from sim_bridge.reconstruction.depth_comparison import VOXEL_M
from sim_bridge.reconstruction.occupancy_mapping import VoxelGrid
from sim_bridge.reconstruction.planar_geometry import moved, moved_back, rotation_matrix
from sim_bridge.scenes.shapes import spread, visual_triangles

Array = NDArray[np.float64]

NEAR_M = 0.07
"""A voxel's mean point within this distance of the shape is explained by it."""

LEAST_EXPLAINED = 0.6
MOST_OPEN, MOST_OPEN_FUSED = 0.3, 0.5
"""Limits of a plausible relocation; see :class:`Relocation`. Fused surfaces are thicker than the objects."""

_SHAPE_POINTS = 1500
_HEADINGS = 24
_REFINED = 8
_PER_METER, _PER_HALF_TURN = 0.02, 0.1
"""Reductions of the score, so that of two equal fits the smaller motion is preferred."""


@dataclass(frozen=True, slots=True)
class Relocation:
    """A candidate motion of a shape.

    Attributes:
        motion: motion in the plane of ``map`` that takes points of the shape from where it was to where it is.
        explained: share of the points that have appeared that lie on the shape.
        open: share of the shape that lies where the robot looked through.
        score: higher is better.
    """

    motion: SE2
    explained: float
    open: float
    score: float

    def plausible(self, most_open: float) -> bool:
        """Whether the motion explains enough and puts no more than that share of the shape into open space."""
        return self.explained >= LEAST_EXPLAINED and self.open <= most_open


def shape_of(scene: Scene, item: SceneObject) -> Array | None:
    """Points (N, 3) in ``map`` on an object's meshes above the floor; None if it has none."""
    own = replace(scene.file, assets=tuple(asset for asset in scene.file.assets if asset.object == item.id))
    points = spread(visual_triangles(scene.folder, own), _SHAPE_POINTS, seed=0)
    if points is None:
        return None
    points = points[points[:, 2] > VOXEL_M]
    return points if len(points) > 20 else None


def box_surface(item: SceneObject) -> Array:
    """Points (N, 3) in ``map`` on the sides and the top of an object's box."""
    half = np.array(item.size) / 2
    axes = [np.linspace(-h, h, max(2, math.ceil(4 * h / VOXEL_M))) for h in half.tolist()]
    grid = np.stack(np.meshgrid(*axes), -1).reshape(-1, 3)
    on_surface = (np.abs(grid[:, :2]) == half[:2]).any(axis=1) | (grid[:, 2] == half[2])
    x_m, y_m, z_m = item.center
    points = moved(grid[on_surface], SE2(x_m, y_m, math.radians(item.yaw_deg)))
    points[:, 2] += z_m
    return points


def fit_relocation(shape: Array, appeared: Array, voxels: VoxelGrid, possible: Array | None = None) -> Relocation:
    """The best motion that brings a shape to points that have appeared.

    Args:
        shape: float64 (N, 3), the known surface.
        appeared: float64 (M, 3).
        voxels: what was measured.
        possible: float64 (K, 3), where the object may have more surface that no frame has shown.
    """
    surface = shape if possible is None else np.concatenate([shape, possible])
    tree = cKDTree(surface)
    starts = [start for i in range(_HEADINGS) for start in _starts(shape, appeared, i * 2 * math.pi / _HEADINGS)]
    rough = [_scored(_icp(start, surface, tree, appeared, 4), shape, tree, appeared, voxels) for start in starts]
    rough.sort(key=lambda candidate: -candidate.score)
    # The mean points of voxels are accurate to a centimeter or two, so a few iterations are enough.
    fine = [
        _scored(_icp(one.motion, surface, tree, appeared, 15), shape, tree, appeared, voxels)
        for one in rough[:_REFINED]
    ]
    return max(fine, key=lambda candidate: candidate.score)


def _starts(shape: Array, appeared: Array, yaw: float) -> list[SE2]:
    """Motions with a heading that put the shape's center, or one of its four sides, at the center of the points."""
    rotated = shape[:, :2] @ rotation_matrix(yaw).T
    low, high = rotated.min(axis=0), rotated.max(axis=0)
    goal = (appeared[:, :2].min(axis=0) + appeared[:, :2].max(axis=0)) / 2
    sides = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)])
    offsets = goal + sides * (high - low) / 2 - (low + high) / 2
    return [SE2(x, y, yaw) for x, y in offsets.tolist()]


def _icp(motion: SE2, surface: Array, tree: cKDTree, appeared: Array, iterations: int) -> SE2:
    """Point-to-point ICP in the plane, over the points that are nearest to the shape."""
    for _ in range(iterations):
        distance, index = tree.query(moved_back(appeared, motion))
        near = distance <= max(NEAR_M, float(np.quantile(distance, 0.7)))
        source, goal = surface[index[near], :2], appeared[near, :2]
        a, b = source.mean(axis=0), goal.mean(axis=0)
        cross = (source - a).T @ (goal - b)
        yaw = math.atan2(cross[0, 1] - cross[1, 0], cross[0, 0] + cross[1, 1])
        x, y = (b - rotation_matrix(yaw) @ a).tolist()
        motion = SE2(x, y, yaw)
    return motion


def _scored(motion: SE2, shape: Array, tree: cKDTree, appeared: Array, voxels: VoxelGrid) -> Relocation:
    distance, _ = tree.query(moved_back(appeared, motion))
    explained = float((distance <= NEAR_M).mean())
    index = voxels.indices(moved(shape, motion))
    index = index[index >= 0]
    in_open = float(voxels.open.reshape(-1)[index].sum()) / len(shape)
    on_surface = float(voxels.occupied.reshape(-1)[index].sum()) / len(shape)
    center = shape[:, :2].mean(axis=0).tolist()
    distance_m = math.dist(motion.apply(*center), center)
    half_turns = abs(wrap_angle(motion.yaw_rad)) / math.pi
    score = explained + 0.5 * on_surface - in_open - _PER_METER * distance_m - _PER_HALF_TURN * half_turns
    return Relocation(motion, explained, in_open, score)
