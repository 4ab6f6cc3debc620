"""Connected regions of voxels that differ, and the objects of a scene that are missing from their places."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.scenes.scene import Point3, Scene, SceneObject
from sim_bridge.reconstruction.depth_comparison import TOP_M, VOXEL_M, DepthDifferences
from sim_bridge.reconstruction.scene_assembly import in_box

Array = NDArray[np.float64]

CHANGED_SHARE = 0.15
"""An object is missing from its place when at least this share of its measured surface is gone."""

BOX_MARGIN_M = 0.04
SLIVER_M = 0.18
"""A region thinner than this in two directions is the edge of something that a coarse mesh has rounded."""


@dataclass(frozen=True, eq=False)
class Region:
    """Connected voxels.

    Attributes:
        voxels: int64 (N,), flat indices.
        points: float64 (N, 3), a point in ``map`` for each voxel.
    """

    voxels: NDArray[np.int64]
    points: Array

    @property
    def box(self) -> tuple[Point3, Point3]:
        """Center and size, with half a voxel added on every side."""
        low, high = self.points.min(axis=0) - VOXEL_M / 2, self.points.max(axis=0) + VOXEL_M / 2
        return rounded((low + high) / 2), rounded(high - low)

    def counts(self, min_size_m: float) -> bool:
        """Whether the region is large enough, and more than a sliver along an edge."""
        size = sorted(self.box[1], reverse=True)
        return size[0] >= min_size_m and size[1] >= SLIVER_M and len(self.voxels) >= 1.5 * (min_size_m / VOXEL_M) ** 2


@dataclass(frozen=True, eq=False)
class MissingObject:
    """An object that is not where the scene has it.

    Attributes:
        item: the object.
        region: voxels of it that are gone.
        share: share of gone voxels among its voxels that were looked at.
    """

    item: SceneObject
    region: Region
    share: float


def regions(found: DepthDifferences, mask: NDArray[np.bool_], min_size_m: float) -> list[Region]:
    """The large enough regions of the voxels in ``mask``; voxels that are one voxel apart count as connected."""
    grid = mask.reshape(found.voxels.shape)
    labels, _ = ndimage.label(ndimage.binary_dilation(grid), np.ones((3, 3, 3)))
    voxels = np.flatnonzero(mask)
    owner = labels.reshape(-1)[voxels]
    parts = [voxels[owner == label] for label in np.unique(owner)]
    return [region for region in (Region(part, found.points(part)) for part in parts) if region.counts(min_size_m)]


def missing_objects(scene: Scene, found: DepthDifferences, min_size_m: float) -> tuple[list[MissingObject], list[str]]:
    """The objects of at least that size that are not in their places, and the ids of those that no frame shows."""
    vanished = np.flatnonzero(found.vanished_voxels())
    unchanged = np.flatnonzero(found.unchanged_voxels())
    vanished_owner, unchanged_owner = (
        _owners(scene, found.voxels.centers(voxels), min_size_m) for voxels in (vanished, unchanged)
    )
    missing, unseen = [], []
    for i, item in enumerate(scene.objects):
        gone, present = vanished[vanished_owner == i], int((unchanged_owner == i).sum())
        if not (_in_compared_heights(item) and max(item.size) >= min_size_m):
            continue
        if not len(gone) and not present:
            unseen.append(item.id)
        elif len(gone) >= 3 and len(gone) >= CHANGED_SHARE * (len(gone) + present):
            region = Region(gone, found.voxels.centers(gone))
            missing.append(MissingObject(item, region, len(gone) / (len(gone) + present)))
    return missing, unseen


def vanished_outside_objects(scene: Scene, found: DepthDifferences) -> NDArray[np.bool_]:
    """Voxels (voxels,) that are gone and lie in no object's box."""
    mask = found.vanished_voxels()
    voxels = np.flatnonzero(mask)
    mask[voxels[_owners(scene, found.voxels.centers(voxels)) >= 0]] = False
    return mask


def _owners(scene: Scene, points: Array, min_size_m: float = 0.0) -> NDArray[np.int64]:
    """Index of the smallest object of at least that size whose box holds each point; -1 for none."""
    owner = np.full(len(points), -1, np.int64)
    for i in sorted(range(len(scene.objects)), key=lambda i: math.prod(scene.objects[i].size)):
        if max(scene.objects[i].size) >= min_size_m:
            owner[(owner < 0) & in_box(points, scene.objects[i], BOX_MARGIN_M)] = i
    return owner


def _in_compared_heights(item: SceneObject) -> bool:
    """Whether an object reaches into the heights that are compared, which rugs and ceiling lamps do not."""
    half_m = item.size[2] / 2
    return item.center[2] + half_m > 2 * VOXEL_M and item.center[2] - half_m < TOP_M - VOXEL_M


def rounded(values: Array) -> Point3:
    """Coordinates rounded to a millimeter."""
    x, y, z = (round(float(value), 3) for value in values)
    return x, y, z
