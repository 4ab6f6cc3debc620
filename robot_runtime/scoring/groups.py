"""Means of metrics with confidence intervals, per task, split, agent and robot."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from robot_runtime.metrics.episode_metrics import PhaseTime, together
from robot_runtime.metrics.measures import definition, definitions
from robot_runtime.scoring.contradictions import mixed_settings
from robot_runtime.scoring.failure_causes import CauseName
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, RESAMPLES, SEED, Interval, bootstrap_mean, wilson
from robot_runtime.scoring.summary import Cluster, EpisodeScore, RobotSetting
from robot_runtime.verdicts import Judge, Verdict


@dataclass(frozen=True)
class JudgedSuccess:
    """Success in the episodes that one judge decided, and in those that failed without it.

    Attributes:
        who: name of the judge.
        judge: thresholds and errors of the judge.
        judged: number of stops near the object that it decided.
        failed: number of episodes that failed whatever it says: without a stop, or with a stop far from the object.
        abstained: number of episodes that it left open; they are not part of the share.
        success: corrected share of successes; None if it decided nothing.
    """

    who: str
    judge: Judge
    judged: int
    failed: int
    abstained: int
    success: Interval | None


def judged_successes(scores: Iterable[EpisodeScore]) -> tuple[JudgedSuccess, ...]:
    """One entry for each judge of a group's scored episodes; an episode with a person's verdict is in none."""
    scored = [score for score in scores if score.scorable]
    last = [(score, _last(score.verdicts)) for score in scored]
    successes = []
    judges = dict.fromkeys((verdict.who, verdict.judge) for _, verdict in last if verdict and verdict.judge)
    for who, judge in judges:
        from robot_runtime.scoring.statistics.judge import corrected_success  # most runs have no judge

        own = [(score, given) for score, given in last if given and (given.who, given.judge) == (who, judge)]
        decided = [score for score, verdict in own if verdict.visible is not None]
        near = [score for score in decided if _may_succeed(score)]
        unstopped = sum(verdict is None and not _may_succeed(score) for score, verdict in last)
        failed, yes = len(decided) - len(near) + unstopped, sum(bool(score.metrics["success"]) for score in near)
        share = corrected_success(yes, len(near), failed, judge) if near else None
        successes.append(JudgedSuccess(who, judge, len(near), failed, len(own) - len(decided), share))
    return tuple(successes)


def judge_text(result: JudgedSuccess) -> str:
    """Name of the judge, number of its verdicts, and its errors, in a line."""
    judge = result.judge
    return (
        f"visibility judged by {result.who}: {result.judged} stops decided, {result.abstained} left open, "
        f"{result.failed} failed without it; right in {judge.true_positives} of {judge.positives} positives and "
        f"{judge.true_negatives} of {judge.negatives} negatives of known truth"
    )


def _last(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The last verdict on visibility, if a judge gave it and no person gave any; else None."""
    said = [verdict for verdict in verdicts if verdict.visible is not None or verdict.judge is not None]
    by_people = [verdict for verdict in said if verdict.judge is None]
    return said[-1] if said and not by_people else None


def _may_succeed(score: EpisodeScore) -> bool:
    criteria = ("criterion_intentionality", "criterion_proximity")
    return all(score.metrics.get(name) is not False for name in criteria)


LEAST_RESAMPLES = 1_000
_DRAWN = 50_000_000
"""Most episodes drawn for one interval; many episodes need fewer resamples."""


def episode_means(name: str, scores: Iterable[EpisodeScore]) -> dict[tuple[str, str], float]:
    """Mean of a metric over the runs of each episode, by task and episode, without episodes that lack it."""
    found: dict[tuple[str, str], list[float]] = {}
    for score in scores:
        value = score.metrics.get(name)
        if value is not None and math.isfinite(value):
            found.setdefault((score.task, score.key), []).append(float(value))
    return {key: math.fsum(values) / len(values) for key, values in found.items()}


