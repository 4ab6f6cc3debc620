"""Comparison of two policies on the same episodes, metric by metric."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.metrics.episode_metrics import SCORER_VERSION
from robot_runtime.metrics.measures import all_metrics
from robot_runtime.recording.json_output import write_json
from robot_runtime.scoring.contradictions import mixed_settings
from robot_runtime.scoring.statistics.hypothesis_tests import further_episodes, paired_permutation_test
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, RESAMPLES, SEED, Interval, bootstrap_mean
from robot_runtime.scoring.summary import Cluster, EpisodeScore, RobotSetting, check_facets, named

ALPHA = 0.05
POWER = 0.8
LEAST_DIFFERING = math.ceil(1 - math.log2(ALPHA))
"""Pairs that must differ for the permutation test to reach ``ALPHA`` at all: 6."""

Side = Literal["A", "B"]
LACKED = "the other side has no score of this episode"


@dataclass(frozen=True)
class MetricComparison:
    """One metric over the pairs of a group.

    Attributes:
        metric: name of the metric.
        pairs: number of episodes for which both sides have a finite value.
        mean_a: mean of A over these pairs.
        mean_b: mean of B over these pairs.
        difference: mean of B - A over these pairs, with its bootstrap interval.
        p_value: p-value of the paired permutation test, two-sided, for this metric alone.
        exact: whether all permutations were enumerated.
        further: estimate of the additional episodes needed to tell, 0 if none; None without any difference.
    """

    metric: str
    pairs: int
    mean_a: float
    mean_b: float
    difference: Interval
    p_value: float
    exact: bool
    further: int | None

    @property
    def differs(self) -> bool:
        """Whether the difference is significant."""
        return self.p_value < ALPHA


@dataclass(frozen=True)
class GroupComparison:
    """The pairs of a task and split.

    Attributes:
        task: name of the task.
        split: split of the dataset; empty without a dataset.
        agent_a, agent_b: names of the policies.
        settings_a, settings_b: each side's robots with their sources of poses, each once.
        episodes: number of pairs.
        runs_a, runs_b: numbers of logs; the logs of an episode are averaged.
        metrics: metrics that both sides have.
        mixed: settings that differ among the pairs, see ``scoring.contradictions.mixed_settings``.
        part: facets by which groups are divided, with this group's values; empty for what its episodes lack.
    """

    task: str
    split: str
    agent_a: str
    agent_b: str
    settings_a: tuple[RobotSetting, ...]
    settings_b: tuple[RobotSetting, ...]
    episodes: int
    runs_a: int
    runs_b: int
    metrics: tuple[MetricComparison, ...]
    mixed: tuple[str, ...] = ()
    part: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Unpaired:
    """A log that was not used, and why."""

    side: Side
    path: Path
    episode: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """All groups, and the logs that were not used."""

    groups: tuple[GroupComparison, ...]
    unpaired: tuple[Unpaired, ...]
    cluster: Cluster = "none"


_Key = tuple[str, str]  # task, episode key
_Runs = dict[_Key, list[EpisodeScore]]


def compare(
    a: Sequence[EpisodeScore], b: Sequence[EpisodeScore], cluster: Cluster = "none", by: Sequence[str] = ()
) -> Comparison:
    """Compare two policies on the episodes that both were scored on, paired by task and ``Episode.key``.

    A pair needs equal choices (success rule, map, scorer), without which scores are not comparable. With clusters,
    the clusters are drawn for the interval and change sign in the test.

    Raises:
        ConfigError: no episode has one of the facets, a side holds several agents, or the pairs of a group are a
            single cluster.
        RecordingError: there is no pair.
    """
    check_facets([*a, *b], by)
    unpaired: list[Unpaired] = []
    runs_a, runs_b = _runs("A", a, unpaired), _runs("B", b, unpaired)
    pairs: dict[tuple[str, str, tuple[str, ...]], list[_Key]] = {}
    for key in dict.fromkeys([*runs_a, *runs_b]):
        reason = _obstacle(runs_a.get(key, []), runs_b.get(key, []))
        if reason:
            for side, runs in (("A", runs_a), ("B", runs_b)):
                unpaired += [_unpaired(side, run, reason) for run in runs.get(key, [])]  # type: ignore[arg-type]
        else:
            first = runs_a[key][0]
            pairs.setdefault((key[0], first.split, first.part(by)), []).append(key)
    if not pairs:
        raise RecordingError(
            f"A and B have no episode in common: A has {_has(a)}; B has {_has(b)}" + _reasons(unpaired),
            "run both policies on the same episode file, in the same scene",
        )
    groups = [
        replace(_group(task, split, keys, runs_a, runs_b, cluster), part=tuple(zip(by, part, strict=True)))
        for (task, split, part), keys in (sorted(pairs.items(), key=lambda item: item[0][2]) if by else pairs.items())
    ]
    return Comparison(tuple(groups), tuple(unpaired), cluster)


def _runs(side: Side, scores: Sequence[EpisodeScore], unpaired: list[Unpaired]) -> _Runs:
    runs: _Runs = {}
    for score in scores:
        if score.scorable:
            runs.setdefault((score.task, score.key), []).append(score)
        else:
            unpaired.append(_unpaired(side, score, f"not scored: {score.reason}"))
    agents = dict.fromkeys(run.agent for several in runs.values() for run in several)
    if len(agents) > 1:
        raise ConfigError(f"{side} holds runs of several agents: {', '.join(agents)}", "give the logs of one of them")
    return runs


def _obstacle(a: Sequence[EpisodeScore], b: Sequence[EpisodeScore]) -> str:
    """The reason why the runs of an episode are not a pair; empty if they are."""
    if not a or not b:
        return LACKED
    first = a[0].choices
    names = {
        name
        for run in (*a, *b)
        for name in first.keys() | run.choices.keys()
        if first.get(name) != run.choices.get(name)
    }
    return f"scored by different choices: {', '.join(sorted(names))}" if names else ""


def _group(task: str, split: str, keys: Sequence[_Key], runs_a: _Runs, runs_b: _Runs, by: Cluster) -> GroupComparison:
    a, b = [runs_a[key] for key in keys], [runs_b[key] for key in keys]
    clusters = None if by == "none" else [runs[0].cluster(by) for runs in a]
    if clusters is not None and len(set(clusters)) < 2:
        raise ConfigError(
            f"{task}{f' {split}' if split else ''}: all pairs are of one {by}, which says nothing about others",
            "compare with --cluster none, or run more of them",
        )
    metrics = [
        _metric(name, [_mean(name, runs) for runs in a], [_mean(name, runs) for runs in b], clusters)
        for name in all_metrics()
    ]
    return GroupComparison(
        task=task,
        split=split,
        agent_a=a[0][0].agent,
        agent_b=b[0][0].agent,
        settings_a=_settings(a),
        settings_b=_settings(b),
        episodes=len(keys),
        runs_a=sum(map(len, a)),
        runs_b=sum(map(len, b)),
        metrics=tuple(metric for metric in metrics if metric is not None),
        mixed=mixed_settings((run.scene, run.choices) for runs in (*a, *b) for run in runs),
    )


def _settings(episodes: Iterable[Sequence[EpisodeScore]]) -> tuple[RobotSetting, ...]:
    return tuple(dict.fromkeys(run.setting for runs in episodes for run in runs))


def _mean(name: str, runs: Sequence[EpisodeScore]) -> float:
    """The mean of a metric over runs; NaN if a run lacks it."""
    values = [run.metrics.get(name) for run in runs]
    return math.fsum(math.nan if value is None else float(value) for value in values) / len(values)


def _metric(
    name: str, all_a: Sequence[float], all_b: Sequence[float], all_clusters: Sequence[str] | None
) -> MetricComparison | None:
    """Compare one metric; None if no pair has it, or those of a single cluster only."""
    pairs = [i for i, pair in enumerate(zip(all_a, all_b, strict=True)) if all(map(math.isfinite, pair))]
    clusters = None if all_clusters is None else [all_clusters[i] for i in pairs]
    if not pairs or (clusters is not None and len(set(clusters)) < 2):
        return None
    a, b = [all_a[i] for i in pairs], [all_b[i] for i in pairs]
    test = paired_permutation_test(b, a, clusters, seed=SEED)
    return MetricComparison(
        metric=name,
        pairs=len(pairs),
        mean_a=math.fsum(a) / len(a),
        mean_b=math.fsum(b) / len(b),
        difference=bootstrap_mean([y - x for x, y in zip(a, b, strict=True)], CONFIDENCE, RESAMPLES, SEED, clusters),
        p_value=test.p_value,
        exact=test.exact,
        further=0 if test.p_value < ALPHA else _further(a, b, clusters, test.difference),
    )


def _further(a: Sequence[float], b: Sequence[float], clusters: Sequence[str] | None, difference: float) -> int | None:
    """Estimate the additional episodes, at least 1, that a test without significance needs.

    The sample size formula holds for many pairs. For few, the test sets a lower bound: N units that differ, pairs or
    clusters, give no p-value below 2^(1-N).
    """
    units: dict[str, float] = {}
    for number, (x, y) in enumerate(zip(a, b, strict=True)):
        unit = str(number) if clusters is None else clusters[number]
        units[unit] = units.get(unit, 0.0) + y - x
    moving = sum(value != 0 for value in units.values())
    if difference == 0:
        return None
    least = math.ceil(LEAST_DIFFERING * len(a) / moving) - len(a)
    by_size = further_episodes(b, a, clusters, alpha=ALPHA, power=POWER) if len(a) > 1 else None
    return max(1, least, by_size or 0)


def write_comparison(path: Path, comparison: Comparison) -> None:
    """Write a comparison as JSON, with the parameters of the tests.

    Raises:
        RecordingError: the file cannot be written.
    """
    document = {
        "scorer": SCORER_VERSION,
        "units": "episodes" if comparison.cluster == "none" else f"clusters of episodes by {comparison.cluster}",
        "difference": "B - A, mean over episodes; several runs of an episode are averaged first",
        "interval": {"kind": "percentile bootstrap", "confidence": CONFIDENCE, "resamples": RESAMPLES, "seed": SEED},
        "test": {"kind": "paired permutation, two-sided, per metric", "alpha": ALPHA, "seed": SEED},
        "further": {"power": POWER, "alpha": ALPHA, "difference": "the observed one"},
        **asdict(comparison),
    }
    write_json(path, document)


def _unpaired(side: Side, score: EpisodeScore, reason: str) -> Unpaired:
    return Unpaired(side, score.path, score.episode, reason)


def _has(scores: Sequence[EpisodeScore]) -> str:
    scored = [score for score in scores if score.scorable]
    count = f"{len(scored)} scored episode{'' if len(scored) == 1 else 's'} of {len(scores)} logs"
    return count + (f" ({_few(f'{score.task} in {score.scene}' for score in scored)})" if scored else "")


def _few(names: Iterable[str]) -> str:
    return named(list(dict.fromkeys(names)))


def _reasons(unpaired: Sequence[Unpaired]) -> str:
    """The first reasons other than a missing episode."""
    others = [item.reason for item in unpaired if item.reason != LACKED]
    return f"; {_few(others)}" if others else ""
