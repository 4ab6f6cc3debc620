"""A replay in one line: what tables and the index of many replays show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sim_bridge.replay.page.tables import summarize
from sim_bridge.replay.results import Replay


@dataclass(frozen=True)
class Line:
    """What is kept of one log's replay; None where a part was not done.

    Attributes:
        log: its path. name: of its page and JSON file.
        reason: why nothing could be replayed; empty if something was.
        notes: what was left out and why, in words.
        tilt_deg: of the camera, from where the log has it. diverged_at: step of the first divergence.
        success_*: of the closed loop and of the log.
    """

    log: str
    name: str
    reason: str = ""
    agent: str = ""
    scene: str = ""
    twin: str = ""
    notes: tuple[str, ...] = ()
    depth_median_mm: float | None = None
    depth_bias_mm: float | None = None
    ssim: float | None = None
    tilt_deg: float | None = None
    ndtw: float | None = None
    end_error_m: float | None = None
    diverged: bool | None = None
    diverged_at: int | None = None
    agreement: float | None = None
    success_recorded: bool | None = None
    success_replayed: bool | None = None

    @property
    def failure(self) -> str:
        """Which log could not be replayed, and why."""
        return self.reason if self.reason.startswith(self.log) else f"{self.log}: {self.reason}"

    @property
    def empty(self) -> bool:
        """Whether no part of the replay was done."""
        done = (self.depth_median_mm, self.ssim, self.diverged, self.agreement, self.success_replayed)
        return all(value is None for value in done)


def line_of(replay: Replay, name: str) -> Line:
    """One replay in one line."""
    pose = summarize(replay.pose) if replay.pose is not None else None
    offset = replay.pose.offset if replay.pose is not None else None
    action, closed = replay.action, replay.closed_loop
    return Line(
        log=replay.log,
        name=name,
        agent=replay.agent,
        scene=replay.scene.name,
        twin=replay.twin,
        notes=tuple(note.message for note in replay.notes),
        depth_median_mm=None if pose is None else pose.depth_median_mm,
        depth_bias_mm=None if pose is None else pose.depth_bias_mm,
        ssim=None if pose is None else pose.ssim,
        tilt_deg=offset.tilt_deg.value if offset is not None and offset.tilt_deg is not None else None,
        ndtw=None if action is None else action.ndtw,
        end_error_m=None if action is None else action.end_error_m,
        diverged=None if action is None else action.divergence is not None,
        diverged_at=action.divergence.index if action is not None and action.divergence is not None else None,
        agreement=replay.open_loop.agreement if replay.open_loop is not None else None,
        success_recorded=None if closed is None else _won(closed.metrics_recorded.get("success")),
        success_replayed=None if closed is None else _won(closed.metrics_replayed.get("success")),
    )


def median_of(lines: Sequence[Line], value: Callable[[Line], float | None]) -> float | None:
    """The median of what some lines have; None if none has it."""
    known = [found for line in lines if (found := value(line)) is not None]
    return float(np.median(known)) if known else None


def _won(success: object) -> bool | None:
    return None if success is None else bool(success)
