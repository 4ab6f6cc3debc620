"""Import of a scan into a robot's map: alignment, its checks, and a scene in the map's coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.common.transforms import rotation_rpy, transform
from robot_runtime.errors import RuntimeFault, SceneError
from robot_runtime.scenes.occupancy_map import OccupancyMap
from robot_runtime.scenes.scene import Scene, SceneFile, find_scene, load_scene
from sim_bridge.reconstruction.scan_registration import Fit, apart, candidates, fit, near_initial
from sim_bridge.reconstruction.scene_assembly import outline_of
from sim_bridge.reconstruction.tsdf import triangle_areas_m2
from sim_bridge.scenes.importer import ImportOptions, floor_height, import_scene, weighted_median
from sim_bridge.scenes.pieces import UPRIGHT, WORLD_FORMATS, Up, all_triangles, own_up, read_pieces
from sim_bridge.scenes.progress import Progress, silent
from sim_bridge.scenes.scene_files import save_scene_file

LEAST_SCORE = 0.3
"""Least score: the empty flat over the furnished flat's map has 0.38, a flat with the same outer walls 0.26."""

FINE = 4
"""Number of the search's peaks that are fitted precisely."""

AMBIGUOUS = 0.85
"""An alignment is ambiguous if another one has this share of its score."""


class AlignmentFailed(RuntimeFault):
    """A scan does not fit the map, or fits it in two ways."""

    exit_code = 4


@dataclass(frozen=True, eq=False)
class Registration:
    """A scan in a map.

    Attributes:
        second: the best fit with another place or heading; None if there is none.
        scan: the upright scan.
    """

    best: Fit
    second: Fit | None
    scan: Scan
    occupancy: OccupancyMap

    @property
    def ambiguity(self) -> float:
        """The second fit's score as a share of the best one's; 0 without one."""
        return 0.0 if self.second is None else max(0.0, self.second.score) / max(self.best.score, 1e-9)

    @property
    def placement(self) -> NDArray[np.float64]:
        """float64 (4, 4): from the scan's axes, in metres and with ``scan.up`` turned onto z, to ``map``."""
        pose = self.best.map_from_scan
        turn = transform((pose.x_m, pose.y_m, 0.0), rotation_rpy(0.0, 0.0, pose.yaw_rad))
        return np.asarray(turn @ self.scan.upright)


def load_map(name_or_path: str) -> tuple[OccupancyMap, Scene | None]:
    """The map of a scene (folder or bundled name) with that scene, or a ROS map (``map.yaml``).

    Raises:
        SceneError: the scene does not exist or is invalid.
        ConfigError: a file is invalid.
    """
    path = Path(name_or_path)
    if path.is_file():
        return OccupancyMap.load(path), None
    if path.is_dir() and not (path / "scene.yaml").is_file() and (path / "map.yaml").is_file():
        return OccupancyMap.load(path / "map.yaml"), None
    scene = load_scene(find_scene(name_or_path))
    return scene.map, scene


def align_scan(
    source: Path,
    occupancy: OccupancyMap,
    where: str,
    up: Up | None = None,
    scale: float = 1.0,
    initial: SE2 | None = None,
    report: Progress = silent,
) -> Registration:
    """Find a scan in a map.

    Args:
        source: the scan's file.
        occupancy: the map.
        where: the map's name, for messages.
        up: the scan's upward axis; None to find it.
        scale: meters per unit of the scan.
        initial: pose of the upright scan in the map, to half a meter and 20 degrees; None to search.
        report: function that is called with the progress.

    Raises:
        SceneError: the scan or the map holds too little to recognize a place by.
        AlignmentFailed: nothing fits, or two poses fit about equally well; the message has the numbers.
    """
    report("reading the scan", 0, 1)
    scan = read_scan(source, up, scale)
    outline = outline_of(occupancy, where)
    report("reading the scan", 1, 1)
    if initial is not None:
        found = [fit(scan.plan, outline, initial)]
        if not near_initial(found[0].map_from_scan, initial):
            found = []
    else:
        starts = candidates(scan.plan, outline, lambda done, total: report("searching headings", done, total))
        rough = sorted((fit(scan.plan, outline, start, rough=True) for start in starts), key=lambda item: -item.score)
        found = []
        for done, near in enumerate(rough[:FINE]):
            report("fitting", done, FINE)
            found.append(fit(scan.plan, outline, near.map_from_scan))
        report("fitting", FINE, FINE)
    found.sort(key=lambda item: -item.score)
    if not found or found[0].score < LEAST_SCORE:
        raise _no_match(source, where, found[0] if found else None, initial)
    best = found[0]
    center = (scan.plan.min(axis=0) + scan.plan.max(axis=0)) / 2
    second = next((f for f in found[1:] if apart(f.map_from_scan, best.map_from_scan, center)), None)
    result = Registration(best, second, scan, occupancy)
    if second is not None and result.ambiguity > AMBIGUOUS:
        one, other = (_pose_text(f.map_from_scan) for f in (best, second))
        raise AlignmentFailed(
            f"{source}: fits {where} in two ways about equally well: {one} explains {best.inlier_share:.0%} of the "
            f"map's border, {other} {second.inlier_share:.0%}",
            f"choose one with --initial {one} or --initial={other}",
        )
    return result


