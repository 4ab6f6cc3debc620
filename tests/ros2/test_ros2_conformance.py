"""The driver passes the robot's contract over ROS 2, against the simulated robot in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import pytest
import ros2_network

from drivers.ros2.driver import make_robot
from robot_runtime.common.geometry import SE2
from robot_runtime.conformance import BaseConformance, ContactConformance, Harness, HeadConformance, RobotConformance
from robot_runtime.hal import Robot
from robot_runtime.robots.loader import RobotContext, read_robot_file

pytestmark = pytest.mark.slow

OPEN, AT_WALL = SE2(1.2, 1.36, 0.0), SE2(2.4, 1.36, 0.0)
"""In the bundled apartment: 1.5 m of free floor ahead, and 0.3 m."""


class _OverRos2(Harness):
    """One simulated robot for all checks of a class, put back to its place before each."""

    preset: ClassVar[str]
    place: ClassVar[SE2] = OPEN
    start_s: ClassVar[float] = 0.4
    domain: ClassVar[int]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def simulated(cls, ros2_environment: None) -> Iterator[None]:
        command = [sys.executable, "-u", "-m", "sim_bridge.ros", "--family", cls.preset, "--camera", "80x60@79"]
        command += ["--rate", "2", "--die-with-stdin"]
        with ros2_network.domain(os.getpid()) as cls.domain:
            environment = os.environ | {"ROS_DOMAIN_ID": str(cls.domain)}
            with subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as program:
                assert program.stdout is not None
                try:
                    assert program.stdout.readline().startswith("ready")
                    yield
                finally:
                    program.kill()

    @contextmanager
    def connected(self) -> Iterator[Robot]:
        with super().connected() as robot:
            robot.placer.place(self.place, 0.0)
            robot.clock.sleep(self.start_s)
            yield robot

    def make_robot(self) -> Robot:
        _, file = read_robot_file(self.preset)
        network = {**file.options["network"], "domain_id": self.domain}
        options = {**file.options, "network": network}
        return make_robot(RobotContext(scene=None, camera=None, seed=0), file.name, options, self.preset)


class TestCreate3Base(_OverRos2, BaseConformance):
    preset = "create3"


class TestCreate3AtAWall(_OverRos2, ContactConformance):
    preset = "create3"
    place = AT_WALL


@pytest.mark.exhaustive
class TestCreate3(_OverRos2, RobotConformance):
    preset = "create3"


@pytest.mark.exhaustive
class TestTurtleBot4(_OverRos2, RobotConformance):
    preset = "turtlebot4-jazzy"


@pytest.mark.exhaustive
class TestTurtleBot4AtAWall(_OverRos2, ContactConformance):
    preset = "turtlebot4-jazzy"
    place = AT_WALL


@pytest.mark.exhaustive
class TestLocobotCreate3(_OverRos2, HeadConformance):
    preset = "locobot-create3"
