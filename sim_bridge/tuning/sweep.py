"""A sweep of all settings over all logs, on any number of workers; finished work is not repeated."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from robot_runtime.common import config
from robot_runtime.errors import RecordingError, RuntimeFault
from robot_runtime.metrics.episode_metrics import SCORER_VERSION
from robot_runtime.parallel.map import ONE, Workers, map_in_order
from robot_runtime.recording.json_output import write_json
from robot_runtime.records import EpisodeHeader
from robot_runtime.scoring.sim_to_real.gap import Correlation, Gap
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, RESAMPLES, SEED, Interval, bootstrap_mean
from sim_bridge.replay.options import SceneSource
from sim_bridge.tuning.evaluation import Evaluation, action_journal, summed
from sim_bridge.tuning.likelihood import Parts
from sim_bridge.tuning.log_statistics import LogStatistics, read_header, read_log_statistics
from sim_bridge.tuning.policy_runs import PolicyPrediction, predict_policies, run_journal
from sim_bridge.tuning.progress import LIMIT_S, SILENT, ProgressListener
from sim_bridge.tuning.settings import UNCHANGED, Range, Setting, SweepOptions, make_setting

FORMAT = 1


@dataclass(frozen=True)
class Candidate:
    """One setting and its results.

    Attributes:
        changes: (key, value) over the robot's file.
        robot: path of the robot's file.
        options: all options of the simulated robot.
        parts: logarithms of the likelihood, sums over all logs.
        behind: the likelihood's logarithm less that of the best setting, with its bootstrap interval over episodes;
            None of the best itself. If the entire interval is below 0, the setting explains the logs less well.
        gap: the policies in both worlds; None where none ran.
        reason: why there is no gap.
        failed: numbers of runs without a score, by reason.
    """

    name: str
    changes: tuple[tuple[str, str], ...]
    robot: str
    options: dict[str, Any]
    parts: Parts
    behind: Interval | None
    gap: Gap | None
    reason: str
    failed: dict[str, int]

    def correlation(self, metric: str) -> Correlation | None:
        """The correlation of ``success`` or ``spl`` over the policies."""
        return next((each for each in self.gap.correlations if each.metric == metric), None) if self.gap else None


@dataclass(frozen=True)
class Tuning:
    """A sweep.

    Attributes:
        settings: results of the settings in the order given; :meth:`ranked` sorts them by likelihood.
        logs: number of real logs.
        episodes: number of different real episodes.
        policies: names of the logs' agents.
        motions: number of real motions.
        images: number of logs that show the camera's mount.
        delays: number of logs that show delays.
        notes: what could not be done, and why.
    """

    settings: tuple[Candidate, ...]
    logs: int
    episodes: int
    policies: tuple[str, ...]
    motions: int
    images: int
    delays: int
    notes: tuple[str, ...] = ()

    def ranked(self) -> list[Candidate]:
        """The settings, most likely first."""
        return sorted(self.settings, key=lambda candidate: -candidate.parts.total)

    def best_predictor(self, metric: str = "spl") -> Candidate | None:
        """The setting with the highest correlation; None where there is none."""
        predictors = [
            (correlation.interval.mean, setting)
            for setting in self.settings
            if (correlation := setting.correlation(metric)) is not None and correlation.interval is not None
        ]
        return max(predictors, key=lambda item: item[0])[1] if predictors else None


def write_tuning(path: Path, tuning: Tuning) -> None:
    """Write a sweep as JSON. Raises ``RecordingError`` if the file cannot be written."""
    document = {
        "format": FORMAT,
        "scorer": SCORER_VERSION,
        "likelihood": "natural logarithm, sums over logs; sim_bridge/tuning/likelihood.py has the parts",
        "behind": f"less the best setting's; {CONFIDENCE:.0%} percentile bootstrap over episodes, seed {SEED}",
        **asdict(tuning),
        "ranked": [candidate.name for candidate in tuning.ranked()],
    }
    write_json(path, document)


GOLDEN = (math.sqrt(5) - 1) / 2
EVALUATIONS = 18
"""Likelihoods per key and round; they narrow a range to a six-hundredth."""

ROUNDS = 2
"""Passes over all keys, because the best value of one may depend on the others."""

COARSE = 5
"""Evenly spaced values that are evaluated first, because the likelihood may have several peaks."""


def refine(
    start: Setting, ranges: Sequence[Range], total: Callable[[Setting], float], on_evaluated: Callable[[], None]
) -> Setting:
    """The most likely setting that differs from ``start`` in the ranges' keys only.

    One key after the other: five values over its range, then a golden-section search (Kiefer 1953) between the
    neighbors of the best; twice, if there are several keys.

    Raises:
        ConfigError: an option does not exist, or does not take a value of its range.
    """
    changes: dict[str, str] = {}

    def made(key: str, value: float) -> Setting:
        return make_setting(start.robot, start.path, list({**changes, key: f"{value:.6g}"}.items()))

    def evaluated(key: str, value: float) -> float:
        on_evaluated()
        return total(made(key, value))

    for limits in ranges:
        made(limits.key, limits.low)
        made(limits.key, limits.high)
    for _ in range(ROUNDS if len(ranges) > 1 else 1):
        for limits in ranges:
            changes[limits.key] = f"{_peak(limits, partial(evaluated, limits.key)):.6g}"
    refined = make_setting(start.robot, start.path, list(changes.items()))
    others = "" if start.name == UNCHANGED else f" ({start.name})"
    return replace(refined, name=f"refined: {refined.name}{others}", changes=(*start.changes, *refined.changes))


def evaluations(ranges: Sequence[Range]) -> int:
    """Number of likelihoods that :func:`refine` evaluates."""
    return len(ranges) * EVALUATIONS * (ROUNDS if len(ranges) > 1 else 1)


def _peak(limits: Range, evaluated: Callable[[float], float]) -> float:
    grid = [limits.low + (limits.high - limits.low) * i / (COARSE - 1) for i in range(COARSE)]
    tried = {value: evaluated(value) for value in grid}
    best = max(grid, key=lambda value: tried[value])
    index = grid.index(best)
    low, high = grid[max(0, index - 1)], grid[min(COARSE - 1, index + 1)]
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    tried[left], tried[right] = evaluated(left), evaluated(right)
    for _ in range(EVALUATIONS - COARSE - 2):
        if tried[left] >= tried[right]:
            high, right = right, left
            left = high - GOLDEN * (high - low)
            tried[left] = evaluated(left)
        else:
            low, left = left, right
            right = low + GOLDEN * (high - low)
            tried[right] = evaluated(right)
    return max(tried, key=lambda value: tried[value])


CHUNK = 8
"""Logs in a worker's batch."""