def import_aligned(
    result: Registration, known: Scene | None, folder: Path, options: ImportOptions, report: Progress = silent
) -> list[str]:
    """Import the scan as a scene in the map's frame.

    Named frames and rooms are those of the map's scene, if there is one.

    Returns:
        The notes of :func:`~sim_bridge.scenes.importer.import_scene`.
    """
    placed = replace(options, up=result.scan.up, placement=result.placement)
    notes = import_scene(result.scan.source, folder, placed, report)
    path = folder / "scene.yaml"
    file = config.load(path, SceneFile)
    pose, best = result.best.map_from_scan, result.best
    source: dict[str, str | int | float] = {
        **file.source,
        "aligned_x_m": round(pose.x_m, 4),
        "aligned_y_m": round(pose.y_m, 4),
        "aligned_yaw_deg": round(math.degrees(pose.yaw_rad), 3),
        "aligned_rms_m": round(best.rms_m, 4),
        "aligned_inliers": round(best.inlier_share, 3),
    }
    if known is not None:
        rooms = known.rooms or file.rooms
        ids = {room.id for room in rooms}
        objects = tuple(replace(item, room=item.room if item.room in ids else None) for item in file.objects)
        file = replace(file, rooms=rooms, objects=objects, frames=known.file.frames)
    save_scene_file(path, replace(file, source=source))
    return notes


def _no_match(source: Path, where: str, best: Fit | None, initial: SE2 | None) -> SceneError | AlignmentFailed:
    if best is None:
        return AlignmentFailed(
            f"{source}: does not converge near the initial pose", "correct --initial, or leave it out"
        )
    place = "the best of all places" if initial is None else "the initial pose (--initial)"
    return AlignmentFailed(
        f"{source}: does not fit {where}: {place} explains {best.inlier_share:.0%} of the map's border, and "
        f"{best.contradicted_share:.0%} of the scan stands on free floor",
        "check that the scan is of this place, in meters (--scale), with the right axis up (--up), and that its faces "
        "point into the rooms",
    )


def _pose_text(pose: SE2) -> str:
    return f"{pose.x_m:.2f},{pose.y_m:.2f},{math.degrees(pose.yaw_rad):.1f}"


# --- preparation of a scan ------------------------------------------------------------------------------------------


Array = NDArray[np.float64]

BAND_M = (0.1, 0.85)
"""Heights above the floor that a robot's map shows."""

MOST_TILTED_DEG = 10.0
SAMPLE_M = 0.02
PLAUSIBLE_M = (1.0, 200.0)
"""Range of the longest edge of a place."""

_LOW_SHARE = 0.25
_STEEP = 0.9
_BETTER = 2.0
_MOST_SAMPLES = 2_000_000
_WIDE = 1 << 24


@dataclass(frozen=True, eq=False)
class Scan:
    """An upright scan as a robot's map would show it.

    Attributes:
        source: the file.
        up: the file's axis that points up.
        upright: float64 (4, 4), from the file's axes in meters, with ``up`` turned onto z, to a level floor at z = 0.
        tilt_deg: angle by which the floor was out of level.
        plan: float64 (N, 2), points on surfaces in :data:`BAND_M`, no two in one square of :data:`SAMPLE_M`.
    """

    source: Path
    up: Up
    upright: Array
    tilt_deg: float
    plan: Array


