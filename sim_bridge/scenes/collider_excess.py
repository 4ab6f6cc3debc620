"""Contact shapes that stand out beyond what is drawn, and contact shapes that do not.

A shape that stands out is an unseen wall to a policy that looks. The robot is an upright cylinder, so what counts of a
shape is its outline on the floor: the shadow of the part between the robot's bottom and top. habitat-sim erodes what is
drawn by the same rule.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import shapely
from scipy.ndimage import distance_transform_edt
from scipy.spatial import ConvexHull

from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Asset, Collision, Scene
from sim_bridge.scenes.assets import as_box
from sim_bridge.scenes.decompose import components
from sim_bridge.scenes.raster import Points, slice_hull
from sim_bridge.scenes.shapes import corners, place, read_obj

LIMIT_M = 0.01
"""Greatest excess that the contact shapes of a bundled or generated scene may have."""

BAND_M = (0.03, 0.9)
"""Heights of the robot's bottom and top."""

_STEP_M = 0.005
_FLAT_M = 1e-3
_SHEET_SHARE = 0.02
_BOX_SLACK = 3e-5
_INSIDE_M = 0.008
_CIRCLE_SHARE, _ROUND_CORNERS = 0.98, 12


def collider_excess_m(scene: Scene) -> dict[str, float]:
    """The excess of each asset that a robot on the map's free floor can touch, by name.

    It is inf for contact shapes of which nothing is drawn. Raises ``SceneError`` for an unreadable mesh.
    """
    from_free_cells = distance_transform_edt(scene.map.cells != Cell.FREE)
    building = [asset for asset in scene.file.assets if asset.object is None]
    found = {}
    for asset in scene.file.assets:
        rim = _rim([place(asset, corners(scene.folder, collision)) for collision in asset.collision])
        rim = rim[_at_free_floor(scene.map, from_free_cells, rim)]
        if len(rim):
            drawn = building if asset.object is None else [asset]  # walls are drawn with the rooms that they enclose
            found[asset.name] = _excess_m(rim, [outline for part in drawn for outline in _drawn(scene.folder, part)])
    return found


def excess_sentence(excess_m: Mapping[str, float]) -> str:
    """How far contact shapes stand out, and which do so by more than ``LIMIT_M``."""
    if not excess_m:
        return "none that a robot touches"
    large = sorted((-value, name) for name, value in excess_m.items() if value > LIMIT_M)
    if not large:
        return f"stand out at most {1000 * max(excess_m.values()):.0f} mm beyond what is drawn"
    names = ", ".join(f"{name} {-1000 * value:.0f} mm" for value, name in large).replace("inf mm", "(not drawn)")
    return f"stand out more than {1000 * LIMIT_M:.0f} mm beyond what is drawn: {names}"


def without_excess(
    shapes: Sequence[Collision], surfaces: Sequence[Points], base_m: float
) -> Sequence[Collision | Points]:
    """The contact shapes of a piece, or :func:`tight_prisms` in their place if they stand out too far.

    Args:
        shapes: boxes and cylinders in the piece's frame.
        surfaces: drawn surfaces in that frame, each float64 (M, 3, 3).
        base_m: height of the floor in that frame.
    """
    rim = _rim([corners(Path(), shape) for shape in shapes])
    outlines = [outline for surface in surfaces for outline in _outlines(surface)]
    if not len(rim) or _excess_m(rim, outlines) <= LIMIT_M:
        return shapes
    return tight_prisms(surfaces, base_m) or shapes


def _rim(shapes: Iterable[Points]) -> Points:
    """Points (N, 2) on the common outline of convex shapes at the robot's heights."""
    outline = shapely.union_all([_shadow(shape) for shape in shapes])
    return np.asarray(shapely.get_coordinates(shapely.segmentize(outline.boundary, _STEP_M)))


def _excess_m(rim: Points, drawn: Sequence[shapely.Geometry]) -> float:
    outline = shapely.union_all(list(drawn))
    return math.inf if outline.is_empty else float(shapely.distance(shapely.points(rim), outline).max())


