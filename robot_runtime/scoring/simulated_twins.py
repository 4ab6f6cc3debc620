"""Scores of real episodes with simulated runs of the same and of further starts as evidence, and their table."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from robot_runtime.errors import RecordingError
from robot_runtime.metrics.episode_metrics import SCORER_VERSION
from robot_runtime.metrics.measures import definition
from robot_runtime.recording.json_output import write_json
from robot_runtime.scoring.groups import episode_means
from robot_runtime.scoring.report.terminal_table import cell, interval_text
from robot_runtime.scoring.statistics.control_variate import ControlVariate, control_variate
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, Interval
from robot_runtime.scoring.summary import EpisodeScore

METRICS = ("success", "spl", "soft_spl")
"""Metrics between 0 and 1 that are estimated."""


@dataclass(frozen=True)
class TwinEstimate:
    """One policy on one task, with what simulation says about the same starts.

    Attributes:
        task: name of the task.
        split: split of the dataset; empty without a dataset.
        agent: name of the policy.
        metrics: estimates by the name of the metric.
    """

    task: str
    split: str
    agent: str
    metrics: dict[str, ControlVariate]


def with_simulation(
    real: Iterable[EpisodeScore], simulated: Iterable[EpisodeScore], planned: int | None = None
) -> list[TwinEstimate]:
    """Estimates of each policy that ran in both worlds. Several runs of an episode in one world are averaged.

    Args:
        real: scores on the robot; their order is that of the runs, by the time in their provenance.
        simulated: scores of the same policies on the same episodes and on others of the same kind.
        planned: largest number of real episodes, see :func:`control_variate`.

    Raises:
        RecordingError: no policy has a real episode that was simulated, too.
    """
    groups_real, groups_sim = _groups(real), _groups(simulated)
    found = []
    for key, runs in groups_real.items():
        metrics = {}
        for name in METRICS:
            values, twins = episode_means(name, runs), episode_means(name, groups_sim.get(key, []))
            if values.keys() & twins.keys():
                metrics[name] = control_variate(
                    list(values.values()),
                    [twins.get(episode, math.nan) for episode in values],
                    [value for episode, value in twins.items() if episode not in values],
                    CONFIDENCE,
                    planned,
                )
        if metrics:
            found.append(TwinEstimate(*key, metrics))
    if not found:
        raise RecordingError(
            f"no real episode was simulated, too: real are {_names(groups_real)}; simulated are {_names(groups_sim)}",
            "run the same policies in simulation on the same episode file",
        )
    return found


def write_estimates(path: Path, estimates: Sequence[TwinEstimate]) -> None:
    """Write estimates as JSON. Raises ``RecordingError``."""
    document = {
        "scorer": SCORER_VERSION,
        "confidence": CONFIDENCE,
        "weight": "least squares on earlier episodes only, shrunk by 1 - 1 / (n r^2)",
        "estimates": [asdict(one) for one in estimates],
    }
    write_json(path, document)


_Group = tuple[str, str, str]


def _groups(scores: Iterable[EpisodeScore]) -> dict[_Group, list[EpisodeScore]]:
    """Scored runs by task, split and agent, in the order in which they were recorded."""
    found: dict[_Group, list[EpisodeScore]] = {}
    for score in sorted(scores, key=lambda score: (str(score.provenance.get("created", "")), str(score.path))):
        if score.scorable:
            found.setdefault((score.task, score.split, score.agent), []).append(score)
    return found


def _names(groups: dict[_Group, list[EpisodeScore]]) -> str:
    return ", ".join(dict.fromkeys(f"{agent or 'no agent'} on {task}" for task, _, agent in groups)) or "none"


def table(estimates: Sequence[TwinEstimate]) -> Group:
    """A block per policy: rows without simulation and with it, and what they rest on."""
    return Group(*(part for one in estimates for part in (*_block(one), Text())), Text(_EXPLAINED, style="dim"))


_EXPLAINED = (
    f"{CONFIDENCE:.0%} intervals: for this number of episodes, looked at once; and valid after every episode. "
    "Simulation narrows them where it agrees with the robot, and does not move the mean where it is wrong."
)


def _block(estimate: TwinEstimate) -> list[Text | Padding]:
    rows = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    rows.add_column("metric", min_width=12, no_wrap=True)
    for heading in ("mean", f"{CONFIDENCE:.0%} interval", "at any time", "r", "weight"):
        rows.add_column(heading, justify="right", no_wrap=True)
    for name, found in estimate.metrics.items():
        rows.add_row(definition(name).title, *_ends(name, found.without, found.without_any_time))
        more = f"{found.correlation:.2f}", f"{found.weight:.2f}"
        rows.add_row("  with simulation", *_ends(name, found.adjusted, found.adjusted_any_time), *more)
    first = next(iter(estimate.metrics.values()))
    heading = " · ".join(filter(None, (estimate.task, estimate.split, estimate.agent or "no agent")))
    basis = (
        f"{first.real} real episodes, {first.twins} of them simulated, {first.further} further simulated per real one"
    )
    warned = [] if first.further else [Text("too few further simulated starts: simulation is not used", style="yellow")]
    return [Text(heading, style="bold"), Text(basis), *warned, Padding(rows, (0, 0, 0, 2), expand=False)]


def _ends(name: str, once: Interval, always: Interval) -> tuple[str, str, str]:
    return cell(name, once.mean), interval_text(name, once), interval_text(name, always)
