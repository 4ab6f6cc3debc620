"""Rows of ``bench score`` on shortest paths: their largest error against a visibility graph of the same cells."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.occupancy_map import OccupancyMap
from tests.benchmarks.report import Row
from tests.benchmarks.runtime.visibility_graph import VisibilityGraph, room_of_cells

ROBOT_RADIUS_M = 0.18
PAIRS = 300
FLATS = ("robothor", "medium", "large")
SHIPPED = ("apartment", "arena")

_BENT = 1.0001  # times the straight line
_STARTS = 20
_TARGETS_PER_SCENE = 200


def geodesic_rows(pairs: int, seed: int) -> list[Row]:
    """The row of the largest error over bent pairs, equally many in each scene."""
    maps = bench_maps(seed)
    errors = np.concatenate([bent_errors(grid, -(-pairs // len(maps)), seed) for grid in maps])
    note = f"{len(errors)} bent pairs in {len(maps)} scenes, against a visibility graph of the same inflated grid"
    return [
        Row(
            "geodesic_error_pct",
            "largest error of shortest paths",
            float(100 * errors.max()),
            "%",
            0.1,
            "<=",
            note=note,
        )
    ]


def bench_maps(seed: int) -> list[OccupancyMap]:
    """Maps of the shipped scenes and of a generated flat of each size."""
    from sim_bridge.scenes.generate import flats

    scenes = Path(str(files("sim_bridge.scenes")))
    shipped = [OccupancyMap.load(scenes / name / "map.yaml") for name in SHIPPED]
    return shipped + [next(flats(seed + number, size)).map for number, size in enumerate(FLATS)]


def bent_errors(grid: OccupancyMap, pairs: int, seed: int) -> NDArray[np.float64]:
    """Absolute relative errors (pairs,) between random places that see no straight way to each other."""
    space = GeodesicMap(grid, ROBOT_RADIUS_M)
    oracle = VisibilityGraph(room_of_cells(space))
    random = np.random.default_rng(seed)
    cells = np.argwhere(space.navigable)
    found: list[float] = []
    for _ in range(_TARGETS_PER_SCENE):
        chosen = cells[random.integers(len(cells), size=_STARTS + 1)] + random.uniform(0.05, 0.95, (_STARTS + 1, 2))
        places = chosen[:, ::-1] * grid.resolution_m + (grid.origin_x_m, grid.origin_y_m)
        exact_m = oracle.distances(places[0], places[1:])
        bent = np.isfinite(exact_m) & (exact_m > _BENT * np.linalg.norm(places[1:] - places[0], axis=1))
        field = space.field([(float(places[0, 0]), float(places[0, 1]))])
        for (x_m, y_m), length_m in zip(places[1:][bent].tolist(), exact_m[bent], strict=True):
            found.append(abs(field.at(x_m, y_m) / length_m - 1))
        if len(found) >= pairs:
            return np.array(found[:pairs])
    raise AssertionError(f"only {len(found)} bent pairs in a scene of {len(cells)} cells")
