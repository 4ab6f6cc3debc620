"""Terminal table of a sim-to-real gap, 80 columns wide."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from robot_runtime.metrics.measures import definition
from robot_runtime.scoring.report.comparison_table import p_text, robots_text
from robot_runtime.scoring.report.terminal_table import cell, interval_text
from robot_runtime.scoring.sim_to_real.gap import METRICS, Correlation, Gap, PolicyGap
from robot_runtime.scoring.statistics.intervals import CONFIDENCE


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of a policy in both worlds, as text; ``differs`` if the difference is significant."""

    policy: str
    metric: str
    simulated: str
    real: str
    difference: str
    interval: str
    p: str
    pairs: str
    differs: bool


def rows(policy: PolicyGap) -> Iterator[Row]:
    """The rows of a policy, one per metric that both worlds have."""
    for name in METRICS:
        metric = policy.metric(name)
        if metric is None:
            continue
        found = metric.difference
        yield Row(
            policy.agent,
            definition(name).title,
            cell(name, metric.mean_a),
            cell(name, metric.mean_b),
            cell(name, found.mean),
            interval_text(name, found),
            p_text(metric.p_value),
            str(metric.pairs),
            metric.differs,
        )


def table(gap: Gap) -> Group:
    """A row per policy and metric, a sentence per correlation, the reasons of failures, and unused logs."""
    robots = [robots_text(world, settings) for world, settings in gap.worlds.items() if any(map(str, settings))]
    parts: list[RenderableType] = [
        _policies(gap),
        *robots,
        Text(),
        *(Text(sentence(one)) for one in gap.correlations),
        Text(),
    ]
    if gap.reasons:
        parts += [_reasons(gap), Text()]
    notes = f"difference: real - simulated, with its {CONFIDENCE:.0%} bootstrap interval; p: paired permutation test"
    parts.append(Text(notes, style="dim"))
    for world, agents in (("simulation", gap.only_simulated), ("reality", gap.only_real)):
        if agents:
            parts.append(Text(f"only in {world}: {', '.join(agents)}", style="yellow"))
    if gap.unpaired:
        one = gap.unpaired[0]
        first = f"{one.path}: {one.reason}"
        count = "1 log was" if len(gap.unpaired) == 1 else f"{len(gap.unpaired)} logs were"
        parts.append(Text(f"{count} not paired; the first: {first}", style="yellow"))
    return Group(*parts)


def _policies(gap: Gap) -> Table:
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("policy", no_wrap=True)
    for name in ("metric", "simulated", "real", "difference", "interval", "p", "pairs"):
        shown.add_column(name, justify="left" if name == "metric" else "right", no_wrap=True)
    for policy in gap.policies:
        for index, row in enumerate(rows(policy)):
            shown.add_row(
                "" if index else row.policy,
                row.metric,
                row.simulated,
                row.real,
                Text(row.difference, style="bold" if row.differs else ""),
                row.interval,
                row.p,
                row.pairs,
            )
    return shown


def sentence(correlation: Correlation) -> str:
    """Correlation and order of the policies by one metric."""
    label = definition(correlation.metric).heading
    turned = "; ".join(f"{a} and {b}" for a, b in correlation.reversals)
    pairs = "1 pair" if correlation.pairs == 1 else f"{correlation.pairs} pairs"
    order = f"{len(correlation.reversals)} of {pairs} of policies change places"
    order += f" ({turned})" if turned else ""
    if correlation.interval is None:
        return f"{label}: no correlation: {correlation.reason}" + (f"; {order}." if correlation.pairs else ".")
    found = correlation.interval
    over = f"[{found.low:.3f}, {found.high:.3f}] over {len(correlation.policies)} policies"
    return f"{label}: SRCC {found.mean:.3f} {over}; {order}."


def _reasons(gap: Gap) -> Padding:
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    rows.add_column("how episodes failed", no_wrap=True)
    rows.add_column("simulated", justify="right", no_wrap=True)
    rows.add_column("real", justify="right", no_wrap=True)
    rows.add_column("")
    for reason in gap.reasons:
        style = "bold" if reason.alone else ""
        rows.add_row(
            reason.text.removeprefix("failed: "), str(reason.simulated), str(reason.real), Text(reason.alone, style)
        )
    return Padding(rows, (0, 0, 0, 0), expand=False)