def tight_prisms(surfaces: Iterable[Points], base_m: float) -> list[Collision | Points]:
    """Upright contact shapes whose outlines are those of convex parts, down to the floor as seats are for a base.

    Parts out of the robot's reach are left out, so are leaves, and parts within the outlines of higher ones.

    Args:
        surfaces: drawn surfaces, each float64 (M, 3, 3).
        base_m: height of the floor below them.

    Returns:
        Boxes and cylinders, and for other outlines the triangles of a prism.
    """
    parts = []
    for surface in itertools.chain.from_iterable(map(components, surfaces)):
        low_m, top_m = (float(bound) - base_m for bound in (surface[..., 2].min(), surface[..., 2].max()))
        outline = _hull(surface.reshape(-1, 3)[:, :2])
        if low_m < BAND_M[1] and top_m > BAND_M[0] and outline.area > 1e-6 and _fills(surface, outline):
            parts.append((top_m, outline.area, outline))
    kept: list[Collision | Points] = []
    covered: shapely.Geometry = shapely.Polygon()
    for top_m, _, outline in sorted(parts, key=lambda part: part[:2], reverse=True):
        if not covered.buffer(_INSIDE_M).covers(outline):
            covered = covered.union(outline)
            kept.append(_prism(outline, base_m, base_m + top_m))
    return kept


def _prism(outline: shapely.Polygon, low_m: float, top_m: float) -> Collision | Points:
    ring = shapely.get_coordinates(outline.exterior)[:-1]
    x, y = outline.centroid.x, outline.centroid.y
    radii = np.hypot(*(ring - (x, y)).T)
    height_m = round(top_m - low_m, 4)
    if len(ring) >= _ROUND_CORNERS and radii.min() >= _CIRCLE_SHARE * radii.max():
        size_m = round(2 * float(radii.max()), 4)
        middle = (round(x, 4), round(y, 4), round((low_m + top_m) / 2, 4))
        return Collision("cylinder", middle, (size_m, size_m, height_m))
    points = np.concatenate([np.column_stack([ring, np.full(len(ring), level)]) for level in (low_m, top_m)])
    box = as_box(points, _BOX_SLACK)
    if box is not None:
        return box
    return np.asarray(points[ConvexHull(points).simplices])


def _at_free_floor(occupancy: OccupancyMap, from_free_cells: Points, points: Points) -> np.ndarray:
    """Which points (N, 2) lie within two cells of a free one."""
    columns = np.floor((points[:, 0] - occupancy.origin_x_m) / occupancy.resolution_m).astype(int)
    rows = np.floor((points[:, 1] - occupancy.origin_y_m) / occupancy.resolution_m).astype(int)
    height, width = from_free_cells.shape
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    return np.asarray(inside & (from_free_cells[rows.clip(0, height - 1), columns.clip(0, width - 1)] <= 2))


def _drawn(folder: Path, asset: Asset) -> Iterator[shapely.Geometry]:
    """Outlines of what is drawn: of convex surfaces filled, of others of each triangle."""
    for visual in asset.visual:
        vertices, faces = read_obj(folder / visual.mesh)
        yield from _outlines(place(asset, vertices)[faces])


def _outlines(triangles: Points) -> Iterator[shapely.Geometry]:
    """Outlines on the floor of surfaces, float64 (M, 3, 3), at the robot's heights."""
    for surface in components(triangles):
        if _is_convex(surface):
            yield _shadow(surface.reshape(-1, 3))
        else:
            yield from map(_shadow, surface)


def _shadow(points: Points) -> shapely.Geometry:
    """The outline of that part of the convex hull of points (N, 3) that is at the robot's heights."""
    return _hull(slice_hull(points, *BAND_M))


def _hull(points: Points) -> shapely.Geometry:
    """The convex hull of points (N, 2); a closed line is made ten times as fast as points are."""
    return shapely.linestrings(np.concatenate([points, points[:1]])).convex_hull if len(points) else shapely.Polygon()


def _fills(surface: Points, outline: shapely.Geometry) -> bool:
    """Whether a surface encloses a volume and reaches the rim of its convex outline everywhere; leaves do not."""
    a, b, c = (surface - surface.mean(axis=(0, 1))).swapaxes(0, 1)
    volume_m3 = float(np.einsum("ni,ni->n", a, np.cross(b, c)).sum()) / 6
    if volume_m3 < _SHEET_SHARE * outline.area * float(np.ptp(surface[..., 2])):
        return False
    rim = shapely.get_coordinates(shapely.segmentize(outline.boundary, _STEP_M))
    return _is_convex(surface) or _excess_m(rim, [shapely.union_all(shapely.polygons(surface[..., :2]))]) <= _INSIDE_M


def _is_convex(surface: Points) -> bool:
    """Whether no corner of triangles (M, 3, 3) lies in front of another's plane."""
    points = np.unique(surface.reshape(-1, 3).round(5), axis=0)
    normals = np.cross(surface[:, 1] - surface[:, 0], surface[:, 2] - surface[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    in_front_m = normals @ points.T - np.einsum("ni,ni->n", normals, surface[:, 0])[:, None]
    return bool(in_front_m.max() < _FLAT_M)
