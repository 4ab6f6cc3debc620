"""Jobs in processes; each leaves a file, so that an interrupted command does only what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NoReturn, TypeVar

from robot_runtime.errors import RuntimeFault
from robot_runtime.parallel.map import Workers, map_in_order
from robot_runtime.parallel.workers import WorkerLoss

LIMIT_S = 3600.0
"""Of one job: ten episodes of a learned policy on a busy machine, and then some."""

T = TypeVar("T")
R = TypeVar("R")


def done(function: Callable[[T], R], jobs: Sequence[T], workers: Workers) -> Iterator[R]:
    """What the function returns of each job, in their order.

    Raises:
        RuntimeFault: a job cost its worker twice.
    """
    return map_in_order(partial(map, function), jobs, workers, _lost, batch_size=1, limit_s=LIMIT_S)


def _lost(job: object, how: WorkerLoss) -> NoReturn:
    raise RuntimeFault(f"{job}: its worker {how}", "use fewer workers; what is done already stays done")
