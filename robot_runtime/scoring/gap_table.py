"""A gap between simulation and robot as people read it, in 80 columns."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from robot_runtime.scoring.compare_table import p_text
from robot_runtime.scoring.gap import METRICS, Correlation, Gap
from robot_runtime.scoring.groups import CONFIDENCE
from robot_runtime.scoring.table import COLUMNS, cell


def table(gap: Gap) -> Group:
    """A row per policy and metric, a sentence per correlation, the reasons of failures, and what was left out."""
    parts: list[RenderableType] = [_policies(gap), Text(), *(Text(sentence(one)) for one in gap.correlations), Text()]
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
        parts.append(Text(f"{len(gap.unpaired)} logs were not paired; the first: {first}", style="yellow"))
    return Group(*parts)


def _policies(gap: Gap) -> Table:
    rows = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    rows.add_column("policy", no_wrap=True)
    for name in ("metric", "simulated", "real", "difference", "interval", "p", "pairs"):
        rows.add_column(name, justify="left" if name == "metric" else "right", no_wrap=True)
    for policy in gap.policies:
        for index, name in enumerate(METRICS):
            metric = policy.metric(name)
            if metric is None:
                continue
            low, mean, high = (
                cell(name, value) for value in (metric.difference.low, metric.difference.mean, metric.difference.high)
            )
            rows.add_row(
                policy.agent if not index else "",
                " ".join(COLUMNS[name][:2]).strip(),
                cell(name, metric.mean_a),
                cell(name, metric.mean_b),
                Text(mean, style="bold" if metric.differs else ""),
                f"[{low}, {high}]",
                p_text(metric.p_value),
                str(metric.pairs),
            )
    return rows


def sentence(correlation: Correlation) -> str:
    """What simulation foretells by one metric."""
    label = COLUMNS[correlation.metric][0]
    turned = "; ".join(f"{a} and {b}" for a, b in correlation.reversals)
    order = f"{len(correlation.reversals)} of {correlation.pairs} pairs of policies change places"
    order += f" ({turned})" if turned else ""
    if correlation.interval is None:
        return f"{label}: no correlation: {correlation.reason}; {order}."
    found = correlation.interval
    over = f"[{found.low:.3f}, {found.high:.3f}] over {len(correlation.policies)} policies"
    return f"{label}: SRCC {found.mean:.3f} {over}; {order}."


def _reasons(gap: Gap) -> Padding:
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    rows.add_column("how episodes failed", no_wrap=True)
    rows.add_column("simulated", justify="right")
    rows.add_column("real", justify="right")
    rows.add_column("")
    for reason in gap.reasons:
        style = "bold" if reason.alone else ""
        rows.add_row(
            reason.text.removeprefix("failed: "), str(reason.simulated), str(reason.real), Text(reason.alone, style)
        )
    return Padding(rows, (0, 0, 0, 0), expand=False)