def sweep(
    logs: Sequence[Path],
    settings: Sequence[Setting],
    sweep_options: SweepOptions | None = None,
    workers: Workers = ONE,
    listener: ProgressListener = SILENT,
) -> Tuning:
    """Compare settings on the logs of real episodes. The result does not depend on the workers.

    Raises:
        RecordingError: no log can be read.
        SceneError: no log's scene can be simulated.
        RuntimeFault: workers cannot be started.
    """
    sweep_options, settings = sweep_options or SweepOptions(), list(settings)
    notes: list[str] = []
    statistics = _read(_chosen(logs, sweep_options.episodes), workers, listener, notes)
    statistics = _with_scenes(statistics, sweep_options.scene_source, notes)
    with ExitStack() as stack:
        actions = runs = None
        if sweep_options.journals is not None:
            sweep_options.journals.mkdir(parents=True, exist_ok=True)
            actions = stack.enter_context(
                action_journal(sweep_options.journals / "actions.jsonl", sweep_options.overwrite)
            )
            runs = stack.enter_context(run_journal(sweep_options.journals / "runs.jsonl", sweep_options.overwrite))
        evaluation = Evaluation(statistics, sweep_options.scene_source, workers, listener, actions)
        evaluation.prepare(settings)
        if sweep_options.ranges:
            settings.append(_refined(evaluation, settings, sweep_options.ranges, listener))
        parts = [evaluation.parts(setting) for setting in settings]
        predictions = [PolicyPrediction(None, "no policy was run")] * len(settings)
        if sweep_options.runs:
            predictions = predict_policies(statistics, settings, sweep_options, workers, listener, runs, notes)
    if evaluation.unknown:
        notes.append(f"{evaluation.unknown} motions left out: the robot intersects the scene at their start")
    tried = [
        Candidate(
            setting.name,
            setting.changes,
            setting.path,
            config.unparse(setting.options),
            summed(own),
            behind,
            outcome.gap,
            outcome.reason,
            dict(outcome.failed),
        )
        for setting, own, behind, outcome in zip(
            settings, parts, _less_than_best(statistics, parts), predictions, strict=True
        )
    ]
    return Tuning(
        tuple(tried),
        logs=len(statistics),
        episodes=len({_key(log.header) for log in statistics}),
        policies=tuple(dict.fromkeys(log.header.agent for log in statistics)),
        motions=sum(len(log.motions) for log in statistics) - evaluation.unknown,
        images=sum(log.floor is not None for log in statistics),
        delays=sum(log.delay_s is not None for log in statistics),
        notes=tuple(notes),
    )


