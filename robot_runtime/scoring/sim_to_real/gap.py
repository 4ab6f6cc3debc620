"""Gap between simulation and robot: the same policies on the same episodes, run in both worlds.

Per policy, paired differences with intervals. Over policies, the sim-vs-real correlation coefficient (Kadian et al.
2020, "Sim2Real Predictivity", IV-E) with its interval, and the pairs of policies that the two worlds order
differently. Per world, why episodes failed.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from robot_runtime.errors import RecordingError
from robot_runtime.metrics.episode_metrics import SCORER_VERSION
from robot_runtime.recording.json_output import write_json
from robot_runtime.scoring.groups import episode_means, metric_interval
from robot_runtime.scoring.report.panels import outcome
from robot_runtime.scoring.sim_to_real.correlation import correlation_interval
from robot_runtime.scoring.sim_to_real.side_by_side import Worlds
from robot_runtime.scoring.statistics.comparison import Comparison, MetricComparison, Unpaired, compare
from robot_runtime.scoring.statistics.hypothesis_tests import rank_reversals
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, SEED, Interval, bootstrap_mean
from robot_runtime.scoring.summary import EpisodeScore, RobotSetting

METRICS = ("success", "spl")
DRAWS = 4_000
LEAST_POLICIES = 3


@dataclass(frozen=True)
class PolicyGap:
    """One policy in both worlds, over the episodes that it ran in both; differences are real - simulated.

    Attributes:
        agent: name of the policy.
        task: name of the task.
        settings_simulated, settings_real: each world's robots with their sources of poses, each once.
        episodes: number of pairs.
        metrics: metrics of :data:`METRICS` that both worlds have.
    """

    agent: str
    task: str
    settings_simulated: tuple[RobotSetting, ...]
    settings_real: tuple[RobotSetting, ...]
    episodes: int
    metrics: tuple[MetricComparison, ...]

    def metric(self, name: str) -> MetricComparison | None:
        """Return a metric; None where no pair has it."""
        return next((metric for metric in self.metrics if metric.metric == name), None)


@dataclass(frozen=True)
class Level:
    """One metric of a policy in each world, over the episodes that it ran in both."""

    agent: str
    metric: str
    simulated: Interval
    real: Interval


@dataclass(frozen=True)
class Correlation:
    """Correlation of simulated and real means of a metric over the policies.

    Attributes:
        metric: name of the metric.
        policies: policies whose means were correlated.
        interval: coefficient with its interval; None where it is undefined.
        reason: reason why it is undefined.
        reversals: pairs of policies that simulation and robot order differently.
        pairs: number of all pairs of policies.
    """

    metric: str
    policies: tuple[str, ...]
    interval: Interval | None
    reason: str
    reversals: tuple[tuple[str, str], ...]
    pairs: int


@dataclass(frozen=True)
class Reason:
    """A reason of failure, and its number of paired episodes in each world."""

    text: str
    simulated: int
    real: int

    @property
    def alone(self) -> str:
        """The only world that it occurred in, as text; empty if it occurred in both."""
        return "only in reality" if not self.simulated else "only in simulation" if not self.real else ""


@dataclass(frozen=True)
class Gap:
    """Results for the logs of two worlds.

    Attributes:
        policies: differences per policy and task.
        levels: means of the policies that are correlated.
        correlations: correlation per metric.
        reasons: reasons of failures, the most frequent first.
        only_simulated: policies without real logs.
        only_real: policies without simulated logs.
        unpaired: logs that were not used, and why; side A is simulated, B is real.
    """

    policies: tuple[PolicyGap, ...]
    levels: tuple[Level, ...]
    correlations: tuple[Correlation, ...]
    reasons: tuple[Reason, ...]
    only_simulated: tuple[str, ...]
    only_real: tuple[str, ...]
    unpaired: tuple[Unpaired, ...]

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the policies, each once."""
        return tuple(dict.fromkeys(policy.agent for policy in self.policies))

    @property
    def worlds(self) -> dict[str, tuple[RobotSetting, ...]]:
        """The robots of each world over all policies, with their sources of poses."""
        worlds = {
            "simulated": [one.settings_simulated for one in self.policies],
            "real": [one.settings_real for one in self.policies],
        }
        return {name: tuple(dict.fromkeys(chain(*settings))) for name, settings in worlds.items()}


def find_gap(simulated: Sequence[EpisodeScore], real: Sequence[EpisodeScore]) -> Gap:
    """Compare the worlds, policy by policy and over all policies.

    Raises:
        RecordingError: no policy has an episode in both worlds.
    """
    by_agent_sim, by_agent_real = _by_agent(simulated), _by_agent(real)
    both = [agent for agent in by_agent_sim if agent in by_agent_real]
    policies: list[PolicyGap] = []
    unpaired: list[Unpaired] = []
    refusals: list[str] = []
    runs: list[_Runs] = []
    for agent in both:
        try:
            comparison = compare(by_agent_sim[agent], by_agent_real[agent])
        except RecordingError as error:
            refusals.append(f"{agent}: {error.message}")
            continue
        policies += _policies(agent, comparison)
        unpaired += comparison.unpaired
        out = {item.path for item in comparison.unpaired}
        runs.append(_Runs(agent, _paired(by_agent_sim[agent], out), _paired(by_agent_real[agent], out)))
    if not policies:
        raise RecordingError(
            "no policy has an episode in both worlds: "
            + ("; ".join(refusals) or f"simulated are {_names(by_agent_sim)}, real are {_names(by_agent_real)}"),
            "run the same agents on the same episodes in simulation and on the robot",
        )
    return Gap(
        policies=tuple(policies),
        levels=tuple(level for name in METRICS for run in runs if (level := _level(name, run)) is not None),
        correlations=tuple(_correlation(name, runs) for name in METRICS),
        reasons=_reasons(runs),
        only_simulated=tuple(agent for agent in by_agent_sim if agent not in by_agent_real),
        only_real=tuple(agent for agent in by_agent_real if agent not in by_agent_sim),
        unpaired=tuple(unpaired),
    )


