"""Measures of each kind of task besides the metrics that all tasks have, one module each."""

from __future__ import annotations

from robot_runtime.metrics.measures.base import Measures
from robot_runtime.metrics.settings import Rules
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.task_kinds.areagoal.measures import AreaMeasures
from robot_runtime.task_kinds.eqa.measures import QuestionMeasures
from robot_runtime.task_kinds.objectnav.measures import ObjectMeasures
from robot_runtime.task_kinds.rearrangement.measures import RearrangementMeasures
from robot_runtime.task_kinds.vln.measures import RouteMeasures
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
"""Names of the metrics that only some kinds of tasks have, each once."""


def measures(header: EpisodeHeader, rules: Rules, geodesic: GeodesicMap) -> Measures:
    """The measures of an episode's kind of task. Raises ``EpisodeError`` if the episode lacks what they need."""
    return KINDS[header.task.kind](header, rules, geodesic)
