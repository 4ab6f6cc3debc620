"""Integration of depth images into the grid.

Every sampled pixel becomes a point in the robot's frame. Points in the height band of the robot's body are obstacles;
points on the floor, and the air between the camera and the nearest obstacle in a direction, are free. A depth at either
end of the training range is clipped or a hole, and counts neither as obstacle nor as floor.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.imaging.depth import observed_m
from robot_runtime.policies.baselines.classical.grid import CAP, HIT, MISS, Grid
from robot_runtime.tasks.task import TrainingCamera

BAND_LOW_M = 0.04
"""Lower than this is floor, carpet or cable."""

BAND_LOW_PER_M = 0.008
"""The band's lower edge rises with distance: depth and tilt errors lift the floor there."""

BAND_HIGH_M = 0.92
"""Higher than this passes over the robot (its camera is at 0.88 m)."""

CLEAR_RANGE_M = 6.0
_MAX_ROWS, _MAX_COLUMNS = 120, 320
_BINS_PER_COLUMN = 0.8  # fewer directions than sampled columns, so that none is without a pixel
_RAY_STEP = 0.8  # of a cell

Floats32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class _View:
    """The geometry of the sampled pixels at one camera tilt, per meter of depth, in the robot's frame.

    Attributes:
        forward, up: (rows, 1); left: (1, columns).
        reach: (rows, columns), horizontal distance per meter of depth.
        bearing_bin: (rows, columns), direction in the plane, as an index into the bins of the fan.
        bearings_rad: bearings of the bins, left positive.
        floor_from_m: nearest floor in view; nearer than that low obstacles are out of view.
    """

    forward: Floats32
    up: Floats32
    left: Floats32
    reach: Floats32
    bearing_bin: NDArray[np.intp]
    bearings_rad: NDArray[np.float64]
    floor_from_m: float


