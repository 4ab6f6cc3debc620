"""Terminal table of scores: a block of rows per group, 80 columns wide."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from robot_runtime.metrics.episode_metrics import PhaseTime
from robot_runtime.metrics.measures import COMMON, MetricDefinition, definition, definitions
from robot_runtime.recording.verdict_files import SUFFIX
from robot_runtime.scoring.failure_causes import cause_text
from robot_runtime.scoring.groups import (
    GroupSummary,
    JudgedSuccess,
    grouped,
    judge_text,
    judged_successes,
    metric_interval,
    summarize_groups,
)
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, Interval
from robot_runtime.scoring.summary import Cluster, EpisodeScore, named
from robot_runtime.verdicts import success_by_person

_LISTED = 30
"""Logs or notes that are listed; the JSON lists all."""

REFERENCES = ("_reference", "_vocabulary")
"""Ends of the names of choices that name what a path or answer is compared with."""

FEW_EPISODES = 10
FEW_CLUSTERS = 20
"""Clusters below which tables warn that intervals are too narrow."""


def columns(names: Iterable[str], summary: bool = True) -> list[MetricDefinition]:
    """The metrics of these names that tables show; those of single kinds of tasks stand between the common ones.

    Args:
        names: names of metrics.
        summary: whether the table is of means, which has those metrics too that a single episode repeats.
    """
    shown = [metric for metric in definitions(names).values() if summary or not metric.summary_only]
    common, kinds = [[metric for metric in shown if (metric in COMMON) is wanted] for wanted in (True, False)]
    first = [metric for metric in common if metric in COMMON[:3]]
    return [metric for metric in (*first, *kinds, *common[len(first) :]) if metric.heading]


def table(scores: Sequence[EpisodeScore], cluster: Cluster = "none", by: Sequence[str] = ()) -> Group:
    """A block per group (metric, mean, interval), and below the logs that could not be scored, with the reason."""
    groups = summarize_groups(scores, cluster, by)
    blocks = [part for group in groups for part in (_block(group), Text())]
    intervals = Text(intervals_text(groups), style="dim")
    notes = (
        *_positions(scores),
        *map(Text, reference_lines(scores)),
        *_placed(scores),
        *_verdict_authors(scores),
        *map(Text, verdict_lines(scores)),
        *noted(scores),
        *not_scored(scores),
    )
    return Group(*blocks, *([intervals] if blocks else []), *notes)


def _placed(scores: Sequence[EpisodeScore]) -> list[Text]:
    """Errors of the start poses of robots that an operator placed or that drove there."""
    lines = []
    for way in ("operator", "drive"):
        placed = [score.placement for score in scores if score.placement is not None and score.placement.way == way]
        if placed:
            by = {"operator": "placed by hand", "drive": "drove to their starts"}[way]
            errors_cm = [100 * found.error_m for found in placed]
            turned_deg = [abs(math.degrees(found.error_rad)) for found in placed if found.error_rad is not None]
            turned = f", {median(turned_deg):.1f}° (at most {max(turned_deg):.1f}°)" if turned_deg else ""
            off = f"{median(errors_cm):.1f} cm (at most {max(errors_cm):.1f} cm){turned}"
            lines.append(Text(f"{len(placed)} of {len(scores)} robots {by}, in the median {off} off"))
    return lines


def _positions(scores: Sequence[EpisodeScore]) -> list[Text]:
    """The source of positions, where it is not the referee during the run."""
    smoothers = {str(score.choices.get("smoother")) for score in scores if score.choices.get("smoother")}
    return [Text(f"positions: the referee's, smoothed after the run by {name}") for name in sorted(smoothers)]


def reference_lines(scores: Sequence[EpisodeScore]) -> list[str]:
    """The references that paths and answers are compared with, with the number of episodes that have each."""
    counts = Counter(
        (name, str(value))
        for score in scores
        for name, value in score.choices.items()
        if name.endswith(REFERENCES) and score.scorable
    )
    named = [(name.replace("_", " "), value, count) for (name, value), count in counts.items()]
    return [f"{name}: {value} ({count} of {len(scores)} episodes)" for name, value, count in named]


def _block(group: GroupSummary) -> Group:
    heading = Text(" · ").join(
        [
            Text(group.task, style="bold"),
            *(Text(part) for part in (group.split, group.agent or "no agent", group.scene, *group.parts) if part),
            Text(count(group)),
            *([Text(f"{group.clusters} clusters by {group.cluster}")] if group.cluster != "none" else []),
        ]
    )
    rows = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    rows.add_column("metric", min_width=12, no_wrap=True)
    rows.add_column("mean", justify="right", min_width=8, no_wrap=True)
    rows.add_column(f"{CONFIDENCE:.0%} interval", justify="right", no_wrap=True)
    rows.add_column("", no_wrap=True)
    for metric in columns(group.intervals):
        interval = group.intervals[metric.name]
        count_text = f"of {group.counts[metric.name]}" if group.counts[metric.name] < group.episodes else ""
        mean = Text(metric.text(interval.mean), style="bold")
        rows.add_row(metric.title, mean, Text(interval_text(metric.name, interval)), count_text)
    robot = str(group.setting)
    return Group(
        heading,
        *([Text(robot, style="dim")] if robot else []),
        *(Text(f"mixes logs with other settings: {one}", style="yellow") for one in group.mixed),
        *([Padding(rows, (0, 0, 0, 2), expand=False)] if rows.row_count else []),
        *([Padding(_times(group.latency), (0, 0, 0, 2), expand=False)] if group.latency else []),
        *([Padding(_causes(group), (0, 0, 0, 2), expand=False)] if group.causes else []),
    )


def _causes(group: GroupSummary) -> Table:
    """Causes of failed and aborted episodes, with their number and one example."""
    rows = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    rows.add_column("why it failed", min_width=12, no_wrap=True)
    rows.add_column("count", justify="right", no_wrap=True)
    rows.add_column("for example", overflow="fold")
    for cause in group.causes:
        rows.add_row(cause_text(cause.name), str(cause.count), Text(f"{cause.episode}: {cause.evidence}"))
    return rows


def _times(times: Sequence[PhaseTime]) -> Table:
    """Host time per phase of a step."""
    rows = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    rows.add_column("host ms per step", min_width=12, no_wrap=True)
    for heading in ("p50", "p95", "p99"):
        rows.add_column(heading, justify="right", min_width=7, no_wrap=True)
    for phase, cells in time_cells(times):
        rows.add_row(phase, *cells)
    return rows


def time_cells(times: Sequence[PhaseTime]) -> list[tuple[str, list[str]]]:
    """Per phase, its percentiles in milliseconds as tables print them."""
    return [(time.phase, [f"{ms:.2f}" for ms in (time.p50_ms, time.p95_ms, time.p99_ms)]) for time in times]


def _verdict_authors(scores: Sequence[EpisodeScore]) -> list[Text]:
    """The number of scores that use verdicts, and their authors."""
    names = dict.fromkeys(verdict.who for score in scores for verdict in score.verdicts)
    count = sum(bool(score.verdicts) for score in scores)
    return [Text(f"{count} of {len(scores)} scores use verdicts of {', '.join(names)}")] if names else []


def verdict_lines(scores: Sequence[EpisodeScore]) -> list[str]:
    """Verdicts without a log, corrected success of judges with known errors, strict and lenient success, agreement."""
    files = {path for folder in {score.path.parent for score in scores} for path in folder.glob(f"*{SUFFIX}")}
    alone = sorted(path for path in files if not path.with_name(f"{path.name.removesuffix(SUFFIX)}.mcap").exists())
    lines = [f"verdicts without a log, not counted: {named(alone)}"] if alone else []
    for key, members in grouped(scores).items():
        lines += [f"{key.task} · {key.agent or 'no agent'}: {_judged(one)}" for one in judged_successes(members)]
        scored = [(one.views, bool(one.metrics["success"])) for one in members if one.scorable]
        both = [(views.strict, views.lenient) if views else (own, own) for views, own in scored]
        if all(one == other for one, other in both):
            continue
        sides = [metric_interval("success", [float(views[side]) for views in both]) for side in (0, 1)]
        strict, lenient = (f"{cell('success', one.mean)} % {interval_text('success', one)}" for one in sides)
        lines.append(
            f"{key.task} · {key.agent or 'no agent'}: success strict {strict}, lenient {lenient}; "
            "strict counts help by a person, and one judge against, as failure"
        )
    judged = [success_by_person(score.verdicts) for score in scores if score.verdicts]
    if not judged:  # most runs have none
        return lines
    from robot_runtime.scoring.statistics.agreement import agreement_lines

    return lines + agreement_lines(judged)


def _judged(found: JudgedSuccess) -> str:
    if found.success is None:
        return judge_text(found)
    share = f"{cell('success', found.success.mean)} % {interval_text('success', found.success)}"
    return f"{judge_text(found)}; success corrected for these errors {share}"


def noted(scores: Sequence[EpisodeScore]) -> list[Text]:
    """Contradictions in logs that are scored."""
    return [Text(line, style="yellow", overflow="fold") for line in note_lines(scores)]


def note_lines(scores: Sequence[EpisodeScore]) -> list[str]:
    """A line per note, with the number of logs that have it and the name of the first."""
    logs: dict[str, list[EpisodeScore]] = {}
    for score in scores:
        for note in score.notes:
            logs.setdefault(note, []).append(score)
    lines = [
        f"{shown_path(found[0].path)}: {note}"
        if len(found) == 1
        else f"{len(found)} of {len(scores)} logs: {note} ({shown_path(found[0].path)}, ...)"
        for note, found in logs.items()
    ]
    more = [f"... and {len(lines) - _LISTED} more notes; --json has all"] if len(lines) > _LISTED else []
    return [*lines[:_LISTED], *more]


def not_scored(scores: Sequence[EpisodeScore]) -> list[Text | Padding]:
    """The logs without a score and the reasons; empty if there are none."""
    lines = [unscored_line(score) for score in scores if not score.scorable]
    return listed(f"not scored: {len(lines)} of {len(scores)} logs", lines)


def listed(heading: str, lines: Sequence[str]) -> list[Text | Padding]:
    """The first of these lines below a heading, and the number of the others; empty if there are none."""
    more = [f"... and {len(lines) - _LISTED} more; --json lists all"] if len(lines) > _LISTED else []
    shown = [Padding(Text(line, overflow="fold"), (0, 0, 0, 2), expand=False) for line in [*lines[:_LISTED], *more]]
    return [Text(heading, style="yellow"), *shown] if lines else []


def intervals_text(groups: Sequence[GroupSummary]) -> str:
    """The methods of the intervals, with a warning if there are few clusters."""
    by = groups[0].cluster if groups else "none"
    if by == "none":
        repeated = any(1 < group.clusters < group.episodes for group in groups)
        runs = "; runs of one episode count as one draw of the bootstrap" if repeated else ""
        few = min((group.episodes for group in groups), default=FEW_EPISODES)
        warning = (
            f"; of fewer than {FEW_EPISODES} episodes, the bootstrap's are too narrow" if few < FEW_EPISODES else ""
        )
        return f"{CONFIDENCE:.0%} intervals: Wilson score for success, percentile bootstrap for means{runs}{warning}"
    many = f"{by}s" if by == "scene" else "trajectories"
    few = min(group.clusters for group in groups)
    warning = f"; of fewer than {FEW_CLUSTERS}, too narrow" if few < FEW_CLUSTERS else ""
    return f"{CONFIDENCE:.0%} intervals: bootstrap over {many}" + warning


def cell(name: str, value: float) -> str:
    """A metric's value as tables print it, without unit."""
    return definition(name).text(value)


