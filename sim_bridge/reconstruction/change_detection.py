"""Changes in a place since its scene was made: things gone, things new, and things that have possibly moved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree

from robot_runtime.common.geometry import wrap_angle
from robot_runtime.errors import SceneError
from robot_runtime.scenes.scene import Point3, Scene, SceneObject
from sim_bridge.reconstruction.build import FUSED
from sim_bridge.reconstruction.depth_comparison import (
    TOP_M,
    VOXEL_M,
    DepthDifferences,
    compare,
    described_voxels,
    seen_share,
)
from sim_bridge.reconstruction.logged_frames import FrameSequence
from sim_bridge.reconstruction.planar_geometry import moved
from sim_bridge.reconstruction.relocation import (
    MOST_OPEN,
    MOST_OPEN_FUSED,
    Relocation,
    box_surface,
    fit_relocation,
    shape_of,
)
from sim_bridge.reconstruction.scene_assembly import in_box
from sim_bridge.scenes.progress import Progress, silent

LEAST_EQUAL = 0.4
"""With a smaller share of equal pixels the scene is of another place, or lies elsewhere in the map."""

LEAST_SEEN = 0.02
"""With a smaller share of the scene's free floor in view, nothing is reported."""

NEAR_M = 1.5
"""Distance within which an object is named as near to a change."""

_LEAST_VOXELS = 0.3
"""A region has at least this share of the number of voxels that the thing has left."""

_MOST_LARGER = 1.3
"""A region may be larger than the thing by this factor and two voxels."""


@dataclass(frozen=True)
class Change:
    """One difference.

    Attributes:
        kind: ``moved`` is a guess: a thing is gone here, and something of its shape has appeared there.
        object: id of the scene's object; None where the scene has no name for it.
        center: center in ``map`` of the scene's object where it was, else of the box around what was seen.
        size: edge lengths of the same box.
        near: the nearest object and the room, for people; of ``moved``, near its present place.
        share: share of the measured surface that is gone, for ``gone`` and ``moved``; 1 for ``appeared``.
        voxels: number of voxels of :data:`~sim_bridge.reconstruction.depth_comparison.VOXEL_M`.
        to: x and y of the present center of a moved thing.
        moved_m: distance from ``center`` to ``to``.
        turned_deg: rotation of a moved thing.
    """

    kind: Literal["moved", "gone", "appeared"]
    object: str | None
    category: str | None
    center: Point3
    size: Point3
    near: str
    share: float
    voxels: int
    to: tuple[float, float] | None = None
    moved_m: float | None = None
    turned_deg: float | None = None


@dataclass(frozen=True)
class ChangeReport:
    """The result of :func:`find_changes`.

    Attributes:
        logs: file names.
        frames: number that was compared.
        equal_share: share of the pixels in which scene and logs agree.
        seen_share: share of the scene's free floor that the logs show.
        changes: moved things first, then gone and new ones, each kind by size.
        unseen: ids of objects that the logs do not show, whose state is unknown.
        notes: remarks about the logs and the camera.
    """

    scene: str
    digest: str
    logs: tuple[str, ...]
    frames: int
    equal_share: float
    seen_share: float
    changes: tuple[Change, ...]
    unseen: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The report for ``json.dump``; the scene's name has the key ``twin``."""
        document = asdict(self)
        return {"twin": document.pop("scene"), **document}


def find_changes(
    scene: Scene, frames: FrameSequence, min_size_m: float = 0.15, observations: int = 2, report: Progress = silent
) -> ChangeReport:
    """Compare the logs' depth with the scene's, and list the changes.

    Raises:
        SceneError: the scene has no meshes; the logs are of another place or map, or show too little.
        RecordingError: see :class:`~sim_bridge.reconstruction.logged_frames.FrameSequence`.
    """
    found = compare(scene, frames, observations, report)
    equal = found.equal / max(1, found.compared)
    seen = seen_share(scene, found)
    logs = ", ".join(Path(path).name for path in frames.paths[:3])
    if found.compared and equal < LEAST_EQUAL:
        raise SceneError(
            f"{scene.folder}: agrees with {logs} in {equal:.0%} of the pixels: this is another place, or lies "
            "elsewhere in the robot's map",
            "give the scene of the place where the logs were recorded; robot-runtime scene align brings a scan there",
        )
    if seen < LEAST_SEEN:
        raise SceneError(
            f"{scene.folder}: {found.frames} frames of {logs} show {seen:.1%} of its free floor",
            "give more logs of this place",
        )
    missing, unseen = missing_objects(scene, found, min_size_m)
    new = regions(found, found.new_voxels() & described_voxels(scene, found), min_size_m)
    relocations, new = _relocations(scene, found, missing, new, report)
    changes = [_missing_change(scene, thing, relocations.get(i)) for i, thing in enumerate(missing)]
    changes += [_region_change(scene, "appeared", region) for region in new]
    vanished = regions(found, vanished_outside_objects(scene, found), min_size_m)
    changes += [_region_change(scene, "gone", region) for region in vanished]
    order = {"moved": 0, "gone": 1, "appeared": 2}
    changes.sort(key=lambda change: (order[change.kind], -change.voxels))
    notes = [*frames.notes, *found.floor.notes()]
    if frames.scene.digest != scene.digest:
        notes.append(f"the logs were recorded in scene {frames.scene.name!r} ({frames.scene.digest[:12]})")
    return ChangeReport(
        scene.name,
        scene.digest,
        tuple(path.name for path in frames.paths),
        found.frames,
        round(equal, 4),
        round(seen, 4),
        tuple(changes),
        tuple(unseen),
        tuple(dict.fromkeys(notes)),
    )


