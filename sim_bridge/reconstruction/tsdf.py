"""Fusion of depth images into a truncated signed distance field (Curless and Levoy 1996), by Open3D.

Voxels are allocated near surfaces only (Dong et al. 2022, ASH), so memory grows with the surface, not the volume.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import ConfigError
from sim_bridge.reconstruction.logged_frames import PosedFrame
from sim_bridge.scenes.decompose import split


def open3d() -> Any:
    """The module, with its messages switched off.

    Raises:
        ConfigError: it is not installed, or the system lacks a library of it.
    """
    try:
        library = importlib.import_module("open3d")
    except ModuleNotFoundError as error:
        if error.name != "open3d":
            raise
        raise ConfigError(
            "a mesh is fused by Open3D; it is not installed",
            "pip install 'robot-runtime[mesh]', or make the map alone with --no-mesh",
        ) from error
    except (ImportError, OSError) as error:  # ctypes raises OSError for a missing library
        raise ConfigError(
            f"Open3D cannot be loaded: {error}",
            "apt-get install -y libx11-6 libgl1 libegl1 libusb-1.0-0 libudev1, or make the map alone with --no-mesh",
        ) from error
    # Its messages go to stdout, as this program's results do.
    library.utility.set_verbosity_level(library.utility.VerbosityLevel.Error)
    return library


TRUNCATION = 2.5
"""Truncation distance in voxels; a larger one rounds off edges, a smaller one lets noise through."""

BLOCK = 8
MAX_BLOCKS = 200_000
"""Limit on memory: blocks of 8 x 8 x 8 voxels with 20 bytes each make 2 GB."""

_FIRST_BLOCKS = 4096
_SMALLEST_M2 = 0.01
"""Connected surfaces smaller than this are sensor errors."""


@dataclass(frozen=True, eq=False)
class Surface:
    """A colored triangle mesh in ``map``.

    Attributes:
        corners: float64 (M, 3, 3).
        colors: uint8 (M, 3), one for each triangle.
    """

    corners: NDArray[np.float64]
    colors: NDArray[np.uint8]

    @property
    def areas_m2(self) -> NDArray[np.float64]:
        """Area of each triangle, (M,)."""
        return triangle_areas_m2(self.corners)

    def subset(self, keep: NDArray[np.bool_]) -> Surface:
        """The triangles marked in (M,)."""
        return Surface(self.corners[keep], self.colors[keep])


class TsdfVolume:
    """A signed distance field to which frames are added.

    Args:
        voxel_m: edge of a voxel, about the edge of a triangle.
        max_depth_m: greater depths are left out.

    Raises:
        ConfigError: Open3D is missing, or the voxel's size is out of range.
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

    def add(self, frame: PosedFrame) -> None:
        """Fuse a frame. Raises ``ConfigError`` if the surface needs more than :data:`MAX_BLOCKS`."""
        if not frame.depth_m.any():
            return
        core, image, k = self._library.core, self._library.t.geometry.Image, frame.intrinsics
        camera = core.Tensor(np.array([[k.fx, 0, k.cx], [0, k.fy, k.cy], [0, 0, 1]]))
        pose = core.Tensor(np.linalg.inv(frame.map_from_camera))
        depth = image(core.Tensor(np.ascontiguousarray(frame.depth_m)))
        color = image(core.Tensor(np.ascontiguousarray(frame.rgb, np.float32)))
        near = (1.0, self._max_depth_m, TRUNCATION)  # meters per unit of depth, greatest depth, truncation in voxels
        blocks = self._grid.compute_unique_block_coordinates(depth, camera, pose, *near)
        self._grid.integrate(blocks, depth, color, camera, camera, pose, *near)
        if self._grid.hashmap().size() > MAX_BLOCKS:
            raise ConfigError(
                f"the surface seen needs more than {MAX_BLOCKS} blocks of {BLOCK}³ voxels of {self._voxel_m} m",
                f"give --voxel-m {2 * self._voxel_m:g}, a smaller --max-depth-m, or logs of fewer rooms",
            )

    def surface(self, observations: int) -> Surface:
        """The surface that at least so many frames have seen, with triangles sorted by place."""
        mesh = self._grid.extract_triangle_mesh(weight_threshold=float(observations))
        if not len(mesh.triangle.indices):
            return Surface(np.zeros((0, 3, 3)), np.zeros((0, 3), np.uint8))
        vertices = mesh.vertex.positions.numpy().astype(np.float64)
        faces = mesh.triangle.indices.numpy().astype(np.int64)
        shades = mesh.vertex.colors.numpy()
        # Threads fill the field in any order, so the order of the vertices varies: sort them.
        order = np.lexsort(np.round(vertices, 6).T)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        vertices, shades, faces = vertices[order], shades[order], rank[faces]
        first = faces.argmin(axis=1)
        faces = np.take_along_axis(faces, (first[:, None] + np.arange(3)) % 3, axis=1)
        faces = faces[np.lexsort(faces.T[::-1])]
        faces = faces[_large_enough(vertices, faces)]
        colors = np.clip(np.rint(shades[faces].mean(axis=1)), 0, 255).astype(np.uint8)
        return Surface(vertices[faces], colors)


def _large_enough(vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask (M,) of the faces in connected pieces of at least :data:`_SMALLEST_M2`."""
    keep = np.zeros(len(faces), bool)
    areas = triangle_areas_m2(vertices[faces])
    for piece in split(len(vertices), faces):
        keep[piece] = areas[piece].sum() >= _SMALLEST_M2
    return keep


def triangle_areas_m2(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """The areas (M,) of triangles (M, 3, 3)."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return np.asarray(np.linalg.norm(normals, axis=1) / 2)
