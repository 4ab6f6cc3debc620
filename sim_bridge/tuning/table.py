"""Terminal tables of a sweep."""

import math
from collections import Counter

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from robot_runtime.scoring.sim_to_real.gap import METRICS, Correlation
from robot_runtime.scoring.statistics.intervals import CONFIDENCE
from sim_bridge.tuning.likelihood import PARTS, Parts
from sim_bridge.tuning.sweep import Candidate, Tuning

EQUAL_NATS = 0.05
"""Difference in nats below which settings are shown as equal."""


def table(tuning: Tuning) -> Group:
    """Settings by likelihood, their correlations, and what was left out."""
    ranked = tuning.ranked()
    parts: list[RenderableType] = [_likelihoods(tuning, ranked), Text()]
    if any(candidate.gap is not None for candidate in ranked):
        parts += [_correlations(ranked), Text()]
    parts += [Text(line) for line in verdict(tuning)]
    interval = f"[ ] is a {CONFIDENCE:.0%} interval"
    parts.append(Text(f"log likelihood: natural, less the best setting's; {interval} over episodes", style="dim"))
    reasons = Counter(reason for candidate in ranked for reason in _missing_reasons(candidate))
    failed = sum((Counter(candidate.failed) for candidate in ranked), Counter[str]())
    for reason, count in reasons.items():
        parts.append(Text(f"no correlation under {count} of {len(ranked)} settings: {reason}", style="yellow"))
    for reason, count in failed.most_common(3):
        parts.append(Text(f"{count} runs without a score: {reason}", style="yellow"))
    parts += [Text(note, style="yellow") for note in tuning.notes]
    return Group(*parts)


def _missing_reasons(candidate: Candidate) -> dict[str, None]:
    """The reasons for missing correlations, each once."""
    correlations = (candidate.correlation(metric) for metric in METRICS)
    return dict.fromkeys(filter(None, [candidate.reason, *(each.reason for each in correlations if each is not None)]))


def verdict(tuning: Tuning) -> list[str]:
    """The sweep in a few sentences."""
    ranked = tuning.ranked()
    best, lines = ranked[0], [f"Most likely: {ranked[0].name}."]
    rivals = [
        candidate.name
        for candidate in ranked
        if candidate is not best and candidate.behind is not None and candidate.behind.high > -EQUAL_NATS
    ]
    if len(ranked) > 1 and tuning.episodes == 1:
        lines.append("One episode does not show the spread between episodes, so the uncertainty is unknown.")
    elif rivals:
        lines.append(f"The logs do not distinguish it from: {'; '.join(rivals)}.")
    for metric, name in (("success", "success"), ("spl", "SPL")):
        predictor = tuning.best_predictor(metric)
        correlation = predictor.correlation(metric) if predictor is not None else None
        if predictor is None or correlation is None or correlation.interval is None:
            continue
        mean = correlation.interval.mean
        others = sum(
            _reaches(candidate.correlation(metric), mean) for candidate in ranked if candidate is not predictor
        )
        reached = f"; the intervals of {others} others reach it" if others else ""
        lines.append(f"Predicts {name} best: {predictor.name}, SRCC {mean:.3f}{reached}.")
    return lines


def _reaches(correlation: Correlation | None, mean: float) -> bool:
    return correlation is not None and correlation.interval is not None and correlation.interval.high >= mean - 1e-3


def _likelihoods(tuning: Tuning, ranked: list[Candidate]) -> Table:
    logs = f"{tuning.motions} actions of {tuning.logs} logs, {tuning.episodes} episodes"
    rows = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), title=f"How well settings explain {logs}")
    rows.title_justify, rows.title_style = "left", "bold"
    rows.add_column("setting", min_width=20)
    rows.add_column("log likelihood", justify="right", no_wrap=True)
    best = ranked[0].parts
    off = {candidate.name: _less(candidate.parts, best) for candidate in ranked}
    telling = [name for name in PARTS if any(each[name] for each in off.values())]
    for name in telling:
        rows.add_column(name, justify="right", no_wrap=True, style="dim")
    for candidate in ranked:
        behind = "best"
        if candidate.behind is not None:
            behind = f"{_nats(candidate.behind.mean)} {_span(candidate.behind.low, candidate.behind.high, 0)}"
        rows.add_row(candidate.name, behind, *(_nats(off[candidate.name][name]) for name in telling))
    return rows


def _less(parts: Parts, best: Parts) -> dict[str, float]:
    return {name: getattr(parts, name) - getattr(best, name) for name in PARTS}


def _nats(value: float) -> str:
    if abs(value) < EQUAL_NATS:
        return "0.0"
    return f"{value:.1f}" if abs(value) < 10 else f"{value:.0f}"


def _correlations(ranked: list[Candidate]) -> Table:
    rows = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), title="Correlation of simulation and robot over the policies"
    )
    rows.title_justify, rows.title_style = "left", "bold"
    rows.add_column("setting")
    for name in ("SRCC success", "SRCC SPL"):
        rows.add_column(name, justify="right", no_wrap=True)
    rows.add_column("reversals", justify="right", no_wrap=True)
    for candidate in ranked:
        success, spl = candidate.correlation("success"), candidate.correlation("spl")
        turned = f"{len(spl.reversals)} of {spl.pairs}" if spl is not None else ""
        rows.add_row(candidate.name, _srcc(success), _srcc(spl), turned)
    return rows


def _srcc(correlation: Correlation | None) -> str:
    if correlation is None:
        return ""
    interval = correlation.interval
    return "none" if interval is None else f"{interval.mean:.3f} {_span(interval.low, interval.high, 2)}"


def _span(low: float, high: float, digits: int) -> str:
    low, high = (round(end, digits) + 0.0 for end in (low, high))  # + 0.0 removes a negative zero
    return f"[{low:.{digits}f}, {high:.{digits}f}]" if math.isfinite(low + high) else "[?]"
