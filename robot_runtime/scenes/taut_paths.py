"""Exact shortest paths among the navigable cells of a grid.

A shortest path is a taut string: straight, but for bends at corners of blocked cells, each with three navigable cells
around it. Dijkstra's algorithm runs over those corners from the targets outward, only as far as the queries need, and
never follows a segment that a taut string cannot take (Lozano-Pérez and Wesley 1979; Liu and Arimoto 1992). Which
corners see each other depends on the grid alone and is kept.

Coordinates and lengths are in cells from the grid's outer corner. A corner's node lies :data:`_OFF_CORNER` inside the
navigable cell opposite to the blocked one, so that every segment of a path lies strictly in navigable cells; a path
gets longer by that much per bend. No path squeezes between two blocked cells that touch at a corner.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.jit import compiled
from robot_runtime.scenes.index_heap import rise, sink

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_OFF_CORNER = 1e-6
_ALONG_WALL = 4 * _OFF_CORNER
_FAR, _TRIAL, _SETTLED = 0, 1, 2
_QUEUED, _DONE, _LAST = 0, 1, 2
"""Indices of a search's counts: corners in the heap, settled ones, and the last answer (see ``TautSearch._query``)."""


class Corners(NamedTuple):
    """The corners of a grid at which shortest paths bend, and which of them see each other.

    Attributes:
        navigable: bool (rows, columns), the grid.
        nodes: float64 (N, 2), column and row of the corners' nodes.
        sides: int64 (N, 2), signs of column and row that lead from a corner into its blocked cell.
        first: int64 (N,), index of a corner's first neighbor in ``neighbors``; negative until they are listed.
        degree: int64 (N,), number of a corner's neighbors.
        used: int64 (1,), number of entries of ``neighbors`` in use.
        neighbors: int32, corners to which a taut string can run straight.
    """

    navigable: Bools
    nodes: Floats
    sides: Ints
    first: Ints
    degree: Ints
    used: Ints
    neighbors: NDArray[np.int32]


class _Search(NamedTuple):
    """The state of Dijkstra's algorithm: per corner its length, parent, state and place in the heap."""

    targets: Floats
    lengths: Floats
    parents: Ints
    state: Ints
    heap: Ints
    place: Ints
    order: Ints
    counts: Ints


