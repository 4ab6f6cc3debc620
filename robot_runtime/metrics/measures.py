"""Measures of a kind of task: what decides success, and the metrics that only tasks of this kind have.

The defaults are those of plain navigation: success by the distance at the end. A package offers the measures of a kind
by an entry point of that kind's name, whose object is a subclass of :class:`Measures`::

    [project.entry-points."robot_runtime.measures"]
    gatenav = "gatenav.measures:GateMeasures"
    "common.gatenav" = "gatenav.measures:Detours"

The metrics that a class under a name with :data:`ADDED` defines are those of all kinds of tasks.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from robot_runtime.common.geometry import SE2
from robot_runtime.common.plugins import Registry
from robot_runtime.errors import PluginError
from robot_runtime.hal import RgbdFrame
from robot_runtime.metrics.functional.spl import soft_spl, spl
from robot_runtime.metrics.functional.success import success
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import Room
from robot_runtime.tasks.task import Task
from robot_runtime.verdicts import Verdicts


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """A metric, and its form in tables.

    Attributes:
        name: key of the metric in scores and files.
        heading: heading in tables; empty if tables do not show the metric.
        unit: unit of the values; empty for a metric without one.
        digits: digits after the decimal point in tables.
        share: whether the metric is true or false, so that its mean is a share of episodes, which tables show in %.
        histogram: whether reports draw its distribution over episodes, up to 1 if it has no unit.
        summary_only: whether only means over episodes are shown, because a single episode repeats another metric.
        value: function that computes the metric of an episode; None where :meth:`Measures.metrics` does.
    """

    name: str
    heading: str = ""
    unit: str = ""
    digits: int = 3
    share: bool = False
    histogram: bool = False
    summary_only: bool = False
    value: Callable[[Run], float | bool | None] | None = None

    @property
    def title(self) -> str:
        """Heading with the unit."""
        return f"{self.heading} {'%' if self.share else self.unit}".strip()

    @property
    def episode_title(self) -> str:
        """Heading with the unit, for the value of a single episode."""
        return self.heading if self.share else self.title

    def text(self, value: float) -> str:
        """A mean as tables print it, without unit."""
        if not math.isfinite(value):
            return "∞"
        return f"{100 * value:.1f}" if self.share else f"{value:.{self.digits}f}"


def _spl(run: Run) -> float:
    return spl(run.succeeded, run.shortest_m, run.travelled_m, run.rules.zero_path)


def _soft_spl(run: Run) -> float:
    return soft_spl(run.shortest_m, run.distance_m, run.travelled_m, run.rules.zero_path)


COMMON = (
    MetricDefinition("success", "success", share=True, value=lambda run: run.succeeded),
    MetricDefinition("spl", "SPL", histogram=True, value=_spl),
    MetricDefinition("soft_spl", "SoftSPL", value=_soft_spl),
    MetricDefinition("distance_to_goal", "distance", "m", 2, value=lambda run: run.distance_m),
    MetricDefinition("collisions", "collisions", digits=1, value=lambda run: run.contacts),
    MetricDefinition(
        "success_collisions",
        "collisions if successful",
        digits=1,
        summary_only=True,
        value=lambda run: run.contacts if run.succeeded else None,
    ),
    MetricDefinition("steps", "steps", digits=1, value=lambda run: len(run.poses) - 1),
    MetricDefinition("path_length_m", value=lambda run: run.travelled_m),
    MetricDefinition("shortest_path_m", value=lambda run: run.shortest_m),
)
"""The metrics of all kinds of tasks, in the order of files; an entry here is all that a metric needs."""

ADDED = "common."
"""Beginning of the names under which packages add metrics to :data:`COMMON`."""


@dataclass(frozen=True, slots=True)
class Run:
    """An episode up to its latest step.

    Attributes:
        poses: scored positions, the start first.
        distance_m: geodesic distance from the last position to the nearest target; inf off the map.
        distances_m: function that computes that distance for all positions.
        stopped: whether the last action was ``stop``, and no fault followed.
        succeeded: whether the episode succeeded, by the task's rule or by a person's verdict.
        shortest_m: length of the shortest path, SPL's l.
        travelled_m: length of the path that was driven, SPL's p.
        contacts: number of actions that a contact ended; None for a base that senses none.
        rules: choices that change scores.
    """

    poses: Sequence[SE2]
    distance_m: float
    distances_m: Callable[[], Sequence[float]]
    stopped: bool
    succeeded: bool
    shortest_m: float
    travelled_m: float
    contacts: int | None
    rules: Rules


@dataclass(frozen=True, slots=True)
class GoalSearch:
    """Result of a search for the goal in an episode's images.

    Attributes:
        text: sentence about the result; empty if nothing could be searched.
        step: index of the step whose image shows the goal; None if no image does.
        certain: whether the search was complete, so that a goal in view would have been detected.
        decides: whether the task's success depends on the view of the goal at the stop.
    """

    text: str
    step: int | None
    certain: bool
    decides: bool


class Measures:
    """Measures of an episode.

    Attributes:
        defines: metrics besides the common ones, in the order of tables; none changes the meaning of a common one.
        has_targets: whether the robot itself must go somewhere; otherwise reports show no targets and no distances to
            them.
        rank: place of these metrics among those of other kinds in tables and files, the lowest first.
    """

    defines: ClassVar[tuple[MetricDefinition, ...]] = ()
    has_targets: ClassVar[bool] = True
    rank: ClassVar[int] = 100

    def __init__(self, header: EpisodeHeader, rules: Rules, geodesic: GeodesicMap) -> None:
        self.header, self.rules, self.geodesic = header, rules, geodesic

    @classmethod
    def needs_images(cls, task: Task) -> bool:
        """Whether an episode of the task cannot be scored without the camera's images."""
        return False

    def needs_frame(self, record: StepRecord) -> bool:
        """Whether :meth:`on_step` needs the record's images."""
        return False

    def facets(self) -> Mapping[str, str]:
        """Properties of the episode by which tables divide scores, by name: here the rooms that hold its goals."""
        scene, goals = self.header.scene, self.header.episode.goals
        rooms = dict.fromkeys(r.id for goal in goals for r in scene.rooms if r.contains(goal.x_m, goal.y_m))
        return {"room": " or ".join(rooms)} if rooms else {}

    def on_verdicts(self, verdicts: Verdicts) -> None:
        """Add the verdicts on the run, before the first step."""

    def on_step(self, record: StepRecord) -> None:
        """Add the next step."""

    def holds(self, pose: SE2, distance_m: float) -> bool:
        """Whether the task's success rule holds at the latest step."""
        rule = self.header.task.success
        return success(True, distance_m, rule.distance_m, rule.inclusive)

    def metrics(self, run: Run) -> Metrics:
        """The values of :attr:`defines`, and None for each common metric that is undefined for the task."""
        return {}

    def search_goal(self, records: Sequence[StepRecord], frame: Callable[[StepRecord], RgbdFrame]) -> GoalSearch | None:
        """Search the images of an episode for its goal, which tells the causes of failures apart.

        Args:
            records: scored steps, without images.
            frame: function that reads the images of a step; raises ``RecordingError``.

        Returns:
            The result; None if the goal is not a thing that images show.
        """
        return None

    def choices(self) -> dict[str, Any]:
        """The choices that :meth:`metrics` depends on, to be stored next to them."""
        return {}


