"""The interface of what a kind of task measures, which is also all of it for PointNav: the distance at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from robot_runtime.common.geometry import SE2
from robot_runtime.metrics.functional.success import success
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.recording.annotations import Annotations
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.geodesic import GeodesicMap


@dataclass(frozen=True, slots=True)
class Run:
    """An episode as far as it has gone.

    Attributes:
        poses: the scored positions, the start first.
        distance_m: to the nearest target at the last of them, inf off the map. distances_m: computes it at each.
        stopped: the last action was ``stop``, and nothing went wrong after it.
        succeeded: by the task's rule. shortest_m: SPL's l.
    """

    poses: Sequence[SE2]
    distance_m: float
    distances_m: Callable[[], Sequence[float]]
    stopped: bool
    succeeded: bool
    shortest_m: float


class Measures:
    """What is measured of one episode.

    Attributes:
        names: keys of :meth:`metrics`, in the order of tables. They never change the meaning of a common one.
    """

    names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, header: EpisodeHeader, rules: Rules, geodesic: GeodesicMap) -> None:
        self.header, self.rules, self.geodesic = header, rules, geodesic

    def needs_frame(self, record: StepRecord) -> bool:
        """Whether :meth:`on_step` looks at the record's images."""
        return False

    def on_annotations(self, evidence: Annotations) -> None:
        """Take in, before the first step, what people added to the log after the run."""

    def on_step(self, record: StepRecord) -> None:
        """Take one step in, in order."""

    def holds(self, pose: SE2, distance_m: float) -> bool:
        """Whether the task's success rule holds in the step taken in last."""
        rule = self.header.task.success
        return success(True, distance_m, rule.distance_m, rule.inclusive)

    def metrics(self, run: Run) -> Metrics:
        """The values of :attr:`names`; and None for a common metric that means nothing here."""
        return {}

    def choices(self) -> dict[str, Any]:
        """What :meth:`metrics` depends on, to be stored beside it."""
        return {}
