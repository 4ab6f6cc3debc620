"""The numbers and tables of a replay's page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from robot_runtime.records import StepRecord
from robot_runtime.scoring.report.terminal_table import columns, episode_cell
from sim_bridge.replay.page import text
from sim_bridge.replay.results import ActionReplay, ActionStep, Metrics, PoseReplay, RelativeMotion, Replay
from sim_bridge.replay.summary import summarize_pose

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


def tiles(replay: Replay) -> list[Tile]:
    """The main results."""
    found: list[Tile] = []
    if replay.pose is not None:
        found += _pose_tiles(replay.pose)
    if replay.action is not None:
        found += _action_tiles(replay.action)
    if replay.open_loop is not None:
        decided = replay.open_loop
        first = decided.first_difference
        where = "every decision is the logged one" if first is None else f"first other decision: step {first}"
        found.append(Tile("open loop agreement", text.share(decided.agreement), where, first is not None))
        if decided.answer_same is not None:
            answer = "the same" if decided.answer_same else "another"
            found.append(Tile("answer now", answer, "to the episode's question, open loop", not decided.answer_same))
    if replay.closed_loop is not None:
        closed = replay.closed_loop
        won = {True: "success", False: "failed", None: "not scored"}
        recorded, replayed = (
            won[None if metrics.get("success") is None else bool(metrics["success"])]
            for metrics in (closed.metrics_recorded, closed.metrics_replayed)
        )
        detail = f"recorded: {recorded}; the first {closed.same_actions} actions are the same"
        found.append(Tile("closed loop", replayed, detail, recorded != replayed))
    return found


def _pose_tiles(pose: PoseReplay) -> Iterator[Tile]:
    summary = summarize_pose(pose)
    yield Tile(
        "depth error",
        text.number(summary.depth_median_mm, 1, " mm"),
        f"median; 95 % within {text.number(summary.depth_p95_mm, 0, ' mm')}, "
        f"bias {text.number(summary.depth_bias_mm, 1, ' mm')}",
    )
    yield Tile("beyond 5 cm", text.share(summary.far_off), f"of the {text.share(summary.compared)} compared")
    yield Tile(
        "color SSIM", text.number(summary.ssim, 3), f"mean difference {text.number(summary.color_mean_abs)} of 255"
    )
    offset = pose.offset
    if offset is not None:
        off = bool(text.offset_sentence(offset))
        tilt = "–" if offset.tilt_deg is None else f"{offset.tilt_deg.value:+.2f}°".replace("-0.00°", "0.00°")
        value = "0.00°" if tilt == "+0.00°" else tilt
        yield Tile(
            "camera tilt",
            value,
            "off, see below" if off else "off: it is where the log has it",
            off,
        )


def _action_tiles(action: ActionReplay) -> Iterator[Tile]:
    ndtw = action.ndtw
    poor = ndtw is not None and ndtw < POOR_NDTW
    threshold = f"replayed path to recorded, {action.ndtw_threshold_m:g} m"
    yield Tile("nDTW", text.number(ndtw, 3), threshold, poor)
    end_deg = None if action.end_error_rad is None else math.degrees(action.end_error_rad)
    yield Tile(
        "end error",
        text.number(None if action.end_error_m is None else 100 * action.end_error_m, 1, " cm"),
        f"and {text.number(end_deg)}°",
        action.divergence is not None,
    )
    limits = f"beyond {action.thresholds.position_m:g} m or {action.thresholds.heading_deg:g}°, or other contact"
    value = "none" if action.divergence is None else f"step {action.divergence.index}"
    by = limits if action.divergence is None else f"by {', '.join(action.divergence.by)}"
    yield Tile("first divergence", value, by, action.divergence is not None)
    if action.departure is not None:
        alone = f"leads elsewhere by itself: {', '.join(action.departure.by)}"
        yield Tile("first departure", f"step {action.departure.index}", alone, True)


# --- tables ---------------------------------------------------------------------------------------------------------


def closed_rows(replay: Replay) -> list[tuple[str, str, str]]:
    """Results of the episode in both worlds."""
    closed = replay.closed_loop
    if closed is None:
        return []
    rows = [
        ("ended by", "–" if closed.end_recorded is None else closed.end_recorded.value, closed.end_replayed.value),
        ("steps", str(closed.steps_recorded), str(closed.steps_replayed)),
    ]
    for metric in columns():
        one, other = (_metric(metrics, metric.name) for metrics in (closed.metrics_recorded, closed.metrics_replayed))
        if (one is not None or other is not None) and metric.name != "steps":
            rows.append((metric.episode_title, one or "–", other or "–"))
    return rows


def _metric(metrics: Metrics, name: str) -> str | None:
    value = metrics.get(name)
    return None if value is None or isinstance(value, str) else episode_cell(name, value)


def headings(replay: Replay) -> list[str]:
    """Of the columns of :func:`rows`."""
    found = ["step", "action", "outcome"]
    if replay.action is not None:
        found += ["in the simulator", "Δ ahead mm", "Δ left mm", "Δ turn °", "apart cm", "apart °"]
    if replay.open_loop is not None:
        found += ["policy now"]
    return found


def rows(replay: Replay, records: Sequence[StepRecord]) -> list[Row]:
    """A row per step of the log."""
    replayed = {step.index: step for step in replay.action.steps} if replay.action is not None else {}
    decided = {step.index: step for step in replay.open_loop.steps} if replay.open_loop is not None else {}
    found = []
    for record in records:
        outcome = "" if record.result is None else record.result.outcome.value.replace("_", " ")
        cells = [Cell(str(record.index)), Cell(text.action(record.command or record.action)), Cell(outcome)]
        if replay.action is not None:
            cells += _action_cells(replayed.get(record.index))
        if replay.open_loop is not None:
            step = decided.get(record.index)
            cells.append(Cell("") if step is None else Cell(text.action(step.now), not step.same))
        found.append(Row(record.index, tuple(cells)))
    return found


def _action_cells(step: ActionStep | None) -> list[Cell]:
    if step is None:
        return [Cell("not replayed"), *([Cell("")] * 5)]
    outcome = step.outcome_replayed.value.replace("_", " ") if step.outcome_replayed is not None else ""
    odd = step.contact_recorded != step.contact_replayed or (
        step.outcome_replayed is not None and step.outcome_replayed != step.outcome_recorded
    )
    turned = None if step.turned_rad is None else math.degrees(step.turned_rad)
    apart = None if step.distance_m is None else 100 * step.distance_m
    return [Cell(outcome, odd), *_moved(step.difference), Cell(text.number(apart)), Cell(text.number(turned))]


def _moved(difference: RelativeMotion | None) -> list[Cell]:
    if difference is None:
        return [Cell("–")] * 3
    values = (1000 * difference.x_m, 1000 * difference.y_m, math.degrees(difference.yaw_rad))
    return [Cell(text.number(value)) for value in values]
