"""A real LoCoBot without ROS: the parts that its file names, over real ports."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_base import in_real_time
from raising import raises_naming

from drivers.kobuki.emulator import EmulatedKobuki
from robot_runtime.errors import ConfigError, DeviceFault
from robot_runtime.robots.loader import DeviceConfig, RobotContext, RobotFile, build_robot

CONTEXT = RobotContext(None, None, seed=0)
DRIVER = "drivers.locobot.driver.make_robot"


def test_a_robot_without_a_base_says_what_to_name() -> None:
    robot = build_robot(RobotFile("bare", DRIVER), "bare.yaml", CONTEXT)
    with raises_naming(DeviceFault, "no base") as caught:
        robot.connect()
    assert "'base'" in caught.value.remedy
    robot.close()
    with raises_naming(ConfigError, "tilt"):
        build_robot(RobotFile("bare", DRIVER, {"tilt": 1}), "bare.yaml", CONTEXT)


@pytest.mark.slow
@pytest.mark.usefixtures("in_real_time")
def test_its_base_brings_its_odometry(tmp_path: Path) -> None:
    options = {"port": str(tmp_path / "base")}
    file = RobotFile("lab", DRIVER, base=DeviceConfig("drivers.kobuki.driver.make_base", options))
    robot = build_robot(file, "lab.yaml", CONTEXT)
    assert robot.localizer is robot.odometry is robot.referee is robot.base.odometry
    with in_real_time(EmulatedKobuki, "drivers.kobuki.wire:KobukiWire", tmp_path), robot.base, robot.localizer:
        assert robot.localizer.latest(0.5).pose == robot.base.state(0.5).odom
