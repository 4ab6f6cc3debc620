"""Convex decomposition: a triangle mesh as convex contact shapes, because a physics engine hulls every mesh.

Connected components first: authored contact meshes are mostly boxes pushed together, and a box needs no search.
What is left is either a closed solid with hollows (CoACD, https://arxiv.org/abs/2205.02961) or an open sheet such
as the inside of a room (each flat patch cut into convex polygons and thickened backwards, which is exact). Either with
too many triangles for that gets boxes.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import ConvexHull, QhullError

from sim_bridge.scenes.columns import columns

Array = NDArray[np.float64]
Faces = NDArray[np.int64]


@dataclass(frozen=True)
class DecompositionSettings:
    """Accuracy of the contact shapes.

    Attributes:
        tolerance_m: a hollow that is shallower than this is filled.
        search: CoACD's tree-search iterations per cut; more makes fewer, better parts, and takes longer.
        sheet_m: thickness that open surfaces get, behind their faces.
        max_vertices: corners of a convex part.
    """

    tolerance_m: float = 0.02
    search: int = 100
    sheet_m: float = 0.02
    max_vertices: int = 64


_WELD_M = 1e-5
_SMALL_M = 0.12  # a closer fit of smaller things changes nothing for a robot 0.36 m wide
_SIDES_AT_ONCE = 10_000_000  # pairs of a point and a hull's plane: 80 MB
_PLACE_M = 2.5  # a smaller surface that is seen from inside is a mistake, a larger one a room
_COVERED = 0.7  # share of the hull's surface that an open shell must have to pass for a solid
SEARCHED_TRIANGLES = 2000
"""A component with more triangles takes CoACD minutes; boxes stand for it."""

_BOX_M, _LAYER_M = 0.025, 0.05  # edge on the ground and height of those boxes


Search = Callable[[Array, Faces, DecompositionSettings], list[Array] | None]
"""Search for the convex parts of a closed solid, by vertices (N, 3), faces (M, 3) and settings; None if it fails."""


def convex_parts(corners: Array, settings: DecompositionSettings, search: Search | None = None) -> list[Array]:
    """Corner points (N, 3), N >= 4, of convex parts that together stand for a triangle soup.

    Args:
        corners: triangles, (M, 3, 3), meters.
        settings: settings of the decomposition.
        search: search for the parts of closed solids with hollows; None for CoACD in this process. Boxes stand for a
            solid for which it finds nothing.
    """
    search = coacd_parts if search is None else search
    vertices, faces = weld(corners)
    parts: list[Array] = []
    for component in split(len(vertices), faces):
        parts.extend(_component_parts(vertices, faces[component], settings, search))
    return parts


def components(corners: Array) -> list[Array]:
    """The triangles (M, 3, 3) of each connected component of a triangle soup."""
    vertices, faces = weld(corners)
    return [vertices[faces[component]] for component in split(len(vertices), faces)]


def weld(corners: Array) -> tuple[Array, Faces]:
    """Vertices and faces of a triangle soup, corners closer than 10 um made one, faces without area left out."""
    flat = corners.reshape(-1, 3)
    _, first, index = np.unique(
        np.round(flat / _WELD_M).astype(np.int64), axis=0, return_index=True, return_inverse=True
    )
    faces = index.reshape(-1, 3)
    keep = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    return flat[first], faces[keep].astype(np.int64)


def split(vertex_count: int, faces: Faces) -> list[NDArray[np.int64]]:
    """Indices of the faces of each connected component (connected through shared vertices)."""
    if not len(faces):
        return []
    rows = np.concatenate([faces[:, 0], faces[:, 1]])
    columns = np.concatenate([faces[:, 1], faces[:, 2]])
    graph = coo_matrix((np.ones(len(rows), bool), (rows, columns)), shape=(vertex_count, vertex_count))
    label = connected_components(graph, directed=False)[1][faces[:, 0]]
    return [np.flatnonzero(label == value) for value in np.unique(label)]


def _component_parts(vertices: Array, faces: Faces, settings: DecompositionSettings, search: Search) -> list[Array]:
    points = vertices[np.unique(faces)]
    try:
        hull = ConvexHull(points)
    except QhullError:  # flat
        return sheet_parts(vertices[faces], settings.sheet_m)
    extent_m = float(np.ptp(points, axis=0).max())
    inside_out = _outwardness(vertices[faces]) < 0
    if inside_out and extent_m < _PLACE_M:  # a thing with its faces the wrong way round
        faces, inside_out = faces[:, ::-1], False
    convex = not inside_out and _is_solid_and_convex(vertices[faces], faces, hull, settings.tolerance_m)
    if extent_m < _SMALL_M or convex:
        return [_thin_out(points[hull.vertices], settings.max_vertices)]
    if len(faces) > SEARCHED_TRIANGLES:
        return box_parts(vertices[faces])
    if inside_out or not is_closed(faces):
        return sheet_parts(vertices[faces], settings.sheet_m)
    found = search(vertices, faces, settings)
    return box_parts(vertices[faces]) if found is None else found


def _outwardness(triangles: Array) -> float:
    """Positive where most of the surface faces away from its middle: six times the volume of a closed mesh."""
    middle = triangles.reshape(-1, 3).mean(axis=0)
    corner = triangles - middle
    return float(np.einsum("nd,nd->", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])))


def is_closed(faces: Faces) -> bool:
    """Whether every edge is used once in each direction."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    forward = np.unique(edges, axis=0)
    return len(forward) == len(edges) and bool(np.array_equal(forward, np.unique(edges[:, ::-1], axis=0)))


