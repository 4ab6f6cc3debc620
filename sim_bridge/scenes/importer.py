"""Import a Gazebo world, a house of MuJoCo or a mesh as a scene folder."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.version import VERSION
from robot_runtime.errors import SceneError, writing
from robot_runtime.scenes.occupancy_map import OccupancyMap
from robot_runtime.scenes.scene import Room, SceneFile
from sim_bridge.scenes.assets import AssetWriter
from sim_bridge.scenes.decompose import DecompositionSettings
from sim_bridge.scenes.decomposition_worker import DecompositionWorker
from sim_bridge.scenes.mjcf import House, is_mjcf
from sim_bridge.scenes.occupancy import occupancy_from_assets
from sim_bridge.scenes.pieces import WORLD_FORMATS, Piece, Up, all_triangles, read_pieces
from sim_bridge.scenes.progress import Progress, silent
from sim_bridge.scenes.raster import Grid, mark_triangles
from sim_bridge.scenes.rooms import find_rooms, room_of
from sim_bridge.scenes.scene_files import save_scene_file
from sim_bridge.scenes.shapes import visual_triangles
from sim_bridge.scenes.view_points import write_view_points

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ImportOptions:
    """Settings of an import: how to read and how closely to follow the source.

    Attributes:
        models, skip_missing, up, scale, placement: see :func:`sim_bridge.scenes.pieces.read_pieces`.
        floor_z_m: height of the floor in the source; None is the lowest large level.
        min_z_m: the robot rolls over lower obstacles.
        max_z_m: shapes that begin higher have no contact.
        texture_px: longest edge of a texture.
        settings: settings of the contact shapes.
        view_points: whether to compute them; without, ObjectNav cannot run in the scene.
    """

    models: tuple[Path, ...] = ()
    skip_missing: bool = False
    up: Up | None = None
    scale: float = 1.0
    placement: Array | None = None
    floor_z_m: float | None = None
    resolution_m: float = 0.025
    min_z_m: float = 0.03
    max_z_m: float = 0.9
    texture_px: int = 512
    settings: DecompositionSettings = field(default_factory=DecompositionSettings)
    view_points: bool = True


def import_scene(
    source: Path, folder: Path, options: ImportOptions | None = None, report: Progress = silent
) -> list[str]:
    """Make a scene folder from a world (.world, .sdf), MJCF (.xml) or a mesh (.glb, .gltf, .obj, .dae, .stl, .ply).

    Args:
        source: world or mesh file.
        folder: replaced; must be new or hold a scene.
        options: options of the import.
        report: receives the progress.

    Returns:
        Lines on what was left out or changed: absent textures, a floor that had to be shifted.

    Raises:
        SceneError: names the file and the remedy.
    """
    options = options or ImportOptions()
    notes: list[str] = []
    report("reading meshes", 0, 1)
    rooms: tuple[Room, ...] = ()
    if source.suffix.lower() == ".xml" and is_mjcf(source):
        _refuse_unused(source, options, ())
        house = House(source, notes)
        pieces, rooms = house.pieces(), house.rooms()
    else:
        world = source.suffix.lower() in WORLD_FORMATS
        _refuse_unused(source, options, ("models", "skip_missing") if world else ("up", "scale"))
        pieces = read_pieces(
            source, options.models, options.skip_missing, options.up, options.scale, notes, options.placement
        )
    pieces = _without_strays(source, pieces, notes)
    pieces, floor_z_m = _on_the_floor(source, pieces, options.floor_z_m, notes)
    report("reading meshes", 1, 1)
    with fresh_folder(folder) as draft, DecompositionWorker() as worker:
        writer = AssetWriter(
            draft, options.settings, options.texture_px, options.min_z_m, options.max_z_m, worker.search
        )
        file = writer.write(pieces, report)
        file = replace(file, name=folder.name, source=_provenance(source, floor_z_m))
        _write_map(draft, file, options, rooms)
        if options.view_points:
            write_view_points(draft, report)
    return list(dict.fromkeys((*notes, *writer.notes)))


def _refuse_unused(source: Path, options: ImportOptions, read: tuple[str, ...]) -> None:
    """Raise ``SceneError`` for an option that a source of this kind does not read: it states these things itself."""
    default = ImportOptions()
    for name in ("models", "skip_missing", "up", "scale"):
        if name not in read and getattr(options, name) != getattr(default, name):
            raise SceneError(
                f"{source}: --{name.replace('_', '-')} is not for {source.suffix} files",
                "leave it out; what the file states itself is changed in the file",
            )


def _write_map(folder: Path, file: SceneFile, options: ImportOptions, rooms: tuple[Room, ...]) -> None:
    """Write the map, and ``scene.yaml`` with the rooms that the source states, or else those that the map shows."""
    occupancy = occupancy_from_assets(folder, file, options.resolution_m, options.min_z_m, options.max_z_m)
    rooms = rooms or find_rooms(occupancy, wall_cells(folder, file, occupancy))
    objects = tuple(replace(item, room=room_of(item.center[0], item.center[1], rooms)) for item in file.objects)
    occupancy.save(folder / file.map)
    save_scene_file(folder / "scene.yaml", replace(file, rooms=rooms, objects=objects))


@contextmanager
def fresh_folder(folder: Path) -> Iterator[Path]:
    """A draft next to ``folder`` that takes its place when the block ends well, and vanishes otherwise.

    Raises:
        SceneError: ``folder`` exists and is not a scene.
    """
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / "scene.yaml").is_file())):
        raise SceneError(f"{folder}: exists and is not a scene", "give a folder that is new or holds a scene")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with writing(folder), tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        draft = Path(temporary) / folder.name
        (draft / "assets").mkdir(parents=True)
        yield draft
        if folder.exists():
            shutil.rmtree(folder)
        draft.replace(folder)


def _provenance(source: Path, floor_z_m: float) -> dict[str, str | int | float]:
    found: dict[str, str | int | float] = {"imported": source.name, "tool": f"robot-runtime {VERSION}"}
    for parent in list(source.resolve().parents)[:3]:
        licence = next((p for p in sorted(parent.glob("LICEN[SC]E*")) if p.is_file()), None)
        if licence is not None:
            text = licence.read_text(encoding="utf-8", errors="replace").strip()
            found["licence"] = f"{licence.name}: {' '.join(text.split())[:200]}"
            break
    if floor_z_m:
        found["floor_shift_m"] = round(-floor_z_m, 4)
    return found


# --- the floor ------------------------------------------------------------------------------------------------------


_STRAY_M = 50.0
"""A greater height without anything parts what stands in the scene from what a physics engine lost."""

_QUESTIONABLE_M = 1.0


def _without_strays(source: Path, pieces: list[Piece], notes: list[str]) -> list[Piece]:
    """The pieces of the fullest range of heights; those far above or below it are noted and left out."""
    heights = {index: piece.world_points()[:, 2] for index, piece in enumerate(pieces)}
    spans = sorted((float(z.min()), float(z.max()), index) for index, z in heights.items() if len(z))
    groups: list[list[int]] = []
    top_m = -np.inf
    for low_m, high_m, index in spans:
        if low_m > top_m + _STRAY_M:
            groups.append([])
        groups[-1].append(index)
        top_m = max(top_m, high_m)
    strays = {index for group in groups if group is not max(groups, key=len) for index in group}
    for low_m, _, index in spans:
        if index in strays:
            notes.append(f"{source.name}: {pieces[index].name} is at z = {low_m:,.1f} m, far from the rest; left out")
    return [piece for index, piece in enumerate(pieces) if index not in strays]


def _on_the_floor(
    source: Path, pieces: list[Piece], given_m: float | None, notes: list[str]
) -> tuple[list[Piece], float]:
    """The pieces with the floor at z = 0, and the height at which it was (0 if within 5 mm)."""
    triangles = all_triangles(pieces)
    if not len(triangles):
        raise SceneError(f"{source}: has nothing to draw", "give a source with visual meshes")
    floor_z_m = floor_height(triangles) if given_m is None else given_m
    if abs(floor_z_m) <= 0.005:
        return pieces, 0.0
    note = f"{source.name}: the floor is at z = {floor_z_m:.3f} m; everything is shifted so that it is at 0"
    if given_m is None and abs(floor_z_m) > _QUESTIONABLE_M:
        note += ". Is that the floor? If not, check --up and --scale, or name its height with --floor-z-m"
    notes.append(note)
    return [piece.shifted(-floor_z_m) for piece in pieces], floor_z_m


def floor_height(triangles: Array) -> float:
    """The z of the lowest level that has at least a third as much upward surface as the level that has most.

    Levels are 5 cm thick; the result is the area-weighted median within the level. Without any upward surface it is
    the lowest z of all.
    """
    normals = 0.5 * np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    area = np.linalg.norm(normals, axis=1)
    upward = normals[:, 2] > 0.95 * np.maximum(area, 1e-12)
    if not upward.any():
        return float(triangles[..., 2].min())
    z, weight = triangles[upward, :, 2].mean(axis=1), area[upward]
    level = np.floor(z / 0.05).astype(int)
    # A floor on the boundary of two levels counts as one: sum each with the next.
    sums = np.bincount(level - level.min(), weights=weight)
    pairs = sums + np.append(sums[1:], 0.0)
    chosen = int(np.flatnonzero(pairs >= pairs.max() / 3)[0]) + level.min()
    near = (level == chosen) | (level == chosen + 1)
    return weighted_median(z[near], weight[near])


def weighted_median(values: Array, weights: Array) -> float:
    """The value, of values (N,), that half of the weights lie at or below."""
    order = np.argsort(values)
    cumulated = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulated, cumulated[-1] / 2)])


def wall_cells(folder: Path, file: SceneFile, occupancy: OccupancyMap) -> NDArray[np.bool_]:
    """Cells covered above furniture and below lintels."""
    rows, columns = occupancy.cells.shape
    grid = Grid(occupancy.origin_x_m, occupancy.origin_y_m, rows, columns, occupancy.resolution_m)
    cells = np.zeros((rows, columns), bool)
    for triangles in visual_triangles(folder, file):
        mark_triangles(cells, grid, triangles, 1.5, 1.9)
    return cells
