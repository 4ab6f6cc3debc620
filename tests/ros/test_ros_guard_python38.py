"""The guard's one file under Python 3.8 and the distribution's rospy, without the runtime and its libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import kobuki_msgs
import pytest
import rospy
from guard_rig import Rig
from kobuki_msgs.msg import SensorState
from python38 import python38
from ros_processes import Program

BUILD = Path(__file__).parents[2] / "ros_ws" / "src" / "robot_runtime_guard" / "build_guard.py"


@pytest.fixture
def rig(ros_node: str, ros_name: str, ros_environ: dict[str, str], tmp_path: Path) -> Iterator[Rig]:
    file = tmp_path / "guard"
    subprocess.run([sys.executable, str(BUILD), str(file), "--python", python38()], check=True)
    packages = {str(Path(module.__file__).parents[1]) for module in (rospy, kobuki_msgs) if module.__file__}
    environ = ros_environ | {"ROS_MASTER_URI": os.environ["ROS_MASTER_URI"], "PYTHONPATH": os.pathsep.join(packages)}

    with ExitStack() as stack:

        def start(_: str, __: str, *arguments: str) -> Program:
            program = Program([str(file), *arguments], environ)
            stack.callback(program.stop)
            return program

        rig = Rig(ros_name, tmp_path, start)
        stack.callback(rig.close)
        yield rig


def test_it_drives_stops_and_remembers_its_emergency_stop(rig: Rig) -> None:
    rig.requested = (0.2, 0.0)
    assert rig.moves(linear=0.2), rig.guard.output
    rig.press(bumper=SensorState.BUMPER_LEFT)
    assert rig.stands("contact"), rig.guard.output
    rig.press()
    assert rig.moves(linear=0.2), rig.guard.output
    rig.emergency_stop(True)
    assert rig.stands("e_stop"), rig.guard.output
    assert rig.guard.stop() == 0, rig.guard.output
    rig.statuses.clear()
    rig.start()
    assert rig.stands("e_stop"), rig.guard.output
