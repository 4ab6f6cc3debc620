"""``bench score``: speed of the metrics, and of DTW beside the usual libraries."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robot_runtime.common.clock import Stopwatch
from tests.benchmarks.report import JsonFile, Row, report

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

NODES = 60
"""Nodes of a path: 15 m in steps of 0.25 m, or an R2R reference at the ends of actions."""

DTW_NODES = 1000
ROUNDS = 5
"""Equal parts of a measurement; a speed is their median, because other load slows some of them."""

NOT_INSTALLED = "not installed: pip install fastdtw dtaidistance"


def score(
    count: Annotated[int, typer.Option(min=ROUNDS, help="Generated trajectories to score.")] = 2000,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of paths of 1,000 nodes to align.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of trajectories and pairs.")] = 0,
    logs: Annotated[bool, typer.Option(help="Write and score 2,000 logs, too; takes about a minute.")] = True,
    bent: Annotated[
        int, typer.Option(min=1, help="Pairs of places around a corner to compare with exact paths.")
    ] = 300,
    json: JsonFile = None,
) -> None:
    """Measure the metrics on generated trajectories in memory, and scoring on 2,000 log files, on one core."""
    from robot_runtime.common.console import console
    from tests.benchmarks.runtime.geodesics import geodesic_rows
    from tests.benchmarks.runtime.log_scoring import log_rows

    rows = speed_rows(count, seed) + dtw_rows(pairs, seed) + geodesic_rows(bent, seed) + (log_rows() if logs else [])
    report("score", rows, json, console)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Data of one episode to be scored: reference and path (60, 2) in meters; ``collided`` per action."""

    reference: Array
    path: Array
    shortest_m: float
    collided: list[bool]


def trajectories(count: int, seed: int) -> list[Trajectory]:
    """Smooth random walks in steps of 0.25 m, and paths that deviate from them by about 0.5 m."""
    import numpy as np

    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        headings = np.cumsum(random.normal(0, 0.2, NODES - 1))
        steps = 0.25 * np.stack([np.cos(headings), np.sin(headings)], axis=1)
        reference = np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])
        path = reference + np.cumsum(random.normal(0, 0.1, reference.shape), axis=0)
        shortest_m = float(np.linalg.norm(reference[-1] - reference[0]))
        made.append(Trajectory(reference, path, shortest_m, (random.random(NODES - 1) < 0.1).tolist()))
    return made


def score_spl(item: Trajectory) -> dict[str, Any]:
    """The metrics of PointNav and ObjectNav."""
    from robot_runtime.metrics.functional.path import path_length
    from robot_runtime.metrics.functional.spl import soft_spl, spl
    from robot_runtime.metrics.functional.success import collisions, distance_to_goal, success

    travelled_m = path_length(item.path)
    distance_m = distance_to_goal(item.path[-1], item.reference[-1:])
    succeeded = success(True, distance_m, 0.2)
    return {
        "success": succeeded,
        "spl": spl(succeeded, item.shortest_m, travelled_m),
        "soft_spl": soft_spl(item.shortest_m, distance_m, travelled_m),
        "distance_to_goal": distance_m,
        "collisions": collisions(item.collided).count,
        "steps": len(item.path) - 1,
    }


def score_full(item: Trajectory) -> dict[str, Any]:
    """The same, and all metrics of a path against a reference."""
    from robot_runtime.metrics.functional.route import route_metrics
    from robot_runtime.metrics.functional.spl import sct

    found = score_spl(item) | route_metrics(item.reference, item.path, item.shortest_m, stopped=True)
    return found | {"sct": sct(found["success"], item.shortest_m, found["path_length_m"])}


