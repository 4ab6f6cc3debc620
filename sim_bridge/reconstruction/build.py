"""A scene folder from logs: map, mesh, floor, and those of the known objects that were seen where they should be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_runtime import __version__
from robot_runtime.errors import SceneError
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Asset, Room, Scene, SceneFile, SceneObject
from sim_bridge.reconstruction.floor_texture import FloorLook
from sim_bridge.reconstruction.logged_frames import Sights, stems
from sim_bridge.reconstruction.occupancy_mapping import Band, Evidence
from sim_bridge.reconstruction.scene_assembly import floor_piece, object_parts, structure_pieces
from sim_bridge.reconstruction.tsdf import Fusion, Surface
from sim_bridge.scenes.assets import AssetWriter
from sim_bridge.scenes.decompose import DecompositionSettings
from sim_bridge.scenes.importer import fresh_folder, wall_cells
from sim_bridge.scenes.progress import Progress, silent
from sim_bridge.scenes.rooms import find_rooms
from sim_bridge.scenes.scene_files import save_scene_file
from sim_bridge.scenes.view_points import write_view_points

LEAST_FREE_M2 = 0.5
"""Less seen floor than a robot and its next step need is no map."""

FUSED = "fused"
"""Key of ``source`` in scene.yaml: the logs that a scene was made of."""

_STRIDE_PX = 2
_TEXTURE_PX = 4096  # the floor's texture has a pixel for each cell


@dataclass(frozen=True)
class FusionOptions:
    """How to make a scene of logs.

    Attributes:
        band: of the map.
        voxel_m: edge of the mesh's voxels; None for a map without a mesh, which cannot be simulated.
        view_points: whether to compute them for the objects; without, ObjectNav cannot run in the scene.
    """

    band: Band = field(default_factory=Band)
    voxel_m: float | None = 0.04
    view_points: bool = True


@dataclass(frozen=True)
class FusedScene:
    """What a scene was made of.

    Attributes:
        frames: that were used. free_m2, occupied_m2: of the map. triangles: of the mesh, 0 without one.
        objects: ids that were seen where the logs' scene has them. unseen: the others.
        floor_z_m: median height of what was taken for floor; None if none was seen.
        notes: what was left out, and what looks wrong.
    """

    frames: int
    free_m2: float
    occupied_m2: float
    triangles: int
    objects: tuple[str, ...]
    unseen: tuple[str, ...]
    floor_z_m: float | None
    notes: tuple[str, ...]


def build_scene(
    sights: Sights, folder: Path, options: FusionOptions | None = None, report: Progress = silent
) -> FusedScene:
    """Make a scene folder in the logs' frame ``map``.

    Rooms and named frames are those of the scene that the logs carry; rooms are found in the map where it has none.

    Args:
        folder: written anew; must not hold anything but an earlier scene.

    Raises:
        ConfigError: Open3D is missing; the place is too large for the resolution.
        RecordingError: see :class:`~sim_bridge.reconstruction.logged_frames.Sights`.
        SceneError: too little was seen for a map, or ``folder`` is something else than a scene.
    """
    options = options or FusionOptions()
    evidence = Evidence(sights.viewpoints, sights.max_depth_m, options.band)
    fusion = None if options.voxel_m is None else Fusion(options.voxel_m, sights.max_depth_m)
    floor = FloorLook()
    frames = 0
    for sight in sights:
        report("frames", frames, len(sights))
        points, colors = sight.points(_STRIDE_PX)
        evidence.add(sight, points)
        floor.add(sight, points, colors)
        if fusion is not None:
            fusion.add(sight)
        frames += 1
    report("frames", len(sights), len(sights))
    occupancy = evidence.occupancy()
    free_m2, occupied_m2 = _area_m2(occupancy, Cell.FREE), _area_m2(occupancy, Cell.OCCUPIED)
    if free_m2 < LEAST_FREE_M2:
        raise SceneError(
            f"{stems(sights.paths)}: {frames} frames show {free_m2:.2f} m² of free floor at least "
            f"{options.band.observations} times",
            "give logs of more episodes, a lower --min-observations, or a greater --max-depth-m",
        )
    notes = [*sights.notes, *floor.heights.notes()]
    with fresh_folder(folder) as draft:
        surface = None
        if fusion is not None:
            report("mesh", 0, 1)
            surface = fusion.surface(options.band.observations)
            report("mesh", 1, 1)
        carried = evidence.drops(occupancy)
        file, objects = _assets(draft, sights.scene, surface, occupancy, carried, floor, options.band, report)
        rooms = sights.scene.rooms or _found_rooms(draft, file, occupancy)
        source: dict[str, str | int | float] = {
            FUSED: stems(sights.paths),
            "place": sights.scene.name,
            "tool": f"robot-runtime {__version__}",
            "frames": frames,
            "poses": sights.referee,
        }
        kept = tuple(_in_rooms(item, rooms) for item in objects)
        file = replace(
            file, name=folder.name, rooms=rooms, objects=kept, frames=sights.scene.file.frames, source=source
        )
        occupancy.save(draft / file.map)
        save_scene_file(draft / "scene.yaml", file)
        if surface is not None and kept and options.view_points:
            write_view_points(draft, report)
    seen = {item.id for item in objects}
    unseen = tuple(item.id for item in sights.scene.objects if item.id not in seen)
    count = 0 if surface is None else len(surface.corners)
    return FusedScene(
        frames,
        free_m2,
        occupied_m2,
        count,
        tuple(sorted(seen)),
        unseen,
        floor.heights.median_m,
        tuple(dict.fromkeys(notes)),
    )


def _assets(
    draft: Path,
    known: Scene,
    surface: Surface | None,
    occupancy: OccupancyMap,
    drops: NDArray[np.bool_],
    floor: FloorLook,
    band: Band,
    report: Progress,
) -> tuple[SceneFile, tuple[SceneObject, ...]]:
    """The scene's assets, written, and the known objects that the surface confirms; without a surface, neither."""
    if surface is None or not len(surface.corners):
        return SceneFile(1, draft.name, (), (), ceiling_m=known.file.ceiling_m), ()
    rest, things = object_parts(surface, known.objects)
    pieces = [floor_piece(occupancy, drops, floor)]
    pieces += structure_pieces(rest, occupancy, drops, band)
    pieces += [piece for _, piece in things]
    writer = AssetWriter(draft, DecompositionSettings(), _TEXTURE_PX, band.min_z_m, band.max_z_m)
    file = writer.write(pieces, report)
    # By their place in the list: a writer names and sorts what it imports, and these have names already.
    owners = [None] * (len(pieces) - len(things)) + [item.id for item, _ in things]
    assets: tuple[Asset, ...] = tuple(
        replace(asset, object=owner) for asset, owner in zip(file.assets, owners, strict=True)
    )
    return replace(file, assets=assets, objects=()), tuple(item for item, _ in things)


def _found_rooms(draft: Path, file: SceneFile, occupancy: OccupancyMap) -> tuple[Room, ...]:
    return find_rooms(occupancy, wall_cells(draft, file, occupancy))


def _in_rooms(item: SceneObject, rooms: tuple[Room, ...]) -> SceneObject:
    """The object, in no room if its own is not there any more."""
    return item if item.room in {room.id for room in rooms} else replace(item, room=None)


def _area_m2(occupancy: OccupancyMap, cell: Cell) -> float:
    return float(np.count_nonzero(occupancy.cells == cell)) * occupancy.resolution_m**2