def episode_cell(name: str, value: float | bool | int | None) -> str:
    """As :func:`cell` for a single episode, where counts are whole and a share is yes or no."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, int) else cell(name, float(value))


def interval_text(name: str, interval: Interval) -> str:
    """The ends of a metric's interval as tables print them; a dash where there is none."""
    if not interval.known:
        return "–"
    return f"[{cell(name, interval.low)}, {cell(name, interval.high)}]"


def count(group: GroupSummary) -> str:
    """The number of episodes of a group, and of those without a score."""
    episodes = f"{group.episodes} episode{'' if group.episodes == 1 else 's'}"
    if group.cluster == "none" and 0 < group.clusters < group.episodes:
        episodes = f"{group.episodes} runs of {group.clusters} episode{'' if group.clusters == 1 else 's'}"
    return episodes + (f" (+{group.unscored} not scored)" if group.unscored else "")


def unscored_line(score: EpisodeScore) -> str:
    """File, episode and reason of a log without a score."""
    path = shown_path(score.path)
    reason = score.reason.removeprefix(f"{score.path}: ").replace(str(score.path), path)
    named = score.episode and f"episode {score.episode!r}" not in reason
    return f"{path}: " + (f"episode {score.episode!r}: " if named else "") + reason


def shown_path(path: Path) -> str:
    """A path relative to the working folder if it lies inside."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
