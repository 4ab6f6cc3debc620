"""What has changed in a place since its twin was made: things gone, things new, and things that have possibly moved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import SceneError
from robot_runtime.scenes.scene import Point3, Scene, SceneObject
from sim_bridge.reconstruction.build import FUSED
from sim_bridge.reconstruction.changed_regions import (
    Lost,
    Region,
    appeared,
    box_sides,
    counts,
    lost_objects,
    regions,
    rounded,
    shape_of,
    unowned,
)
from sim_bridge.reconstruction.depth_comparison import VOXEL_M, Differences, compare, known, seen_share
from sim_bridge.reconstruction.logged_frames import Sights
from sim_bridge.reconstruction.relocated_objects import Move, fit_move
from sim_bridge.scenes.progress import Progress, silent

Array = NDArray[np.float64]

LEAST_EQUAL = 0.4
"""Of the pixels: with fewer the twin is of another place, or lies elsewhere in the map."""

LEAST_SEEN = 0.02
"""Of the twin's free floor: with less there is nothing to say."""

LEAST_PART = 0.3
"""Of the voxels that a thing has left, as many must have appeared elsewhere: a sliver is no chair."""

NEAR_M = 1.5
"""Farther away is not near."""

MOST_OPEN, MOST_OPEN_FUSED = 0.3, 0.5
"""Of a thing's surface, where it may have gone, in space that the robot looked through; fused things are too fat."""

_WHOLE = 0.3
"""Of the score, for a region that has as many voxels as the thing has left."""

_MOST_LARGER = 1.3
"""A region that has appeared belongs to a thing of at most so much smaller size."""


