"""Where a twin and reality differ: logged depth against the twin's, drawn from the same poses.

What was measured in front of the twin's surface has appeared; what was measured behind it says that the twin's surface
is gone. Both are counted in voxels, frame by frame, beside what
:class:`~sim_bridge.reconstruction.occupancy_mapping.Evidence` says of
them, so that a wrong pixel or a person who walks by changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.scenes.occupancy_map import Cell
from robot_runtime.scenes.scene import Scene
from sim_bridge.physics.scene_model import SKY_M, build_model
from sim_bridge.reconstruction.build import FUSED
from sim_bridge.reconstruction.floor_texture import FloorHeights
from sim_bridge.reconstruction.logged_frames import Sight, Sights
from sim_bridge.reconstruction.occupancy_mapping import Band, Evidence
from sim_bridge.rendering.renderer import SceneRenderer
from sim_bridge.scenes.progress import Progress, silent

VOXEL_M = 0.05
TOP_M = 2.0
"""Higher up nothing that people move is looked for."""

MARGIN_M, MARGIN_SHARE = 0.06, 0.012
"""Depths that differ by less than this, and this share of their square in metres, are the same."""

_STRIDE_PX = 2


@dataclass(eq=False)
class Differences:
    """Voxels of a place in which a twin and what was measured differ.

    Attributes:
        evidence: what was measured, and the grid of the voxels.
        appeared, gone, agreed: uint16 (voxels,), frames that say so.
        sums: float32 (voxels, 3), of the measured points that have appeared; counts: int32 (voxels,), how many.
        floor: how high it was seen.
        compared, equal: pixels over all frames.
        frames: how many.
    """

    evidence: Evidence
    appeared: NDArray[np.uint16] = field(init=False)
    gone: NDArray[np.uint16] = field(init=False)
    agreed: NDArray[np.uint16] = field(init=False)
    sums: NDArray[np.float32] = field(init=False)
    counts: NDArray[np.int32] = field(init=False)
    floor: FloorHeights = field(default_factory=FloorHeights)
    compared: int = 0
    equal: int = 0
    frames: int = 0

    def __post_init__(self) -> None:
        size = int(np.prod(self.evidence.shape))
        self.appeared, self.gone, self.agreed = (np.zeros(size, np.uint16) for _ in range(3))
        self.sums, self.counts = np.zeros((size, 3), np.float32), np.zeros(size, np.int32)

    def add(self, sight: Sight, twin_m: NDArray[np.float32]) -> None:
        """Count a frame, beside the twin's depth, float32 (H, W), of the same camera."""
        points, _ = sight.points(_STRIDE_PX)
        self.evidence.add(sight, points)
        self.floor.add(sight, points)
        measured = sight.depth_m
        margin = MARGIN_M + MARGIN_SHARE * measured * measured
        # A pixel at an edge shows either side of it: it differs if it differs from both.
        nearest, farthest = cv2.erode(twin_m, _AROUND), cv2.dilate(twin_m, _AROUND)
        valid = measured > 0
        new = valid & (measured < nearest - margin)
        lost = valid & (measured > farthest + margin) & (twin_m < SKY_M)
        same = valid & ~new & ~lost
        self.compared += int(valid.sum())
        self.equal += int(same.sum())
        self.frames += 1
        index = self._count(self.appeared, sight, measured, new)
        seen, where = index
        for axis in range(3):
            np.add.at(self.sums[:, axis], seen, where[:, axis])
        np.add.at(self.counts, seen, 1)
        self._count(self.gone, sight, twin_m, lost)
        self._count(self.agreed, sight, twin_m, same & (twin_m < SKY_M))

    def _count(
        self, counts: NDArray[np.uint16], sight: Sight, depth_m: NDArray[np.float32], where: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Add 1 to the voxels of the pixels ``where``, whose voxels and points are returned."""
        points, _ = sight.with_depth(np.where(where, depth_m, np.float32(0))).points(_STRIDE_PX)
        index = self.evidence.voxels(points)
        inside = index >= 0
        counts[np.unique(index[inside])] += 1
        return index[inside], points[inside]


def compare(twin: Scene, sights: Sights, observations: int = 2, report: Progress = silent) -> Differences:
    """Hold all frames against the twin.

    Raises:
        SceneError: the twin has no meshes. RenderingUnavailable: nothing can be drawn here.
        RecordingError, ConfigError: see :class:`~sim_bridge.reconstruction.logged_frames.Sights` and ``Evidence``.
    """
    band = Band(VOXEL_M, VOXEL_M, TOP_M, VOXEL_M, observations)
    found = Differences(Evidence(sights.viewpoints, sights.max_depth_m, band))
    renderer: SceneRenderer | None = None
    try:
        for sight in sights:
            report("frames", found.frames, len(sights))
            if renderer is None:
                renderer = SceneRenderer(build_model(twin), sight.intrinsics)
            renderer.set_intrinsics(sight.intrinsics)
            matrix = sight.map_from_camera
            # OpenGL's camera looks along -z, with y up.
            _, depth_m = renderer.render(matrix[:3, 3].copy(), matrix[:3, :3] * (1, -1, -1))
            found.add(sight, depth_m)
    finally:
        if renderer is not None:
            renderer.close()
    report("frames", len(sights), len(sights))
    return found


def known(twin: Scene, found: Differences) -> NDArray[np.bool_]:
    """Voxels of which the twin says what was in them.

    A twin that was fused from logs lacks what those logs did not show: only on floor that they saw free, a little away
    from its border, can things be new. All others are complete.
    """
    if FUSED not in twin.file.source:
        return np.ones(int(np.prod(found.evidence.shape)), bool)
    rows, columns, layers = found.evidence.shape
    x_m, y_m, _ = found.evidence.centers(np.arange(rows * columns) * layers).T
    occupancy = twin.map
    row = np.floor((y_m - occupancy.origin_y_m) / occupancy.resolution_m).astype(int)
    column = np.floor((x_m - occupancy.origin_x_m) / occupancy.resolution_m).astype(int)
    inside = (row >= 0) & (row < occupancy.cells.shape[0]) & (column >= 0) & (column < occupancy.cells.shape[1])
    free = np.zeros(rows * columns, bool)
    free[inside] = occupancy.clearance_m()[row[inside], column[inside]] >= VOXEL_M
    return np.repeat(free, layers)


def seen_share(twin: Scene, found: Differences) -> float:
    """How much of the twin's free floor the logs show."""
    seen = found.evidence.occupancy()
    rows, columns = np.nonzero(twin.map.cells == Cell.FREE)
    if not len(rows):
        return 0.0
    x_m = twin.map.origin_x_m + (columns + 0.5) * twin.map.resolution_m
    y_m = twin.map.origin_y_m + (rows + 0.5) * twin.map.resolution_m
    row = np.floor((y_m - seen.origin_y_m) / seen.resolution_m).astype(int)
    column = np.floor((x_m - seen.origin_x_m) / seen.resolution_m).astype(int)
    inside = (row >= 0) & (row < seen.cells.shape[0]) & (column >= 0) & (column < seen.cells.shape[1])
    return float((seen.cells[row[inside], column[inside]] != Cell.UNKNOWN).sum() / len(rows))


_AROUND = np.ones((3, 3), np.uint8)
