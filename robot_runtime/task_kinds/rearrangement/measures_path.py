"""The shortest way on which a robot can rearrange an episode: l of its SPL (Batra et al. 2020, A.5).

The robot starts where it starts, and for each object that is not right it stops at a place from which the crosshair can
meet the object, and at one from which the object comes down exactly at its goal. What a test forgives is not made use
of, nor is which of the first places goes with which of the second: the paper's own l is over objects and goals. Of each
kind of place, :data:`PLACES` stand for all, as far apart as they can be.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.metrics.functional.distances import Graph
from robot_runtime.metrics.functional.tours import Delivery, shortest_tour
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.task_kinds.rearrangement import task as rearrangement
from robot_runtime.task_kinds.rearrangement.crosshair import settings
from robot_runtime.tasks.episode import RearrangedObject

PLACES = 8

Point = tuple[float, float]


def shortest_carry_m(
    header: EpisodeHeader, geodesic: GeodesicMap, start: SE2, items: Sequence[RearrangedObject]
) -> float:
    """Length of the shortest way to move ``items`` from their starts to their goals; inf if there is none.

    Raises:
        EpisodeError: the scene lacks an object.
        ValueError: more objects than ``metrics.tours`` solves.
    """
    picks, drops = [], []
    for item in items:
        level = rearrangement.at_height(item.goal or item.start, item.start)
        picks.append(_spread(_places(header, geodesic, item, item.start)))
        drops.append(_spread(_places(header, geodesic, item, level)))
    if not all(picks) or not all(drops):
        return float("inf")
    capacity = settings(header.task).capacity
    nodes = [(start.x_m, start.y_m), *(place for places in picks for place in places)]
    first_drop = len(nodes)
    nodes += [place for places in drops for place in places]
    matrix = _matrix(geodesic, nodes, fields=len(nodes) if capacity > 1 else first_drop)
    names = iter(range(1, len(nodes)))
    pick_names = [[next(names) for _ in places] for places in picks]
    drop_names = [[next(names) for _ in places] for places in drops]
    deliveries = [Delivery(*names) for names in zip(pick_names, drop_names, strict=True)]
    return shortest_tour(0, deliveries, Graph(range(len(nodes)), matrix), capacity).length


def _places(header: EpisodeHeader, geodesic: GeodesicMap, item: RearrangedObject, pose: ObjectPose) -> list[Point]:
    found = rearrangement.grab_places(header.task, header.scene, header.episode, item.id, pose)
    return [place for place in found if geodesic.is_navigable(*place)]


def _spread(places: Sequence[Point]) -> list[Point]:
    """At most :data:`PLACES` of them, each as far as can be from those before; the first one first."""
    if len(places) <= PLACES:
        return list(places)
    points = np.array(places)
    chosen = [0]
    nearest = np.hypot(*(points - points[0]).T)
    while len(chosen) < PLACES:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, np.hypot(*(points - points[chosen[-1]]).T))
    return [places[i] for i in chosen]


def _matrix(geodesic: GeodesicMap, nodes: Sequence[Point], fields: int) -> NDArray[np.float64]:
    """Distances between all nodes, by a field around each of the first ``fields``; among the rest inf.

    The way back is as long as the way there, and with one object at a time no path leads from drop to drop.
    """
    found = np.full((len(nodes), len(nodes)), np.inf)
    for i in range(fields):
        field = geodesic.field([nodes[i]])
        found[i] = found[:, i] = [field.at(*node) for node in nodes]
    return found
