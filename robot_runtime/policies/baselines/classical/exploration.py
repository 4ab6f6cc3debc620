"""Frontiers to explore, the borders between known and unknown cells (Yamauchi 1997)."""

import math
from collections.abc import Callable

import numpy as np
from scipy import ndimage

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.policies.baselines.classical.grid import Grid
from robot_runtime.policies.baselines.classical.navigation import Navigator, Target
from robot_runtime.policies.baselines.classical.planning import BOLDEST, Bools, CostMap, disc, march
from robot_runtime.policies.baselines.classical.pointgoal import point_target
from robot_runtime.policies.planning.lattice import Moves

_LEAST_CELLS = 6
"""Shorter frontiers are gaps between rays, not openings."""

_WORTH_PER_M = 0.5
"""Additional path length (m) accepted per meter of frontier, up to :data:`_WORTH_AT_MOST_M` of frontier."""

_WORTH_AT_MOST_M = 2.0
_ARRIVED_M = 0.4
TRIED_M = 0.3
"""Distance around a place that was tried in vain in which no other is tried."""

_FRONTIERS_PER_STEP = 8
"""Unreachable frontiers that one decision may discard; with more, the agent turns and continues in the next step."""

_AROUND_ROBOT_M = 0.3
_EIGHT = np.ones((3, 3), np.bool_)


def frontier_cells(costs: CostMap) -> Bools:
    """Known cells in which the robot may stand, next to an unknown one that is neither obstacle nor suspect."""
    unknown = ~costs.known & ~costs.suspect & (costs.clearance_m > 0)
    return np.asarray(costs.known & np.isfinite(costs.slowness) & ndimage.binary_dilation(unknown, _EIGHT))


def next_frontier(costs: CostMap, pose: SE2, penalty_m: Callable[[float, float], float] | None = None) -> Target | None:
    """The frontier of least path length and penalty at (x, y), large ones preferred; None if none can be reached."""
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
        x, y = costs.centers(np.array(row + span[0].start), np.array(column + span[1].start))
        cost_m += 0.0 if penalty_m is None else penalty_m(float(x), float(y))
        if cost_m < best_cost_m:
            best, best_cost_m = (float(x), float(y)), cost_m
    return None if best is None else point_target(*best, _ARRIVED_M)


class FrontierDrive:
    """Drive from frontier to frontier until there are no more."""

    def __init__(self, moves: Moves, grid: Grid, navigator: Navigator, boldest: int = BOLDEST) -> None:
        self._moves, self._grid, self._navigator, self._boldest = moves, grid, navigator, boldest
        self._frontier: Target | None = None

    def next(self, pose: SE2, penalty_m: Callable[[float, float], float] | None = None) -> Action:
        """The next action towards a frontier, as :func:`next_frontier` chooses it; ``stop`` when none is left."""
        for _ in range(_FRONTIERS_PER_STEP):
            if self._frontier is None or not is_open(self._grid, self._frontier):
                self._frontier = next_frontier(self._navigator.costs(), pose, penalty_m)
            if self._frontier is None:
                return Action.STOP
            action = self._towards(self._frontier, pose)
            if action is not None:
                return action
            x_m, y_m = self._frontier.point  # what is around it counts as known, so that it is not chosen again
            self._grid.known[self._grid.window(x_m - TRIED_M, y_m - TRIED_M, x_m + TRIED_M, y_m + TRIED_M)] = True
            self._frontier = None
        return Action.TURN_LEFT

    def leave(self) -> None:
        """Forget the frontier that is driven to."""
        self._frontier = None

    def _towards(self, frontier: Target, pose: SE2) -> Action | None:
        """The next action towards a frontier or of turning to it; None if it is unreachable or already in view."""
        x_m, y_m = frontier.point
        if not frontier.arrived(np.array(pose.x_m), np.array(pose.y_m)):
            return self._navigator.towards(frontier, pose, self._boldest)
        turns = self._moves.facing(pose.yaw_rad, math.atan2(y_m - pose.y_m, x_m - pose.x_m))
        return turns[0] if turns else None


def is_open(grid: Grid, target: Target) -> bool:
    """Whether unknown cells remain around a frontier."""
    x_m, y_m = target.point
    window = grid.window(x_m - _ARRIVED_M, y_m - _ARRIVED_M, x_m + _ARRIVED_M, y_m + _ARRIVED_M)
    return int((~grid.known[window] & ~grid.suspect[window] & ~grid.occupied(window)).sum()) >= _LEAST_CELLS
