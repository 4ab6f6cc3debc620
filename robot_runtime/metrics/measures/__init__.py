"""What each kind of task measures besides what all of them do, one module each."""

from __future__ import annotations

from robot_runtime.metrics.measures.areagoal import AreaMeasures
from robot_runtime.metrics.measures.base import Measures
from robot_runtime.metrics.measures.eqa import QuestionMeasures
from robot_runtime.metrics.measures.objectnav import ObjectMeasures
from robot_runtime.metrics.measures.rearrangement import RearrangementMeasures
from robot_runtime.metrics.measures.vln import RouteMeasures
from robot_runtime.metrics.settings import Rules
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.tasks.task import TaskKind

KINDS: dict[TaskKind, type[Measures]] = {
    "pointnav": Measures,
    "objectnav": ObjectMeasures,
    "vln": RouteMeasures,
    "eqa": QuestionMeasures,
    "areagoal": AreaMeasures,
    "rearrangement": RearrangementMeasures,
}

KIND_METRICS = tuple(dict.fromkeys(name for kind in KINDS.values() for name in kind.names))
"""The names of all that only some kinds measure, each once."""


def measures(header: EpisodeHeader, rules: Rules, geodesic: GeodesicMap) -> Measures:
    """What an episode's kind of task measures. Raises ``EpisodeError``: the episode lacks what that needs."""
    return KINDS[header.task.kind](header, rules, geodesic)
