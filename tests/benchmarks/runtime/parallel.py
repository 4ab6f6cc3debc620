"""``bench workers``: cost of worker processes, beside a Ray on the same machine."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import DriverMissing
from robot_runtime.parallel.map import Workers, map_in_order
from robot_runtime.parallel.workers import WorkerLoss
from tests.benchmarks.report import JsonFile, Row, report

ITEMS = 4000
_CHUNK = 16
_MIB = 1024.0


def workers(
    count: Annotated[int, typer.Option("--workers", min=2, help="Processes.")] = 2, json: JsonFile = None
) -> None:
    """Measure what it takes to have workers: until the first result, per item, and in memory; Ray beside."""
    from robot_runtime.common.console import console

    rows = cost_rows(count)
    report("workers", rows, json, console)


@dataclass(frozen=True)
class Cost:
    """Cost of items without work: seconds until the first result and after the last, time per item, and memory."""

    start_s: float
    item_ms: float
    end_s: float
    memory_mb: float


def cost_rows(count: int) -> list[Row]:
    """Rows of ``count`` processes, with Ray as the rival if it is installed."""
    ours = cost(Workers(count))
    try:
        ray, note = cost(Workers(count, "local")), ""
    except DriverMissing as error:
        ray, note = None, f"Ray is {error.remedy}"
    labels = {
        "start_s": ("until the first result", "s"),
        "item_ms": (f"per item, mean of {ITEMS}", "ms"),
        "end_s": ("after the last result", "s"),
        "memory_mb": (f"of {count} workers and what they need, proportional set size", "MB"),
    }
    return [
        Row(
            name,
            label,
            getattr(ours, name),
            unit,
            rival="" if ray is None else "Ray",
            rival_value=None if ray is None else getattr(ray, name),
            note=note,
        )
        for name, (label, unit) in labels.items()
    ]


def cost(workers: Workers) -> Cost:
    """Cost of these workers. Raises as :func:`map_in_order`."""
    timer = Stopwatch()
    results = map_in_order(_identity, range(ITEMS), workers, _lost, batch_size=_CHUNK)
    next(results)
    start_s = timer.restart()
    for _ in range(ITEMS - 2):
        next(results)
    item_ms = 1000 * timer.elapsed_s() / (ITEMS - 2)
    memory_mb = descendants_mb()
    timer.restart()
    list(results)
    return Cost(start_s, item_ms, timer.elapsed_s(), memory_mb)


def _identity(numbers: Iterable[int]) -> Iterator[int]:
    yield from numbers


def _lost(number: int, reason: WorkerLoss) -> int:
    return number


def descendants_mb() -> float:
    """Memory of all descendants of this process by proportional set size; on Linux."""
    children: dict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
        except OSError:  # it ended meanwhile
            continue
        children[int(parent)].append(int(folder.name))
    found, todo = 0.0, list(children[os.getpid()])
    while todo:
        process = todo.pop()
        todo += children[process]
        found += _pss_kb(process)
    return found / _MIB


def _pss_kb(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return sum(float(line.split()[1]) for line in lines if line.startswith("Pss:"))
