"""Terminal tables of replays: one log in full, or several with a row each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sim_bridge.replay.page import text
from sim_bridge.replay.page.tables import closed_rows
from sim_bridge.replay.results import ActionReplay, Note, PoseReplay, Replay
from sim_bridge.replay.summary import ReplaySummary, median_of, summarize_pose


def _line(text: str, style: str = "") -> Text:
    """A line without breaks, so that paths in it can be copied."""
    return Text(text, style, no_wrap=True, overflow="ignore")


def one(replay: Replay) -> Group:
    """All parts of a replay."""
    title = f"{replay.episode} · {replay.agent or 'no agent'} → {replay.twin}"
    parts: list[RenderableType] = [_line(title, style="bold")]
    parts.append(_line(text.scene_sentence(replay), style="dim" if replay.scene.same else "yellow"))
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
        rows.add_row("" if number else "closed loop", label, replayed, f"recorded: {recorded}")
    parts.append(rows)
    if replay.pose is not None and (offset := text.offset_sentence(replay.pose.offset)):
        parts.append(_line(offset, style="yellow"))
    return Group(*parts, *notes(replay.notes))


def _pose(rows: Table, pose: PoseReplay) -> None:
    found = summarize_pose(pose)
    off = f"95 %: {text.number(found.depth_p95_mm, 1, ' mm')}; {text.share(found.far_off)} beyond 5 cm"
    rows.add_row("pose", "depth error", text.number(found.depth_median_mm, 1, " mm"), off)
    rows.add_row("", "depth bias", text.number(found.depth_bias_mm, 1, " mm"), "recorded - simulated")
    rows.add_row("", "color SSIM", text.number(found.ssim, 3), f"over {len(pose.frames)} frames")


def _action(rows: Table, action: ActionReplay) -> None:
    steps = f"{max(0, len(action.steps) - 1)} of {max(0, action.recorded_steps - 1)} actions"
    rows.add_row("action", "nDTW", text.number(action.ndtw, 3), steps)
    largest = text.number(text.scaled(action.largest_error_m, 100), 1, " cm")
    end_deg = None if action.end_error_rad is None else math.degrees(action.end_error_rad)
    detail = f"{text.number(end_deg, 1, '°')}; at any step up to {largest}"
    rows.add_row("", "end error", text.number(text.scaled(action.end_error_m, 100), 2, " cm"), detail)
    for label, found, meaning in (
        ("diverges", action.divergence, "apart since then"),
        ("departs", action.departure, "the first action that leads elsewhere by itself"),
    ):
        by = "" if found is None else f"by {', '.join(found.by)}: {meaning}"
        rows.add_row("", label, "no" if found is None else f"step {found.index}", by)


def notes(found: Sequence[Note]) -> list[Text]:
    """Lines of the notes, with their remedies."""
    lines = []
    for group in text.group_notes(found):
        parts = f"{', '.join(group.parts)}: " if group.parts else ""
        remedy = f" → {group.remedy}" if group.remedy else ""
        lines.append(_line(f"{parts}{group.message}{remedy}", style="yellow"))
    return lines


HEADINGS = ("depth mm", "tilt °", "SSIM", "nDTW", "end cm", "diverges", "agrees", "closed")


def cells(summary: ReplaySummary) -> list[str]:
    """The values of a summary, for :data:`HEADINGS`."""
    success = {True: "won", False: "lost", None: "–"}
    closed = "–"
    if summary.success_replayed is not None or summary.success_recorded is not None:
        closed = f"{success[summary.success_recorded]}→{success[summary.success_replayed]}"
    where = "–" if summary.diverged is None else "no" if summary.diverged_at is None else f"step {summary.diverged_at}"
    return [
        text.number(summary.depth_median_mm),
        text.number(summary.tilt_deg, 2),
        text.number(summary.ssim, 3),
        text.number(summary.ndtw, 3),
        text.number(text.scaled(summary.end_error_m, 100)),
        where,
        text.share(summary.agreement, 0),
        closed,
    ]


def medians(summaries: Sequence[ReplaySummary]) -> list[str]:
    """The medians of several summaries, and counts of divergences and equal outcomes, for :data:`HEADINGS`."""
    known = [one.diverged for one in summaries if one.diverged is not None]
    same = [
        one.success_recorded == one.success_replayed
        for one in summaries
        if one.success_recorded is not None and one.success_replayed is not None
    ]
    return [
        text.number(median_of(summaries, lambda one: one.depth_median_mm)),
        text.number(median_of(summaries, lambda one: one.tilt_deg), 2),
        text.number(median_of(summaries, lambda one: one.ssim), 3),
        text.number(median_of(summaries, lambda one: one.ndtw), 3),
        text.number(text.scaled(median_of(summaries, lambda one: one.end_error_m), 100)),
        f"{sum(known)}/{len(known)}" if known else "–",
        text.share(median_of(summaries, lambda one: one.agreement), 0),
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
        rows.add_row(summary.name, *cells(summary))
    rows.add_section()
    rows.add_row(f"median of {len(replayed)}", *medians(replayed), style="bold")
    failed = [_line(summary.failure, style="yellow") for summary in summaries if summary.reason]
    counts = Counter(note.removeprefix(f"{one.log}: ") for one in replayed for note in one.notes)
    noted = [
        _line(f"{count} log{'' if count == 1 else 's'}: {note}", style="yellow") for note, count in counts.most_common()
    ]
    return Group(rows, *failed, *noted)
