"""Metrics of an episode, live or from its log, by the same code from the same records.

Positions are the referee's. One position counts per step: at the start, and at the end of each action, with the robot
standing still. Steps of a walkthrough do not count.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError, UnreachableGoal
from robot_runtime.metrics.functional.path import path_length
from robot_runtime.metrics.functional.success import collisions
from robot_runtime.metrics.measures import Run, common_metrics, measures_of
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.records import PHASES, EndReason, EpisodeEnd, EpisodeHeader, StepRecord, Subscriber
from robot_runtime.scenes.geodesic import DistanceField, GeodesicMap
from robot_runtime.tasks.kind import kind_of
from robot_runtime.verdicts import Verdicts

# Times are counted in bins that are 2 % wide, so a percentile is within 1 % of the exact one, and the counts of
# thousands of logs add up.
_BIN = math.log(1.02)
_MIN_S = 1e-9

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class PhaseTime:
    """Host milliseconds per step that one phase took: percentiles over ``steps`` that had it."""

    phase: str
    steps: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass
class Latency:
    """Counts of times by phase (a key of ``records.PHASES``) and bin; equal for equal times in any order."""

    counts: dict[str, Counter[int]] = field(default_factory=dict)

    def add(self, phase_s: Mapping[str, float]) -> None:
        """Add one step. Unknown phases, of older logs, are left out."""
        for phase, seconds in phase_s.items():
            if phase in PHASES:
                number = math.floor(math.log(max(seconds, _MIN_S)) / _BIN)
                self.counts.setdefault(phase, Counter())[number] += 1

    def times(self) -> list[PhaseTime]:
        """Percentiles of all phases that occurred, in the order of ``PHASES``."""
        return [
            PhaseTime(phase, self.counts[phase].total(), *_percentiles_ms(self.counts[phase]))
            for phase in PHASES
            if phase in self.counts
        ]


def together(parts: Iterable[Latency]) -> Latency:
    """Merge the counts of several parts."""
    whole = Latency()
    for part in parts:
        for phase, counts in part.counts.items():
            whole.counts.setdefault(phase, Counter()).update(counts)
    return whole


def _percentiles_ms(counts: Counter[int]) -> Iterator[float]:
    """Per percentile, the smallest time that at least so many percent of the steps did not exceed."""
    total = counts.total()
    ordered = sorted(counts.items())
    for percent in PERCENTILES:
        seen = 0
        for number, count in ordered:
            seen += count
            if 100 * seen >= percent * total:
                yield 1000 * math.exp((number + 0.5) * _BIN)
                break


SCORER_VERSION = 2
"""Version, increased whenever the same log would get another score."""

DIFFICULT_M = (3.0, 6.0)
"""Lengths of the shortest path from which on an episode is of medium difficulty, and hard."""


class EpisodeScorer(Subscriber):
    """Scores one episode.

    Args:
        header: header of the episode, with its scene and goals.
        rules: choices that change scores; None for the defaults.
        geodesic: map of the header's scene and the task's robot radius; None to compute it.

    Attributes:
        measures: the measures of this kind of task, for reports that show more than numbers.

    Raises:
        EpisodeError: the goals cannot be resolved, or ``rules`` asks for a shortest path that the dataset lacks.
    """

    def __init__(self, header: EpisodeHeader, rules: Rules | None = None, geodesic: GeodesicMap | None = None) -> None:
        self._header = header
        self._rules = rules or Rules()
        task, scene = header.task, header.scene
        geodesic = geodesic or GeodesicMap(scene.map, task.robot_radius_m)
        self.targets = kind_of(task).targets(task, header.episode, scene)
        self._field: DistanceField = geodesic.field(self.targets)
        self.measures = measures_of(task)(header, self._rules, geodesic)
        self._poses: list[SE2] = []
        self._distances_m: list[float] = []
        self._collided: list[bool] = []
        self._stopped = False
        self._reached = False
        self._told: bool | None = None
        self._end: EpisodeEnd | None = None
        self.latency = Latency()
        """Times of the steps; no metric depends on them."""
        self._shortest_m: float | None = None

    def on_verdicts(self, verdicts: Verdicts) -> None:
        """Add the verdicts on the run, before the first step, unless the rules ignore them."""
        if self._rules.verdicts == "use":
            self._told = verdicts.success
            self.measures.on_verdicts(verdicts)

    def on_step(self, record: StepRecord) -> None:
        """Add the next step.

        Raises:
            UnreachableGoal: no path leads from the start to a goal; raised at step 0.
            RecordingError: the referee's pose is not finite, a required depth image is missing (see
                :meth:`needs_frame`), or the policy's answer is malformed.
        """
        pose = record.referee.pose
        if not (math.isfinite(pose.x_m) and math.isfinite(pose.y_m) and math.isfinite(pose.yaw_rad)):
            raise RecordingError(
                f"step {record.index}: the referee's pose ({pose.x_m}, {pose.y_m}, {pose.yaw_rad}) is not finite",
                "check the referee's localizer, and run the episode again",
            )
        self.latency.add(record.phase_s)
        if not record.state.scored:
            return
        self._poses.append(pose)
        if self._shortest_m is None:
            # The action that led here, if any, belongs to the phase before.
            self._shortest_m = self._shortest(pose)
        else:
            if record.result is not None:
                self._collided.append(record.result.collided)
            self._stopped |= record.action is Action.STOP
        self.measures.on_step(record)
        if self._header.task.success.when == "reached" and not self._reached:
            self._reached = self.measures.holds(pose, self._field.at(pose.x_m, pose.y_m))

    def on_episode_end(self, end: EpisodeEnd) -> None:
        """Add the end. An episode that a fault or a person ended has failed, unless it had succeeded before."""
        self._end = end

    on_end = on_episode_end

    def needs_frame(self, record: StepRecord) -> bool:
        """Whether :meth:`on_step` needs the record's images."""
        return self.measures.needs_frame(record)

    @property
    def poses(self) -> tuple[SE2, ...]:
        """The scored positions so far, the start first."""
        return tuple(self._poses)

    def distance_m(self, pose: SE2) -> float:
        """Geodesic distance from a pose to the nearest target; inf off the map."""
        return self._field.at(pose.x_m, pose.y_m)

    def distances_m(self) -> list[float]:
        """Geodesic distance to the nearest target at every scored position; inf off the map."""
        new = self._poses[len(self._distances_m) :]
        self._distances_m += [self._field.at(pose.x_m, pose.y_m) for pose in new]
        return list(self._distances_m)

    def succeeds_by_rule(self) -> bool:
        """Success by the task's rule alone, without people's verdicts. After step 0 only."""
        return self._succeeds_by_rule(self.distance_m(self._poses[-1]))

    def metrics(self) -> Metrics:
        """The metrics so far; final after the end.

        Keys: those of :func:`robot_runtime.metrics.measures.common_metrics`, then those of the task's kind. All None
        before step 0.
        """
        defined = (*common_metrics(), *self.measures.defines)
        if self._shortest_m is None:
            return dict.fromkeys(metric.name for metric in defined)
        here = self._poses[-1]
        distance_m = self._field.at(here.x_m, here.y_m)
        travelled_m = path_length([(pose.x_m, pose.y_m) for pose in self._poses]) + self._unobserved_m()
        succeeded = self._succeeds_by_rule(distance_m) if self._told is None else self._told
        contacts = collisions(self._collided).count if self._header.senses_contact else None
        run = Run(
            self._poses,
            distance_m,
            self.distances_m,
            self._has_stopped,
            succeeded,
            self._shortest_m,
            travelled_m,
            contacts,
            self._rules,
        )
        values: Metrics = {metric.name: metric.value(run) for metric in defined if metric.value is not None}
        return values | self.measures.metrics(run)

    def _unobserved_m(self) -> float:
        """Distance of the action that no observation followed, because a device failed: by odometry, meters."""
        result = None if self._end is None else self._end.result
        return 0.0 if result is None else abs(result.measured.forward_m)

    def facets(self) -> dict[str, str]:
        """Properties by which tables divide scores: those of the kind, the scene, and the difficulty.

        The difficulty is the dataset's, else by the shortest path: easy below 3 m, hard from 6 m. After step 0 only.
        """
        info = self._header.episode.info
        inner = info.get("info")
        stated = info.get("difficulty") or (inner.get("difficulty") if isinstance(inner, Mapping) else None)
        found = {**self.measures.facets(), "scene": self._header.scene.name}
        if isinstance(stated, str):
            found["difficulty"] = stated
        elif self._shortest_m is not None:
            easy_m, hard_m = DIFFICULT_M
            is_easy, is_hard = self._shortest_m < easy_m, self._shortest_m >= hard_m
            found["difficulty"] = "easy" if is_easy else "hard" if is_hard else "medium"
        return found

    def choices(self) -> dict[str, Any]:
        """All choices that the metrics depend on, to be stored next to them."""
        task = self._header.task
        return {
            "scorer": SCORER_VERSION,
            **({"success_by": "a person's verdict"} if self._told is not None else {}),
            **_smoother(self._rules),
            "sampling": "referee pose at the start and at the end of each action",
            "path_length": "planar (x, y), straight between samples; by odometry in an action that a fault ended",
            "distance": "geodesic on the map inflated by the robot's radius, exact on its cells",
            "robot_radius_m": task.robot_radius_m,
            "success": asdict(task.success),
            "stop_required": task.success.when == "stop",
            "max_steps": task.max_steps,
            "magnitudes": asdict(task.magnitudes),
            "steps": "actions, stop included",
            "scene_digest": self._header.scene.digest,
            **self._rules.choices(),
            **self.measures.choices(),
        }

    def _shortest(self, start: SE2) -> float:
        stated = self._header.episode.shortest_path_m
        if self._rules.shortest_path == "dataset":
            if stated is None:
                raise UnreachableGoal(
                    f"episode {self._header.episode.id!r}: its file states no shortest path",
                    "score it with shortest_path 'map'",
                )
            return stated
        shortest_m = self._field.at(start.x_m, start.y_m)
        if shortest_m == float("inf"):
            raise UnreachableGoal(
                f"episode {self._header.episode.id!r}: no way leads from the robot's start "
                f"({start.x_m:.2f}, {start.y_m:.2f}) to a goal on the map of {self._header.scene.name!r}",
                "compare the referee's poses with the map: they must be in one frame",
            )
        return shortest_m

    def _succeeds_by_rule(self, distance_m: float) -> bool:
        when = self._header.task.success.when
        if when == "reached":
            return self._reached
        aborted = self._end is not None and self._end.reason.aborted
        if aborted or (when == "stop" and not self._has_stopped):
            return False
        return self.measures.holds(self._poses[-1], distance_m)

    @property
    def _has_stopped(self) -> bool:
        return self._stopped and (self._end is None or self._end.reason is EndReason.STOP)


def _smoother(rules: Rules) -> dict[str, str]:
    """The smoother of the referee's poses, if the rules ask for one."""
    if rules.referee != "smoothed":
        return {}
    from robot_runtime.localization.smoother import smoother_name

    return {"smoother": smoother_name()}