def _is_solid_and_convex(triangles: Array, faces: Faces, hull: ConvexHull, tolerance_m: float) -> bool:
    """Whether no corner or center lies deeper in the hull than the tolerance, and the surface covers the hull."""
    samples = np.concatenate([np.unique(triangles.reshape(-1, 3), axis=0), triangles.mean(axis=1)])
    rows = max(1, _SIDES_AT_ONCE // len(hull.equations))
    for start in range(0, len(samples), rows):
        part = samples[start : start + rows]
        if (-(part @ hull.equations[:, :3].T + hull.equations[:, 3]).max(axis=1)).max() > tolerance_m:
            return False
    area_normals = 0.5 * np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    covered = float(np.linalg.norm(area_normals, axis=1).sum()) / hull.area
    return is_closed(faces) or covered >= _COVERED


def _thin_out(points: Array, limit: int) -> Array:
    """At most ``limit`` of a hull's corners, spread by farthest-point choice."""
    if len(points) <= limit:
        return points
    chosen = [int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))]
    distance = np.full(len(points), np.inf)
    while len(chosen) < limit:
        distance = np.minimum(distance, np.linalg.norm(points - points[chosen[-1]], axis=1))
        chosen.append(int(np.argmax(distance)))
    return points[chosen]


def coacd_parts(vertices: Array, faces: Faces, settings: DecompositionSettings) -> list[Array]:
    """Corners (N, 3) of each convex part of a closed solid of vertices (N, 3) and faces (M, 3)."""
    import coacd

    coacd.set_log_level("error")
    used, index = np.unique(faces, return_inverse=True)
    mesh = coacd.Mesh(vertices[used], index.reshape(-1, 3))
    found = coacd.run_coacd(
        mesh,
        threshold=settings.tolerance_m,
        real_metric=True,
        mcts_iterations=settings.search,
        max_ch_vertex=settings.max_vertices,
        decimate=True,
        seed=0,
    )
    return [np.asarray(points, np.float64) for points, _ in found]


# --- surfaces of too many triangles ---------------------------------------------------------------------------------


def box_parts(triangles: Array) -> list[Array]:
    """Corners (8, 3) of boxes that enclose a surface of triangles (M, 3, 3), layer by layer; its hollow stays open."""
    low, high = float(triangles[..., 2].min()), float(triangles[..., 2].max())
    count = max(1, math.ceil((high - low) / _LAYER_M))
    levels = np.linspace(low, high, count + 1).tolist()
    signs = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
    return [
        np.array(box.center) + signs * np.array(box.size)
        for bottom, top in itertools.pairwise(levels)
        for box in columns(triangles, bottom, top, _BOX_M)
    ]


# --- open surfaces --------------------------------------------------------------------------------------------------


def sheet_parts(triangles: Array, thickness_m: float) -> list[Array]:
    """Convex slabs behind the faces of triangles (M, 3, 3): one per convex polygon of every flat patch."""
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    length = np.linalg.norm(normals, axis=1)
    triangles, normals = triangles[length > 1e-10], normals[length > 1e-10]
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    offsets = np.einsum("nd,nd->n", normals, triangles[:, 0])
    planes = np.round(np.column_stack([normals * 500, offsets * 1000])).astype(np.int64)
    _, group = np.unique(planes, axis=0, return_inverse=True)
    parts: list[Array] = []
    for label in range(int(group.max(initial=-1)) + 1):
        members = triangles[group.ravel() == label]
        normal = normals[group.ravel() == label][0]
        parts.extend(_slabs(members, normal, thickness_m))
    return parts


def _slabs(triangles: Array, normal: Array, thickness_m: float) -> list[Array]:
    across = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    across /= np.linalg.norm(across)
    basis = np.stack([across, np.cross(normal, across)])
    origin = triangles[0, 0]
    flat = (triangles - origin) @ basis.T
    patch = shapely.union_all(shapely.polygons(flat), grid_size=1e-5)
    slabs = []
    for polygon in convex_polygons(patch):
        front = np.asarray(polygon.exterior.coords)[:-1] @ basis + origin
        slabs.append(np.concatenate([front, front - thickness_m * normal]))
    return slabs


def convex_polygons(area: shapely.Geometry) -> list[shapely.Polygon]:
    """Convex polygons that tile an area with holes: its triangles, joined over each inner edge where that is convex.

    One pass over the edges, longest first (Hertel and Mehlhorn 1983: at most four times as many as the fewest).
    """
    pieces: dict[int, shapely.Polygon] = {}
    owners: dict[tuple[float, ...], list[int]] = {}  # by x, y of one end and x, y of the other
    for polygon in shapely.get_parts(area):
        if polygon.geom_type != "Polygon":
            continue  # what is left of slivers
        for triangle in shapely.get_parts(shapely.constrained_delaunay_triangles(polygon)):
            points = [tuple(point) for point in np.round(triangle.exterior.coords, 7).tolist()]
            for one, other in itertools.pairwise(points):
                owners.setdefault((*min(one, other), *max(one, other)), []).append(len(pieces))
            pieces[len(pieces)] = triangle
    home = {i: i for i in pieces}
    for edge in sorted(owners, key=lambda end: (-math.hypot(end[2] - end[0], end[3] - end[1]), end)):
        if len(owners[edge]) != 2:
            continue
        first, second = (_find(home, i) for i in owners[edge])
        if first == second:
            continue
        hull = shapely.MultiPolygon([pieces[first], pieces[second]]).convex_hull
        if hull.area <= (pieces[first].area + pieces[second].area) * (1 + 1e-6) + 1e-9:
            pieces[first] = hull
            del pieces[second]
            home[second] = first
    return [piece.simplify(1e-6) for piece in pieces.values()]


def _find(home: dict[int, int], i: int) -> int:
    while home[i] != i:
        i = home[i]
    return i
