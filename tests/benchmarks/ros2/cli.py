"""The command ``bench ros2``: emulated ROS 2 bases, measured on the wire."""

from __future__ import annotations

import json as jsonlib
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from robot_runtime.errors import ConfigError
from tests.benchmarks.report import JsonFile, Row, report

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-ros2/bin/python"
SHARED, OWN = ("drivers/ros",), ("drivers/ros2", "drivers/ros_locobot")


def ros2(
    contacts: Annotated[int, typer.Option(min=0, help="Contacts of each base; 0: no stops.")] = 200,
    trials: Annotated[int, typer.Option(min=1, help="Commanders that die, and that freeze, at each base.")] = 5,
    deaths: Annotated[int, typer.Option(min=0, help="Bases that stop obeying; 0: none, and no starts.")] = 10,
    starts: Annotated[int, typer.Option(min=1, help="Starts of the slowest motors, in real time: 2 s each.")] = 50,
    simulated_starts: Annotated[int, typer.Option(min=1, help="Starts of them on a simulated clock.")] = 1000,
    pairs: Annotated[int, typer.Option(min=0, help="Pairs of images; 0: none.")] = 300,
    actions: Annotated[int, typer.Option(min=0, help="Forwards, and turns; 0: none.")] = 8,
    json: JsonFile = None,
) -> None:
    """Measure robots on ROS 2: stops by the guard alone, dead bases, images, motion, and the code shared with ROS 1.

    Emulated bases on Cyclone DDS, guard, commander and driver on Fast DDS are processes of this computer. The bases'
    clock measures stops, from the hazard's message or the commander's end to the first zero that they receive. Stops,
    deaths and images are in real time, motion is in the simulated robot's; beside it stands that over ROS 1, of the
    same motors, measured first.
    """
    from robot_runtime.common.console import console

    if not PYTHON.exists():
        raise ConfigError(f"{PYTHON} does not exist", "bash .ci/setup-ros2")
    counts = {
        "contacts": contacts,
        "trials": trials,
        "deaths": deaths,
        "starts": starts,
        "simulated_starts": simulated_starts,
        "pairs": pairs,
        "actions": actions,
    }
    over_ros1 = ros1_motion(actions) if actions else {}
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.json"
        command = [str(PYTHON), "-m", "tests.benchmarks.ros2.measure", jsonlib.dumps(counts), str(rows)]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        measured: list[dict[str, Any]] = jsonlib.loads(rows.read_text(encoding="utf-8"))
    beside = [replace(Row(**values), **over_ros1.get(values["id"], {})) for values in measured]
    report("ros2", [*beside, shared_row()], json, console)


def ros1_motion(actions: int) -> dict[str, dict[str, Any]]:
    """What the rows of motion say of ROS 1, by their names; once in the life of a process."""
    from tests.benchmarks.ros_locobot.network import local_network

    with local_network("bench") as network:
        from tests.benchmarks.ros_locobot.motion import motion_rows

        rows = motion_rows(network, actions, lambda: None, rate=1.0)
    return {row.id: {"rival": "ROS 1", "rival_value": row.value} for row in rows}


def shared_row() -> Row:
    """Return the share of lines that ROS 1 and ROS 2 have in common, without bags."""

    def lines(*folders: str) -> int:
        files = (path for folder in folders for path in (ROOT / folder).rglob("*.py") if "bag" not in path.parts)
        return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)

    shared, own = lines(*SHARED), lines(*OWN)
    label = "shared lines over shared and both generations' own"
    return Row("shared_with_ros1_pct", label, 100 * shared / (shared + own), "%", 60, note=f"{shared} and {own} lines")
