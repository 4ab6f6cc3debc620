"""Approximate distances from every cell of a map at once, by fast marching (Sethian 1996; second order).

They are up to 2 % too long round corners, which a planner's estimate of what is left to go may be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.scenes.fast_marching import march

_MAX_DISC_CELLS = 24
_MIN_DISC_CELLS = 2
_LEAST_LEVEL = 1e-6  # of a cell: the front has not been where it is yet to arrive


def marched_distances(
    navigable: NDArray[np.bool_], targets: Sequence[tuple[float, float]], cell_m: float
) -> NDArray[np.float64]:
    """Distances from each cell's center to the nearest target: the eikonal equation on the navigable cells.

    The front starts as a circle about each target's exact position, as large as the surroundings allow, because
    marching is least accurate where the front is most curved.

    Args:
        navigable: bool (rows, columns).
        targets: navigable points, column and row in cells from the grid's outer corner.
        cell_m: edge of a cell.

    Returns:
        float64 (rows, columns), meters; inf where no target can be reached.
    """
    values = np.full(navigable.shape, np.inf)
    if not targets:
        return values
    # The visibility test costs reach**3 per target; with many targets a small disc is accurate enough.
    reach = max(_MIN_DISC_CELLS, round(_MAX_DISC_CELLS / len(targets) ** (1 / 3)))
    views = [_view_from(navigable, column, row, reach, cell_m) for column, row in targets]
    disc_m = max(min(view.clear_radius_m for view in views), _MIN_DISC_CELLS * cell_m)
    straight = np.full(values.shape, np.inf)
    visible = np.zeros(values.shape, bool)
    for view in views:
        straight[view.window] = np.minimum(straight[view.window], view.distance_m)
        visible[view.window] |= view.visible & (view.distance_m < disc_m)
    values[visible] = straight[visible]
    outside = navigable & ~visible
    if (outside & ndimage.binary_dilation(visible)).any():
        level = np.where(visible, straight - disc_m, np.clip(straight - disc_m, _LEAST_LEVEL * cell_m, 1.0))
        marched_m = march(level, navigable, cell_m)
        reached = outside & np.isfinite(marched_m)
        values[reached] = marched_m[reached] + disc_m
    return values


@dataclass(frozen=True)
class _View:
    """The surroundings of a target: a window of the grid, distances to its cells, and a mask of the visible ones.

    ``clear_radius_m`` is the radius within which all navigable cells are visible.
    """

    window: tuple[slice, slice]
    distance_m: NDArray[np.float64]
    visible: NDArray[np.bool_]
    clear_radius_m: float


def _view_from(navigable: NDArray[np.bool_], here_column: float, here_row: float, reach: int, cell_m: float) -> _View:
    row, column = int(here_row), int(here_column)
    window = (slice(max(row - reach, 0), row + reach + 1), slice(max(column - reach, 0), column + reach + 1))
    around = navigable[window]
    rows, columns = (index.astype(np.float64) for index in np.indices(around.shape))
    d_row = rows + window[0].start + 0.5 - here_row
    d_column = columns + window[1].start + 0.5 - here_column
    fractions = np.linspace(0.0, 1.0, 2 * reach + 2)[:, None, None]
    on_way = navigable[
        np.floor(here_row + fractions * d_row).astype(np.intp),
        np.floor(here_column + fractions * d_column).astype(np.intp),
    ]
    visible = np.asarray(on_way.all(axis=0))
    distance_m = np.hypot(d_row, d_column) * cell_m
    occluded = around & ~visible
    clear_radius_m = min(float(distance_m[occluded].min()) if occluded.any() else np.inf, (reach - 1) * cell_m)
    return _View(window, distance_m, visible, clear_radius_m)
