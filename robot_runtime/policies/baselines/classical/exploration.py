"""Frontiers to explore, the borders between known and unknown cells (Yamauchi 1997)."""

from collections.abc import Callable

import numpy as np
from scipy import ndimage

from robot_runtime.common.geometry import SE2
from robot_runtime.policies.baselines.classical.grid import Grid
from robot_runtime.policies.baselines.classical.navigation import Target
from robot_runtime.policies.baselines.classical.planning import Bools, CostMap, disc, march
from robot_runtime.policies.baselines.classical.pointgoal import point_target

_LEAST_CELLS = 6
"""Shorter frontiers are gaps between rays, not openings."""

_WORTH_PER_M = 0.5
"""Additional path length (m) accepted per meter of frontier, up to :data:`_WORTH_AT_MOST_M` of frontier."""

_WORTH_AT_MOST_M = 2.0
_ARRIVED_M = 0.4
_AROUND_ROBOT_M = 0.3
_EIGHT = np.ones((3, 3), np.bool_)


def frontier_cells(costs: CostMap) -> Bools:
    """Known cells in which the robot may stand, next to an unknown one that is neither obstacle nor suspect."""
    unknown = ~costs.known & ~costs.suspect & (costs.clearance_m > 0)
    return np.asarray(costs.known & np.isfinite(costs.slowness) & ndimage.binary_dilation(unknown, _EIGHT))


def next_frontier(costs: CostMap, pose: SE2, penalty_m: Callable[[float, float], float] | None = None) -> Target | None:
    """The frontier of least path length, large ones preferred; None if none can be reached.

    Args:
        costs: the map.
        pose: pose of the robot.
        penalty_m: added to the path length to a frontier at (x, y).
    """
    labels, count = ndimage.label(frontier_cells(costs), _EIGHT)
    to_go_m = march(costs, disc(costs, pose.x_m, pose.y_m, _AROUND_ROBOT_M)).to_go_m
    best, best_cost_m = None, np.inf
    for label, span in enumerate(ndimage.find_objects(labels, count), start=1):
        member = labels[span] == label
        size = int(member.sum())
        if size < _LEAST_CELLS:
            continue
        away_m = np.where(member, to_go_m[span], np.inf)
        row, column = np.unravel_index(int(np.argmin(away_m)), away_m.shape)
        cost_m = float(away_m[row, column]) - _WORTH_PER_M * min(size * costs.resolution_m, _WORTH_AT_MOST_M)
        if not cost_m < best_cost_m:
            continue
        x, y = costs.points(np.array(row + span[0].start), np.array(column + span[1].start))
        cost_m += 0.0 if penalty_m is None else penalty_m(float(x), float(y))
        if cost_m < best_cost_m:
            best, best_cost_m = (float(x), float(y)), cost_m
    return None if best is None else point_target(*best, _ARRIVED_M)


def is_open(grid: Grid, target: Target) -> bool:
    """Whether unknown cells remain around a frontier."""
    x_m, y_m = target.point
    window = grid.window(x_m - _ARRIVED_M, y_m - _ARRIVED_M, x_m + _ARRIVED_M, y_m + _ARRIVED_M)
    return int((~grid.known[window] & ~grid.suspect[window] & ~grid.occupied(window)).sum()) >= _LEAST_CELLS