@dataclass(frozen=True)
class Change:
    """One difference.

    Attributes:
        kind: ``moved`` is a guess: a thing is gone here and something of its shape has appeared there.
        object: id of the twin's object; None where the twin has no name for it.
        center, size: in ``map``, of the twin's object where it was, else of the box around what was seen.
        near: the object or room nearest to it, for people; of ``moved``, to where it is now.
        to: where the middle of a moved thing is now, x and y. moved_m: how far. turned_deg: how far it has turned.
        share: of ``gone`` and ``moved``, how much of the surface that was looked at is not there any more; of
            ``appeared``, 1.
        voxels: of :data:`~sim_bridge.reconstruction.depth_comparison.VOXEL_M`.
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
    """What :func:`find_changes` found.

    Attributes:
        twin: name of the scene, and its digest. logs: names.
        frames: compared. equal_share: of the pixels in which twin and logs agree.
        seen_share: of the twin's free floor, how much the logs show.
        unseen: ids of objects that the logs do not show, of which nothing is known.
    """

    twin: str
    digest: str
    logs: tuple[str, ...]
    frames: int
    equal_share: float
    seen_share: float
    changes: tuple[Change, ...]
    unseen: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """For ``json.dump``."""
        return asdict(self)


def find_changes(
    twin: Scene, sights: Sights, min_size_m: float = 0.15, observations: int = 2, report: Progress = silent
) -> ChangeReport:
    """Compare the logs' depth with the twin's, and say what has changed.

    Args:
        min_size_m: longest edge of the smallest thing that counts.
        observations: frames that must agree on a voxel.

    Raises:
        SceneError: the twin has no meshes; the logs are of another place, lie elsewhere in the map, or show too little.
        RecordingError: see :class:`~sim_bridge.reconstruction.logged_frames.Sights`.
    """
    found = compare(twin, sights, observations, report)
    equal = found.equal / max(1, found.compared)
    seen = seen_share(twin, found)
    logs = ", ".join(Path(path).name for path in sights.paths[:3])
    if found.compared and equal < LEAST_EQUAL:
        raise SceneError(
            f"{twin.folder}: agrees with {logs} in {equal:.0%} of the pixels: this is another place, or lies elsewhere "
            "in the robot's map",
            "give the twin of the place where the logs were recorded; robot-runtime scene align brings a scan there",
        )
    if seen < LEAST_SEEN:
        raise SceneError(
            f"{twin.folder}: {found.frames} frames of {logs} show {seen:.1%} of its free floor",
            "give more logs of this place",
        )
    report("regions", 0, 1)
    lost, unseen = lost_objects(twin, found, min_size_m)
    new = [region for region in regions(found, appeared(found) & known(twin, found)) if counts(region, min_size_m)]
    changes, new = _moves(twin, found, lost, new, report)
    changes += [_appeared_change(twin, region) for region in new]
    rest = [region for region in regions(found, unowned(twin, found)) if counts(region, min_size_m)]
    changes += [_gone_change(twin, None, region, 1.0) for region in rest]
    order = {"moved": 0, "gone": 1, "appeared": 2}
    changes.sort(key=lambda change: (order[change.kind], -change.voxels))
    notes = [*sights.notes, *found.floor.notes()]
    if sights.scene.digest != twin.digest:
        notes.append(f"the logs were recorded in scene {sights.scene.name!r} ({sights.scene.digest[:12]})")
    return ChangeReport(
        twin.name,
        twin.digest,
        tuple(path.name for path in sights.paths),
        found.frames,
        round(equal, 4),
        round(seen, 4),
        tuple(changes),
        tuple(unseen),
        tuple(dict.fromkeys(notes)),
    )


def _moves(
    twin: Scene, found: Differences, lost: Sequence[Lost], new: Sequence[Region], report: Progress
) -> tuple[list[Change], list[Region]]:
    """What is gone, with where it may have moved to; and the regions that no move explains."""
    pairs: list[tuple[float, Move, int, int]] = []
    shapes: dict[int, Array] = {}
    for done, thing in enumerate(lost):
        report("regions", done, len(lost))
        shape = shape_of(twin, thing.item)
        if shape is None:
            continue
        shapes[done] = shape
        # A fused thing has the sides that were seen; where it stands now, the robot may see others.
        maybe = box_sides(thing.item) if FUSED in twin.file.source else None
        extent = sorted(np.ptp(shape if maybe is None else maybe, axis=0).tolist())
        for j, region in enumerate(new):
            size = sorted(region.box[1])
            large_enough = len(region.voxels) >= LEAST_PART * len(thing.region.voxels)
            if large_enough and all(
                mine <= _MOST_LARGER * its + 2 * VOXEL_M for mine, its in zip(size, extent, strict=True)
            ):
                move = fit_move(shape, region.points, found.evidence, maybe)
                if move.plausible(MOST_OPEN if maybe is None else MOST_OPEN_FUSED):
                    whole = min(1.0, len(region.voxels) / len(thing.region.voxels))
                    pairs.append((move.score + _WHOLE * whole, move, done, j))
    report("regions", 1, 1)
    moved: dict[int, Move] = {}
    taken: set[int] = set()
    for _, move, i, j in sorted(pairs, key=lambda pair: -pair[0]):
        if i not in moved and j not in taken:
            moved[i] = move
            taken.add(j)
    changes = [
        _gone_change(twin, thing.item, thing.region, thing.share)
        if i not in moved
        else _moved_change(twin, thing, moved[i])
        for i, thing in enumerate(lost)
    ]
    # Other sides of a moved thing that were seen from elsewhere are part of it.
    carried = [_carried(shapes[i], move.motion) for i, move in moved.items()]
    left = [
        region
        for j, region in enumerate(new)
        if j not in taken and not any(_lies_on(region, thing) for thing in carried)
    ]
    return changes, left


def _carried(shape: Array, motion: SE2) -> Array:
    c, s = math.cos(motion.yaw_rad), math.sin(motion.yaw_rad)
    plan = shape[:, :2] @ np.array([[c, s], [-s, c]]) + (motion.x_m, motion.y_m)
    return np.column_stack([plan, shape[:, 2]])


def _lies_on(region: Region, shape: Array) -> bool:
    """Whether most of a region lies on a shape or closely round it."""
    distance, _ = cKDTree(shape).query(region.points)
    return bool((distance <= 2 * VOXEL_M).mean() > 0.5)


# --- words ----------------------------------------------------------------------------------------------------------


def _moved_change(twin: Scene, thing: Lost, move: Move) -> Change:
    item = thing.item
    x_m, y_m = move.motion.apply(item.center[0], item.center[1])
    return Change(
        "moved",
        item.id,
        item.category,
        rounded(np.array(item.center)),
        rounded(np.array(item.size)),
        _near(twin, (x_m, y_m), item.id),
        round(thing.share, 3),
        len(thing.region.voxels),
        (round(x_m, 3), round(y_m, 3)),
        round(math.dist((x_m, y_m), item.center[:2]), 3),
        round(math.degrees(wrap_angle(move.motion.yaw_rad)), 1),
    )


def _gone_change(twin: Scene, item: SceneObject | None, region: Region, share: float) -> Change:
    center, size = region.box
    if item is not None:
        center, size = rounded(np.array(item.center)), rounded(np.array(item.size))
    id_, category = (item.id, item.category) if item is not None else (None, None)
    near = _near(twin, center[:2], id_)
    return Change("gone", id_, category, center, size, near, round(share, 3), len(region.voxels))


def _appeared_change(twin: Scene, region: Region) -> Change:
    center, size = region.box
    return Change("appeared", None, None, center, size, _near(twin, center[:2], None), 1.0, len(region.voxels))


def _near(twin: Scene, point: tuple[float, float], besides: str | None) -> str:
    """The nearest object of the twin within 1.5 m and the room, as far as there are any."""
    around = sorted(
        (item.distance_m(*point), item.id) for item in twin.objects if item.id != besides and item.size[2] > VOXEL_M
    )
    words = []
    if around and around[0][0] <= NEAR_M:
        words.append(f"{around[0][0]:.1f} m from {around[0][1]}" if around[0][0] > 0.05 else f"at {around[0][1]}")
    words += [f"in {room.id}" for room in twin.rooms if room.contains(*point)][:1]
    return ", ".join(words)
