"""``bench gap``: accuracy of fitted robot parameters and of predicted correlations.

A simulated robot with random parameters stands for the real one: actions end short or long, the camera is tilted, walls
stop it or it slides, poses are late. From the logs of 50 episodes ``robot-runtime fit`` makes a simulated robot, and
``robot-runtime gap`` predicts how well that tells which policy is better. The prediction is compared with a further,
larger campaign of the same policies in both worlds.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robot_runtime.errors import CalibrationFailed
from tests.benchmarks.report import JsonFile, Row, report

if TYPE_CHECKING:
    from robot_runtime.parallel.workers import WorkerLoss
    from tests.benchmarks.sim.gap_trial import Trial
    from tests.benchmarks.sim.hidden_robot import Hidden

REFITTED = 20
"""Number of hidden robots whose fit is fitted again."""


def gap(
    trials: Annotated[int, typer.Option(min=0, help="Number of robots with random parameters.")] = 4,
    robots: Annotated[int, typer.Option(min=0, help="Number of robots with all errors at once.")] = 10,
    drawn: Annotated[int, typer.Option(min=1, help="Number of robots of drawn errors, of either kind.")] = 20,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    json: JsonFile = None,
) -> None:
    """Measure whether hidden parameters are found from 50 episodes, and whether predicted correlations hold.

    Every trial is a simulated robot with its own parameters: 50 logged episodes in the bundled arena, a fit, and a
    further campaign of twice as many episodes in both worlds, without images. A minute or two each. Robots with all
    errors at once are fitted to 20 episodes, and the first 20 of them again. Drawn errors test the goodness of fit
    alone.
    """
    from robot_runtime.common.console import console, progress_bar
    from robot_runtime.parallel.map import Workers, map_in_order
    from sim_bridge.rendering import gl_context
    from tests.benchmarks.sim.gap_trial import LIMIT_S

    gl_context.choose_backend()
    found: list[Trial] = []
    hidden: list[Hidden] = []
    with progress_bar() as progress:
        bar = progress.add_task("trials", total=trials + robots, note="")
        for one in map_in_order(
            _trials, _numbers(seed, trials), Workers(workers), _lost, batch_size=1, limit_s=LIMIT_S
        ):
            found.append(one)
            progress.advance(bar)
        for robot in map_in_order(
            _hidden, _numbers(seed, robots), Workers(workers), _lost, batch_size=1, limit_s=LIMIT_S
        ):
            hidden.append(robot)
            progress.advance(bar)
    rows = (rows_of(found) if found else []) + (rows_of_hidden(hidden) if hidden else []) + misfit_rows(seed, drawn)
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


def rows_of_hidden(hidden: Sequence[Hidden]) -> list[Row]:
    """The rows of robots with all errors at once."""
    from robot_runtime.scoring.statistics.intervals import bootstrap_mean

    effects = [effect for one in hidden for effect in one.effects]
    of = f"{len(effects)} effects of {len(hidden)} hidden robots with all errors at once"
    missed = Counter(effect.name for effect in effects if not effect.covered)
    names = ", ".join(f"{name} {count}" for name, count in sorted(missed.items()))
    numbers = [number for number, one in enumerate(hidden) for _ in one.effects]
    covered = [float(effect.covered) for effect in effects]
    share = bootstrap_mean(covered, clusters=numbers) if len(hidden) > 1 else None
    again = [
        100 * abs(effect.found.mean - effect.truth) / abs(effect.truth)
        for one in hidden
        for effect in one.again
        if abs(effect.truth) > effect.found.high - effect.found.low
    ]
    held = statistics.mean([float(effect.covered) for one in hidden for effect in one.again] or [math.nan])
    accused, refused = sum(one.misfits > 0 for one in hidden), sum(not one.effects for one in hidden)
    return [
        Row(
            "interval_coverage",
            f"share of 95 % intervals that hold the true value, {of}",
            statistics.mean(covered),
            "",
            0.92,
            low=share.low if share else None,
            high=share.high if share else None,
            note=f"0.95 ± 0.03; missed: {names or 'none'}; {accused} robots contradicted, {refused} not fitted",
        ),
        Row(
            "interval_width_ratio",
            "median width, relative to the interval with the other errors known",
            statistics.median(effect.wider for effect in effects),
            "",
            1.5,
            "<=",
        ),
        Row(
            "refit_fixed_point_pct",
            f"median change of a value by a fit of {min(len(hidden), REFITTED)} fitted robots, where it differs from 0",
            statistics.median(again) if again else 0.0,
            "%",
            5.0,
            "<=",
            note=f"{100 * held:.0f} % of the fitted robots' values in the second fits' intervals",
        ),
    ]


def misfit_rows(seed: int, robots: int) -> list[Row]:
    """The rows of the goodness of fit."""
    from tests.benchmarks.sim.drawn_errors import named

    found, false = named(seed, robots)
    of = f"{robots} robots, 150 drawn errors of each action"
    return [
        Row("misfit_named", f"share of rooms with slip that are named, {of}", found / robots, "", 0.95),
        Row("misfit_false", f"share of robots contradicted without reason, {of}", false / robots, "", 0.02, "<="),
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


def _hidden(numbers: Iterable[tuple[int, int]]) -> Iterator[Hidden]:
    from tests.benchmarks.sim.hidden_robot import run_hidden

    for seed, number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            yield run_hidden(seed, number, Path(folder), refit=number < REFITTED)


def _numbers(seed: int, count: int) -> list[tuple[int, int]]:
    return [(seed, number) for number in range(count)]


def _lost(number: tuple[int, int], how: WorkerLoss) -> Any:
    raise CalibrationFailed(f"trial {number[1]}: {how}", "use fewer workers")
