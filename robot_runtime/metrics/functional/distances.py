"""Distances of path metrics: straight lines, along a graph, or around obstacles.

A path is a sequence of nodes: points for :class:`Euclidean` and :class:`Geodesic`, node names for :class:`Graph`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

if TYPE_CHECKING:
    from robot_runtime.scenes.geodesic import GeodesicMap

Array = NDArray[np.float64]
Nodes = NDArray[Any]


class Distance(ABC):
    """d(a, b) >= 0 between nodes, in one unit; ``inf`` if no path leads from one to the other."""

    @abstractmethod
    def nodes(self, path: Any) -> Nodes:
        """The path as an array with one entry per node, checked.

        Raises:
            ValueError: the path is empty, or a node is invalid for this distance (NaN, unknown name).
        """

    @abstractmethod
    def matrix(self, a: Nodes, b: Nodes) -> Array:
        """Distances (len(a), len(b)) from each node of ``a`` to each of ``b``, both from :meth:`nodes`."""

    def nearest(self, a: Nodes, b: Nodes) -> Array:
        """Distances (len(a),) from each node of ``a`` to the nearest of ``b``."""
        return np.asarray(self.matrix(a, b).min(axis=1))

    def steps(self, path: Nodes) -> Array:
        """Distances (len(path) - 1,) between successive nodes."""
        return np.array([self.matrix(path[i : i + 1], path[i + 1 : i + 2])[0, 0] for i in range(len(path) - 1)])


class Euclidean(Distance):
    """Straight lines between points (N, D).

    Args:
        axes: coordinates that count; None for all, so points with height are compared in 3-D (habitat-lab, VLN-CE).
            Planar is ``(0, 1)`` in the ROS frame, ``(0, 2)`` in Habitat's and THOR's y-up frames; RoboTHOR's files mix
            two heights of the same robot, so they need the latter.
    """

    def __init__(self, axes: Sequence[int] | None = None) -> None:
        self.axes = None if axes is None else tuple(axes)

    @override
    def nodes(self, path: Any) -> Array:
        points = np.asarray(path, np.float64)
        if points.ndim != 2 or not points.size:
            raise ValueError(f"a path needs points of shape (N, D) with N >= 1, got shape {points.shape}")
        if self.axes is not None:
            if points.shape[1] <= max(self.axes):
                raise ValueError(f"points with {points.shape[1]} coordinates have no axes {self.axes}")
            points = points[:, self.axes]
        if not np.isfinite(points).all():
            raise ValueError(f"node {int(np.argmin(np.isfinite(points).all(axis=1)))} of the path is not finite")
        return np.ascontiguousarray(points)

    @override
    def matrix(self, a: Nodes, b: Nodes) -> Array:
        if a.shape[1] != b.shape[1]:
            raise ValueError(f"points with {a.shape[1]} and with {b.shape[1]} coordinates have no distance")
        # Differences, not the faster |a|^2 + |b|^2 - 2ab: that one loses half of the digits between near points.
        square = np.zeros((len(a), len(b)))
        for axis in range(a.shape[1]):
            difference = np.subtract.outer(a[:, axis], b[:, axis])
            square += difference * difference
        return np.sqrt(square, out=square)

    @override
    def steps(self, path: Nodes) -> Array:
        return np.asarray(np.sqrt((np.diff(path, axis=0) ** 2).sum(axis=1)))


class Pairwise(Distance):
    """Any function of two points, called for every pair.

    Args:
        function: ``f(a, b) -> distance`` of two points (D,).
    """

    def __init__(self, function: Callable[[Array, Array], float]) -> None:
        self._function = function

    @override
    def nodes(self, path: Any) -> Array:
        return Euclidean().nodes(path)

    @override
    def matrix(self, a: Nodes, b: Nodes) -> Array:
        return _checked(np.array([[self._function(p, q) for q in b] for p in a], np.float64))


class Graph(Distance):
    """Shortest paths along a graph (Dijkstra), or any matrix of distances.

    Args:
        names: names of the nodes.
        matrix: (N, N), distance from each node to each.
    """

    def __init__(self, names: Sequence[Hashable], matrix: Any) -> None:
        self._index = {name: i for i, name in enumerate(names)}
        self._matrix = _checked(np.asarray(matrix, np.float64))
        if len(self._index) != len(names):
            raise ValueError("a node's name is repeated")
        if self._matrix.shape != (len(names), len(names)):
            raise ValueError(f"{len(names)} nodes need a square matrix, got shape {self._matrix.shape}")

    @classmethod
    def of_edges(cls, edges: Iterable[tuple[Hashable, Hashable, float]], nodes: Iterable[Hashable] = ()) -> Graph:
        """A graph of undirected edges ``(a, b, length)``, each length > 0; ``nodes`` may have no edge."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import dijkstra

        listed = list(edges)
        if not all(length > 0 for _, _, length in listed):
            raise ValueError("the length of an edge must be positive")
        names = list(dict.fromkeys([*(name for a, b, _ in listed for name in (a, b)), *nodes]))
        index = {name: i for i, name in enumerate(names)}
        best: dict[tuple[int, int], float] = {}
        for a, b, length in listed:  # a sparse matrix would add the lengths of an edge that is listed twice
            pair = (min(index[a], index[b]), max(index[a], index[b]))
            best[pair] = min(length, best.get(pair, np.inf))
        rows, columns = ([pair[side] for pair in best] for side in (0, 1))
        sparse = coo_array((list(best.values()), (rows, columns)), shape=(len(names), len(names)))
        return cls(names, dijkstra(sparse.tocsr(), directed=False))

    @override
    def nodes(self, path: Any) -> Nodes:
        if isinstance(path, str) or not len(path):
            raise ValueError(f"a path needs a sequence of at least one node, got {path!r}")
        try:
            return np.array([self._index[name] for name in path])
        except KeyError as error:
            raise ValueError(f"the graph has no node {error.args[0]!r}") from None

    @override
    def matrix(self, a: Nodes, b: Nodes) -> Array:
        return np.asarray(self._matrix[np.ix_(a, b)])

    @override
    def steps(self, path: Nodes) -> Array:
        return np.asarray(self._matrix[path[:-1], path[1:]])


