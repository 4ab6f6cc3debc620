"""Tables of replays: one log in full or several with a row each in the terminal, and those of the page."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from robot_runtime.records import StepRecord
from robot_runtime.scoring.report.terminal_table import columns, episode_cell
from robot_runtime.scoring.sim_to_real.side_by_side import Row as EpisodeRow
from robot_runtime.scoring.sim_to_real.side_by_side import Run, Worlds, row_name, table
from sim_bridge.replay import results, text
from sim_bridge.replay.summary import ReplaySummary, median_of


def _line(text: str, style: str = "") -> Text:
    """A line without breaks, so that paths in it can be copied."""
    return Text(text, style, no_wrap=True, overflow="ignore")


def one(replay: results.Replay) -> Group:
    """All parts of a replay."""
    title = f"{replay.episode} · {replay.agent or 'no agent'} → {replay.twin}"
    parts: list[RenderableType] = [_line(title, style="bold")]
    parts.append(_line(text.scene_sentence(replay), style="dim" if replay.scene.same else "yellow"))
    parts += [_line(fact, style="dim") for fact in replay.facts]
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    rows.add_column(no_wrap=True, style="bold")
    rows.add_column(no_wrap=True)
    rows.add_column(justify="right", no_wrap=True)
    rows.add_column(style="dim")
    if replay.pose is not None:
        _pose(rows, replay.pose)
    if replay.action is not None:
        _action(rows, replay.action)
    if replay.open_loop is not None:
        decided = replay.open_loop
        first = decided.first_difference
        detail = "" if first is None else f"first other decision: step {first}"
        rows.add_row("open loop", "agreement", text.share(decided.agreement), detail)
        rows.add_row("", "logits", text.number(decided.logit_difference, 3), "largest difference")
        deterministic = {True: "yes", False: "no", None: "–"}[decided.deterministic]
        rows.add_row("", "deterministic", deterministic, "run again with the same seed")
        if decided.answer_same is not None:
            rows.add_row("", "same answer", "yes" if decided.answer_same else "no", "to the episode's question")
    for number, (label, recorded, replayed) in enumerate(closed_rows(replay)):
        told = f"recorded: {recorded}" if recorded else ""
        rows.add_row("" if number else "closed loop", label, replayed, told)
    parts.append(rows)
    if replay.pose is not None and (offset := text.offset_sentence(replay.pose.offset)):
        parts.append(_line(offset, style="yellow"))
    return Group(*parts, *notes(replay.notes))


def _pose(rows: Table, pose: results.PoseReplay) -> None:
    median_mm, p95_mm, bias_mm = (pose.median("depth", name) for name in ("median_mm", "p95_mm", "bias_mm"))
    mean_mm = text.number(pose.mean("depth", "mean_abs_mm"), 2, " mm")
    rows.add_row(
        "pose",
        "depth error",
        text.number(median_mm, 1, " mm"),
        f"95 %: {text.number(p95_mm, 1, ' mm')}; mean {mean_mm}",
    )
    rows.add_row("", "beyond 5 cm", text.share(pose.median("depth", "far_off")), text.far_sentence(pose.far_frames))
    rows.add_row("", "depth bias", text.number(bias_mm, 1, " mm"), "recorded - simulated")
    rows.add_row("", "color SSIM", text.number(pose.median("color", "ssim"), 3), f"over {len(pose.frames)} frames")


def _action(rows: Table, action: results.ActionReplay) -> None:
    steps = f"{max(0, len(action.steps) - 1)} of {max(0, action.recorded_steps - 1)} actions"
    rows.add_row("action", "nDTW", text.number(action.ndtw, 3), steps)
    largest = text.number(text.scaled(action.largest_error_m, 100), 1, " cm")
    end_deg = None if action.end_error_rad is None else math.degrees(action.end_error_rad)
    detail = f"{text.number(end_deg, 1, '°')}; at any step up to {largest}"
    rows.add_row("", "end error", text.number(text.scaled(action.end_error_m, 100), 2, " cm"), detail)
    for label, place, meaning in (
        ("paths part", action.divergence, "apart since then"),
        ("action off", action.departure, "the first that leads elsewhere by itself"),
    ):
        by = "" if place is None else f"by {', '.join(place.by)}: {meaning}"
        rows.add_row("", label, "no" if place is None else f"step {place.index}", by)


def notes(noted: Sequence[results.Note]) -> list[Text]:
    """Lines of the notes, with their remedies."""
    lines = []
    for group in text.group_notes(noted):
        parts = f"{', '.join(group.parts)}: " if group.parts else ""
        remedy = f" → {group.remedy}" if group.remedy else ""
        lines.append(_line(f"{parts}{group.message}{remedy}", style="yellow"))
    return lines


HEADINGS = ("depth mm", "far", "tilt °", "SSIM", "nDTW", "end cm", "paths part", "agrees", "closed")


def cells(summary: ReplaySummary) -> list[str]:
    """The values of a summary, for :data:`HEADINGS`."""
    success = {True: "won", False: "lost", None: "–"}
    recorded, replayed = _closed(summary)
    closed = "–" if recorded is None is replayed else f"{success[recorded]}→{success[replayed]}"
    where = "–" if summary.diverged is None else "no" if summary.diverged_at is None else f"step {summary.diverged_at}"
    return [
        text.number(summary.depth_median_mm),
        "–" if summary.far is None else f"{summary.far.count}/{summary.far.frames}, {text.share(summary.far.worst, 0)}",
        text.number(summary.tilt_deg, 2),
        text.number(summary.ssim, 3),
        text.number(summary.ndtw, 3),
        text.number(text.scaled(summary.end_error_m, 100)),
        where,
        text.share(summary.agreement, 0),
        closed,
    ]


def _closed(summary: ReplaySummary) -> tuple[bool | None, bool | None]:
    """Success of the recorded episode, and in the closed loop; None where it is unknown."""
    recorded, replayed = summary.recorded, summary.replayed
    return None if recorded is None else recorded.success, None if replayed is None else replayed.success


def medians(summaries: Sequence[ReplaySummary]) -> list[str]:
    """The medians of several summaries, and counts of divergences and equal outcomes, for :data:`HEADINGS`."""
    known = [summary.diverged for summary in summaries if summary.diverged is not None]
    same = [pair[0] is pair[1] for pair in map(_closed, summaries) if None not in pair]
    far = [summary.far for summary in summaries if summary.far is not None]
    counts = f"{sum(each.count for each in far)}/{sum(each.frames for each in far)}"
    return [
        text.number(median_of(summaries, lambda summary: summary.depth_median_mm)),
        f"{counts}, {text.share(max(each.worst for each in far), 0)}" if far else "–",
        text.number(median_of(summaries, lambda summary: summary.tilt_deg), 2),
        text.number(median_of(summaries, lambda summary: summary.ssim), 3),
        text.number(median_of(summaries, lambda summary: summary.ndtw), 3),
        text.number(text.scaled(median_of(summaries, lambda summary: summary.end_error_m), 100)),
        f"{sum(known)}/{len(known)}" if known else "–",
        text.share(median_of(summaries, lambda summary: summary.agreement), 0),
        f"{sum(same)}/{len(same)} same" if same else "–",
    ]


def many(summaries: Sequence[ReplaySummary]) -> Group:
    """A row per log, their medians, the logs that failed, and the notes, each once with its count."""
    rows = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    rows.add_column("log", overflow="fold", min_width=14)
    for heading in HEADINGS:
        rows.add_column(heading, justify="right", no_wrap=True)
    replayed = [summary for summary in summaries if not summary.reason]
    for summary in replayed:
        rows.add_row(row_name(Path(summary.log)), *cells(summary))
    rows.add_section()
    rows.add_row(f"median of {len(replayed)}", *medians(replayed), style="bold")
    return Group(rows, *(_line(line, style="yellow") for line in _note_lines(summaries)))


def _note_lines(summaries: Sequence[ReplaySummary]) -> list[str]:
    """The logs that failed, and the notes of the others, each once with its count."""
    counts = Counter(note.removeprefix(f"{each.log}: ") for each in summaries for note in dict.fromkeys(each.notes))
    noted = [f"{count} log{'' if count == 1 else 's'}: {note}" for note, count in counts.most_common()]
    return [*(summary.failure for summary in summaries if summary.reason), *noted]


# --- several simulators --------------------------------------------------------------------------------------------

GOOD_NDTW = 0.99


def side_by_side(worlds: Mapping[str, Sequence[ReplaySummary]]) -> Worlds:
    """The logs in several simulators, by ``--into``, each with all logs in one order, and as recorded."""
    rows = []
    for of_log in zip(*worlds.values(), strict=True):
        known = [summary.recorded for summary in of_log if summary.recorded is not None]
        runs = [*(summary.replayed for summary in of_log), *(known or [Run(None, None, None)])[:1]]
        agent = next((summary.agent for summary in of_log if summary.agent), "no agent")
        rows.append(EpisodeRow(row_name(Path(of_log[0].log)), agent, tuple(runs)))
    more: dict[str, list[str]] = {}
    for summaries in worlds.values():
        for label, value in _quality(summaries).items():
            more.setdefault(label, []).append(value)
    names = world_names(worlds)
    return Worlds((*names, "recorded"), tuple(rows), {label: [*texts, ""] for label, texts in more.items()})


def world_names(worlds: Mapping[str, Sequence[ReplaySummary]]) -> list[str]:
    """The simulators' own names, with their versions."""
    return [next((summary.twin for summary in summaries if summary.twin), into) for into, summaries in worlds.items()]


