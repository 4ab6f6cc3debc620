"""Small procedural meshes.

Every primitive returns a :class:`Mesh` with outward faces, normals and texture coordinates in **meters** of surface;
the writer divides them by the texture's tile size. z is up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Point = tuple[float, float, float]

_CREASE_COS = math.cos(math.radians(40.0))


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles with one normal and one texture coordinate per vertex.

    Attributes:
        vertices, normals: (N, 3). uv_m: (N, 2), meters along the surface. faces: (M, 3) vertex indices.
    """

    vertices: Array
    normals: Array
    uv_m: Array
    faces: NDArray[np.int64]

    def moved(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Mesh:
        """Shifted by (x, y, z) meters."""
        return Mesh(self.vertices + np.array([x, y, z]), self.normals, self.uv_m, self.faces)

    def turned(self, degrees: float, axis: int = 2) -> Mesh:
        """Rotated about a coordinate axis through the origin, right-handed."""
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        a, b = (axis + 1) % 3, (axis + 2) % 3
        rotation = np.eye(3)
        rotation[a, a], rotation[a, b], rotation[b, a], rotation[b, b] = c, -s, s, c
        return Mesh(self.vertices @ rotation.T, self.normals @ rotation.T, self.uv_m, self.faces)

    def scaled(self, x: float, y: float, z: float) -> Mesh:
        """Stretched along the axes by positive factors."""
        factors = np.array([x, y, z])
        normals = self.normals / factors
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        return Mesh(self.vertices * factors, normals, self.uv_m, self.faces)

    def with_uv(self, uv_m: Array) -> Mesh:
        """The same mesh with other texture coordinates."""
        return Mesh(self.vertices, self.normals, uv_m, self.faces)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Smallest and largest corner."""
        return self.vertices.min(axis=0), self.vertices.max(axis=0)


def merge(meshes: Iterable[Mesh]) -> Mesh:
    """One mesh of all."""
    parts = list(meshes)
    offsets = np.cumsum([0] + [len(m.vertices) for m in parts[:-1]])
    return Mesh(
        np.concatenate([m.vertices for m in parts]),
        np.concatenate([m.normals for m in parts]),
        np.concatenate([m.uv_m for m in parts]),
        np.concatenate([m.faces + offset for m, offset in zip(parts, offsets, strict=True)]),
    )


def _outward(vertices: Array, normals: Array, uv_m: Array, faces: Sequence[Sequence[int]]) -> Mesh:
    """A mesh whose faces wind with their normals; triangles without area are left out."""
    index = np.asarray(faces, np.int64)
    a, b, c = (vertices[index[:, k]] for k in range(3))
    cross = np.cross(b - a, c - a)
    index = index[np.linalg.norm(cross, axis=1) > 1e-9]
    cross = cross[np.linalg.norm(cross, axis=1) > 1e-9]
    inward = np.einsum("ij,ij->i", cross, normals[index].sum(axis=1)) < 0
    index[inward] = index[inward][:, ::-1]
    return Mesh(vertices, normals, uv_m, index)


def quad(corners: Sequence[Point], uv: Sequence[tuple[float, float]] | None = None) -> Mesh:
    """A one-sided rectangle; corners counter-clockwise seen from its front, starting bottom left.

    Without ``uv`` the texture runs in meters from the first corner.
    """
    vertices = np.array(corners, float)
    along, up = vertices[1] - vertices[0], vertices[3] - vertices[0]
    normal = np.cross(along, up)
    normal /= np.linalg.norm(normal)
    width, height = float(np.linalg.norm(along)), float(np.linalg.norm(up))
    uv_m = np.array(uv if uv is not None else [(0, 0), (width, 0), (width, height), (0, height)], float)
    return Mesh(vertices, np.tile(normal, (4, 1)), uv_m, np.array([[0, 1, 2], [0, 2, 3]]))


def box(size: Point, base: Point = (0.0, 0.0, 0.0), bevel_m: float = 0.0) -> Mesh:
    """A box standing on ``base`` (center of its bottom face); edges cut by ``bevel_m`` and shaded round."""
    half = np.array(size) / 2
    bevel = min(bevel_m, 0.45 * float(half.min()) * 2)
    signs = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    vertices, normals, uv = [], [], []
    for axis in range(3):
        for sign in signs:
            at = half - bevel
            at[axis] = half[axis]
            vertices.append(at * sign)
            normals.append([sign[axis] if k == axis else 0.0 for k in range(3)])
            across, up = [(1, 2), (0, 2), (0, 1)][axis]
            mirror = -1 if (axis == 0 and sign[0] < 0) or (axis == 1 and sign[1] > 0) else 1
            uv.append([mirror * vertices[-1][across] + half[across], vertices[-1][up] + half[up]])

    def vertex(axis: int, sign: tuple[int, ...]) -> int:
        return axis * 8 + signs.index((sign[0], sign[1], sign[2]))

    faces: list[list[int]] = []
    for axis in range(3):
        a, b = (axis + 1) % 3, (axis + 2) % 3
        for side in (-1, 1):
            ring = [vertex(axis, _signs({axis: side, a: i, b: j})) for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            faces += [[ring[0], ring[1], ring[2]], [ring[0], ring[2], ring[3]]]
        if bevel > 0:
            for i in (-1, 1):  # the four edges along `axis` lie between faces a and b
                for j in (-1, 1):
                    low, high = _signs({axis: -1, a: i, b: j}), _signs({axis: 1, a: i, b: j})
                    faces += [[vertex(a, low), vertex(b, low), vertex(b, high)]]
                    faces += [[vertex(a, low), vertex(b, high), vertex(a, high)]]
    if bevel > 0:
        faces += [[vertex(0, s), vertex(1, s), vertex(2, s)] for s in signs]
    mesh = _outward(np.array(vertices), np.array(normals, float), np.array(uv), faces)
    return mesh.moved(base[0], base[1], base[2] + half[2])


def _signs(by_axis: dict[int, int]) -> tuple[int, ...]:
    return tuple(by_axis[k] for k in range(3))


def lathe(profile: Sequence[tuple[float, float]], segments: int = 16) -> Mesh:
    """A profile of (radius, z) points, bottom to top along the outside, turned about z.

    Edges of the profile sharper than 40 degrees stay sharp.
    """
    points = np.array(profile, float)
    step = np.diff(points, axis=0)
    length = np.linalg.norm(step, axis=1)
    slope = np.stack([step[:, 1], -step[:, 0]], axis=1) / length[:, None]  # outward in the (radius, z) plane
    arc = np.concatenate([[0.0], np.cumsum(length)])
    angle = np.linspace(0.0, 2 * math.pi, segments + 1)
    cos, sin = np.cos(angle), np.sin(angle)
    widest = float(points[:, 0].max())
    vertices: list[Array] = []
    normals: list[Array] = []
    uv: list[Array] = []
    faces: list[list[int]] = []
    for i in range(len(step)):
        ends = []
        for end, neighbor in ((i, i - 1), (i + 1, i + 1)):
            normal = slope[i]
            if 0 <= neighbor < len(slope) and float(slope[i] @ slope[neighbor]) > _CREASE_COS:
                normal = slope[i] + slope[neighbor]
                normal = normal / np.linalg.norm(normal)
            ends.append((points[end], normal, arc[end]))
        start = len(vertices) * (segments + 1)
        for point, normal, at in ends:
            vertices.append(np.stack([point[0] * cos, point[0] * sin, np.full_like(cos, point[1])], axis=1))
            normals.append(np.stack([normal[0] * cos, normal[0] * sin, np.full_like(cos, normal[1])], axis=1))
            uv.append(np.stack([angle * widest, np.full_like(cos, at)], axis=1))
        for k in range(segments):
            a, b = start + k, start + segments + 1 + k
            faces += [[a, a + 1, b + 1], [a, b + 1, b]]
    return _outward(np.concatenate(vertices), np.concatenate(normals), np.concatenate(uv), faces)


def cylinder(radius: float, height: float, segments: int = 14, top_radius: float | None = None) -> Mesh:
    """A closed cylinder or frustum standing on the origin."""
    top = radius if top_radius is None else top_radius
    return lathe([(0.0, 0.0), (radius, 0.0), (top, height), (0.0, height)], segments)


def sphere(radius: float, segments: int = 16, rings: int = 10) -> Mesh:
    """A ball about the origin."""
    angles = np.linspace(-math.pi / 2, math.pi / 2, rings + 1)
    profile = [(max(radius * math.cos(a), 0.0), radius * math.sin(a)) for a in angles]
    return lathe(profile, segments)


def cushion(size: Point, base: Point = (0.0, 0.0, 0.0), segments: int = 12, rings: int = 6) -> Mesh:
    """A soft pillow (superellipsoid) standing on ``base``; size is its full extent."""
    squareness, roundness = 0.45, 0.75
    u = np.linspace(-math.pi, math.pi, segments + 1)
    v = np.linspace(-math.pi / 2, math.pi / 2, rings + 1)

    def power(value: Array, exponent: float) -> Array:
        value = np.where(np.abs(value) < 1e-9, 0.0, value)
        return np.asarray(np.sign(value) * np.abs(value) ** exponent)

    vv, uu = np.meshgrid(v, u, indexing="ij")
    half = np.array(size) / 2
    flat = power(np.cos(vv), roundness)
    unit = np.stack(
        [
            flat * power(np.cos(uu), squareness),
            flat * power(np.sin(uu), squareness),
            power(np.sin(vv), roundness),
        ],
        axis=-1,
    )
    normals = np.stack([np.cos(vv) * np.cos(uu), np.cos(vv) * np.sin(uu), np.sin(vv)], axis=-1) / half
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    vertices = (unit * half).reshape(-1, 3)
    faces: list[list[int]] = []
    for r in range(rings):
        for k in range(segments):
            a, b = r * (segments + 1) + k, (r + 1) * (segments + 1) + k
            faces += [[a, a + 1, b + 1], [a, b + 1, b]]
    mesh = _outward(vertices, normals.reshape(-1, 3), vertices[:, :2] + half[:2], faces)
    return mesh.moved(base[0], base[1], base[2] + half[2])


def tube(path: Sequence[Point], radius: float, segments: int = 8) -> Mesh:
    """A round bar along a polyline, closed at both ends."""
    points = np.array(path, float)
    tangents = np.gradient(points, axis=0)
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    helper = np.array([0.0, 0.0, 1.0]) if abs(tangents[0, 2]) < 0.9 else np.array([1.0, 0.0, 0.0])
    angle = np.linspace(0.0, 2 * math.pi, segments + 1)
    rings, normals, uv, along = [], [], [], 0.0
    side = np.cross(tangents[0], helper)
    for i, (point, tangent) in enumerate(zip(points, tangents, strict=True)):
        side = side - tangent * float(side @ tangent)
        side = side / np.linalg.norm(side)
        up = np.cross(tangent, side)
        normal = np.outer(np.cos(angle), side) + np.outer(np.sin(angle), up)
        along += float(np.linalg.norm(points[i] - points[i - 1])) if i else 0.0
        rings.append(point + radius * normal)
        normals.append(normal)
        uv.append(np.stack([angle * radius, np.full_like(angle, along)], axis=1))
    faces: list[list[int]] = []
    for r in range(len(points) - 1):
        for k in range(segments):
            a, b = r * (segments + 1) + k, (r + 1) * (segments + 1) + k
            faces += [[a, a + 1, b + 1], [a, b + 1, b]]
    body = _outward(np.concatenate(rings), np.concatenate(normals), np.concatenate(uv), faces)
    caps = [_disc(rings[0][:-1], -tangents[0]), _disc(rings[-1][:-1], tangents[-1])]
    return merge([body, *caps])


def _disc(ring: Array, normal: Array) -> Mesh:
    vertices = np.concatenate([ring.mean(axis=0, keepdims=True), ring])
    faces = [[0, k + 1, (k + 1) % len(ring) + 1] for k in range(len(ring))]
    return _outward(vertices, np.tile(normal, (len(vertices), 1)), vertices[:, :2] * 0.0, faces)


def prism(outline: Sequence[tuple[float, float]], width: float) -> Mesh:
    """A convex outline of (y, z) points extruded along x, centered on x = 0."""
    ring = np.array(outline, float)
    middle = ring.mean(axis=0)
    pieces = []
    for side in (-1.0, 1.0):
        vertices = np.column_stack([np.full(len(ring), side * width / 2), ring])
        faces = [[0, k, k + 1] for k in range(1, len(ring) - 1)]
        pieces.append(_outward(vertices, np.tile([side, 0.0, 0.0], (len(ring), 1)), ring, faces))
    for a, b in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        normal = np.array([0.0, b[1] - a[1], a[0] - b[0]])
        normal *= np.sign(float(normal[1:] @ ((a + b) / 2 - middle)))
        length = float(np.linalg.norm(b - a))
        vertices = np.array([[-width / 2, *a], [width / 2, *a], [width / 2, *b], [-width / 2, *b]])
        uv = np.array([[0, 0], [width, 0], [width, length], [0, length]])
        normals = np.tile(normal / np.linalg.norm(normal), (4, 1))
        pieces.append(_outward(vertices, normals, uv, [[0, 1, 2], [0, 2, 3]]))
    return merge(pieces)


def leaf(length: float, width: float, rise_deg: float, droop_deg: float, segments: int = 4) -> Mesh:
    """A two-sided leaf from the origin along +x that starts at ``rise_deg`` and bends down by ``droop_deg``."""
    t = np.linspace(0.0, 1.0, segments + 1)
    slope = np.radians(rise_deg - droop_deg * t)
    x = np.concatenate([[0.0], np.cumsum(np.cos(slope[:-1]))]) * length / segments
    z = np.concatenate([[0.0], np.cumsum(np.sin(slope[:-1]))]) * length / segments
    half = width / 2 * np.sin(math.pi * (0.08 + 0.92 * t)) ** 0.8
    up = np.stack([-np.sin(slope), np.zeros_like(t), np.cos(slope)], axis=1)
    faces = [f for k in range(segments) for f in ([2 * k, 2 * k + 1, 2 * k + 3], [2 * k, 2 * k + 3, 2 * k + 2])]
    vertices = np.stack([np.stack([x, half, z], axis=1), np.stack([x, -half, z], axis=1)], axis=1).reshape(-1, 3)
    normals = np.repeat(up, 2, axis=0)
    uv = np.stack([vertices[:, 0], vertices[:, 1]], axis=1)
    return merge([_outward(vertices, normals, uv, faces), _outward(vertices, -normals, uv, faces)])
