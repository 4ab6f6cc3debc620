"""``bench replay``: time of action replay, and speedup by a second worker."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tests.benchmarks.report import JsonFile, Row, report


def replay(
    count: Annotated[int, typer.Option(min=2, help="Episodes of 100 actions to record and replay.")] = 24,
    rounds: Annotated[int, typer.Option(min=1, help="Times that one worker and two are measured, in turns.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of episodes and actions.")] = 0,
    json: JsonFile = None,
) -> None:
    """Measure action replay in the bundled apartment: episodes of 100 actions by an agent that is always moving.

    A replay, timed after its simulator is built, reads the log, places the robot, executes 100 actions through
    environment and motion control, and compares.
    """
    from robot_runtime.common.console import console
    from sim_bridge.rendering import gl_context

    gl_context.choose_backend()  # before the first import of mujoco
    from tests.benchmarks.sim.replay_work import record

    with tempfile.TemporaryDirectory() as folder:
        logs = record(Path(folder) / "logs", count, seed, images=False)
        seen = record(Path(folder) / "seen", max(2, count // 6), seed, images=True)
        rows = [
            _replay_row("action_replay_s", "without images", logs, False, 0.4),
            _replay_row("rgbd_replay_s", "with RGB-D 640x480, beside the recorded images", seen, True, 4.0),
            _workers_row(logs, rounds, Path(folder) / "out"),
        ]
    report("replay", rows, json, console)


def _replay_row(row: str, what: str, logs: Sequence[Path], images: bool, target_s: float) -> Row:
    from tests.benchmarks.sim.replay_work import STEPS, time_replays

    took_s, build_s = time_replays(logs, images)
    return Row(
        row,
        f"action replay of a {STEPS}-step episode, {what}",
        statistics.median(took_s),
        "s",
        target_s,
        "<=",
        low=min(took_s),
        high=max(took_s),
        note=f"median and range of {len(took_s)} episodes; scene and simulator, built once: {build_s:.1f} s",
    )


def _workers_row(logs: Sequence[Path], rounds: int, out: Path) -> Row:
    from tests.benchmarks.sim.replay_work import REPEATS, time_workers

    ratios = [one_s / two_s for one_s, two_s in time_workers(logs, rounds, out)]
    return Row(
        "two_workers_speedup",
        f"{len(logs) * REPEATS} action replays without images by one process, and by two workers",
        statistics.median(ratios),
        "times",
        1.7,
        low=min(ratios),
        high=max(ratios),
        note=f"median and range of {rounds} rounds in turns; starting workers and simulators counts",
    )