def read_scan(source: Path, up: Up | None = None, scale: float = 1.0) -> Scan:
    """Read a mesh or a Gazebo world.

    Args:
        source: the file.
        up: the file's upward axis; None for the format's own, unless another one has far more floor.
        scale: meters per unit of the file.

    Raises:
        SceneError: the file cannot be read, its size is implausible, or it has no surfaces in the band of heights.
    """
    world = source.suffix.lower() in WORLD_FORMATS
    triangles = all_triangles(read_pieces(source, skip_missing=True, up="z", scale=scale))
    if not len(triangles):
        raise SceneError(f"{source}: has no faces", "give a scan with faces")
    size_m = float(np.ptp(triangles.reshape(-1, 3), axis=0).max())
    if not PLAUSIBLE_M[0] <= size_m <= PLAUSIBLE_M[1]:
        raise SceneError(
            f"{source}: is {size_m:.3g} m long, not a plausible size of a place",
            "give the length of a unit with --scale: 0.001 for millimeters, 0.01 for centimeters",
        )
    up = "z" if world else up or _found_up(source, triangles)
    triangles = _moved(triangles, UPRIGHT[up])
    leveling, tilt_deg = _leveling(triangles)
    triangles = _moved(triangles, leveling)
    lift = np.eye(4)
    lift[2, 3] = -floor_height(triangles)
    triangles = _moved(triangles, lift)
    plan = _plan(triangles)
    if len(plan) < 50:
        raise SceneError(
            f"{source}: has no surfaces between {BAND_M[0]} and {BAND_M[1]} m above its floor (axis {up} up)",
            "give the upward axis with --up and the length of a unit with --scale; faces must point into the rooms",
        )
    return Scan(source, up, lift @ leveling, tilt_deg, plan)


def _moved(triangles: Array, matrix: Array) -> Array:
    return np.asarray(triangles @ matrix[:3, :3].T + matrix[:3, 3])


def _found_up(source: Path, triangles: Array) -> Up:
    """The format's own axis, unless another direction has more than twice its floor area.

    Floor is what faces up in the lowest quarter. A ceiling upside down looks the same, so a tie decides nothing.
    """
    areas = {axis: _floor_area(_moved(triangles, matrix)) for axis, matrix in UPRIGHT.items()}
    own = own_up(source)
    best = max(UPRIGHT, key=lambda axis: areas[axis])
    return best if areas[best] > _BETTER * areas[own] else own


def _floor(triangles: Array, least_cosine: float) -> Array:
    """Normals (K, 3), as long as twice the area, of the triangles in the lowest quarter that face up."""
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    length = np.linalg.norm(normals, axis=1)
    z = triangles[..., 2].mean(axis=1)
    low, high = float(triangles[..., 2].min()), float(triangles[..., 2].max())
    facing_up = (normals[:, 2] > least_cosine * length) & (length > 1e-12)
    return np.asarray(normals[facing_up & (z < low + _LOW_SHARE * (high - low))])


def _floor_area(triangles: Array) -> float:
    return float(np.linalg.norm(_floor(triangles, _STEEP), axis=1).sum())


def _leveling(triangles: Array) -> tuple[Array, float]:
    """The smallest rotation, float64 (4, 4), that makes the floor level; and its angle in degrees."""
    normals = _floor(triangles, float(np.cos(np.radians(MOST_TILTED_DEG))))
    if not len(normals):
        return np.eye(4), 0.0
    weight = np.linalg.norm(normals, axis=1)
    unit = normals / weight[:, None]
    # The median direction, because a scan's floor has bumps and rugs, but most of it is flat.
    median = np.array([weighted_median(unit[:, i], weight) for i in (0, 1)])
    normal = np.array([*median, np.sqrt(max(0.0, 1 - float(median @ median)))])
    axis = np.cross(normal, (0.0, 0.0, 1.0))
    sine = float(np.linalg.norm(axis))
    if sine < 1e-4:
        return np.eye(4), 0.0
    angle = float(np.arcsin(min(1.0, sine)))
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_rotvec(axis / sine * angle).as_matrix()
    return matrix, float(np.degrees(angle))


def _plan(triangles: Array) -> Array:
    """Points (N, 2) on surfaces in the band of heights, sampled at random."""
    low, high = BAND_M
    z = triangles[..., 2]
    band = triangles[(z.min(axis=1) <= high) & (z.max(axis=1) >= low)]
    if not len(band):
        return np.zeros((0, 2))
    area = triangle_areas_m2(band)
    count = int(min(_MOST_SAMPLES, 2 * area.sum() / SAMPLE_M**2 + len(band)))
    random = np.random.default_rng(0)
    chosen = band[random.choice(len(band), count, p=area / area.sum())]
    one, other = np.sqrt(random.random(count)), random.random(count)
    weights = np.stack([1 - one, one * (1 - other), one * other], axis=1)
    points = np.einsum("nk,nkd->nd", weights, chosen)
    points = points[(points[:, 2] >= low) & (points[:, 2] <= high), :2]
    square = np.floor(points / SAMPLE_M).astype(np.int64)
    _, first = np.unique(square[:, 0] * _WIDE + square[:, 1], return_index=True)
    return np.asarray(points[np.sort(first)])
