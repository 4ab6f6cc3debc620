"""Parallel jobs that each write a file, so that a repeated command does only the missing ones; apartments as jobs.

The apartments are generated for training, or held out for evaluation.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

from robot_runtime.errors import RuntimeFault
from robot_runtime.parallel.map import Workers, map_in_order
from robot_runtime.parallel.workers import WorkerLoss

LIMIT_S = 3600.0
"""Time limit of a job: ten episodes of a learned policy take less, even on a busy machine."""

T = TypeVar("T")
R = TypeVar("R")


def done(function: Callable[[T], R], jobs: Sequence[T], workers: Workers) -> Iterator[R]:
    """The results of the jobs, in their order. Raises ``RuntimeFault`` if a job lost its worker twice."""
    return map_in_order(partial(map, function), jobs, workers, _lost, batch_size=1, limit_s=LIMIT_S)


def _lost(job: object, how: WorkerLoss) -> NoReturn:
    raise RuntimeFault(f"{job}: its worker {how}", "use fewer workers; finished jobs are not repeated")


HELD_OUT = 12

SIZES = ("robothor", "medium", "large")


def make_apartments(folders: Sequence[Path], workers: Workers) -> None:
    """Generate the missing apartments, whose seeds are the folders' names, without view points."""
    for _ in done(_make_apartment, folders, workers):
        pass


def _make_apartment(folder: Path) -> None:
    from sim_bridge.scenes.generate import flats

    if folder.exists():
        return
    seed = int(folder.name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    next(flats(seed, SIZES[seed % len(SIZES)])).write(draft)
    draft.replace(folder)
