"""The driver passes the robot's contract over a real network: every family against the simulated robot, a process."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
import rosgraph
import rospy
from geometry_msgs.msg import Pose2D
from robot_runtime_simulation.srv import Place, SetFault
from ros_processes import Program, eventually

from drivers.ros.connection.topic_cache import StampedMessage, TopicCache
from drivers.ros_locobot.driver import make_robot
from robot_runtime.conformance import ContactConformance, Harness, HeadConformance, RobotConformance
from robot_runtime.hal import Halt, Robot, Velocity, Zone
from robot_runtime.robots.loader import RobotContext, read_robot_file
from robot_runtime.safety.guard import STILL

pytestmark = pytest.mark.slow

OPEN = (1.2, 1.36, 0.0)
"""In the bundled apartment: 1.5 m of free floor ahead."""
AT_WALL = (2.4, 1.36, 0.0)


class _OverRos(Harness):
    """One simulated robot for all checks of a class, put back to its place before each."""

    preset: ClassVar[str]
    arguments: ClassVar[tuple[str, ...]]
    place: ClassVar[tuple[float, float, float]] = OPEN
    start_s: ClassVar[float] = 0.4

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def simulated(cls, ros_node: str, ros_environ: dict[str, str], ros_master: str) -> Iterator[None]:
        command = [sys.executable, "-u", "-m", "sim_bridge.ros", "--camera", "80x60@79", *cls.arguments]
        program = Program(command, os.environ)
        try:
            program.wait_for_line("ready")
            yield
        finally:
            program.stop(signal.SIGKILL)
            rosgraph.Master("/tests").setParam("/use_sim_time", False)

    @contextmanager
    def connected(self) -> Iterator[Robot]:
        assert rospy.ServiceProxy("/simulation/place", Place)(Pose2D(*self.place), 0.0).success
        with super().connected() as robot:
            yield robot

    def make_robot(self) -> Robot:
        _, file = read_robot_file(self.preset)
        options = {**file.options, "base": {"guard": False}}  # with it: test_ros_driver_guarded.py
        return make_robot(RobotContext(scene=None, camera=None, seed=0), file.name, options, self.preset)


class TestPyrobotKobuki(_OverRos, RobotConformance):
    preset = "locobot-ros-pyrobot"
    arguments = ("--family", "pyrobot-kobuki")


class TestPyrobotKobukiAtAWall(_OverRos, ContactConformance):
    preset = "locobot-ros-pyrobot"
    arguments = ("--family", "pyrobot-kobuki")
    place = AT_WALL


class TestPyrobotCreate(_OverRos, ContactConformance):
    preset = "locobot-ros-create"
    arguments = ("--family", "pyrobot-create", "--manner", "report_hz=50", "--manner", "diagnostics_hz=50")
    place = AT_WALL

    def test_a_bumper_whose_reader_is_busy_is_not_silent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Simulated time waits for it, although two generations of its message are read without a definition."""
        receive, number = TopicCache.receive, itertools.count(1)

        def busy(channel: TopicCache, message: Any, stamped: bool = True) -> StampedMessage | None:
            if channel.topic == "/bumper" and next(number) % 50 == 0:
                rospy.rostime.wallsleep(0.3)
            return receive(channel, message, stamped)

        monkeypatch.setattr(TopicCache, "receive", busy)
        with self.connected() as robot:
            for _ in range(200):
                robot.clock.sleep(0.01)
                robot.base.state(0.2)  # without waiting, it would be 0.3 s old
        assert next(number) > 100

    def test_a_cliff_in_the_drivers_diagnoses_stops_it(self) -> None:
        fault = rospy.ServiceProxy("/simulation/fault", SetFault)
        with self.connected() as robot:
            assert robot.base.state(0.1).cliff is Zone.NONE
            fault("cliff", 2)
            try:
                assert eventually(lambda: robot.base.state(0.1).cliff)
                assert robot.base.command(Velocity(0.0, 0.5)) == STILL
                assert robot.base.state(0.1).halt is Halt.CLIFF
            finally:
                fault("", 0)


class TestInterbotix(_OverRos, HeadConformance):
    preset = "locobot-ros-interbotix"
    arguments = ("--family", "interbotix")