class Geodesic(Distance):
    """Shortest paths around obstacles, in the plane, on a map inflated by the robot's radius; ``inf`` off the map.

    A matrix needs one distance field per node of its second path; the map caches some of them.
    """

    def __init__(self, space: GeodesicMap) -> None:
        self._space = space

    @override
    def nodes(self, path: Any) -> Array:
        return Euclidean((0, 1)).nodes(path)

    @override
    def matrix(self, a: Nodes, b: Nodes) -> Array:
        columns = []
        for target in b:
            field = self._space.field([(float(target[0]), float(target[1]))])
            columns.append([field.at(float(x), float(y)) for x, y in a])
        return np.ascontiguousarray(np.array(columns, np.float64).T)

    @override
    def nearest(self, a: Nodes, b: Nodes) -> Array:
        field = self._space.field([(float(x), float(y)) for x, y in b])
        return np.array([field.at(float(x), float(y)) for x, y in a])

    @override
    def steps(self, path: Nodes) -> Array:
        # An agent's steps are straight and in free space, but for bumps and slides: only those need a field.
        found = []
        for (x0, y0), (x1, y1) in pairwise(path.tolist()):
            clear = self._space.is_clear(x0, y0, x1, y1)
            found.append(math.hypot(x1 - x0, y1 - y0) if clear else self._space.distance(x0, y0, [(x1, y1)]))
        return np.array(found, np.float64)


EUCLIDEAN = Euclidean()
"""The default of every metric: straight, in as many dimensions as the points have."""


def _checked(matrix: Array) -> Array:
    if not (matrix >= 0).all():
        raise ValueError("a distance is negative or NaN")
    return matrix