class CornerGraph:
    """The corners of a grid, kept for all searches on it.

    Args:
        navigable: bool (rows, columns).
    """

    def __init__(self, navigable: Bools) -> None:
        quads = np.stack((navigable[:-1, :-1], navigable[:-1, 1:], navigable[1:, :-1], navigable[1:, 1:]))
        which, row, column = np.nonzero(~quads & (quads.sum(axis=0) == 3))
        sides = np.stack((2 * (which % 2) - 1, 2 * (which // 2) - 1), axis=1).astype(np.int64)
        nodes = np.stack((column + 1.0, row + 1.0), axis=1) - _OFF_CORNER * sides
        unlisted, none = np.full(len(nodes), -1, np.int64), np.zeros(len(nodes), np.int64)
        self.corners = Corners(
            np.ascontiguousarray(navigable), nodes, sides, unlisted, none, np.zeros(1, np.int64), np.empty(0, np.int32)
        )

    def make_room(self) -> None:
        """Make room for the neighbors of one more corner at least."""
        listed = self.corners.neighbors
        longer = np.concatenate((listed, np.empty(len(listed) + 16 * len(self.corners.nodes), np.int32)))
        self.corners = self.corners._replace(neighbors=longer)


class TautSearch:
    """Shortest paths from anywhere to the nearest of some targets; reaches as far as the queries need.

    Args:
        graph: corners of the grid.
        targets: float64 (N, 2), column and row of navigable points, N >= 1.
    """

    def __init__(self, graph: CornerGraph, targets: Floats) -> None:
        self._graph = graph
        count = len(graph.corners.nodes)
        parents, state, heap, place, order = np.zeros((5, count), np.int64)
        lengths, counts = np.full(count, np.inf), np.array((0, 0, -1), np.int64)
        self._search = _Search(
            np.ascontiguousarray(targets, np.float64), lengths, parents, state, heap, place, order, counts
        )
        _seed(graph.corners, self._search)

    def length(self, column: float, row: float) -> float:
        """Length of the shortest path from a navigable point that is connected to a target."""
        return self._query(column, row)[0]

    def path(self, column: float, row: float) -> list[tuple[float, float]]:
        """The nodes (column, row) of that path, from the point to the target."""
        points = [(column, row)]
        via = self._query(column, row)[1]
        while via >= 0:
            points.append((float(self._graph.corners.nodes[via, 0]), float(self._graph.corners.nodes[via, 1])))
            via = int(self._search.parents[via])
        target = self._search.targets[-1 - via]
        return [*points, (float(target[0]), float(target[1]))]

    def _query(self, column: float, row: float) -> tuple[float, int]:
        """That length, and the index of the path's first corner, or ``-1 - index`` of a target in plain view."""
        while (found := _query(self._graph.corners, self._search, column, row))[0] < 0:
            self._graph.make_room()
        return found


@compiled
def is_clear(navigable: Bools, x0: float, y0: float, x1: float, y1: float) -> bool:
    """Whether every cell that the segment between two points of the grid crosses is navigable, both ends included."""
    column, row, last_column, last_row = math.floor(x0), math.floor(y0), math.floor(x1), math.floor(y1)
    if not navigable[row, column]:
        return False
    columns, rows = abs(last_column - column), abs(last_row - row)
    right, up = last_column > column, last_row > row
    step_column, step_row = (1 if right else -1), (1 if up else -1)
    per_x = 1.0 / (x1 - x0) if columns else 0.0
    per_y = 1.0 / (y1 - y0) if rows else 0.0
    while columns or rows:
        at_x = (column + right - x0) * per_x if columns else math.inf
        at_y = (row + up - y0) * per_y if rows else math.inf
        if at_x == at_y and not (navigable[row, column + step_column] or navigable[row + step_row, column]):
            return False
        if at_x <= at_y:
            column += step_column
            columns -= 1
        if at_y <= at_x:
            row += step_row
            rows -= 1
        if not navigable[row, column]:
            return False
    return True


@compiled
def _sees(corners: Corners, corner: int, x: float, y: float) -> bool:
    """Whether a taut string can run straight from a corner to a point and bend at the corner.

    The line must pass the corner's blocked cell, neither enter it nor come from the opposite side.
    """
    across_x = (x - corners.nodes[corner, 0]) * corners.sides[corner, 0]
    across_y = (y - corners.nodes[corner, 1]) * corners.sides[corner, 1]
    # The nodes are off their corners: lines along a wall miss it by that much.
    if across_x * across_y > 0 and min(abs(across_x), abs(across_y)) > _ALONG_WALL:
        return False
    return is_clear(corners.navigable, corners.nodes[corner, 0], corners.nodes[corner, 1], x, y)


@compiled
def _seed(corners: Corners, search: _Search) -> None:
    """Put the corners that see a target on trial."""
    for corner in range(len(corners.nodes)):
        for target in range(len(search.targets)):
            x, y = search.targets[target, 0], search.targets[target, 1]
            length = math.hypot(x - corners.nodes[corner, 0], y - corners.nodes[corner, 1])
            if length < search.lengths[corner] and _sees(corners, corner, x, y):
                search.lengths[corner] = length
                search.parents[corner] = -1 - target
        if search.lengths[corner] < math.inf:
            _enqueue(search, corner)


@compiled
def _enqueue(search: _Search, corner: int) -> None:
    """Put a corner on trial, or move it up after its length has become less."""
    if search.state[corner] == _FAR:
        search.state[corner] = _TRIAL
        search.place[corner] = search.counts[_QUEUED]
        search.heap[search.counts[_QUEUED]] = corner
        search.counts[_QUEUED] += 1
    rise(search.heap, search.place, search.lengths, search.place[corner])


@compiled
def _list_neighbors(corners: Corners, corner: int) -> None:
    """List the corners to which a taut string can run straight from this one; there must be room for all."""
    x, y = corners.nodes[corner, 0], corners.nodes[corner, 1]
    corners.first[corner] = corners.used[0]
    for other in range(len(corners.nodes)):
        if (
            other != corner
            and _sees(corners, other, x, y)
            and _sees(corners, corner, corners.nodes[other, 0], corners.nodes[other, 1])
        ):
            corners.neighbors[corners.used[0]] = other
            corners.used[0] += 1
    corners.degree[corner] = corners.used[0] - corners.first[corner]


@compiled
def _settle(corners: Corners, search: _Search) -> None:
    """Take the nearest corner off the heap and shorten the ways to its neighbors."""
    corner = search.heap[0]
    search.state[corner] = _SETTLED
    search.order[search.counts[_DONE]] = corner
    search.counts[_DONE] += 1
    search.counts[_QUEUED] -= 1
    size = search.counts[_QUEUED]
    if size:
        search.heap[0] = search.heap[size]
        search.place[search.heap[0]] = 0
        sink(search.heap, search.place, search.lengths, 0, size)
    x, y = corners.nodes[corner, 0], corners.nodes[corner, 1]
    for index in range(corners.first[corner], corners.first[corner] + corners.degree[corner]):
        other = corners.neighbors[index]
        length = search.lengths[corner] + math.hypot(corners.nodes[other, 0] - x, corners.nodes[other, 1] - y)
        if search.state[other] != _SETTLED and length < search.lengths[other]:
            search.lengths[other] = length
            search.parents[other] = corner
            _enqueue(search, other)


@compiled
def _query(corners: Corners, search: _Search, x: float, y: float) -> tuple[float, int]:
    """Length of the shortest path from (x, y) and its first corner or target; -1.0 if there is no room to go on."""
    best, via = math.inf, 0
    guess = search.counts[_LAST]  # successive queries come from neighboring places
    if guess >= 0 and is_clear(corners.navigable, x, y, corners.nodes[guess, 0], corners.nodes[guess, 1]):
        best = search.lengths[guess] + math.hypot(x - corners.nodes[guess, 0], y - corners.nodes[guess, 1])
        via = guess
    for target in range(len(search.targets)):
        target_x, target_y = search.targets[target, 0], search.targets[target, 1]
        length = math.hypot(x - target_x, y - target_y)
        if length < best and is_clear(corners.navigable, x, y, target_x, target_y):
            best, via = length, -1 - target
    rank = 0
    while True:
        if rank == search.counts[_DONE]:
            if search.counts[_QUEUED] == 0 or search.lengths[search.heap[0]] >= best:
                break
            corner = search.heap[0]
            if corners.first[corner] < 0:
                if corners.used[0] + len(corners.nodes) > len(corners.neighbors):
                    return -1.0, 0
                _list_neighbors(corners, corner)
            _settle(corners, search)
        corner = search.order[rank]
        rank += 1
        if search.lengths[corner] >= best:
            break
        length = search.lengths[corner] + math.hypot(x - corners.nodes[corner, 0], y - corners.nodes[corner, 1])
        if length < best and _sees(corners, corner, x, y):
            best, via = length, corner
    search.counts[_LAST] = via
    return best, via
