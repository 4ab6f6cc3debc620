"""Interface of a kind of task's measures; its defaults are PointNav's, success by the distance at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from robot_runtime.common.geometry import SE2
from robot_runtime.metrics.functional.success import success
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.verdicts import Verdicts


@dataclass(frozen=True, slots=True)
class Run:
    """An episode up to its latest step.

    Attributes:
        poses: the scored positions, the start first.
        distance_m: from the last of them to the nearest target; inf off the map.
        distances_m: computes that distance for all of them.
        stopped: whether the last action was ``stop``, and no fault followed.
        succeeded: by the task's rule.
        shortest_m: SPL's l.
    """

    poses: Sequence[SE2]
    distance_m: float
    distances_m: Callable[[], Sequence[float]]
    stopped: bool
    succeeded: bool
    shortest_m: float


class Measures:
    """Measures of one episode.

    Attributes:
        names: keys of :meth:`metrics`, in the order of tables; none changes the meaning of a common metric.
    """

    names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, header: EpisodeHeader, rules: Rules, geodesic: GeodesicMap) -> None:
        self.header, self.rules, self.geodesic = header, rules, geodesic

    def needs_frame(self, record: StepRecord) -> bool:
        """Whether :meth:`on_step` needs the record's images."""
        return False

    def on_verdicts(self, verdicts: Verdicts) -> None:
        """Add the verdicts on the run, before the first step."""

    def on_step(self, record: StepRecord) -> None:
        """Add the next step."""

    def holds(self, pose: SE2, distance_m: float) -> bool:
        """Whether the task's success rule holds at the latest step."""
        rule = self.header.task.success
        return success(True, distance_m, rule.distance_m, rule.inclusive)

    def metrics(self, run: Run) -> Metrics:
        """The values of :attr:`names`, and None for each common metric that is undefined for the task."""
        return {}

    def choices(self) -> dict[str, Any]:
        """The choices that :meth:`metrics` depends on, to be stored beside them."""
        return {}
