"""Registration of a scan's plan in a robot's map: a search over all poses, then a fit to a fraction of a cell.

The search correlates the plan, at every heading, with a field that rewards surfaces near the map's border and
penalizes those in the middle of free floor (correlative scan matching, Olson 2009, by FFT over the translations). The
best peaks, each of another pose, are fitted to the border with a robust point-to-line ICP.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft, ndimage
from scipy.spatial import cKDTree

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.scenes.occupancy_map import Cell
from sim_bridge.reconstruction.planar_geometry import cells_of, moved, moved_back, rotation_matrix
from sim_bridge.reconstruction.scene_assembly import Outline

Array = NDArray[np.float64]

CELL_M = 0.1
SPREAD_M = 0.15
YAW_STEP_RAD = math.radians(2.0)
"""Step of the heading; it moves a wall at 4 m from the scan's center by :data:`SPREAD_M`."""

CANDIDATES = 16
APART_M, APART_RAD = 0.3, math.radians(8)
"""Peaks nearer to each other than this are the same."""

INLIER_M = 0.05
"""Largest distance between the map's border and the scan: two cells of a usual map."""

DEEP_M = 0.2
"""A scan's surface this deep in free floor contradicts the map."""

_PENALTY = 0.3
_PEAKS = 3
_PULLS_M = (0.4, 0.2, 0.1, 0.05, 0.05)
_ROUNDS = 8
_ROUGH, _THINNED = 2, 4
_INITIAL_REACH = (0.6, math.radians(20))


@dataclass(frozen=True, slots=True)
class Fit:
    """A pose of the scan in the map, and its quality.

    Attributes:
        map_from_scan: pose of the upright scan.
        inlier_share: share of the map's border that has a surface of the scan within :data:`INLIER_M`.
        contradicted_share: share of the scan's plan on the map that lies in the middle of free floor.
        rms_m: distance of the inliers across the border.
        shift_m: distance by which the map shows obstacles thicker than they are.
    """

    map_from_scan: SE2
    inlier_share: float
    contradicted_share: float
    rms_m: float
    shift_m: float

    @property
    def score(self) -> float:
        """The explained share less three times the contradicted one: furniture changes, free floor stays free."""
        return self.inlier_share - 3 * self.contradicted_share


def candidates(plan: Array, outline: Outline, report: Callable[[int, int], None]) -> list[SE2]:
    """Poses of the scan in the map, the best first.

    Args:
        plan: points (N, 2) of the upright scan.
        outline: outline of the map.
        report: function that is called with the number of headings done and their total.
    """
    field = _field(outline)
    rows, columns = field.shape
    origin = np.array([outline.occupancy.origin_x_m, outline.occupancy.origin_y_m])
    center = (plan.min(axis=0) + plan.max(axis=0)) / 2
    radius = math.ceil(float(np.linalg.norm(plan - center, axis=1).max()) / CELL_M) + 1
    size = 2 * radius + 1
    shape = [fft.next_fast_len(n + size, real=True) for n in field.shape]
    transformed = fft.rfft2(field, shape)
    steps = round(2 * math.pi / YAW_STEP_RAD)
    found: list[tuple[float, SE2]] = []
    for step in range(steps):
        report(step, steps)
        yaw = step * 2 * math.pi / steps
        rotated = (plan - center) @ rotation_matrix(yaw).T
        image = np.zeros((size, size))
        cell = np.rint(rotated / CELL_M).astype(int) + radius
        image[cell[:, 1], cell[:, 0]] = 1.0
        scores = fft.irfft2(transformed * np.conj(fft.rfft2(image, shape)), shape)
        # At row r of the scores the image's row 0 lies on row r of the field; negative rows are at the end.
        for _ in range(_PEAKS):
            row, column = np.unravel_index(int(scores.argmax()), scores.shape)
            score = float(scores[row, column])
            down = int(row) - shape[0] if row > rows else int(row)
            right = int(column) - shape[1] if column > columns else int(column)
            image_center = (np.array([right, down]) + radius + 0.5) * CELL_M + origin
            place = image_center - rotation_matrix(yaw) @ center
            found.append((score, SE2(float(place[0]), float(place[1]), wrap_angle(yaw))))
            reach = round(3 * SPREAD_M / CELL_M)
            around = np.arange(-reach, reach + 1)
            scores[np.ix_((row + around) % shape[0], (column + around) % shape[1])] = -np.inf
    report(steps, steps)
    chosen: list[SE2] = []
    for _, pose in sorted(found, key=lambda item: -item[0]):
        if all(apart(pose, other, center) for other in chosen):
            chosen.append(pose)
        if len(chosen) == CANDIDATES:
            break
    return chosen


def apart(one: SE2, other: SE2, center: Array) -> bool:
    """Whether two poses of a scan differ in heading, or in where they put the scan's center."""
    a, b = one.apply(*center.tolist()), other.apply(*center.tolist())
    return math.dist(a, b) > APART_M or abs(wrap_angle(one.yaw_rad - other.yaw_rad)) > APART_RAD


