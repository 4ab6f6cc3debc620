"""Main results of a log's replay, for tables of many."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from robot_runtime.scoring.sim_to_real.parting import Parting
from robot_runtime.scoring.sim_to_real.side_by_side import Run
from sim_bridge.replay.results import ClosedLoop, Divergence, FarFrames, Metrics, Replay, succeeded


@dataclass(frozen=True)
class ReplaySummary:
    """Main results of a log's replay; None where a part was not done.

    Attributes:
        name: name of its page and JSON file.
        reason: why nothing could be replayed; empty if something was.
        tilt_deg: offset of the camera's tilt from the logged one.
        depth_mean_abs_mm: mean absolute depth error, over all frames.
        diverged_at: step of the first divergence.
        recorded: the logged episode; None without a closed loop.
        replayed: the closed loop or, without one, the recorded actions, with the first difference from the recording.
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
    ssim_mean: float | None = None
    tilt_deg: float | None = None
    ndtw: float | None = None
    end_error_m: float | None = None
    diverged: bool | None = None
    diverged_at: int | None = None
    agreement: float | None = None
    recorded: Run | None = None
    replayed: Run | None = None

    @property
    def failure(self) -> str:
        """The log that could not be replayed, and the reason."""
        return self.reason if self.reason.startswith(self.log) else f"{self.log}: {self.reason}"

    @property
    def empty(self) -> bool:
        """Whether no part of the replay was done."""
        done = (self.depth_median_mm, self.ssim, self.diverged, self.agreement, self.replayed)
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
        ssim_mean=None if pose is None else pose.mean("color", "ssim"),
        tilt_deg=offset.tilt_deg.value if offset is not None and offset.tilt_deg is not None else None,
        ndtw=None if action is None else action.ndtw,
        end_error_m=None if action is None else action.end_error_m,
        diverged=None if action is None else divergence is not None,
        diverged_at=None if divergence is None else divergence.index,
        agreement=replay.open_loop.agreement if replay.open_loop is not None else None,
        recorded=None if closed is None else _run(closed.metrics_recorded, closed.steps_recorded, None),
        replayed=_replayed(closed, divergence) if closed or action else None,
    )


def _replayed(closed: ClosedLoop | None, divergence: Divergence | None) -> Run:
    if closed is not None:
        return _run(closed.metrics_replayed, closed.steps_replayed, closed.parting)
    parting = None if divergence is None else Parting(divergence.index, divergence.by[0], ", ".join(divergence.by))
    return Run(None, None, None, parting)


def _run(metrics: Metrics, steps: int, parting: Parting | None) -> Run:
    spl = metrics.get("spl")
    return Run(succeeded(metrics), steps, None if spl is None else float(spl), parting)


def median_of(summaries: Sequence[ReplaySummary], value: Callable[[ReplaySummary], float | None]) -> float | None:
    """The median of a value over the summaries that have it; None if none has."""
    known = [number for summary in summaries if (number := value(summary)) is not None]
    return float(np.median(known)) if known else None
