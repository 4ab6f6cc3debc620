"""Differences between a scene and logs of the place: logged depth against depth that is rendered from the same poses.

A measurement in front of the scene's surface shows something new; one behind it shows that the surface is gone. Both
are counted in voxels, frame by frame, next to the :class:`~sim_bridge.reconstruction.occupancy_mapping.VoxelGrid` of
what was measured, so that neither a wrong pixel nor a person who walks by counts.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.scenes.occupancy_map import Cell
from robot_runtime.scenes.scene import Scene
from sim_bridge.physics.scene_model import SKY_M, build_model
from sim_bridge.reconstruction.build import FUSED
from sim_bridge.reconstruction.floor_texture import FloorHeights
from sim_bridge.reconstruction.logged_frames import FrameSequence, PosedFrame
from sim_bridge.reconstruction.occupancy_mapping import MappingOptions, VoxelGrid
from sim_bridge.reconstruction.planar_geometry import cells_of
from sim_bridge.rendering.renderer import SceneRenderer
from sim_bridge.scenes.progress import Progress, silent

VOXEL_M = 0.05
TOP_M = 2.0
"""Changes above this height are not looked for: people move nothing there."""

MARGIN_M, MARGIN_SHARE = 0.06, 0.012
"""Depths that differ by less than ``MARGIN_M + MARGIN_SHARE * depth²`` (in meters) are the same."""

_STRIDE_PX = 2
_NEIGHBORS = np.ones((3, 3), np.uint8)


class DepthDifferences:
    """Counts, per voxel, of frames in which a scene and the measurements differ or agree.

    Attributes:
        voxels: the grid, and the counts of what was measured.
        appeared: uint16 (voxels,), frames with a measurement in the voxel, in front of the scene's surface.
        gone: uint16 (voxels,), frames with a measurement behind the scene's surface in the voxel.
        agreed: uint16 (voxels,), frames in which the measurement lies on the scene's surface in the voxel.
        floor: heights at which the floor was measured.
        compared: number of pixels over all frames.
        equal: number of those in which scene and measurement agree.
    """

    def __init__(self, voxels: VoxelGrid) -> None:
        self.voxels = voxels
        size = int(np.prod(voxels.shape))
        self.appeared, self.gone, self.agreed = (np.zeros(size, np.uint16) for _ in range(3))
        self._sums, self._counts = np.zeros((size, 3), np.float32), np.zeros(size, np.int32)
        self.floor = FloorHeights()
        self.compared = self.equal = self.frames = 0

    def add(self, frame: PosedFrame, scene_m: NDArray[np.float32]) -> None:
        """Count a frame; ``scene_m`` is the scene's depth, float32 (H, W), of the same camera."""
        points, _ = frame.points(_STRIDE_PX)
        self.voxels.add(frame, points)
        self.floor.add(frame, points)
        measured = frame.depth_m
        margin = MARGIN_M + MARGIN_SHARE * measured * measured
        # A pixel at an edge may show either side of it, so it differs only if it differs from both.
        nearest, farthest = cv2.erode(scene_m, _NEIGHBORS), cv2.dilate(scene_m, _NEIGHBORS)
        valid = measured > 0
        new = valid & (measured < nearest - margin)
        missing = valid & (measured > farthest + margin) & (scene_m < SKY_M)
        same = valid & ~new & ~missing
        self.compared += int(valid.sum())
        self.equal += int(same.sum())
        self.frames += 1
        index, where = self._count(self.appeared, frame, measured, new)
        np.add.at(self._sums, index, where)
        np.add.at(self._counts, index, 1)
        self._count(self.gone, frame, scene_m, missing)
        self._count(self.agreed, frame, scene_m, same & (scene_m < SKY_M))

    def _count(
        self, counts: NDArray[np.uint16], frame: PosedFrame, depth_m: NDArray[np.float32], mask: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Add 1 to the voxels of the pixels in ``mask``, and return the voxel and the point of each."""
        points, _ = frame.with_depth(np.where(mask, depth_m, np.float32(0))).points(_STRIDE_PX)
        index = self.voxels.indices(points)
        inside = index >= 0
        counts[np.unique(index[inside])] += 1
        return index[inside], points[inside]

    @property
    def _enough(self) -> int:
        return self.voxels.options.observations

    def new_voxels(self) -> NDArray[np.bool_]:
        """Voxels (voxels,) that hold a surface now and held none in the scene."""
        changed = (self.appeared >= self._enough) & (self.appeared > self.agreed)
        return np.asarray(changed & self.voxels.occupied.reshape(-1))

    def vanished_voxels(self) -> NDArray[np.bool_]:
        """Voxels (voxels,) that held a surface in the scene and are open now."""
        changed = (self.gone >= self._enough) & (self.gone > self.agreed)
        return np.asarray(changed & self.voxels.open.reshape(-1))

    def unchanged_voxels(self) -> NDArray[np.bool_]:
        """Voxels (voxels,) whose surface is where the scene has it."""
        return np.asarray(self.agreed >= self._enough)

    def points(self, voxels: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean (N, 3) of the points that have appeared in each voxel, or its center where none has."""
        counts = self._counts[voxels][:, None]
        means = self._sums[voxels] / np.maximum(counts, 1)
        return np.where(counts > 0, means, self.voxels.centers(voxels)).astype(np.float64)


def compare(scene: Scene, frames: FrameSequence, observations: int = 2, report: Progress = silent) -> DepthDifferences:
    """Compare all frames with the scene.

    Raises:
        SceneError: the scene has no meshes.
        RenderingUnavailable: this computer cannot render.
        RecordingError: see :class:`~sim_bridge.reconstruction.logged_frames.FrameSequence`.
        ConfigError: see :class:`~sim_bridge.reconstruction.occupancy_mapping.VoxelGrid`.
    """
    options = MappingOptions(VOXEL_M, VOXEL_M, TOP_M, VOXEL_M, observations)
    found = DepthDifferences(VoxelGrid(frames.viewpoints, frames.max_depth_m, options))
    renderer: SceneRenderer | None = None
    try:
        for frame in frames:
            report("frames", found.frames, len(frames))
            if renderer is None:
                renderer = SceneRenderer(build_model(scene), frame.intrinsics)
            renderer.set_intrinsics(frame.intrinsics)
            matrix = frame.map_from_camera
            # OpenGL's camera looks along -z, with y up.
            _, depth_m = renderer.render(matrix[:3, 3].copy(), matrix[:3, :3] * (1, -1, -1))
            found.add(frame, depth_m)
    finally:
        if renderer is not None:
            renderer.close()
    report("frames", len(frames), len(frames))
    return found


def described_voxels(scene: Scene, found: DepthDifferences) -> NDArray[np.bool_]:
    """Voxels (voxels,) whose content the scene describes.

    A scene that was fused from logs lacks what those logs did not show: things can be new only on floor that they
    showed to be free, a little away from its border. All other scenes are complete.
    """
    shape = found.voxels.shape
    if FUSED not in scene.file.source:
        return np.ones(int(np.prod(shape)), bool)
    rows, columns, layers = shape
    x_m, y_m, _ = found.voxels.centers(np.arange(rows * columns) * layers).T
    row, column, inside = cells_of(scene.map, x_m, y_m)
    free = np.zeros(rows * columns, bool)
    free[inside] = scene.map.clearance_m()[row, column] >= VOXEL_M
    return np.repeat(free, layers)


def seen_share(scene: Scene, found: DepthDifferences) -> float:
    """The share of the scene's free floor that the logs show."""
    rows, columns = np.nonzero(scene.map.cells == Cell.FREE)
    if not len(rows):
        return 0.0
    seen = found.voxels.occupancy()
    x_m, y_m = scene.map.to_point(rows, columns)  # type: ignore[arg-type]
    row, column, _ = cells_of(seen, x_m, y_m)  # type: ignore[arg-type]
    return float((seen.cells[row, column] != Cell.UNKNOWN).sum() / len(rows))
