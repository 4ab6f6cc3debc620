"""Scores of many logs, one per episode, computed by several processes."""

import gc
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from robot_runtime.datasets.splits import split_of
from robot_runtime.errors import ConfigError, RecordingError, RuntimeFault
from robot_runtime.metrics.episode_metrics import EpisodeScorer, Latency
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.parallel.map import LIMIT_S, ONE, Workers, map_in_order
from robot_runtime.parallel.result_journal import ResultJournal
from robot_runtime.parallel.workers import WorkerLoss
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.verdict_files import read_verdicts
from robot_runtime.records import EpisodeHeader, Placement, StepRecord
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scoring.contradictions import NO_CHAIN, OdometryCheck, WallCheck, task_note
from robot_runtime.scoring.failure_causes import CauseFinder, FailureCause, cause_of_abort
from robot_runtime.scoring.reference_poses import check_rule, scored_steps
from robot_runtime.tasks.episode import Episode, EpisodeDetails
from robot_runtime.tasks.floors import storeys_away_m
from robot_runtime.verdicts import SuccessViews, Verdict, Verdicts, success_views

Cluster = Literal["none", "scene", "trajectory"]
"""Unit that an interval's bootstrap draws: episodes, scenes, or all episodes of a start and one route or goal.

``none``, the default, is for other episodes *in these scenes*: most robots are tested in one scene, for which no
interval over scenes exists, and with few scenes such an interval is too narrow. For unseen scenes use ``scene``; where
several instructions describe one route, as in R2R and RxR, ``trajectory``.
"""

ALONE = 16
"""Logs up to which scoring takes less time than starting a process."""

_CACHED_MAPS = 4


@dataclass(frozen=True)
class RobotSetting:
    """A robot with its sources of poses; empty where a log does not name them.

    Attributes:
        robot: name of its description, and that its base senses no contacts.
        localizer: sources of the policy's poses.
        referee: sources of the scored poses.
    """

    robot: str = ""
    localizer: str = ""
    referee: str = ""

    @classmethod
    def of(cls, header: EpisodeHeader) -> "RobotSetting":
        """The setting of a log."""
        localizer, referee = (" and ".join(header.localizers.get(role, ())) for role in ("policy", "referee"))
        robot = header.robot if header.senses_contact else f"{header.robot} (contacts not sensed)"
        return cls(robot, localizer, referee)

    def __str__(self) -> str:
        said = {"robot": "robot", "localizer": "poses by", "referee": "judged by"}
        return " · ".join(f"{said[role]} {name}" for role, name in asdict(self).items() if name)


@dataclass(frozen=True)
class EpisodeScore:
    """One log's score.

    Attributes:
        path: path of the log.
        reason: why there is no score; empty if there is one. ``metrics`` and ``choices`` are then empty.
        notes: what does not fit together in the log although it is scored, see ``scoring.contradictions``.
        impossible: those of the notes that say that the poses cannot be those of a robot that drove there.
        dataset: dataset that the episode was read from; empty if it was generated.
        key: key of the episode, to pair runs of several agents.
        trajectory: key of the episodes with one start and route.
        robot, localizer, referee: setting of the robot, a :class:`RobotSetting`.
        end: how the episode ended; None if unknown.
        metrics: metrics by name.
        choices: choices of the scorer; one object for equal ones.
        provenance: provenance of the log; one object for equal ones.
        verdicts: verdicts on the run; empty if the rules ignore them.
        placement: error of the robot's start; None if unknown.
        latency: host time of the steps.
        cause: cause of a failed or aborted episode; None for a success, and of a log that cannot be read.
        views: strict and lenient success; None without verdicts.
        facets: properties of the episode by which tables divide scores, see ``Measures.facets``.
        content: digest of the log's content; empty if it states none.
    """

    path: Path
    reason: str = ""
    notes: tuple[str, ...] = ()
    impossible: tuple[str, ...] = ()
    task: str = ""
    kind: str = ""
    agent: str = ""
    scene: str = ""
    dataset: str = ""
    episode: str = ""
    key: str = ""
    trajectory: str = ""
    robot: str = ""
    localizer: str = ""
    referee: str = ""
    seed: int | None = None
    end: str | None = None
    metrics: Metrics = field(default_factory=dict)
    choices: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    placement: Placement | None = None
    latency: Latency = field(default_factory=Latency)
    cause: FailureCause | None = None
    views: SuccessViews | None = None
    facets: dict[str, str] = field(default_factory=dict)
    content: str = ""

    @property
    def scorable(self) -> bool:
        """Whether there is a score."""
        return not self.reason

    def cluster(self, by: Cluster) -> str:
        """Return the episode's cluster, see :data:`Cluster`."""
        return {"none": self.key or str(self.path), "scene": self.scene, "trajectory": self.trajectory}[by]

    def part(self, by: Sequence[str]) -> tuple[str, ...]:
        """The values of these facets and of the split; empty for one that the episode lacks."""
        return tuple({"split": self.split, **self.facets}.get(name, "") for name in by)

    @property
    def setting(self) -> RobotSetting:
        """The robot with its sources of poses."""
        return RobotSetting(self.robot, self.localizer, self.referee)

    @property
    def split(self) -> str:
        """The split of the dataset; empty if there is none."""
        return split_of(self.dataset)


