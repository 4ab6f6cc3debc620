"""Replays as people read them in a terminal: one log in full, many in a line each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sim_bridge.replay.page import text
from sim_bridge.replay.page.tables import closed_rows, summarize
from sim_bridge.replay.results import ActionReplay, Note, PoseReplay, Replay
from sim_bridge.replay.summary import Line, median_of

_GAP = (0, 2, 0, 0)


def _line(text: str, style: str = "") -> Text:
    """A line that is not broken, so that the paths in it can be copied."""
    return Text(text, style, no_wrap=True, overflow="ignore")


def one(replay: Replay) -> Group:
    """All parts of one replay."""
    title = f"{replay.episode} · {replay.agent or 'no agent'} → {replay.twin}"
    parts: list[RenderableType] = [_line(title, style="bold")]
    parts.append(_line(text.scene_sentence(replay), style="dim" if replay.scene.same else "yellow"))
    rows = Table(box=None, pad_edge=False, padding=_GAP, show_header=False)
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
        certain = {True: "yes", False: "no", None: "–"}[decided.deterministic]
        rows.add_row("", "deterministic", certain, "asked again with the same seed")
        if decided.answer_same is not None:
            rows.add_row("", "same answer", "yes" if decided.answer_same else "no", "to the episode's question")
    for number, (label, recorded, replayed) in enumerate(closed_rows(replay)):
        rows.add_row("" if number else "closed loop", label, replayed, f"recorded: {recorded}")
    parts.append(rows)
    if replay.pose is not None and (said := text.offset_sentence(replay.pose.offset)):
        parts.append(_line(said, style="yellow"))
    return Group(*parts, *notes(replay.notes))


def _pose(rows: Table, pose: PoseReplay) -> None:
    found = summarize(pose)
    off = f"95 %: {text.number(found.depth_p95_mm, 1, ' mm')}; {text.share(found.far_off)} beyond 5 cm"
    rows.add_row("pose", "depth error", text.number(found.depth_median_mm, 1, " mm"), off)
    rows.add_row("", "depth bias", text.number(found.depth_bias_mm, 1, " mm"), "recorded - twin")
    rows.add_row("", "colour SSIM", text.number(found.ssim, 3), f"over {len(pose.frames)} frames")


def _action(rows: Table, action: ActionReplay) -> None:
    steps = f"{max(0, len(action.steps) - 1)} of {max(0, action.recorded_steps - 1)} actions"
    rows.add_row("action", "nDTW", text.number(action.ndtw, 3), steps)
    end_deg = None if action.end_error_rad is None else math.degrees(action.end_error_rad)
    largest_m = None if action.largest_error_m is None else 100 * action.largest_error_m
    end_m = None if action.end_error_m is None else 100 * action.end_error_m
    detail = f"{text.number(end_deg, 1, '°')}; at any step up to {text.number(largest_m, 1, ' cm')}"
    rows.add_row("", "end error", text.number(end_m, 2, " cm"), detail)
    for label, found, meaning in (
        ("diverges", action.divergence, "apart since then"),
        ("departs", action.departure, "the first action that leads elsewhere by itself"),
    ):
        by = "" if found is None else f"by {', '.join(found.by)}: {meaning}"
        rows.add_row("", label, "no" if found is None else f"step {found.index}", by)


def notes(found: Sequence[Note]) -> list[Text]:
    """What could not be done, and what the reader can do about it."""
    lines = []
    for said in text.grouped(found):
        parts = f"{', '.join(said.parts)}: " if said.parts else ""
        remedy = f" → {said.remedy}" if said.remedy else ""
        lines.append(_line(f"{parts}{said.message}{remedy}", style="yellow"))
    return lines


HEADINGS = ("depth mm", "tilt °", "SSIM", "nDTW", "end cm", "diverges", "agrees", "closed")


def cells(line: Line) -> list[str]:
    """The values of a line, for :data:`HEADINGS`."""
    success = {True: "won", False: "lost", None: "–"}
    closed = "–"
    if line.success_replayed is not None or line.success_recorded is not None:
        closed = f"{success[line.success_recorded]}→{success[line.success_replayed]}"
    where = "–" if line.diverged is None else "no" if line.diverged_at is None else f"step {line.diverged_at}"
    return [
        text.number(line.depth_median_mm),
        text.number(line.tilt_deg, 2),
        text.number(line.ssim, 3),
        text.number(line.ndtw, 3),
        text.number(None if line.end_error_m is None else 100 * line.end_error_m),
        where,
        text.share(line.agreement, 0),
        closed,
    ]


def medians(lines: Sequence[Line]) -> list[str]:
    """The medians of many lines, and the shares of what either happened or not."""
    end_m = median_of(lines, lambda line: line.end_error_m)
    known = [line.diverged for line in lines if line.diverged is not None]
    same = [
        line.success_recorded == line.success_replayed
        for line in lines
        if line.success_recorded is not None and line.success_replayed is not None
    ]
    return [
        text.number(median_of(lines, lambda line: line.depth_median_mm)),
        text.number(median_of(lines, lambda line: line.tilt_deg), 2),
        text.number(median_of(lines, lambda line: line.ssim), 3),
        text.number(median_of(lines, lambda line: line.ndtw), 3),
        text.number(None if end_m is None else 100 * end_m),
        f"{sum(known)}/{len(known)}" if known else "–",
        text.share(median_of(lines, lambda line: line.agreement), 0),
        f"{sum(same)}/{len(same)} same" if same else "–",
    ]


def many(lines: Sequence[Line]) -> Group:
    """A line per log, their medians, and what could not be done, each reason once."""
    rows = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    rows.add_column("log", overflow="fold", min_width=14)
    for heading in HEADINGS:
        rows.add_column(heading, justify="right", no_wrap=True)
    replayed = [line for line in lines if not line.reason]
    for line in replayed:
        rows.add_row(line.name, *cells(line))
    rows.add_section()
    rows.add_row(f"median of {len(replayed)}", *medians(replayed), style="bold")
    lost = [_line(line.failure, style="yellow") for line in lines if line.reason]
    return Group(rows, *lost, *_reasons(replayed))


def _reasons(lines: Sequence[Line]) -> list[Text]:
    counts: dict[str, int] = {}
    for line in lines:
        for note in line.notes:
            said = note.removeprefix(f"{line.log}: ")
            counts[said] = counts.get(said, 0) + 1
    return [
        _line(f"{count} log{'' if count == 1 else 's'}: {said}", style="yellow")
        for said, count in sorted(counts.items(), key=lambda item: -item[1])
    ]
