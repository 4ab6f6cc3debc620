"""All settings on all logs, on any number of workers; finished work is not done again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np

from robot_runtime.common import config
from robot_runtime.errors import RecordingError, RuntimeFault
from robot_runtime.parallel.map import ONE, Workers, map_in_order
from robot_runtime.parallel.workers import WorkerLoss
from robot_runtime.policy import PolicySource
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, RESAMPLES, SEED, Interval, bootstrap_mean
from sim_bridge.tuning.episodes import Places
from sim_bridge.tuning.evaluation import Evaluation, action_ledger, summed
from sim_bridge.tuning.likelihood import Parts
from sim_bridge.tuning.log_statistics import Evidence, read_evidence
from sim_bridge.tuning.policy_runs import Foretold, Replayer, run_ledger
from sim_bridge.tuning.progress import LIMIT_S, SILENT, Watcher
from sim_bridge.tuning.refinement import Range, evaluations, refine
from sim_bridge.tuning.results import Tried, Tuning
from sim_bridge.tuning.settings import Setting

CHUNK = 8
"""Logs that a worker reads at once."""


@dataclass(frozen=True)
class Wishes:
    """What to try, besides the settings themselves.

    Attributes:
        instead: what is to decide instead of agents of these names.
        episodes: how many different episodes to take, the first in the order of the logs; None for all.
        runs: whether to run policies; without, likelihoods alone.
        keep: folder for the logs of all runs; None for none.
        ranges: numbers to look for between the grid's, from its most likely setting on.
        ledgers: folder in which finished work is noted, so that the same command goes on from it; None for none.
        anew: whether to forget what is noted there.
    """

    places: Places = field(default_factory=Places)
    instead: Mapping[str, PolicySource] = field(default_factory=dict)
    episodes: int | None = None
    runs: bool = True
    keep: Path | None = None
    ranges: Sequence[Range] = ()
    ledgers: Path | None = None
    anew: bool = False


def sweep(
    logs: Sequence[Path],
    settings: Sequence[Setting],
    wishes: Wishes | None = None,
    workers: Workers = ONE,
    watcher: Watcher = SILENT,
) -> Tuning:
    """Try settings on the logs of real episodes. The result does not depend on the workers.

    Raises:
        RecordingError: no log can be read. SceneError: no log's scene can be simulated. RuntimeFault: no workers.
    """
    wishes, settings = wishes or Wishes(), list(settings)
    notes: list[str] = []
    evidence = _read(_chosen(logs, wishes.episodes), workers, watcher, notes)
    evidence = _placed(evidence, wishes.places, notes)
    with ExitStack() as stack:
        actions = runs = None
        if wishes.ledgers is not None:
            wishes.ledgers.mkdir(parents=True, exist_ok=True)
            actions = stack.enter_context(action_ledger(wishes.ledgers / "actions.jsonl", wishes.anew))
            runs = stack.enter_context(run_ledger(wishes.ledgers / "runs.jsonl", wishes.anew))
        evaluation = Evaluation(evidence, wishes.places, workers, watcher, actions)
        evaluation.prepare(settings)
        if wishes.ranges:
            settings.append(_refined(evaluation, settings, wishes.ranges, watcher))
        parts = [evaluation.parts(setting) for setting in settings]
        foretold = [Foretold(None, "no policy was run")] * len(settings)
        if wishes.runs:
            replayer = Replayer(wishes.places, wishes.instead, wishes.keep, workers, watcher, runs)
            foretold = replayer.foretell(evidence, settings, notes)
    if evaluation.unknown:
        notes.append(
            f"{evaluation.unknown} motions left out: they began inside of something that the scene says is there"
        )
    tried = [
        Tried(
            setting.name,
            setting.changes,
            setting.path,
            config.unparse(setting.options),
            summed(own),
            behind,
            told.gap,
            told.reason,
            dict(told.failed),
        )
        for setting, own, behind, told in zip(settings, parts, _behind(evidence, parts), foretold, strict=True)
    ]
    return Tuning(
        tuple(tried),
        logs=len(evidence),
        episodes=len({_key(one.header) for one in evidence}),
        policies=tuple(dict.fromkeys(one.header.agent for one in evidence)),
        motions=sum(len(one.motions) for one in evidence) - evaluation.unknown,
        images=sum(one.floor is not None for one in evidence),
        delays=sum(one.delay_s is not None for one in evidence),
        notes=tuple(notes),
    )


# --- the real logs --------------------------------------------------------------------------------------------------


def _read(logs: Sequence[Path], workers: Workers, watcher: Watcher, notes: list[str]) -> list[Evidence]:
    found: list[Evidence] = []
    failed: list[str] = []
    results = map_in_order(
        _read_each, logs, workers, _unread, batch_size=CHUNK, limit_s=LIMIT_S, on_retry=watcher.on_retry
    )
    for number, one in enumerate(results):
        watcher.on_step("reading", number + 1, len(logs))
        if isinstance(one, str):
            failed.append(one)
        else:
            found.append(one)
    if failed:
        notes.append(f"{len(failed)} of {len(logs)} logs were left out; the first: {failed[0]}")
    if not found:
        raise RecordingError(f"no log can be read: {failed[0]}", "give logs of real episodes")
    left_out = sum((Counter(one.without) for one in found), Counter[str]())
    if left_out:
        notes.append("motions left out: " + ", ".join(f"{count} {reason}" for reason, count in left_out.items()))
    return found


def _read_each(logs: Iterable[Path]) -> Iterator[Evidence | str]:
    yield from map(_read_one, logs)


def _read_one(log: Path) -> Evidence | str:
    try:
        return read_evidence(log)
    except RuntimeFault as error:
        return error.message


def _unread(log: Path, how: WorkerLoss) -> Evidence | str:
    return f"{log}: the process that read it {how}"


def _key(header: EpisodeHeader) -> tuple[str, str]:
    return header.scene.digest, header.episode.key


def _chosen(logs: Sequence[Path], episodes: int | None) -> list[Path]:
    """Those of the first so many episodes, and those that cannot be read, which reading says."""
    if episodes is None:
        return list(logs)
    keys = [_key_in(log) for log in logs]
    taken = list(dict.fromkeys(key for key in keys if key is not None))[:episodes]
    return [log for log, key in zip(logs, keys, strict=True) if key is None or key in taken]


def _key_in(log: Path) -> tuple[str, str] | None:
    try:
        with LogReader(log) as reader:
            return _key(reader.header)
    except RecordingError:
        return None


def _placed(evidence: Sequence[Evidence], places: Places, notes: list[str]) -> list[Evidence]:
    """Those whose scene can be simulated."""
    refused: dict[str, RuntimeFault] = {}
    for one in evidence:
        digest = one.header.scene.digest
        if digest not in refused:
            try:
                places.of(one.header)
            except RuntimeFault as error:
                refused[digest] = error
                notes.append(
                    f"scene {one.header.scene.name!r} cannot be simulated, so its logs take no part: {error.message}"
                )
    placed = [one for one in evidence if one.header.scene.digest not in refused]
    if not placed:
        raise next(iter(refused.values()))
    return placed


# --- likelihoods ----------------------------------------------------------------------------------------------------


def _refined(evaluation: Evaluation, settings: Sequence[Setting], ranges: Sequence[Range], watcher: Watcher) -> Setting:
    """From the most likely setting on."""
    best = max(settings, key=evaluation.total)
    steps = count(1)

    def told() -> None:
        watcher.on_step("refining", next(steps), evaluations(ranges))

    return refine(best, ranges, evaluation.total, told)


def _behind(evidence: Sequence[Evidence], parts: Sequence[Sequence[Parts]]) -> list[Interval | None]:
    """Each setting's sum less the best one's, with its interval over episodes."""
    totals = np.array([[one.total for one in each] for each in parts])
    best = int(np.argmax(totals.sum(axis=1)))
    keys, logs = [_key(one.header) for one in evidence], len(evidence)
    found: list[Interval | None] = []
    for number, each in enumerate(totals):
        off = (each - totals[best]).tolist()
        if number == best:
            found.append(None)
        elif len(set(keys)) < 2:
            found.append(Interval(sum(off), -math.inf, math.inf))
        else:
            mean = bootstrap_mean(off, CONFIDENCE, RESAMPLES, SEED, keys)
            found.append(Interval(mean.mean * logs, mean.low * logs, mean.high * logs))
    return found