MEASURES: Registry[type[Measures]] = Registry(
    "robot_runtime.measures", "measures of a kind of task", Measures, classes=True
)


def measures_of(task: Task) -> type[Measures]:
    """The measures of a task's kind; those of plain navigation if the kind has none.

    Raises:
        PluginError: the package that offers them cannot be used, or a metric of theirs has the name of another.
    """
    kind = MEASURES.find(task.kind)
    if kind is not None and not MEASURES.is_own(task.kind):
        for metric in kind.defines:
            if (other := all_metrics()[metric.name]) != metric:
                raise PluginError(
                    f"the metric {metric.name!r} of the kind {task.kind!r} is not the one of that name: {other}",
                    "rename it in the package that offers the kind",
                )
    return kind or Measures


def common_metrics() -> tuple[MetricDefinition, ...]:
    """The metrics of all kinds of tasks: :data:`COMMON`, and those that packages add. Raises ``PluginError``."""
    return (*COMMON, *(metric for name in MEASURES if name.startswith(ADDED) for metric in MEASURES.load(name).defines))


def all_metrics() -> Mapping[str, MetricDefinition]:
    """The metrics of all installed kinds of tasks by name, in the order of files, the common ones first.

    Measures that cannot be loaded are left out; scoring an episode of their kind says why.
    """
    return _all_metrics(tuple(sys.path))


def definitions(names: Iterable[str]) -> Mapping[str, MetricDefinition]:
    """The metrics of these names, in the order of files. No kind's measures are loaded if all of them are common."""
    wanted = set(names)
    common = {metric.name: metric for metric in COMMON if metric.name in wanted}
    if len(common) == len(wanted):
        return common
    return {name: metric for name, metric in all_metrics().items() if name in wanted}


def definition(name: str) -> MetricDefinition:
    """The metric of that name. Raises ``KeyError`` if no installed kind of task has it."""
    return definitions([name])[name]


@lru_cache(maxsize=8)
def _all_metrics(_path: tuple[str, ...]) -> Mapping[str, MetricDefinition]:
    """The metrics; the search path is an argument because the answer depends on it."""
    kinds = sorted(MEASURES.usable().values(), key=lambda kind: kind.rank)
    by_name: dict[str, MetricDefinition] = {}
    for metric in (*COMMON, *(metric for kind in kinds for metric in kind.defines)):
        by_name.setdefault(metric.name, metric)
    return by_name


ROOM_METRICS = (
    MetricDefinition("r_T", "r_T", share=True),
    MetricDefinition("r_enter", "r_→", share=True),
    MetricDefinition("stopped", "stopped", share=True),
)
"""Presence at the end, presence ever, and whether the robot stopped."""


def in_rooms(poses: Sequence[SE2], rooms: Sequence[Room]) -> list[bool]:
    """At each pose, whether the robot's center is in one of the rooms."""
    return [any(room.contains(pose.x_m, pose.y_m) for room in rooms) for pose in poses]
