"""Sessions without a fault, over ROS, of every family: neither runtime nor guard warns of anything."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from ros_processes import Master, Program

pytestmark = pytest.mark.slow

RELAY = """
import rospy
from geometry_msgs.msg import Twist
rospy.init_node("motor_bridge", disable_rostime=True)
out = rospy.Publisher("/mobile_base/commands/velocity", Twist, queue_size=1, tcp_nodelay=True)
rospy.Subscriber("/motor_in", Twist, out.publish, queue_size=1, tcp_nodelay=True)
print("relays", flush=True)
rospy.spin()
"""
JOG_LIMIT_S = 120.0
WARNS = re.compile(r"\bWARN|\bERROR|warning|doubtful|another node|link to the robot", re.IGNORECASE)


@contextmanager
def stack(environ: dict[str, str], family: str, *guard_arguments: str) -> Iterator[tuple[Program, dict[str, str]]]:
    """A master, a simulated robot and its guard; the guard and the environment of further programs."""
    with ExitStack() as started:
        master = Master(environ)
        started.callback(master.kill)
        there = environ | {"ROS_MASTER_URI": master.uri}

        def start(*arguments: str) -> Program:
            program = Program([sys.executable, "-u", *arguments], there)
            started.callback(program.stop, signal.SIGKILL)
            return program

        manner = ("--manner", "report_hz=50", "--manner", "diagnostics_hz=50") if family == "pyrobot-create" else ()
        robot = start("-m", "sim_bridge.ros", "--family", family, "--camera", "80x60@79", *manner)
        robot.wait_for_line("ready")
        guard = start("-m", "sim_bridge.ros.simulated_guard", "__name:=robot_runtime_guard", *guard_arguments)
        guard.wait_for_line("commands pass")
        yield guard, there


@pytest.mark.parametrize(
    ("robot", "family"),
    [
        ("locobot-ros-pyrobot", "pyrobot-kobuki"),
        pytest.param("locobot-ros-create", "pyrobot-create", marks=pytest.mark.exhaustive),
        pytest.param("locobot-ros-interbotix", "interbotix", marks=pytest.mark.exhaustive),
    ],
)
def test_a_session_without_faults_prints_no_warning(
    robot: str, family: str, ros_environ: dict[str, str], tmp_path: Path
) -> None:
    e_stop = f"_e_stop_file:={tmp_path / 'e_stop'}"
    with stack(ros_environ, family, f"_family:={family}", e_stop) as (guard, there):
        jog = Program([sys.executable, "-m", "robot_runtime", "jog", "--robot", robot, "--keys", "wadszcw"], there)
        assert jog.process.wait(JOG_LIMIT_S) == 0, jog.output
        jog.stop()
        told = [line for line in (*jog.lines, *guard.lines) if WARNS.search(line)]
    assert sum("reached" in line for line in jog.lines) == 7, jog.output
    assert not told


@pytest.mark.exhaustive
def test_a_remapped_velocity_topic_has_no_foreign_publisher(ros_environ: dict[str, str], tmp_path: Path) -> None:
    arguments = ("_family:=pyrobot-kobuki", f"_e_stop_file:={tmp_path / 'e_stop'}")
    remapped = "/mobile_base/commands/velocity:=/motor_in"
    with stack(ros_environ, "pyrobot-kobuki", *arguments, remapped) as (guard, there):
        relay = Program([sys.executable, "-c", RELAY], there)
        relay.wait_for_line("relays")
        jog = Program(
            [sys.executable, "-m", "robot_runtime", "jog", "--robot", "locobot-ros-pyrobot", "--keys", "wad"], there
        )
        assert jog.process.wait(JOG_LIMIT_S) == 0, jog.output
        relay.stop(signal.SIGKILL)
    assert not [line for line in guard.lines if "motor_bridge" in line]
    assert sum("reached" in line for line in jog.lines) == 3, jog.output
