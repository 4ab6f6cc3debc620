"""The command ``bench ros2``: the guard alone in front of emulated ROS 2 bases, measured on the wire."""

from __future__ import annotations

import json as jsonlib
import subprocess
from pathlib import Path
from typing import Annotated, Any

import typer

from robot_runtime.errors import ConfigError
from tests.benchmarks.report import JsonFile, Row, report

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-ros2/bin/python"
SHARED, OWN = ("drivers/ros",), ("drivers/ros2", "drivers/ros_locobot")


def ros2(
    trials: Annotated[int, typer.Option(min=1, help="Stops of each kind on each base.")] = 20, json: JsonFile = None
) -> None:
    """Measure robots on ROS 2: stops by the guard alone, and the code shared with ROS 1.

    Emulated bases on Cyclone DDS, guard and commander on Fast DDS are processes of this computer. The bases' clock
    measures, from the hazard's message or the commander's end to the first zero that they receive.
    """
    from robot_runtime.common.console import console

    if not PYTHON.exists():
        raise ConfigError(f"{PYTHON} does not exist", "bash .ci/setup-ros2")
    done = subprocess.run(
        [PYTHON, "-m", "tests.benchmarks.ros2.stops", str(trials)], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    measured: list[dict[str, Any]] = jsonlib.loads(done.stdout)
    report("ros2", [*(_row(**values) for values in measured), shared_row()], json, console)


def _row(name: str, label: str, base: str, limit: float, times_ms: list[float]) -> Row:
    ordered = sorted(times_ms)
    value, middle = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))], ordered[len(ordered) // 2]
    return Row(
        f"{name}.{base}",
        label,
        value,
        "ms",
        limit,
        "<=",
        low=middle,
        high=ordered[-1],
        note=f"{len(ordered)} trials on {base}, median and longest in brackets",
    )


def shared_row() -> Row:
    """Return the share of lines that ROS 1 and ROS 2 have in common, without bags."""

    def lines(*folders: str) -> int:
        files = (path for folder in folders for path in (ROOT / folder).rglob("*.py") if "bag" not in path.parts)
        return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)

    shared, own = lines(*SHARED), lines(*OWN)
    label = "shared lines over shared and both generations' own"
    return Row("shared_with_ros1_pct", label, 100 * shared / (shared + own), "%", 60, note=f"{shared} and {own} lines")