def fit(plan: Array, outline: Outline, start: SE2, rough: bool = False) -> Fit:
    """Fit the scan's surfaces to the map's border.

    In addition to the pose, the thickness that the map adds to obstacles is fitted. A map marks every cell that is
    touched, so its border lies in front of the surface; where only one side of a room is known, this would move the
    pose.

    Args:
        plan: points (N, 2) of the upright scan.
        outline: outline of the map.
        start: the initial pose.
        rough: whether some centimeters of accuracy suffice, so that a part of the border is used, to choose among many
            poses.
    """
    tree = cKDTree(plan)
    if rough:
        outline = outline.thinned(_THINNED)
    x, y, yaw, shift = start.x_m, start.y_m, start.yaw_rad, 0.0
    for pull_m in _PULLS_M[:_ROUGH] if rough else _PULLS_M:
        for _ in range(_ROUNDS):
            local = (outline.points - (x, y)) @ rotation_matrix(yaw)
            distance, index = tree.query(local, distance_upper_bound=pull_m + 0.02)
            near = np.isfinite(distance)
            if near.sum() < 10:
                break
            matched = plan[index[near]] @ rotation_matrix(yaw).T
            normal = outline.normals[near]
            offset = outline.points[near] - matched - (x, y)
            residual = np.einsum("nd,nd->n", normal, offset) - shift
            weight = np.clip(1 - (residual / pull_m) ** 2, 0, None) ** 2  # Tukey's biweight
            arm = np.stack([-matched[:, 1], matched[:, 0]], axis=1)
            rows = np.column_stack([normal, np.einsum("nd,nd->n", normal, arm), np.ones(len(normal))])
            normal_matrix = rows.T @ (rows * weight[:, None]) + np.diag([1e-6, 1e-6, 1e-6, 1e-2])
            move = np.linalg.solve(normal_matrix, rows.T @ (weight * residual))
            x, y, yaw, shift = x + move[0], y + move[1], yaw + move[2], shift + move[3]
            shift = float(np.clip(shift, -2 * outline.spacing_m, 2 * outline.spacing_m))
            if np.abs(move[:2]).max() < 1e-5 and abs(move[2]) < 1e-6:
                break
    return _scored(plan, tree, outline, SE2(float(x), float(y), wrap_angle(float(yaw))), shift)


def near_initial(found: SE2, initial: SE2) -> bool:
    """Whether a fit that started at an initial pose has remained near it."""
    reach_m, reach_rad = _INITIAL_REACH
    return found.distance_to(initial) <= reach_m and abs(wrap_angle(found.yaw_rad - initial.yaw_rad)) <= reach_rad


def _scored(plan: Array, tree: cKDTree, outline: Outline, pose: SE2, shift_m: float) -> Fit:
    local = moved_back(outline.points, pose)
    distance, index = tree.query(local, distance_upper_bound=INLIER_M + abs(shift_m))
    inlier = np.isfinite(distance)
    placed = moved(plan, pose)
    across = np.einsum("nd,nd->n", outline.normals[inlier], outline.points[inlier] - placed[index[inlier]]) - shift_m
    row, column, _ = cells_of(outline.occupancy, placed[:, 0], placed[:, 1])
    known = outline.occupancy.cells[row, column] != Cell.UNKNOWN
    deep = outline.free_m[row, column] > DEEP_M
    contradicted = float(deep.sum() / max(1, known.sum()))
    rms_m = float(np.sqrt(np.mean(across**2))) if inlier.any() else math.inf
    return Fit(pose, float(inlier.mean()), contradicted, rms_m, shift_m)


def _field(outline: Outline) -> Array:
    """The value of a surface at each place of the map, on a coarse grid with the map's origin."""
    occupancy = outline.occupancy
    width_m, depth_m = occupancy.size_m
    shape = math.ceil(depth_m / CELL_M), math.ceil(width_m / CELL_M)
    border = np.zeros(shape, bool)
    cell = np.floor((outline.points - (occupancy.origin_x_m, occupancy.origin_y_m)) / CELL_M).astype(int)
    border[np.clip(cell[:, 1], 0, shape[0] - 1), np.clip(cell[:, 0], 0, shape[1] - 1)] = True
    distance_m = ndimage.distance_transform_edt(~border) * CELL_M
    field = np.exp(-((distance_m / SPREAD_M) ** 2) / 2)
    step = CELL_M / occupancy.resolution_m
    row = np.minimum(((np.arange(shape[0]) + 0.5) * step).astype(int), occupancy.cells.shape[0] - 1)
    column = np.minimum(((np.arange(shape[1]) + 0.5) * step).astype(int), occupancy.cells.shape[1] - 1)
    field[outline.free_m[np.ix_(row, column)] > DEEP_M] -= _PENALTY
    return np.asarray(field)
