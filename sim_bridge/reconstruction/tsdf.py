"""The surface that many depth images agree on: a truncated signed distance field (Curless and Levoy 1996), by Open3D.

Voxels exist only near surfaces (Dong et al. 2022, ASH), so memory grows with what was seen and not with the volume.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import ConfigError
from sim_bridge.reconstruction.logged_frames import Sight
from sim_bridge.reconstruction.open3d_import import open3d
from sim_bridge.scenes.decompose import split

TRUNCATION = 2.5
"""Voxels on either side of a surface that a measurement tells of; more rounds off edges, less lets noise through."""

BLOCK = 8
MAX_BLOCKS = 200_000
"""Of 8 x 8 x 8 voxels with 20 bytes each: 2 GB."""

_FIRST_BLOCKS = 4096
_SMALLEST_M2 = 0.01
"""A smaller island of surface is an error of the sensor."""


@dataclass(frozen=True, eq=False)
class Surface:
    """A coloured triangle mesh in ``map``.

    Attributes:
        corners: float64 (M, 3, 3). colors: uint8 (M, 3), one for each triangle.
    """

    corners: NDArray[np.float64]
    colors: NDArray[np.uint8]

    @property
    def areas_m2(self) -> NDArray[np.float64]:
        """Of each triangle, (M,)."""
        one, other = self.corners[:, 1] - self.corners[:, 0], self.corners[:, 2] - self.corners[:, 0]
        return np.asarray(np.linalg.norm(np.cross(one, other), axis=1) / 2)

    def chosen(self, keep: NDArray[np.bool_]) -> Surface:
        """The triangles marked in (M,)."""
        return Surface(self.corners[keep], self.colors[keep])


class Fusion:
    """Adds frames to one signed distance field.

    Args:
        voxel_m: edge of a voxel, about the edge of a triangle. max_depth_m: what lies farther away is left out.

    Raises:
        ConfigError: Open3D is missing, or the voxel has no size.
    """

    def __init__(self, voxel_m: float, max_depth_m: float) -> None:
        if not 0.005 <= voxel_m <= 0.5:
            raise ConfigError(f"voxels of {voxel_m} m", "give --voxel-m from 0.005 to 0.5, such as 0.04")
        self._library = library = open3d()
        core = library.core
        self._voxel_m, self._max_depth_m = voxel_m, max_depth_m
        self._grid = library.t.geometry.VoxelBlockGrid(
            attr_names=("tsdf", "weight", "color"),
            attr_dtypes=(core.float32, core.float32, core.float32),
            attr_channels=((1), (1), (3)),
            voxel_size=voxel_m,
            block_resolution=BLOCK,
            block_count=_FIRST_BLOCKS,
            device=core.Device("CPU:0"),
        )

    def add(self, sight: Sight) -> None:
        """Fuse a frame. Raises ``ConfigError`` once the place is too large for the voxels."""
        if not sight.depth_m.any():
            return
        core, image, k = self._library.core, self._library.t.geometry.Image, sight.intrinsics
        camera = core.Tensor(np.array([[k.fx, 0, k.cx], [0, k.fy, k.cy], [0, 0, 1]]))
        pose = core.Tensor(np.linalg.inv(sight.map_from_camera))
        depth = image(core.Tensor(np.ascontiguousarray(sight.depth_m)))
        color = image(core.Tensor(np.ascontiguousarray(sight.rgb, np.float32)))
        near = (1.0, self._max_depth_m, TRUNCATION)  # metres per unit of depth, farthest, truncation in voxels
        blocks = self._grid.compute_unique_block_coordinates(depth, camera, pose, *near)
        self._grid.integrate(blocks, depth, color, camera, camera, pose, *near)
        if self._grid.hashmap().size() > MAX_BLOCKS:
            raise ConfigError(
                f"the surface seen needs more than {MAX_BLOCKS} blocks of {BLOCK}³ voxels of {self._voxel_m} m",
                f"give --voxel-m {2 * self._voxel_m:g}, a smaller --max-depth-m, or logs of fewer rooms",
            )

    def surface(self, observations: int) -> Surface:
        """The surface that at least so many frames have seen, in an order that depends on nothing but its place."""
        mesh = self._grid.extract_triangle_mesh(weight_threshold=float(observations))
        if not len(mesh.triangle.indices):
            return Surface(np.zeros((0, 3, 3)), np.zeros((0, 3), np.uint8))
        vertices = mesh.vertex.positions.numpy().astype(np.float64)
        faces = mesh.triangle.indices.numpy().astype(np.int64)
        shades = mesh.vertex.colors.numpy()
        # Threads fill the field in any order, so vertices come in another order every time: sort them.
        order = np.lexsort(np.round(vertices, 6).T)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        vertices, shades, faces = vertices[order], shades[order], place[faces]
        first = faces.argmin(axis=1)
        faces = np.take_along_axis(faces, (first[:, None] + np.arange(3)) % 3, axis=1)
        faces = faces[np.lexsort(faces.T[::-1])]
        faces = faces[_large_enough(vertices, faces)]
        colors = np.clip(np.rint(shades[faces].mean(axis=1)), 0, 255).astype(np.uint8)
        return Surface(vertices[faces], colors)


def _large_enough(vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Faces of connected pieces that are no specks."""
    keep = np.zeros(len(faces), bool)
    corners = vertices[faces]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 2
    for piece in split(len(vertices), faces):
        keep[piece] = areas[piece].sum() >= _SMALLEST_M2
    return keep
