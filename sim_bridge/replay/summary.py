"""Main results of a log's replay, for tables of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sim_bridge.replay.results import FarFrames, Replay, succeeded


@dataclass(frozen=True)
class ReplaySummary:
    """Main results of a log's replay; None where a part was not done.

    Attributes:
        log: its path.
        name: name of its page and JSON file.
        reason: why nothing could be replayed; empty if something was.
        notes: messages of the replay's notes.
        tilt_deg: offset of the camera's tilt from the logged one.
        depth_mean_abs_mm: mean absolute depth error, over all frames.
        far: frames that are far off.
        diverged_at: step of the first divergence.
        success_recorded: success of the logged episode.
        success_replayed: success of the closed loop.
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
    depth_mean_abs_mm: float | None = None
    far: FarFrames | None = None
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
        """The log that could not be replayed, and the reason."""
        return self.reason if self.reason.startswith(self.log) else f"{self.log}: {self.reason}"

    @property
    def empty(self) -> bool:
        """Whether no part of the replay was done."""
        done = (self.depth_median_mm, self.ssim, self.diverged, self.agreement, self.success_replayed)
        return all(value is None for value in done)


def summarize_replay(replay: Replay, name: str) -> ReplaySummary:
    """The summary of a replay; ``name`` is that of its page and JSON file."""
    pose, action, closed = replay.pose, replay.action, replay.closed_loop
    offset = pose.offset if pose is not None else None
    divergence = action.divergence if action is not None else None
    return ReplaySummary(
        log=replay.log,
        name=name,
        agent=replay.agent,
        scene=replay.scene.name,
        twin=replay.twin,
        notes=tuple(note.message for note in replay.notes),
        depth_median_mm=None if pose is None else pose.median("depth", "median_mm"),
        depth_bias_mm=None if pose is None else pose.median("depth", "bias_mm"),
        depth_mean_abs_mm=None if pose is None else pose.mean("depth", "mean_abs_mm"),
        far=None if pose is None else pose.far_frames,
        ssim=None if pose is None else pose.median("color", "ssim"),
        tilt_deg=offset.tilt_deg.value if offset is not None and offset.tilt_deg is not None else None,
        ndtw=None if action is None else action.ndtw,
        end_error_m=None if action is None else action.end_error_m,
        diverged=None if action is None else divergence is not None,
        diverged_at=None if divergence is None else divergence.index,
        agreement=replay.open_loop.agreement if replay.open_loop is not None else None,
        success_recorded=None if closed is None else succeeded(closed.metrics_recorded),
        success_replayed=None if closed is None else succeeded(closed.metrics_replayed),
    )


def median_of(summaries: Sequence[ReplaySummary], value: Callable[[ReplaySummary], float | None]) -> float | None:
    """The median of a value over the summaries that have it; None if none has."""
    known = [number for summary in summaries if (number := value(summary)) is not None]
    return float(np.median(known)) if known else None
