"""Measures of AreaGoal: presence in a goal room, at the end and ever (r_T and r_-> of Das et al. 2018)."""

from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.common.geometry import SE2
from robot_runtime.metrics.measures import ROOM_METRICS, Measures, MetricDefinition, Run, in_rooms
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.task_kinds.areagoal import kind as areagoal


class AreaMeasures(Measures):
    """Success by room. ``stopped`` is a metric of its own, because not every definition requires it."""

    rank = 4
    defines: ClassVar[tuple[MetricDefinition, ...]] = ROOM_METRICS

    def __init__(self, header: EpisodeHeader, rules: Rules, geodesic: GeodesicMap) -> None:
        super().__init__(header, rules, geodesic)
        self._rooms = areagoal.goal_rooms(header.task, header.scene, header.episode)

    @override
    def holds(self, pose: SE2, distance_m: float) -> bool:
        return in_rooms([pose], self._rooms)[0]

    @override
    def facets(self) -> Mapping[str, str]:
        return {"room": " or ".join(room.id for room in self._rooms), "category": self.header.episode.category or ""}

    @override
    def metrics(self, run: Run) -> Metrics:
        inside = in_rooms(run.poses, self._rooms)
        return {"r_T": inside[-1], "r_enter": any(inside), "stopped": run.stopped}

    @override
    def choices(self) -> dict[str, Any]:
        return {
            "distance": f"geodesic to the nearest place in the room, which are {areagoal.TARGET_SPACING_M} m apart",
            "in_room": "the robot's centre; the start counts",
        }
