"""Scene folders from logs: map, mesh, floor, and the known objects that were seen in their places."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.version import VERSION
from robot_runtime.errors import SceneError
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Asset, Scene, SceneFile, SceneObject
from sim_bridge.reconstruction.floor_texture import FloorTexture
from sim_bridge.reconstruction.logged_frames import FrameSequence, stems
from sim_bridge.reconstruction.occupancy_mapping import MappingOptions, VoxelGrid
from sim_bridge.reconstruction.scene_assembly import floor_piece, object_parts, structure_pieces
from sim_bridge.reconstruction.tsdf import Surface, TsdfVolume
from sim_bridge.scenes.assets import AssetWriter
from sim_bridge.scenes.decompose import DecompositionSettings
from sim_bridge.scenes.importer import fresh_folder, wall_cells
from sim_bridge.scenes.progress import Progress, silent
from sim_bridge.scenes.rooms import find_rooms
from sim_bridge.scenes.scene_files import save_scene_file
from sim_bridge.scenes.view_points import write_view_points

LEAST_FREE_M2 = 0.5
"""Least area of free floor in a map."""

FUSED = "fused"
"""Key of ``source`` in scene.yaml: the logs that a scene was made of."""

_STRIDE_PX = 2
_TEXTURE_PX = 4096  # the floor's texture has a pixel for each cell


@dataclass(frozen=True)
class FusionOptions:
    """Settings of the reconstruction.

    Attributes:
        mapping: settings of the map.
        voxel_m: edge of the mesh's voxels; None for a map without a mesh; it cannot be simulated.
        view_points: whether to compute the objects' view points, without which ObjectNav cannot run in the scene.
    """

    mapping: MappingOptions = field(default_factory=MappingOptions)
    voxel_m: float | None = 0.04
    view_points: bool = True


@dataclass(frozen=True)
class FusedScene:
    """A summary of a reconstruction.

    Attributes:
        frames: number that was used.
        triangles: number of triangles of the mesh, 0 without one.
        objects: ids of objects that were seen where the logs' scene has them.
        unseen: ids of the other objects.
        floor_z_m: median height of the floor; None if none was seen.
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
    frames: FrameSequence, folder: Path, options: FusionOptions | None = None, report: Progress = silent
) -> FusedScene:
    """Make a scene folder in the logs' frame ``map``.

    Rooms and named frames are those of the scene that the logs carry; rooms are found in the map where it has none.

    Args:
        frames: the logs' frames.
        folder: folder to rewrite; it must not contain anything but an earlier scene.
        options: settings; None for the defaults.
        report: function that is called with the progress.

    Raises:
        ConfigError: Open3D is missing; the place is too large for the resolution.
        RecordingError: see :class:`~sim_bridge.reconstruction.logged_frames.FrameSequence`.
        SceneError: too little was seen for a map, or ``folder`` holds something else than a scene.
    """
    options = options or FusionOptions()
    voxels = VoxelGrid(frames.viewpoints, frames.max_depth_m, options.mapping)
    volume = None if options.voxel_m is None else TsdfVolume(options.voxel_m, frames.max_depth_m)
    floor = FloorTexture()
    count = 0
    for frame in frames:
        report("frames", count, len(frames))
        points, colors = frame.points(_STRIDE_PX)
        voxels.add(frame, points)
        floor.add(frame, points, colors)
        if volume is not None:
            volume.add(frame)
        count += 1
    report("frames", len(frames), len(frames))
    occupancy = voxels.occupancy()
    free_m2, occupied_m2 = _area_m2(occupancy, Cell.FREE), _area_m2(occupancy, Cell.OCCUPIED)
    if free_m2 < LEAST_FREE_M2:
        raise SceneError(
            f"{stems(frames.paths)}: {count} frames show {free_m2:.2f} m² of free floor at least "
            f"{options.mapping.observations} times",
            "give logs of more episodes, a lower --min-observations, or a greater --max-depth-m",
        )
    with fresh_folder(folder) as draft:
        surface = None
        if volume is not None:
            report("mesh", 0, 1)
            surface = volume.surface(options.mapping.observations)
            report("mesh", 1, 1)
        drops = voxels.drops(occupancy)
        file, objects = _assets(draft, frames.scene, surface, occupancy, drops, floor, options.mapping, report)
        rooms = frames.scene.rooms or find_rooms(occupancy, wall_cells(draft, file, occupancy))
        ids = {room.id for room in rooms}
        file = replace(
            file,
            name=folder.name,
            rooms=rooms,
            objects=tuple(item if item.room in ids else replace(item, room=None) for item in objects),
            frames=frames.scene.file.frames,
            source={
                FUSED: stems(frames.paths),
                "place": frames.scene.name,
                "tool": f"robot-runtime {VERSION}",
                "frames": count,
                "poses": frames.referee,
            },
        )
        occupancy.save(draft / file.map)
        save_scene_file(draft / "scene.yaml", file)
        if file.objects and options.view_points:
            write_view_points(draft, report)
    seen = {item.id for item in objects}
    return FusedScene(
        count,
        free_m2,
        occupied_m2,
        0 if surface is None else len(surface.corners),
        tuple(sorted(seen)),
        tuple(item.id for item in frames.scene.objects if item.id not in seen),
        floor.heights.median_m,
        tuple(dict.fromkeys([*frames.notes, *floor.heights.notes()])),
    )


def _assets(
    draft: Path,
    known: Scene,
    surface: Surface | None,
    occupancy: OccupancyMap,
    drops: NDArray[np.bool_],
    floor: FloorTexture,
    mapping: MappingOptions,
    report: Progress,
) -> tuple[SceneFile, tuple[SceneObject, ...]]:
    """The scene's assets, written, and the known objects that the surface confirms; without a surface, neither."""
    if surface is None or not len(surface.corners):
        return SceneFile(1, draft.name, (), (), ceiling_m=known.file.ceiling_m), ()
    rest, found = object_parts(surface, known.objects)
    pieces = [floor_piece(occupancy, drops, floor)]
    pieces += structure_pieces(rest, occupancy, drops, mapping)
    pieces += [piece for _, piece in found]
    file = AssetWriter(draft, DecompositionSettings(), _TEXTURE_PX, mapping.min_z_m, mapping.max_z_m).write(
        pieces, report
    )
    # The writer numbers and sorts the objects that it imports; these have ids, so they are matched by position.
    owners = [None] * (len(pieces) - len(found)) + [item.id for item, _ in found]
    assets: tuple[Asset, ...] = tuple(
        replace(asset, object=owner) for asset, owner in zip(file.assets, owners, strict=True)
    )
    return replace(file, assets=assets, objects=()), tuple(item for item, _ in found)


def _area_m2(occupancy: OccupancyMap, cell: Cell) -> float:
    return float(np.count_nonzero(occupancy.cells == cell)) * occupancy.resolution_m**2