def several(worlds: Mapping[str, Sequence[ReplaySummary]]) -> Group:
    """A column per simulator, and notes that begin with its name."""
    return Group(table(side_by_side(worlds)), *(_line(line, style="yellow") for line in world_notes(worlds)))


def world_notes(worlds: Mapping[str, Sequence[ReplaySummary]]) -> list[str]:
    """The notes on several simulators, each beginning with its simulator's name."""
    names = zip(world_names(worlds), worlds.values(), strict=True)
    return [f"{name}: {line}" for name, summaries in names for line in _note_lines(summaries)]


def _quality(summaries: Sequence[ReplaySummary]) -> dict[str, str]:
    """How well a simulator repeats images and actions, over all logs."""
    depths_mm, similar, followed = (
        [value for summary in summaries if (value := getattr(summary, name)) is not None]
        for name in ("depth_mean_abs_mm", "ssim_mean", "ndtw")
    )
    far = [summary.far for summary in summaries if summary.far is not None]
    worst = max((each.worst for each in far), default=0.0)
    counts = f"{sum(each.count for each in far)} of {sum(each.frames for each in far)}, worst {text.share(worst)}"
    return {
        "depth error, mean": f"{np.mean(depths_mm):.2f} mm" if depths_mm else "–",
        f"frames above {text.share(results.FAR_SHARE, 0)}": counts if far else "–",
        "SSIM, mean": f"{np.mean(similar):.3f}" if similar else "–",
        f"nDTW ≥ {GOOD_NDTW}": f"{sum(v >= GOOD_NDTW for v in followed)} of {len(followed)}" if followed else "–",
    }