# --- the real logs --------------------------------------------------------------------------------------------------


def _read(logs: Sequence[Path], workers: Workers, listener: ProgressListener, notes: list[str]) -> list[LogStatistics]:
    read: list[LogStatistics] = []
    failed: list[str] = []
    results = map_in_order(
        partial(map, _read_one),
        logs,
        workers,
        lambda log, how: f"{log}: the process that read it {how}",
        batch_size=CHUNK,
        limit_s=LIMIT_S,
        on_retry=listener.on_retry,
    )
    for number, result in enumerate(results):
        listener.on_step("reading", number + 1, len(logs))
        if isinstance(result, str):
            failed.append(result)
        else:
            read.append(result)
    if failed:
        notes.append(f"{len(failed)} of {len(logs)} logs were left out; the first: {failed[0]}")
    if not read:
        raise RecordingError(f"no log can be read: {failed[0]}", "give logs of real episodes")
    left_out = sum((Counter(result.without) for result in read), Counter[str]())
    if left_out:
        notes.append("motions left out: " + ", ".join(f"{count} {reason}" for reason, count in left_out.items()))
    return read


def _read_one(log: Path) -> LogStatistics | str:
    try:
        return read_log_statistics(log)
    except RuntimeFault as error:
        return error.message


def _key(header: EpisodeHeader) -> tuple[str, str]:
    return header.scene.digest, header.episode.key


def _chosen(logs: Sequence[Path], episodes: int | None) -> list[Path]:
    """The logs of the first episodes, and those that cannot be read (reported later)."""
    if episodes is None:
        return list(logs)
    keys = [_key_in(log) for log in logs]
    taken = list(dict.fromkeys(key for key in keys if key is not None))[:episodes]
    return [log for log, key in zip(logs, keys, strict=True) if key is None or key in taken]


def _key_in(log: Path) -> tuple[str, str] | None:
    try:
        return _key(read_header(log))
    except RecordingError:
        return None


def _with_scenes(
    statistics: Sequence[LogStatistics], scene_source: SceneSource, notes: list[str]
) -> list[LogStatistics]:
    """The logs whose scene can be simulated."""
    refused: dict[str, RuntimeFault] = {}
    for log in statistics:
        digest = log.header.scene.digest
        if digest not in refused:
            try:
                scene_source.of(log.header)
            except RuntimeFault as error:
                refused[digest] = error
                notes.append(
                    f"scene {log.header.scene.name!r} cannot be simulated, so its logs are left out: {error.message}"
                )
    simulatable = [log for log in statistics if log.header.scene.digest not in refused]
    if not simulatable:
        raise next(iter(refused.values()))
    return simulatable


# --- likelihoods ----------------------------------------------------------------------------------------------------


def _refined(
    evaluation: Evaluation, settings: Sequence[Setting], ranges: Sequence[Range], listener: ProgressListener
) -> Setting:
    """Refine the most likely setting."""
    best = max(settings, key=evaluation.total)
    steps = count(1)

    def on_evaluated() -> None:
        listener.on_step("refining", next(steps), evaluations(ranges))

    return refine(best, ranges, evaluation.total, on_evaluated)


def _less_than_best(statistics: Sequence[LogStatistics], parts: Sequence[Sequence[Parts]]) -> list[Interval | None]:
    """Each setting's likelihood less the best one's, with its interval over episodes."""
    totals = np.array([[part.total for part in each] for each in parts])
    best = int(np.argmax(totals.sum(axis=1)))
    keys, logs = [_key(log.header) for log in statistics], len(statistics)
    intervals: list[Interval | None] = []
    for number, each in enumerate(totals):
        off = (each - totals[best]).tolist()
        if number == best:
            intervals.append(None)
        elif len(set(keys)) < 2:
            intervals.append(Interval(sum(off), -math.inf, math.inf))
        else:
            mean = bootstrap_mean(off, CONFIDENCE, RESAMPLES, SEED, keys)
            intervals.append(Interval(mean.mean * logs, mean.low * logs, mean.high * logs))
    return intervals
