"""The posed geometry of a scene's assets: corner points of convex contact shapes, triangles of visual meshes.

Everything is returned in the scene's frame ``map``, meters, float64.
"""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from robot_runtime.errors import SceneError
from robot_runtime.scenes.scene import Asset, Collision, SceneFile

Points = NDArray[np.float64]
Faces = NDArray[np.int64]

CYLINDER_SIDES = 48
"""A cylinder is drawn as a prism whose sides touch it from outside: radius 1.0021 of the true one at the corners."""


def read_obj(path: Path) -> tuple[Points, Faces]:
    """Vertices (N, 3) and triangles (M, 3) of a Wavefront OBJ; polygons are split into fans.

    Raises:
        SceneError: unreadable, malformed, or without a face.
    """
    vertices: list[list[float]] = []
    faces: list[tuple[int, int, int]] = []
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("v "):
                vertices.append([float(word) for word in line.split()[1:4]])
            elif line.startswith("f "):
                corners = [int(word.split("/", 1)[0]) for word in line.split()[1:]]
                corners = [c - 1 if c > 0 else len(vertices) + c for c in corners]
                faces.extend((corners[0], corners[i], corners[i + 1]) for i in range(1, len(corners) - 1))
    except (OSError, ValueError) as error:
        raise SceneError(f"{path}: is not a readable OBJ mesh: {error}", "export or import the mesh again") from error
    if not faces or max(map(max, faces)) >= len(vertices):
        raise SceneError(f"{path}: has no usable face", "export or import the mesh again")
    return np.array(vertices, np.float64), np.array(faces, np.int64)


def place(asset: Asset, points: Points) -> Points:
    """Points (N, 3) of the asset's frame in ``map``."""
    w, x, y, z = asset.quaternion
    return np.asarray(Rotation.from_quat([x, y, z, w]).apply(points) + np.array(asset.position), np.float64)


def corners(folder: Path, collision: Collision) -> Points:
    """Points (N, 3) in the asset's frame whose convex hull is the contact shape.

    Raises:
        SceneError: a mesh shape without a readable mesh.
    """
    if collision.shape == "mesh":
        if collision.mesh is None:
            raise SceneError(f"{folder / 'scene.yaml'}: a collision of shape mesh has no 'mesh'", "name its OBJ file")
        local = read_obj(folder / collision.mesh)[0]
    elif collision.shape == "box":
        signs = np.array([[i, j, k] for i in (-0.5, 0.5) for j in (-0.5, 0.5) for k in (-0.5, 0.5)])
        local = signs * np.array(collision.size)
    else:
        angles = np.arange(CYLINDER_SIDES) * (2 * math.pi / CYLINDER_SIDES)
        radius = 0.5 / math.cos(math.pi / CYLINDER_SIDES)
        ring = np.stack([radius * np.cos(angles), radius * np.sin(angles)], axis=1)
        local = np.concatenate([np.column_stack([ring, np.full(CYLINDER_SIDES, z)]) for z in (-0.5, 0.5)])
        local = local * np.array(collision.size)
    c, s = math.cos(math.radians(collision.yaw_deg)), math.sin(math.radians(collision.yaw_deg))
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return np.asarray(local @ turn.T + np.array(collision.center))


def contact_shapes(folder: Path, file: SceneFile) -> Iterator[Points]:
    """Corner points in ``map`` of every contact shape of the scene. Raises ``SceneError``."""
    for asset in file.assets:
        for collision in asset.collision:
            yield place(asset, corners(folder, collision))


def visual_triangles(folder: Path, file: SceneFile) -> Iterator[Points]:
    """Triangles (M, 3, 3) in ``map`` of every visual mesh of the scene. Raises ``SceneError``."""
    for asset in file.assets:
        for visual in asset.visual:
            vertices, faces = read_obj(folder / visual.mesh)
            yield place(asset, vertices)[faces]


def spread(triangles: Iterable[Points], count: int, seed: int) -> Points | None:
    """Points (count, 3) at random on triangles (M, 3, 3), evenly by area; None if there is no area."""
    soup = np.concatenate([np.empty((0, 3, 3)), *triangles])
    area = np.linalg.norm(np.cross(soup[:, 1] - soup[:, 0], soup[:, 2] - soup[:, 0]), axis=1)
    if not area.sum() > 0:
        return None
    random = np.random.default_rng(seed)
    chosen = soup[random.choice(len(soup), count, p=area / area.sum())]
    return np.asarray(np.einsum("nk,nkd->nd", random.dirichlet(np.ones(3), count), chosen))