def check_facets(scores: Iterable[EpisodeScore], by: Sequence[str]) -> None:
    """Raise ``ConfigError`` if no scored episode has one of these facets; see ``Measures.facets``."""
    known = {"split"} | {name for score in scores for name in score.facets}
    for name in by:
        if name not in known:
            raise ConfigError(f"no episode has a {name!r} to divide scores by", f"use {', '.join(sorted(known))}")


def score_logs(
    paths: Sequence[Path],
    rules: Rules | None = None,
    on_scored: Callable[[EpisodeScore], None] | None = None,
    workers: Workers = ONE,
    limit_s: float = LIMIT_S,
    journal: ResultJournal[Path, EpisodeScore] | None = None,
    on_retry: Callable[[Path, WorkerLoss], None] | None = None,
) -> list[EpisodeScore]:
    """Score each log; for one that cannot be scored, the score has the reason. See :func:`without_copies`.

    Args:
        paths: paths of the logs.
        rules: rules of the scores.
        on_scored: callback, called after each, in order, for progress.
        workers: processes to use, see :func:`robot_runtime.parallel.map.map_in_order`.
        limit_s: time limit for one log in a worker process.
        journal: journal of scores to resume from, see :func:`robot_runtime.scoring.score_journal.score_journal`.
        on_retry: callback, called for a log whose worker was lost, before it is given to another.

    Raises:
        ConfigError: the rules need something that is not installed; or as :func:`map_in_order`.
    """
    scores = []
    for score in iter_scores(paths, rules, workers, limit_s, journal, on_retry):
        scores.append(score)
        if on_scored is not None:
            on_scored(score)
    return scores


def without_copies(scores: Iterable[EpisodeScore]) -> list[EpisodeScore]:
    """The scores without those of copies of a log, each of which is named in a note of the first.

    Several runs of one episode are no copies: they differ in their times at least.
    """
    first: dict[str, EpisodeScore] = {}
    copies: dict[str, list[Path]] = {}
    for score in scores:
        content = score.content or str(score.path)
        if first.setdefault(content, score) is not score:
            copies.setdefault(content, []).append(score.path)
    noted = {content: f"counted once: {named(paths)} has the same content" for content, paths in copies.items()}
    return [
        replace(score, notes=(*score.notes, noted[content])) if content in noted else score
        for content, score in first.items()
    ]


