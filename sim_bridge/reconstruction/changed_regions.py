"""Voxels that differ, gathered into things: regions that have appeared, and objects of the twin that are not there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.scenes.scene import Point3, Scene, SceneObject
from sim_bridge.reconstruction.depth_comparison import TOP_M, VOXEL_M, Differences
from sim_bridge.reconstruction.scene_assembly import in_box
from sim_bridge.scenes.shapes import spread, visual_triangles

Array = NDArray[np.float64]

CHANGED_SHARE = 0.15
"""Of an object's surface that was looked at, gone: it has moved by less than its size, or is gone."""

BOX_MARGIN_M = 0.04
SLIVER_M = 0.18
"""Thinner in two directions, a region is the edge of something that a coarse mesh has rounded."""

_SHAPE_POINTS = 1500


@dataclass(frozen=True, eq=False)
class Region:
    """Voxels that belong together, as flat indices, and a point (3,) for each."""

    voxels: NDArray[np.int64]
    points: Array

    @property
    def box(self) -> tuple[Point3, Point3]:
        """Centre and size, half a voxel added on every side."""
        low, high = self.points.min(axis=0) - VOXEL_M / 2, self.points.max(axis=0) + VOXEL_M / 2
        return rounded((low + high) / 2), rounded(high - low)


def appeared(found: Differences) -> NDArray[np.bool_]:
    enough = found.evidence.band.observations
    return np.asarray((found.appeared >= enough) & (found.appeared > found.agreed)) & found.evidence.standing.reshape(
        -1
    )


def gone(found: Differences) -> NDArray[np.bool_]:
    enough = found.evidence.band.observations
    open_ = found.evidence.open.reshape(-1)
    return np.asarray((found.gone >= enough) & (found.gone > found.agreed) & open_)


def _points(found: Differences, voxels: NDArray[np.int64]) -> Array:
    """The mean of the points that have appeared in voxels, else their middles; float64 (N, 3)."""
    counts = found.counts[voxels]
    middles = found.evidence.centers(voxels)
    means = found.sums[voxels] / np.maximum(counts, 1)[:, None]
    return np.where(counts[:, None] > 0, means, middles).astype(np.float64)


def regions(found: Differences, mask: NDArray[np.bool_]) -> list[Region]:
    """Connected voxels, those a voxel apart included."""
    grid = mask.reshape(found.evidence.shape)
    labels, _ = ndimage.label(ndimage.binary_dilation(grid), np.ones((3, 3, 3)))
    voxels = np.flatnonzero(mask)
    owner = labels.reshape(-1)[voxels]
    return [
        Region(voxels[owner == label], _points(found, voxels[owner == label])) for label in np.unique(owner).tolist()
    ]


def counts(region: Region, min_size_m: float) -> bool:
    """Whether a region is large enough, and more than a sliver along an edge."""
    size = sorted(region.box[1], reverse=True)
    return size[0] >= min_size_m and size[1] >= SLIVER_M and len(region.voxels) >= 1.5 * (min_size_m / VOXEL_M) ** 2


@dataclass(frozen=True, eq=False)
class Lost:
    """An object of the twin, the voxels of it that are gone, and their share of those that were looked at."""

    item: SceneObject
    region: Region
    share: float


def _owners(twin: Scene, points: Array, min_size_m: float = 0.0) -> NDArray[np.int64]:
    """Index of the object of at least that size whose box holds each point, the smallest of several; -1 for none."""
    owner = np.full(len(points), -1, np.int64)
    for i in sorted(range(len(twin.objects)), key=lambda i: math.prod(twin.objects[i].size)):
        if max(twin.objects[i].size) < min_size_m:
            continue
        owner[(owner < 0) & in_box(points, twin.objects[i], BOX_MARGIN_M)] = i
    return owner


def lost_objects(twin: Scene, found: Differences, min_size_m: float) -> tuple[list[Lost], list[str]]:
    """The objects of at least that size that are not where they were, and the ids of those that nobody looked at."""
    absent = np.flatnonzero(gone(found))
    kept = np.flatnonzero(found.agreed >= found.evidence.band.observations)
    gone_owner, kept_owner = (_owners(twin, found.evidence.centers(voxels), min_size_m) for voxels in (absent, kept))
    lost, unseen = [], []
    for i, item in enumerate(twin.objects):
        mine, stays = absent[gone_owner == i], int((kept_owner == i).sum())
        if not (_comparable(item) and max(item.size) >= min_size_m):
            continue
        if not len(mine) and not stays:
            unseen.append(item.id)
        elif len(mine) >= 3 and len(mine) >= CHANGED_SHARE * (len(mine) + stays):
            region = Region(mine, found.evidence.centers(mine))
            lost.append(Lost(item, region, len(mine) / (len(mine) + stays)))
    return lost, unseen


def _comparable(item: SceneObject) -> bool:
    """Whether an object reaches into the heights that are compared: no rugs, no lamps at the ceiling."""
    half_m = item.size[2] / 2
    return item.center[2] + half_m > 2 * VOXEL_M and item.center[2] - half_m < TOP_M - VOXEL_M


def unowned(twin: Scene, found: Differences) -> NDArray[np.bool_]:
    """Voxels that are gone and lie in no object's box."""
    mask = gone(found)
    voxels = np.flatnonzero(mask)
    mask[voxels[_owners(twin, found.evidence.centers(voxels)) >= 0]] = False
    return mask


def shape_of(twin: Scene, item: SceneObject) -> Array | None:
    """Points (N, 3) in ``map`` on an object's meshes above the floor; None if it has none."""
    own = replace(twin.file, assets=tuple(asset for asset in twin.file.assets if asset.object == item.id))
    points = spread(visual_triangles(twin.folder, own), _SHAPE_POINTS, seed=0)
    if points is None:
        return None
    points = points[points[:, 2] > VOXEL_M]
    return points if len(points) > 20 else None


def box_sides(item: SceneObject) -> Array:
    """Points (N, 3) in ``map`` on the four sides and the top of an object's box."""
    (x, y, z), center = item.size, item.center
    u, v, w = (np.linspace(-edge / 2, edge / 2, max(2, math.ceil(2 * edge / VOXEL_M))) for edge in (x, y, z))
    faces = [
        np.stack(np.meshgrid(u, v, [z / 2]), -1),
        *(np.stack(np.meshgrid(u, [side * y / 2], w), -1) for side in (-1, 1)),
        *(np.stack(np.meshgrid([side * x / 2], v, w), -1) for side in (-1, 1)),
    ]
    points = np.concatenate([face.reshape(-1, 3) for face in faces])
    c, s = math.cos(math.radians(item.yaw_deg)), math.sin(math.radians(item.yaw_deg))
    return np.asarray(points @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) + center)


def rounded(values: Array) -> Point3:
    """To a millimetre."""
    x, y, z = (round(float(value), 3) for value in values)
    return x, y, z