def _relocations(
    scene: Scene, found: DepthDifferences, missing: Sequence[MissingObject], new: Sequence[Region], report: Progress
) -> tuple[dict[int, Relocation], list[Region]]:
    """The plausible relocations by index of the missing object, and the regions that none of them explains."""
    candidates: list[tuple[float, Relocation, int, int]] = []
    shapes: dict[int, NDArray[np.float64]] = {}
    for i, thing in enumerate(missing):
        report("regions", i, len(missing))
        shape = shape_of(scene, thing.item)
        if shape is None:
            continue
        shapes[i] = shape
        # A fused object has only the sides that were seen; at its present place others may be in view.
        possible = box_surface(thing.item) if FUSED in scene.file.source else None
        extent = np.ptp(shape if possible is None else possible, axis=0)
        limits = _MOST_LARGER * np.sort(extent) + 2 * VOXEL_M
        for j, region in enumerate(new):
            share = len(region.voxels) / len(thing.region.voxels)
            if share >= _LEAST_VOXELS and (np.sort(region.box[1]) <= limits).all():
                relocation = fit_relocation(shape, region.points, found.voxels, possible)
                if relocation.plausible(MOST_OPEN if possible is None else MOST_OPEN_FUSED):
                    candidates.append((relocation.score + 0.3 * min(1.0, share), relocation, i, j))
    report("regions", 1, 1)
    chosen: dict[int, Relocation] = {}
    taken: set[int] = set()
    for _, relocation, i, j in sorted(candidates, key=lambda candidate: -candidate[0]):
        if i not in chosen and j not in taken:
            chosen[i] = relocation
            taken.add(j)
    # Other sides of a moved thing, seen from elsewhere, are regions of their own.
    present = [cKDTree(moved(shapes[i], relocation.motion)) for i, relocation in chosen.items()]
    left = [
        region
        for j, region in enumerate(new)
        if j not in taken and not any((tree.query(region.points)[0] <= 2 * VOXEL_M).mean() > 0.5 for tree in present)
    ]
    return chosen, left


def _missing_change(scene: Scene, thing: MissingObject, relocation: Relocation | None) -> Change:
    item = thing.item
    x_m, y_m = item.center[:2] if relocation is None else relocation.motion.apply(*item.center[:2])
    return Change(
        "gone" if relocation is None else "moved",
        item.id,
        item.category,
        rounded(np.array(item.center)),
        rounded(np.array(item.size)),
        _near(scene, (x_m, y_m), item.id),
        round(thing.share, 3),
        len(thing.region.voxels),
        None if relocation is None else (round(x_m, 3), round(y_m, 3)),
        None if relocation is None else round(math.dist((x_m, y_m), item.center[:2]), 3),
        None if relocation is None else round(math.degrees(wrap_angle(relocation.motion.yaw_rad)), 1),
    )


def _region_change(scene: Scene, kind: Literal["gone", "appeared"], region: Region) -> Change:
    center, size = region.box
    return Change(kind, None, None, center, size, _near(scene, center[:2], None), 1.0, len(region.voxels))


def _near(scene: Scene, point: tuple[float, float], besides: str | None) -> str:
    """The nearest object of the scene within :data:`NEAR_M`, and the room."""
    objects = sorted(
        (item.distance_m(*point), item.id) for item in scene.objects if item.id != besides and item.size[2] > VOXEL_M
    )
    words = []
    if objects and objects[0][0] <= NEAR_M:
        words.append(f"{objects[0][0]:.1f} m from {objects[0][1]}" if objects[0][0] > 0.05 else f"at {objects[0][1]}")
    words += [f"in {room.id}" for room in scene.rooms if room.contains(*point)][:1]
    return ", ".join(words)


# --- regions that changed -------------------------------------------------------------------------------------------


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
    """Whether an object reaches into the heights that are compared, unlike rugs and ceiling lamps."""
    half_m = item.size[2] / 2
    return item.center[2] + half_m > 2 * VOXEL_M and item.center[2] - half_m < TOP_M - VOXEL_M


def rounded(values: Array) -> Point3:
    """Coordinates rounded to a millimeter."""
    x, y, z = (round(float(value), 3) for value in values)
    return x, y, z
