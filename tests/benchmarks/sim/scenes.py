"""``bench scenes``: scenes as policies and foreign simulators meet them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tests.benchmarks.report import JsonFile, Row, report

LIMIT_S = 300.0
"""Time limit of the tests of conventions."""


def scenes(
    starts: Annotated[
        int, typer.Option(min=2, help="Number of corners from which a sliding robot must get away.")
    ] = 300,
    moves: Annotated[int, typer.Option(min=8, help="Number of moves whose collisions are checked.")] = 160,
    houses: Annotated[int, typer.Option(min=1, help="Number of generated houses that are imported as a folder.")] = 40,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    json: JsonFile = None,
) -> None:
    """Measure sliding and contact shapes in bundled scenes, conventions of habitat-sim's double, imports of houses.

    A robot that slides, as in habitat-sim, is driven into random corners, and out of them in every heading that leads
    off all walls. Its shortened moves are compared with its reported collisions. Three minutes.
    """
    from robot_runtime.common.console import console
    from tests.benchmarks.sim.houses import house_rows

    report("scenes", [*rows_of(starts, moves, seed), _cases(), *house_rows(houses, seed)], json, console)


def rows_of(starts: int, moves: int, seed: int) -> Sequence[Row]:
    """The table's rows, measured."""
    from robot_runtime.scenes.scene import SCENES, load_scene
    from sim_bridge.scenes.collider_excess import LIMIT_M, collider_excess_m
    from tests.benchmarks.sim.sliding_trials import missed_collisions, try_corners

    bundled = [load_scene(name) for name in sorted(SCENES)]
    corners = [try_corners(scene, starts // len(bundled), seed) for scene in bundled]
    reports = [missed_collisions(scene, moves // len(bundled), seed) for scene in bundled]
    excess_mm = max(1000 * value for scene in bundled for value in collider_excess_m(scene).values())
    frozen = [where for corner in corners for where in corner.frozen]
    shortened, missed, false = (sum(counts) for counts in zip(*reports, strict=True))
    of = f"of {sum(corner.starts for corner in corners)} corners"
    depth_mm = 1000 * max(corner.deepest_m for corner in corners)
    return [
        _conventions(),
        Row(
            "sliding_frozen",
            f"moves off every touched wall that failed, {of}",
            len(frozen),
            "",
            0,
            "<=",
            note="; ".join([f"at most {depth_mm:.1f} mm deep", *frozen[:3]]),
        ),
        Row(
            "sliding_collisions_missed", f"collisions not reported, of {shortened} shortened moves", missed, "", 0, "<="
        ),
        Row("sliding_collisions_false", f"collisions reported for full moves, of {moves} moves", false, "", 0, "<="),
        Row(
            "collider_excess_mm",
            "distance by which contact shapes stand out beyond what is drawn, the largest",
            excess_mm,
            "mm",
            1000 * LIMIT_M,
            "<=",
        ),
    ]


_CASES = (
    "tests/sim_bridge/scenes/test_shared_scene_cases.py",
    "tests/sim_bridge/scenes/test_scene_import_declared.py",
    "tests/sim_bridge/scenes/test_scene_import_mjcf.py",
    "tests/robot_runtime/scenes/test_occupancy_map.py",
    "tests/robot_runtime/datasets/test_json_stream.py",
)
"""Tests over the shared cases of scenes, maps and episode files, and over twins of each class."""


def _counts(*tests: str) -> tuple[dict[str, int], str]:
    """Numbers of tests that passed, failed and were skipped, and the output."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "--no-header", "-p", "no:randomly", *tests]
    output = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S).stdout
    return {name: int(count) for count, name in re.findall(r"(\d+) (passed|failed|error|skipped)", output)}, output


def _cases() -> Row:
    """The cases whose value is wrong, or that are taken or refused without a word on the cause."""
    counts, output = _counts(*_CASES)
    silent = counts.get("failed", 0) + counts.get("error", 0) if counts.get("passed") else None
    note = f"{counts.get('skipped', 0)} skipped" if counts else output.strip()[-200:]
    label = f"of {counts.get('passed', 0)} tests over the shared cases of scenes and their twins, those that fail"
    return Row("scene_cases_silent", label, silent, "", 0, "<=", note=note)


def _conventions() -> Row:
    """The share of habitat-sim's conventions that hold between its double and the adapter."""
    counts, output = _counts("tests/sim_bridge/replay/backends/test_habitat_conventions.py")
    counts.pop("skipped", None)
    total = sum(counts.values())
    share = counts.get("passed", 0) / total if total else None
    label = f"share of {total} assertions on habitat-sim's conventions that hold, by its double"
    return Row("double_conventions", label, share, "", 1.0, note="" if total else output.strip()[-200:])
