"""A computer without ROS 2: every command says how to get it."""

from __future__ import annotations

import sys

import pytest
from raising import raises_naming

from drivers.ros.guard.program import main
from robot_runtime.cli.main import run_command
from robot_runtime.common import config
from robot_runtime.errors import DriverMissing


@pytest.fixture(autouse=True)
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name for name in sys.modules if name.startswith(("drivers.ros2", "drivers.ros.bag", "rclpy.", "rosbags."))
    ]:
        monkeypatch.delitem(sys.modules, name)  # a part that other tests have loaded is found without its package
    for name in ("rclpy", "rosbags"):
        monkeypatch.setitem(sys.modules, name, None)


def test_the_guard_names_rclpy(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["guard", "turtlebot3"]) == 2
    assert main([str(config.find_preset("guards", "turtlebot3"))]) == 2
    said = capsys.readouterr().err
    assert said.count("Python does not find rclpy") == 2
    assert said.count("setup.bash") == 2


def test_the_robot_names_rclpy() -> None:
    with raises_naming(DriverMissing, "rclpy", "setup.bash"):
        config.resolve("drivers.ros2.driver.make_robot", "turtlebot3.yaml")