def named(items: Sequence[object], most: int = 3) -> str:
    """The first paths or names of a list, and the number of the others."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(map(str, items[:most])) + more


def iter_scores(
    paths: Sequence[Path],
    rules: Rules | None = None,
    workers: Workers = ONE,
    limit_s: float = LIMIT_S,
    journal: ResultJournal[Path, EpisodeScore] | None = None,
    on_retry: Callable[[Path, WorkerLoss], None] | None = None,
) -> Iterator[EpisodeScore]:
    """The scores of :func:`score_logs` one at a time; equal choices and provenances are one object."""
    check_rule((rules or Rules()).referee)
    shared: dict[str, dict[str, Any]] = {}

    def share(facts: dict[str, Any]) -> dict[str, Any]:
        return shared.setdefault(repr(facts), facts)

    scores = map_in_order(
        partial(_score_each, rules=rules),
        paths,
        workers,
        lost_score,
        limit_s=limit_s,
        on_retry=on_retry,
        required_paths=_only_itself,
        journal=journal,
        serial_up_to=ALONE,
    )
    for score in scores:
        yield replace(score, choices=share(score.choices), provenance=share(score.provenance))


def score_log(path: Path, rules: Rules | None = None, maps: "Maps | None" = None) -> EpisodeScore:
    """The score of a log; errors of the log are its ``reason``."""
    return _score_log(path, rules, maps or Maps())


def score_steps(
    log: LogReader,
    rules: Rules | None = None,
    geodesic: GeodesicMap | None = None,
    on_step: Callable[[StepRecord], None] | None = None,
    verdicts: Verdicts | None = None,
) -> EpisodeScorer:
    """A scorer that has processed the whole log, with images only where the rules need them.

    Args:
        log: log that is open for reading.
        rules: choices that change scores; None for the defaults.
        geodesic: map of the log's scene and the task's robot radius; None to compute it.
        on_step: callback, called with each step, without images.
        verdicts: verdicts on the run; None to read them.

    Raises:
        RuntimeFault: the log is damaged, or cannot be scored.
    """
    rules = rules or Rules()
    scorer = EpisodeScorer(log.header, rules, geodesic)
    scorer.on_verdicts(verdicts or read_verdicts(log.path, log.header))
    for record in scored_steps(log, rules.referee):
        if on_step is not None:
            on_step(record)
        scorer.on_step(log.with_images(record) if scorer.needs_frame(record) else record)
    if log.end is not None:
        scorer.on_end(log.end)
    if not scorer.poses:
        raise RecordingError(f"{log.path}: has no steps", "record the episode again")
    return scorer


class Maps:
    """Cache of the maps of the last few scenes; computing one takes longer than scoring a log."""

    def __init__(self) -> None:
        self._maps: OrderedDict[tuple[bytes, float, float, float, float], GeodesicMap] = OrderedDict()

    def of(self, header: EpisodeHeader) -> GeodesicMap:
        """Return the map of a log's scene for its task's robot."""
        area, radius_m = header.scene.map, header.task.robot_radius_m
        # By its content: another log may state the same digest for another map.
        key = (area.digest, area.resolution_m, area.origin_x_m, area.origin_y_m, radius_m)
        if key not in self._maps:
            self._maps[key] = GeodesicMap(area, radius_m)
        self._maps.move_to_end(key)
        while len(self._maps) > _CACHED_MAPS:
            self._maps.popitem(last=False)
        return self._maps[key]


def _score_each(paths: Iterable[Path], rules: Rules | None) -> Iterator[EpisodeScore]:
    maps = Maps()
    for path in paths:
        yield _score_log(path, rules, maps)


def _only_itself(path: Path) -> list[Path]:
    return [path]


def lost_score(path: Path, how: WorkerLoss) -> EpisodeScore:
    """The score of a log whose process died or hung, with that reason."""
    reasons = {
        "died": "the process that scored it was killed: not enough memory, or a damaged log",
        "hung": "scoring it took longer than the limit: a disk that does not answer, or a damaged log",
    }
    return EpisodeScore(path, reason=reasons[how])


@contextmanager
def _without_collections() -> Iterator[None]:
    """No garbage collection meanwhile: a log's thousands of records are in no cycles, and searching them takes long."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _score_log(path: Path, rules: Rules | None, maps: Maps) -> EpisodeScore:
    try:
        with _without_collections(), LogReader(path) as log:
            return _score(log, rules, maps)
    except RuntimeFault as error:
        return EpisodeScore(path, reason=error.message)
    except Exception as error:  # noqa: BLE001 - whatever a log holds, it costs only itself
        return EpisodeScore(path, reason=f"cannot be scored: {error!r:.300}")


