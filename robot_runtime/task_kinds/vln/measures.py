"""Measures of instruction following: fidelity to the route (Magalhaes et al. 2019; VLN-CE ``measures.py``).

As in VLN-CE, distance to the goal is geodesic, for success and oracle success too, and distance to the reference is
Euclidean, here in the plane. SED is left out: it counts edges of a graph, and a route in free space has none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.common.geometry import SE2
from robot_runtime.metrics.functional.distances import Euclidean
from robot_runtime.metrics.functional.dtw import dtw_alignment
from robot_runtime.metrics.functional.path import without_repeats
from robot_runtime.metrics.functional.route import RouteRules, route_metrics
from robot_runtime.metrics.measures import Measures, MetricDefinition, Run
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.task_kinds.vln.format_r2r_ce import begins_elsewhere_m, ground_truth_path
from robot_runtime.task_kinds.vln.kind import Route
from robot_runtime.tasks.episode import Episode

PLANE = Euclidean((0, 1))
Point = tuple[float, float]

REPEAT_M = 0.05
"""Distance up to which a position repeats the last retained one, a fifth of a step forward.

A measured robot moves by millimeters when it turns in place; without the tolerance its path would have other nodes than
that of the same drive in simulation.
"""


def reference_of(episode: Episode, rules: Rules) -> tuple[Sequence[tuple[float, ...]], str]:
    """Reference of a route, as points in map, and its source; empty if there is none."""
    dense = ground_truth_path(episode) if rules.reference == "densest" else ()
    if dense:
        elsewhere = begins_elsewhere_m(episode, dense) is not None
        return dense, "positions of a follower that begins elsewhere" if elsewhere else "the follower's positions"
    return Route.of(episode).reference_path, "nodes of the reference path"


def alignment(episode: Episode, poses: Sequence[SE2], rules: Rules) -> list[tuple[Point, Point]]:
    """The pairs (reference, path) of points (x, y) whose distances nDTW sums; empty without a reference."""
    reference, _ = reference_of(episode, rules)
    if not reference:
        return []
    path = without_repeats([(pose.x_m, pose.y_m) for pose in poses], REPEAT_M)
    _, pairs = dtw_alignment(reference, path, PLANE)
    return [((reference[i][0], reference[i][1]), (float(path[j][0]), float(path[j][1]))) for i, j in pairs.tolist()]


class RouteMeasures(Measures):
    """Success by distance, and the metrics of a path against its reference; None without a reference."""

    rank = 2
    defines: ClassVar[tuple[MetricDefinition, ...]] = (
        MetricDefinition("oracle_success", "oracle success", share=True),
        MetricDefinition("ndtw", "nDTW", histogram=True),
        MetricDefinition("sdtw", "SDTW"),
        MetricDefinition("cls", "CLS"),
        MetricDefinition("oracle_navigation_error_m"),
        MetricDefinition("average_deviation_m"),
        MetricDefinition("max_deviation_m"),
    )

    def __init__(self, header: EpisodeHeader, rules: Rules, geodesic: GeodesicMap) -> None:
        super().__init__(header, rules, geodesic)
        rule = header.task.success
        self._route_rules = RouteRules(
            threshold_m=rule.distance_m, inclusive=rule.inclusive, repeat_m=REPEAT_M, zero_path=rules.zero_path
        )
        self._reference, self._source = reference_of(header.episode, rules)

    @override
    def facets(self) -> Mapping[str, str]:
        instruction = Route.of(self.header.episode).instruction
        language = instruction.language if instruction is not None else None
        return {**super().facets(), **({"language": language} if language else {})}

    @override
    def metrics(self, run: Run) -> Metrics:
        names = [metric.name for metric in self.defines]
        if not self._reference:
            return dict.fromkeys(names)
        path = [(pose.x_m, pose.y_m) for pose in run.poses]
        values = route_metrics(
            self._reference, path, run.shortest_m, run.stopped, self._route_rules, PLANE, run.distances_m()
        )
        return {name: values[name] for name in names}

    @override
    def choices(self) -> dict[str, Any]:
        return {
            "route": asdict(self._route_rules),
            "route_distance": "planar Euclidean to the reference, exact DTW; geodesic to the goal",
            "route_reference": self._source if self._reference else "none",
        }