_Means = dict[tuple[str, str], float]


@dataclass(frozen=True)
class _Runs:
    """The paired logs of a policy."""

    agent: str
    simulated: list[EpisodeScore]
    real: list[EpisodeScore]


def _by_agent(scores: Iterable[EpisodeScore]) -> dict[str, list[EpisodeScore]]:
    found: dict[str, list[EpisodeScore]] = {}
    for score in scores:
        if score.agent:
            found.setdefault(score.agent, []).append(score)
    return found


def _policies(agent: str, comparison: Comparison) -> list[PolicyGap]:
    return [
        PolicyGap(
            agent,
            group.task,
            group.settings_a,
            group.settings_b,
            group.episodes,
            tuple(metric for metric in group.metrics if metric.metric in METRICS),
        )
        for group in comparison.groups
    ]


def _paired(scores: Sequence[EpisodeScore], out: set[Path]) -> list[EpisodeScore]:
    return [score for score in scores if score.scorable and score.path not in out]


def _names(agents: Iterable[str]) -> str:
    return ", ".join(agents) or "none"


# --- over policies --------------------------------------------------------------------------------------------------


def _correlation(name: str, runs: Sequence[_Runs]) -> Correlation:
    values = [(run.agent, episode_means(name, run.simulated), episode_means(name, run.real)) for run in runs]
    values = [(agent, a, b) for agent, a, b in values if a and a.keys() == b.keys()]
    agents = tuple(agent for agent, _, _ in values)
    simulated = [float(np.mean(list(a.values()))) for _, a, _ in values]
    real = [float(np.mean(list(b.values()))) for _, _, b in values]
    reversals = tuple((agents[i], agents[j]) for i, j in rank_reversals(simulated, real)) if values else ()
    count = len(values) * (len(values) - 1) // 2
    if len(values) < LEAST_POLICIES:
        ran = "1 policy" if len(values) == 1 else f"{len(values)} policies"
        reason = f"{ran} ran in both worlds; a correlation needs {LEAST_POLICIES}"
        return Correlation(name, agents, None, reason, reversals, count)
    try:
        interval = _interval([(a, b) for _, a, b in values])
    except ValueError as error:
        return Correlation(name, agents, None, str(error), reversals, count)
    return Correlation(name, agents, interval, "", reversals, count)


def _level(name: str, run: _Runs) -> Level | None:
    """Means of a policy; None where it is not correlated."""
    simulated, real = episode_means(name, run.simulated), episode_means(name, run.real)
    if not simulated or simulated.keys() != real.keys():
        return None
    return Level(run.agent, name, *(_mean_interval(name, list(side.values())) for side in (simulated, real)))


def _mean_interval(name: str, values: list[float]) -> Interval:
    # Episodes that were run several times have success rates, which Wilson's interval does not apply to.
    whole = all(value in (0.0, 1.0) for value in values)
    return metric_interval(name, values) if whole or name != "success" else bootstrap_mean(values, CONFIDENCE)


def _interval(values: Sequence[tuple[_Means, _Means]]) -> Interval:
    episodes = sorted({key for simulated, _ in values for key in simulated})
    simulated, real = ([[pair[world].get(key, math.nan) for key in episodes] for pair in values] for world in (0, 1))
    return correlation_interval(simulated, real, CONFIDENCE, DRAWS, SEED)


def _reasons(runs: Sequence[_Runs]) -> tuple[Reason, ...]:
    simulated = _failures(score for run in runs for score in run.simulated)
    real = _failures(score for run in runs for score in run.real)
    reasons = [Reason(text, simulated[text], real[text]) for text in {**simulated, **real}]
    return tuple(sorted(reasons, key=lambda reason: (-(reason.simulated + reason.real), reason.text)))


def _failures(scores: Iterable[EpisodeScore]) -> Counter[str]:
    return Counter(outcome(score)[1] for score in scores if not score.metrics["success"])


def write_gap(path: Path, gap: Gap, worlds: Worlds | None = None) -> None:
    """Write the gap as JSON, with the episodes of several worlds side by side where they are given.

    Raises:
        RecordingError: the file cannot be written.
    """
    document = {
        "scorer": SCORER_VERSION,
        "difference": "real - simulated, mean over episodes; several runs of an episode are averaged first",
        "srcc": "Pearson, over policies' means; interval by test inversion",
        "interval": {"confidence": CONFIDENCE, "draws": DRAWS, "seed": SEED},
        **asdict(gap),
        "side_by_side": None if worlds is None else asdict(worlds),
    }
    write_json(path, document)