# --- the page's numbers and tables ----------------------------------------------------------------------------------


POOR_NDTW = 0.9
"""Below it a replayed trajectory is shown as a bad one."""


@dataclass(frozen=True)
class Tile:
    """One number at the top of a page."""

    label: str
    value: str
    detail: str
    bad: bool = False


@dataclass(frozen=True)
class Cell:
    """One entry of the table of actions; ``odd`` where replay and recording differ."""

    text: str
    odd: bool = False


@dataclass(frozen=True)
class Row:
    """One step in the table of actions."""

    index: int
    cells: tuple[Cell, ...]


def tiles(replay: results.Replay) -> list[Tile]:
    """The main results."""
    shown: list[Tile] = []
    if replay.pose is not None:
        shown += _pose_tiles(replay.pose)
    if replay.action is not None:
        shown += _action_tiles(replay.action)
    if replay.open_loop is not None:
        decided = replay.open_loop
        first = decided.first_difference
        where = "every decision is the logged one" if first is None else f"first other decision: step {first}"
        shown.append(Tile("open loop agreement", text.share(decided.agreement), where, first is not None))
        if decided.answer_same is not None:
            answer = "the same" if decided.answer_same else "another"
            shown.append(Tile("answer now", answer, "to the episode's question, open loop", not decided.answer_same))
    if replay.closed_loop is not None:
        closed = replay.closed_loop
        won = {True: "success", False: "failed", None: "not scored"}
        recorded, replayed = (
            won[results.succeeded(closed.metrics_recorded)],
            won[results.succeeded(closed.metrics_replayed)],
        )
        detail = f"recorded: {recorded}; the first {closed.same_actions} actions are the same"
        shown.append(Tile("closed loop", replayed, detail, recorded != replayed))
    return shown


def _pose_tiles(pose: results.PoseReplay) -> Iterator[Tile]:
    median_mm, p95_mm, bias_mm = (pose.median("depth", name) for name in ("median_mm", "p95_mm", "bias_mm"))
    detail = f"median; 95 % within {text.number(p95_mm, 0, ' mm')}, bias {text.number(bias_mm, 1, ' mm')}"
    yield Tile("depth error", text.number(median_mm, 1, " mm"), detail)
    far = pose.far_frames
    compared = f"of the {text.share(pose.median('depth', 'compared'))} compared; {text.far_sentence(far)}"
    yield Tile("beyond 5 cm", text.share(pose.median("depth", "far_off")), compared, far is not None and far.count > 0)
    mean = f"mean difference {text.number(pose.median('color', 'mean_abs'))} of 255"
    yield Tile("color SSIM", text.number(pose.median("color", "ssim"), 3), mean)
    offset = pose.offset
    if offset is not None:
        off = bool(text.offset_sentence(offset))
        tilt = "–" if offset.tilt_deg is None else f"{offset.tilt_deg.value:+.2f}°".replace("-0.00°", "0.00°")
        value = "0.00°" if tilt == "+0.00°" else tilt
        yield Tile("camera tilt", value, "off, see below" if off else "off: it is where the log has it", off)


