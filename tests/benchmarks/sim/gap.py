"""``bench gap``: accuracy of fitted robot parameters and of predicted correlations.

A simulated robot with random parameters stands for the real one: actions end short or long, the camera is tilted, walls
stop it or it slides, poses are late. From the logs of 50 episodes ``robot-runtime fit`` makes a simulated robot, and
``robot-runtime gap`` predicts how well that tells which policy is better. The prediction is compared with a further,
larger campaign of the same policies in both worlds.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robot_runtime.errors import CalibrationFailed
from tests.benchmarks.report import JsonFile, Row, report

if TYPE_CHECKING:
    from robot_runtime.parallel.workers import WorkerLoss
    from tests.benchmarks.sim.gap_trial import Trial


def gap(
    trials: Annotated[int, typer.Option(min=1, help="Number of robots with random parameters.")] = 4,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    json: JsonFile = None,
) -> None:
    """Measure whether hidden parameters are found from 50 episodes, and whether predicted correlations hold.

    Every trial is a simulated robot with its own parameters: 50 logged episodes in the bundled arena, a fit, and a
    further campaign of twice as many episodes in both worlds, without images. A minute or two each.
    """
    from robot_runtime.common.console import console, progress_bar
    from robot_runtime.parallel.map import Workers, map_in_order
    from sim_bridge.rendering import gl_context
    from tests.benchmarks.sim.gap_trial import LIMIT_S

    gl_context.choose_backend()
    found: list[Trial] = []
    with progress_bar() as progress:
        bar = progress.add_task("trials", total=trials, note="")
        numbers = [(seed, number) for number in range(trials)]
        for one in map_in_order(_trials, numbers, Workers(workers), _lost, batch_size=1, limit_s=LIMIT_S):
            found.append(one)
            progress.advance(bar)
    rows = rows_of(found)
    report("gap", rows, json, console)


def rows_of(trials: Sequence[Trial]) -> list[Row]:
    """The table's rows; errors are those of the worst trial, ranges are over trials."""
    from robot_runtime.scoring.statistics.intervals import wilson
    from tests.benchmarks.sim.gap_trial import EPISODES, FURTHER, ZOO

    held = wilson(sum(trial.held for trial in trials), len(trials))
    worst = f"the worst of {len(trials)} hidden robots, from {EPISODES * len(ZOO)} episodes each"
    forward, turn, tilt = ([getattr(t, name) for t in trials] for name in ("forward_pct", "turn_pct", "tilt_deg"))
    before, after = [trial.before for trial in trials], [trial.after for trial in trials]
    width = statistics.median(trial.high - trial.low for trial in trials)
    return [
        Row("found_forward_bias_pct", f"error of the forward bias found, {worst}", *_worst(forward, "%", 10.0)),
        Row("found_turn_bias_pct", f"error of the turn bias found, {worst}", *_worst(turn, "%", 10.0)),
        Row("found_tilt_deg", f"error of the camera's tilt found, {worst}", *_worst(tilt, "deg", 0.5)),
        Row(
            "found_sliding", "share of robots whose sliding was identified", _share(t.sliding for t in trials), "", 1.0
        ),
        Row(
            "srcc_coverage",
            f"share of correlations of a further campaign, {FURTHER} times as large, in their predicted interval",
            held.mean,
            "",
            0.9,
            low=held.low,
            high=held.high,
            note=f"95 % intervals, their median width {width:.2f}",
        ),
        Row(
            "srcc_before",
            "median SRCC of SPL, simulator that slides and has no errors",
            statistics.median(before),
            "",
            low=min(before),
            high=max(before),
        ),
        Row(
            "srcc_after",
            "median SRCC of SPL, fitted simulator",
            statistics.median(after),
            "",
            low=min(after),
            high=max(after),
            note="range over the trials",
        ),
    ]


def _worst(errors: Sequence[float], unit: str, target: float) -> tuple[Any, ...]:
    return (
        max(errors),
        unit,
        target,
        "<=",
        "",
        None,
        min(errors),
        max(errors),
        f"median {statistics.median(errors):.2g}",
    )


def _share(values: Iterable[bool]) -> float:
    return statistics.mean(map(float, values))


def _trials(numbers: Iterable[tuple[int, int]]) -> Iterator[Trial]:
    from tests.benchmarks.sim.gap_trial import run_trial

    for seed, number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            yield run_trial(seed, number, Path(folder))


def _lost(number: tuple[int, int], how: WorkerLoss) -> Trial:
    raise CalibrationFailed(f"trial {number[1]}: {how}", "use fewer workers")