def _score(log: LogReader, rules: Rules | None, maps: Maps) -> EpisodeScore:
    header, end = log.header, log.end
    facts = EpisodeScore(
        log.path,
        task=header.task.name,
        kind=header.task.kind,
        agent=header.agent,
        scene=header.scene.name,
        dataset=header.dataset,
        episode=header.episode.id,
        key=header.episode.key,
        trajectory=_trajectory(header.episode),
        seed=header.seed,
        end=end.reason.value if end is not None else None,
        **asdict(RobotSetting.of(header)),
        provenance=header.provenance,
        placement=header.placement,
        content=log.content,
    )
    if end is None:
        return replace(facts, reason=_without_end(log))
    counts = end.of_policy and (rules or Rules()).policy_faults == "failure"
    if end.reason.aborted and not counts:
        cause = _found(lambda: cause_of_abort(log, end))
        return replace(facts, reason=f"{end.reason.value}: {end.detail or 'no detail'}", cause=cause)
    if not any(goal.object_id for goal in header.episode.goals) and (above_m := storeys_away_m(header.episode)):
        return replace(
            facts, reason=f"its goal is {above_m:+.2f} m from its start, on a floor that the map does not show"
        )
    try:
        verdicts = read_verdicts(log.path, header) if (rules or Rules()).verdicts == "use" else None
        last = None if verdicts is None else verdicts.on_episode
        if last is not None and last.judgment == "invalid":
            return replace(facts, reason=f"invalid, says {last.who}: {last.note or 'no note'}")
        wheels, walls, causes = OdometryCheck(), WallCheck(header), CauseFinder(header)

        def on_step(record: StepRecord) -> None:
            wheels.on_step(record)
            walls.on_step(record)
            causes.on_step(record)

        geodesic = maps.of(header)
        scorer = score_steps(log, rules, geodesic, on_step, verdicts)
        metrics = scorer.metrics()
        helper = "" if verdicts is None else verdicts.helper
        given = () if verdicts is None else verdicts.statements
        impossible = tuple(filter(None, (wheels.note(), *walls.notes(geodesic.field(scorer.targets)))))
        notes = ("" if log.chained else NO_CHAIN, task_note(header), *impossible)
        return replace(
            facts,
            metrics=metrics,
            choices=scorer.choices(),
            facets=scorer.facets(),
            verdicts=given,
            latency=scorer.latency,
            views=success_views(given, scorer.succeeds_by_rule()) if given else None,
            notes=tuple(filter(None, notes)),
            impossible=impossible,
            cause=None if metrics["success"] else _found(lambda: causes.cause(log, end, scorer, helper)),
        )
    except RuntimeFault as error:
        return replace(facts, reason=error.message)
    except (ValueError, ZeroDivisionError) as error:  # a metric is not defined for this episode under these rules
        return replace(facts, reason=f"cannot be scored: {error}")


def _found(cause: Callable[[], FailureCause]) -> FailureCause:
    """The cause of a failure; a log that is too damaged to find it costs the cause, not the score."""
    try:
        return cause()
    except RuntimeFault as error:
        return FailureCause("unknown", error.message)


def _trajectory(episode: Episode) -> str:
    """Key of the episodes with one start and one route or goal: the dataset's number, else both in centimeters."""
    details = EpisodeDetails.of(episode)
    if details.trajectory:
        return f"{episode.scene}/{details.trajectory}"
    end = details.path_end
    ends = [(goal.x_m, goal.y_m) for goal in episode.goals] if end is None else [end]
    places = [(episode.start.x_m, episode.start.y_m), *sorted(end[:2] for end in ends)]
    return f"{episode.scene}/" + " ".join(f"{x:.2f},{y:.2f}" for x, y in places)


def _without_end(log: LogReader) -> str:
    """The reason for a log without end record, with the step where it stops."""
    try:
        last = max((record.index for record in log.steps(images=False)), default=None)
    except RuntimeFault as error:
        return f"no end record, and {error.message}"
    where = "before its first step" if last is None else f"after step {last}"
    return f"no end record: it stops {where}; the run was killed, or could not write on, or is still going"