def part_texts(part: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Facets and values as tables print them."""
    return tuple(f"{name} {value}" if value else f"without {name}" for name, value in part)


@dataclass(frozen=True)
class GroupKey:
    """Properties that the episodes of a group have in common.

    Attributes:
        task: name of the task.
        split: split of the dataset; empty without a dataset.
        agent: name of the policy.
        setting: robot and sources of poses.
        scene: name of the scene; empty with a split, whose scenes are one group, as in published means.
        part: names and values of the facets by which groups are divided.
    """

    task: str
    split: str
    agent: str
    setting: RobotSetting
    scene: str
    part: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, score: EpisodeScore, by: Sequence[str] = ()) -> "GroupKey":
        """The key of an episode, divided by these facets."""
        part = tuple(zip(by, score.part(by), strict=True))
        return cls(score.task, score.split, score.agent, score.setting, "" if score.split else score.scene, part)


@dataclass(frozen=True)
class CauseCount:
    """Number of a group's episodes that failed for one cause, with the first of them and its evidence."""

    name: CauseName
    count: int
    episode: str
    evidence: str


@dataclass(frozen=True)
class GroupSummary:
    """Means over the scored episodes of a :class:`GroupKey`.

    Attributes:
        task: name of the task.
        split: split of the dataset; empty without a dataset.
        agent: name of the policy.
        robot, localizer, referee: setting of the robot, a :class:`robot_runtime.scoring.summary.RobotSetting`.
        scene: name of the scene, or the number of scenes.
        episodes: number of scored episodes.
        unscored: number of logs without a score.
        intervals: interval per metric; empty without scores. Shares have Wilson's interval, the others and all with
            clusters the bootstrap's. Several runs of an episode are one cluster. For a single cluster the ends are NaN.
        counts: number of scored episodes that have a metric, per metric.
        resamples: number of bootstrap samples.
        cluster: unit of the bootstrap.
        clusters: number of clusters.
        part: facets by which groups are divided, with this group's values; empty for what its episodes lack.
        mixed: settings that differ among the scored episodes, see ``scoring.contradictions.mixed_settings``.
        latency: host milliseconds per step and phase, over the steps of all scored episodes.
        causes: causes of failed and aborted episodes, the most frequent first.
        judged: success by judges of visibility, corrected for their errors.
    """

    task: str
    split: str
    agent: str
    robot: str
    localizer: str
    referee: str
    scene: str
    episodes: int
    unscored: int
    intervals: dict[str, Interval]
    counts: dict[str, int]
    resamples: int
    cluster: Cluster = "none"
    clusters: int = 0
    part: tuple[tuple[str, str], ...] = ()
    mixed: tuple[str, ...] = ()
    latency: tuple[PhaseTime, ...] = ()
    causes: tuple[CauseCount, ...] = ()
    judged: tuple[JudgedSuccess, ...] = ()

    @property
    def setting(self) -> RobotSetting:
        """The robot with its sources of poses."""
        return RobotSetting(self.robot, self.localizer, self.referee)

    @property
    def parts(self) -> tuple[str, ...]:
        """The facets and values of the group as tables print them."""
        return part_texts(self.part)


def grouped(scores: Iterable[EpisodeScore], by: Sequence[str] = ()) -> dict[GroupKey, list[EpisodeScore]]:
    """Scores by key, in order of first appearance, divided by facets in alphabetical order.

    Unreadable logs are in no group; with facets, those without a score are in none either.
    """
    groups: dict[GroupKey, list[EpisodeScore]] = {}
    for score in scores:
        if score.task and (score.scorable or not by):
            groups.setdefault(GroupKey.of(score, by), []).append(score)
    return dict(sorted(groups.items(), key=lambda item: item[0].part)) if by else groups


def summarize_groups(
    scores: Iterable[EpisodeScore], cluster: Cluster = "none", by: Sequence[str] = ()
) -> list[GroupSummary]:
    """Means with intervals per group of :func:`grouped`."""
    return [_summary(key, members, cluster) for key, members in grouped(scores, by).items()]


def _summary(key: GroupKey, members: Sequence[EpisodeScore], by: Cluster) -> GroupSummary:
    scored = [score for score in members if score.scorable]
    scenes = list(dict.fromkeys(score.scene for score in members))
    scene = scenes[0] if len(scenes) == 1 else f"{len(scenes)} scenes"
    resamples = min(RESAMPLES, max(LEAST_RESAMPLES, _DRAWN // max(1, len(scored))))
    clusters = {score.cluster(by) for score in scored}
    intervals, counts = {}, {}
    for name in definitions(name for score in scored for name in score.metrics):
        having = [score for score in scored if known_values([score.metrics.get(name)])]
        if having:
            values = known_values(score.metrics[name] for score in having)
            drawn = [score.cluster(by) for score in having]
            # Runs of one episode alone say how often it succeeds; with others, an episode is what is drawn.
            independent = by == "none" and len(set(drawn)) in (1, len(drawn))
            if by == "none" and not independent and definition(name).share and len(set(values)) == 1:
                # The bootstrap of equal values has no width, however few the episodes.
                intervals[name] = wilson(round(values[0]) * len(set(drawn)), len(set(drawn)), CONFIDENCE)
            else:
                intervals[name] = metric_interval(name, values, resamples, None if independent else drawn)
            counts[name] = len(having)
    return GroupSummary(
        task=key.task,
        split=key.split,
        agent=key.agent,
        **asdict(key.setting),
        scene=scene,
        episodes=len(scored),
        unscored=len(members) - len(scored),
        intervals=intervals,
        counts=counts,
        resamples=resamples,
        cluster=by,
        clusters=len(clusters),
        part=key.part,
        mixed=mixed_settings((score.scene, score.choices) for score in scored),
        latency=tuple(together(score.latency for score in scored).times()),
        causes=_causes(members),
        judged=judged_successes(members),
    )


def _causes(members: Iterable[EpisodeScore]) -> tuple[CauseCount, ...]:
    found = [(score.episode, score.cause) for score in members if score.cause is not None]
    counts = Counter(cause.name for _, cause in found)
    first = {cause.name: (episode, cause.evidence) for episode, cause in reversed(found)}
    return tuple(CauseCount(name, count, *first[name]) for name, count in counts.most_common())


def known_values(values: Iterable[float | bool | int | None]) -> list[float]:
    """The values that are neither None nor NaN, as numbers."""
    return [float(value) for value in values if value is not None and not math.isnan(value)]


def metric_interval(
    name: str, values: Sequence[float], resamples: int = RESAMPLES, clusters: Sequence[str] | None = None
) -> Interval:
    """Mean and interval of a metric's values, at least one; see :class:`GroupSummary`. One value has no interval."""
    if len(values) < 2 or (clusters is not None and len(set(clusters)) < 2):
        return Interval(math.fsum(values) / len(values), math.nan, math.nan)
    if clusters is not None:
        return bootstrap_mean(values, CONFIDENCE, resamples, SEED, clusters)
    if definition(name).share:
        return wilson(round(math.fsum(values)), len(values), CONFIDENCE)
    return bootstrap_mean(values, CONFIDENCE, resamples, SEED)