def _action_tiles(action: results.ActionReplay) -> Iterator[Tile]:
    ndtw = action.ndtw
    poor = ndtw is not None and ndtw < POOR_NDTW
    threshold = f"replayed path to recorded, {action.ndtw_threshold_m:g} m"
    yield Tile("nDTW", text.number(ndtw, 3), threshold, poor)
    end_deg = None if action.end_error_rad is None else math.degrees(action.end_error_rad)
    yield Tile(
        "end error",
        text.number(text.scaled(action.end_error_m, 100), 1, " cm"),
        f"and {text.number(end_deg)}°",
        action.divergence is not None,
    )
    limits = f"beyond {action.thresholds.position_m:g} m or {action.thresholds.heading_deg:g}°, or other contact"
    value = "none" if action.divergence is None else f"step {action.divergence.index}"
    by = limits if action.divergence is None else f"by {', '.join(action.divergence.by)}"
    yield Tile("paths part", value, by, action.divergence is not None)
    if action.departure is not None:
        alone = f"leads elsewhere by itself: {', '.join(action.departure.by)}"
        yield Tile("first action off", f"step {action.departure.index}", alone, True)


# --- tables ---------------------------------------------------------------------------------------------------------


def closed_rows(replay: results.Replay) -> list[tuple[str, str, str]]:
    """Results of the episode in both worlds."""
    closed = replay.closed_loop
    if closed is None:
        return []
    rows = [
        ("ended by", "–" if closed.end_recorded is None else closed.end_recorded.value, closed.end_replayed.value),
        ("steps", str(closed.steps_recorded), str(closed.steps_replayed)),
    ]
    worlds = closed.metrics_recorded, closed.metrics_replayed
    for metric in columns(name for metrics in worlds for name in metrics):
        recorded, replayed = (_metric(metrics, metric.name) for metrics in worlds)
        if (recorded is not None or replayed is not None) and metric.name != "steps":
            rows.append((metric.episode_title, recorded or "–", replayed or "–"))
    return [*rows, ("parts at", "", "–" if closed.parting is None else str(closed.parting))]


def _metric(metrics: results.Metrics, name: str) -> str | None:
    value = metrics.get(name)
    return None if value is None or isinstance(value, str) else episode_cell(name, value)


def headings(replay: results.Replay) -> list[str]:
    """Headings of the columns of :func:`step_rows`."""
    names = ["step", "action", "outcome"]
    if replay.action is not None:
        names += ["in the simulator", "Δ ahead mm", "Δ left mm", "Δ turn °", "apart cm", "apart °"]
    if replay.open_loop is not None:
        names += ["policy now"]
    return names


def step_rows(replay: results.Replay, records: Sequence[StepRecord]) -> list[Row]:
    """A row per step of the log."""
    replayed = {step.index: step for step in replay.action.steps} if replay.action is not None else {}
    decided = {step.index: step for step in replay.open_loop.steps} if replay.open_loop is not None else {}
    table = []
    for record in records:
        outcome = "" if record.result is None else record.result.outcome.value.replace("_", " ")
        cells = [Cell(str(record.index)), Cell(text.action(record.command or record.action)), Cell(outcome)]
        if replay.action is not None:
            cells += _action_cells(replayed.get(record.index))
        if replay.open_loop is not None:
            step = decided.get(record.index)
            cells.append(Cell("") if step is None else Cell(text.action(step.now), not step.same))
        table.append(Row(record.index, tuple(cells)))
    return table


def _action_cells(step: results.ActionStep | None) -> list[Cell]:
    if step is None:
        return [Cell("not replayed"), *([Cell("")] * 5)]
    outcome = step.outcome_replayed.value.replace("_", " ") if step.outcome_replayed is not None else ""
    odd = step.contact_recorded != step.contact_replayed or (
        step.outcome_replayed is not None and step.outcome_replayed != step.outcome_recorded
    )
    turned = None if step.turned_rad is None else math.degrees(step.turned_rad)
    apart = None if step.distance_m is None else 100 * step.distance_m
    return [Cell(outcome, odd), *_moved(step.difference), Cell(text.number(apart)), Cell(text.number(turned))]


def _moved(difference: results.RelativeMotion | None) -> list[Cell]:
    if difference is None:
        return [Cell("–")] * 3
    values = (1000 * difference.x_m, 1000 * difference.y_m, math.degrees(difference.yaw_rad))
    return [Cell(text.number(value)) for value in values]