class Mapper:
    """Writes depth images of a camera into a grid."""

    def __init__(self, camera: TrainingCamera, grid: Grid) -> None:
        self.grid = grid
        self._camera = camera
        k = camera.intrinsics
        self._row_step, self._column_step = math.ceil(k.height / _MAX_ROWS), math.ceil(k.width / _MAX_COLUMNS)
        self._v = np.arange(self._row_step // 2, k.height, self._row_step)
        self._u = np.arange(self._column_step // 2, k.width, self._column_step)
        self._views: dict[float, _View] = {}

    def integrate(
        self, pose: SE2, tilt_rad: float, depth: Floats32, goal_mask: NDArray[np.bool_] | None = None
    ) -> None:
        """Add one image to the grid.

        Args:
            pose: pose of the robot in the grid's frame.
            tilt_rad: tilt of the camera, up positive.
            depth: the task's observation, float32 (H, W, 1) or (H, W), see the camera's ``depth_normalized``.
            goal_mask: bool (H, W), pixels that show the goal object; None if there is none.
        """
        camera, view = self._camera, self._view(tilt_rad)
        sample = (
            slice(self._row_step // 2, None, self._row_step),
            slice(self._column_step // 2, None, self._column_step),
        )
        d = observed_m(depth.reshape(camera.height, camera.width)[sample], camera)
        edge_m = 1e-3 * camera.depth_max_m
        beyond = d >= camera.depth_max_m - edge_m
        measured = (d > camera.depth_min_m + edge_m) & ~beyond
        height_m = camera.height_m + d * view.up
        obstacle = measured & (height_m > BAND_LOW_M + BAND_LOW_PER_M * d) & (height_m < BAND_HIGH_M)
        seen_through = measured | beyond if camera.depth_holes == "zero" else measured
        self.grid.include(pose.x_m, pose.y_m, CLEAR_RANGE_M + 1.0)
        self._clear(pose, view, d, obstacle, seen_through, floor_below=measured[-1] & ~obstacle[-1])
        self._mark(pose, view, d, obstacle)
        if goal_mask is not None:
            cells, counts = self._cells(pose, view, d, measured & goal_mask[sample]), self.grid.goal_counts.ravel()
            counts[cells] = np.minimum(counts[cells].astype(np.int16) + 1, 255)

    def _clear(
        self,
        pose: SE2,
        view: _View,
        d: Floats32,
        obstacle: NDArray[np.bool_],
        seen_through: NDArray[np.bool_],
        floor_below: NDArray[np.bool_],
    ) -> None:
        """Lower the evidence in every direction, up to the nearest obstacle or the farthest measurement.

        ``floor_below`` (columns,) tells where the image's last row shows floor.
        """
        range_m = d * view.reach
        bins = view.bearings_rad.size
        nearest_m, farthest_m = np.full(bins, np.inf, np.float32), np.zeros(bins, np.float32)
        np.minimum.at(nearest_m, view.bearing_bin[obstacle], range_m[obstacle])
        np.maximum.at(farthest_m, view.bearing_bin[seen_through], range_m[seen_through])
        cell_m = self.grid.resolution_m
        end_m = np.minimum(np.minimum(nearest_m - cell_m, farthest_m), CLEAR_RANGE_M)
        hidden = np.zeros(bins, np.bool_)
        hidden[view.bearing_bin[-1][~floor_below]] = True
        # An obstacle nearer than the camera's least depth leaves no measurement.
        reach_m = np.where(hidden, np.maximum(end_m, self._camera.depth_min_m), end_m)
        along_m = np.arange(0.0, CLEAR_RANGE_M, _RAY_STEP * cell_m)
        ray, index = np.nonzero(along_m < reach_m[:, None])
        angle = pose.yaw_rad + view.bearings_rad
        x = pose.x_m + np.cos(angle)[ray] * along_m[index]
        y = pose.y_m + np.sin(angle)[ray] * along_m[index]
        # The grid reaches past CLEAR_RANGE_M, so that no point falls off it and x, y, index stay aligned.
        cells = self.grid.flat(x, y)
        in_view = (along_m[index] >= view.floor_from_m) & (along_m[index] < end_m[ray])
        self._update_known(cells, in_view, hidden[ray])
        whole_band = cells[in_view]
        evidence = self.grid.evidence.ravel()
        evidence[whole_band] = np.maximum(evidence[whole_band] - MISS, 0)

    def _update_known(self, cells: NDArray[np.intp], in_view: NDArray[np.bool_], hidden: NDArray[np.bool_]) -> None:
        """Update the known and suspect cells along the rays.

        Near the robot the floor is below the image. If the image's last row shows floor, the nearer cells count as
        floor too. Otherwise (``hidden``) the object in that row may reach nearer: a bed is wider than its headboard.
        """
        known, suspect = self.grid.known.ravel(), self.grid.suspect.ravel()
        known[cells[in_view | ~hidden]] = True
        doubtful = cells[~in_view & hidden]
        suspect[doubtful] = True
        suspect[cells] &= ~known[cells]

    def _mark(self, pose: SE2, view: _View, d: Floats32, obstacle: NDArray[np.bool_]) -> None:
        cells = self._cells(pose, view, d, obstacle)
        evidence = self.grid.evidence.ravel()
        # Indices repeat, but an assignment counts once: one image is one piece of evidence.
        evidence[cells] = np.minimum(evidence[cells] + HIT, CAP)
        self.grid.known.ravel()[cells] = True

    def _cells(self, pose: SE2, view: _View, d: Floats32, pixels: NDArray[np.bool_]) -> NDArray[np.intp]:
        rows, columns = np.nonzero(pixels)
        depth_m = d[rows, columns].astype(np.float64)
        forward, left = depth_m * view.forward[rows, 0], depth_m * view.left[0, columns]
        c, s = math.cos(pose.yaw_rad), math.sin(pose.yaw_rad)
        return self.grid.flat(pose.x_m + c * forward - s * left, pose.y_m + s * forward + c * left)

    def _view(self, tilt_rad: float) -> _View:
        key = round(tilt_rad, 3)
        if key not in self._views:
            self._views[key] = self._make_view(tilt_rad)
        return self._views[key]

    def _make_view(self, tilt_rad: float) -> _View:
        k = self._camera.intrinsics
        down = (self._v - k.cy) / k.fy
        left = -(self._u - k.cx) / k.fx
        c, s = math.cos(tilt_rad), math.sin(tilt_rad)
        forward, up = c + s * down, s - c * down
        bearing = np.arctan2(left[None, :], forward[:, None])
        first, span = float(bearing.min()), float(np.ptp(bearing))
        bins = math.ceil(_BINS_PER_COLUMN * self._u.size)
        bearing_bin = np.minimum(((bearing - first) * (bins / span)).astype(np.intp), bins - 1)
        lowest = float(up.min())
        floor_from_m = float(-self._camera.height_m / lowest * forward[np.argmin(up)]) if lowest < 0 else math.inf
        return _View(
            forward.astype(np.float32)[:, None],
            up.astype(np.float32)[:, None],
            left.astype(np.float32)[None, :],
            np.hypot(forward[:, None], left[None, :]).astype(np.float32),
            bearing_bin,
            np.asarray(first + (np.arange(bins) + 0.5) * (span / bins), np.float64),
            floor_from_m,
        )