def speed_rows(count: int, seed: int) -> list[Row]:
    """Rows of episodes per second, for the short set of metrics and the full one."""
    items = trajectories(count, seed)
    note = f"median and range of {ROUNDS} x {count // ROUNDS} generated paths of {NODES} nodes in memory, one core"
    rows = []
    for row_id, label, target, scorer in (
        ("spl_episodes_per_s", "episodes scored: success, SPL, SoftSPL, distance, collisions", 5000, score_spl),
        ("full_episodes_per_s", "episodes scored: those, nDTW, SDTW, CLS, SED and deviations", 500, score_full),
    ):
        speeds = _speeds(scorer, items)
        median = statistics.median(speeds)
        rows.append(Row(row_id, label, median, "1/s", target, low=min(speeds), high=max(speeds), note=note))
    return rows


def _speeds(scorer: Callable[[Trajectory], Any], items: Sequence[Trajectory]) -> list[float]:
    scorer(items[0])  # compile outside the measurement: once per machine
    size = len(items) // ROUNDS
    speeds = []
    timer = Stopwatch()
    for number in range(ROUNDS):
        for item in items[number * size : (number + 1) * size]:
            scorer(item)
        speeds.append(size / timer.restart())
    return speeds


def dtw_rows(count: int, seed: int) -> list[Row]:
    """Rows of exact DTW of 1,000 x 1,000 nodes, and of the same pairs by the two usual libraries."""
    import numpy as np

    from robot_runtime.metrics.functional.dtw import dtw

    random = np.random.default_rng(seed)
    pairs = []
    for _ in range(count):
        reference = np.cumsum(random.normal(0, 0.25, (DTW_NODES, 2)), axis=0)
        path = reference + np.cumsum(random.normal(0, 0.05, reference.shape), axis=0)
        pairs.append((reference, path))
    ours_ms, costs = _time_ms(dtw, pairs)
    rows = [
        Row(
            "dtw_1000_ms",
            f"exact DTW, {DTW_NODES} x {DTW_NODES} points",
            statistics.median(ours_ms),
            "ms",
            10,
            "<=",
            low=min(ours_ms),
            high=max(ours_ms),
            note=f"median and range of {count} pairs of random walks, one core",
        )
    ]
    # FastDTW is so slow that it gets the first few pairs only.
    for name, measure, limit in (("fastdtw", _fastdtw(), 3), ("dtaidistance", _dtaidistance(), count)):
        row_id, label = f"dtw_vs_{name}", f"times faster than {name}, same pairs"
        if measure is None:
            rows.append(Row(row_id, label, None, "times", 1, note=NOT_INSTALLED))
            continue
        rival_ms, rival_costs = _time_ms(measure, pairs[:limit])
        mine_ms, its_ms = statistics.median(ours_ms[:limit]), statistics.median(rival_ms)
        worst = max((abs(theirs / mine - 1) for theirs, mine in zip(rival_costs, costs, strict=False)), default=0.0)
        note = f"median {its_ms:.3g} ms over {len(rival_ms)} pairs; its cost is off by at most {100 * worst:.2g} %"
        rows.append(Row(row_id, label, its_ms / mine_ms, "times", 1, note=note))
    return rows


def _time_ms(
    measure: Callable[[Any, Any], float], pairs: Sequence[tuple[Array, Array]]
) -> tuple[list[float], list[float]]:
    measure(pairs[0][0][:2], pairs[0][1][:2])  # compile, or load
    times_ms, costs = [], []
    timer = Stopwatch()
    for reference, path in pairs:
        timer.restart()
        costs.append(float(measure(reference, path)))
        times_ms.append(1000 * timer.elapsed_s())
    return times_ms, costs


def _fastdtw() -> Callable[[Any, Any], float] | None:
    try:
        from fastdtw import fastdtw
    except ImportError:
        return None
    return lambda reference, path: fastdtw(reference, path, radius=1, dist=2)[0]


def _dtaidistance() -> Callable[[Any, Any], float] | None:
    """Its compiled version."""
    try:
        from dtaidistance import dtw_ndim
    except ImportError:
        return None
    return lambda reference, path: dtw_ndim.distance_fast(reference, path, inner_dist="euclidean")
