"""The guard node's parameters: the robot's YAML names them, and mistakes are refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from raising import raises_naming

from drivers.ros.guard.options import parse_guard_options
from drivers.ros.guard.program import main, read_parameters
from drivers.ros.topics import ROS_2_FAMILIES
from drivers.ros_locobot.guard.options import GuardOptions, read_guard_options
from robot_runtime.common import config
from robot_runtime.errors import ConfigError

KOBUKI = {"family": "pyrobot-kobuki"}


def read(**changes: Any) -> GuardOptions:
    return read_guard_options({**KOBUKI, **changes}, "/guard")


def test_defaults_are_the_familys() -> None:
    options = read_guard_options({"family": "interbotix", "robot_name": "bot"}, "/guard")
    assert options.topics.velocity == "/bot/mobile_base/commands/velocity"
    assert options.limits.max_linear_m_s == 0.7
    assert read_guard_options({"family": "pyrobot-create"}, "/guard").limits.feedback_timeout_s == 0.35


def test_the_robots_yaml_can_be_copied() -> None:
    base = {"guard": True, "rate_hz": 50, "empty_v": 13, "max_linear_m_s": 0.3, "silent_publishers": ["/teleop"]}
    master = {"uri": "http://robot:11311", "timeout_s": 1, "connect_timeout_s": 5.0, "monitor_period_s": 0.1}
    options = read(base=base, master=master, topics={"color": "/c", "velocity": "/wheels", "guard": "/guard"})
    assert (options.topics.velocity, options.topics.odom) == ("/wheels", "/odom")
    assert (options.limits.max_linear_m_s, options.limits.max_angular_accel_rad_s2) == (0.3, 7.0)
    assert options.silent_publishers == ("/teleop",)
    assert (options.master_timeout_s, options.monitor_period_s) == (1.0, 0.1)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ([1], "/guard"),
        ({"family": "turtlebot"}, "turtlebot"),
        ({**KOBUKI, "comand_timeout_s": 0.2}, "did you mean 'command_timeout_s'?"),
        ({**KOBUKI, "command_timeout_s": 3.0}, "/guard/command_timeout_s"),
        ({**KOBUKI, "command_timeout_s": float("nan")}, "/guard/command_timeout_s"),
        ({**KOBUKI, "command_timeout_s": True}, "/guard/command_timeout_s"),
        ({**KOBUKI, "feedback_timeout_s": 0}, "/guard/feedback_timeout_s"),
        ({**KOBUKI, "publish_hz": 5}, "from 20 up to 200"),
        ({**KOBUKI, "base": {"max_linear_m_s": "fast"}}, "/guard/base/max_linear_m_s"),
        ({**KOBUKI, "base": {"silent_publishers": "/teleop"}}, "/guard/base/silent_publishers"),
        ({**KOBUKI, "base": 1}, "/guard/base"),
        ({**KOBUKI, "topics": {"velocity": "/cmd_vel_mux/input/teleop"}}, "ramped"),
        ({**KOBUKI, "topics": {"odom": "odom"}}, "odom must be a full topic name"),
        ({**KOBUKI, "topics": {"velocty": "/wheels"}}, "did you mean 'velocity'?"),
        ({**KOBUKI, "e_stop_file": 7}, "/guard/e_stop_file"),
    ],
)
def test_a_mistake_is_refused_by_name(parameters: Any, named: str) -> None:
    with raises_naming(ConfigError, named):
        read_guard_options(parameters, "/guard")


@pytest.mark.parametrize("parameters", [None, {}])
def test_a_guard_without_parameters_says_how_to_give_them(parameters: Any) -> None:
    with raises_naming(ConfigError, "/guard") as caught:
        read_guard_options(parameters, "/guard")
    assert "rosparam load $(rospack find robot_runtime_guard)/config/FAMILY.yaml /guard" in caught.value.remedy
    assert "pyrobot-kobuki" in caught.value.remedy


def test_a_guard_on_ros_2_is_described_by_one_file() -> None:
    for path in sorted((config.find_preset("guards", "turtlebot3").parent).glob("*.yaml")):
        options = parse_guard_options(read_parameters(path), str(path), ROS_2_FAMILIES)
        assert options.family == path.stem
        assert options.topics.velocity
        assert options.limits.feedback_timeout_s == 0.25
    stamped = parse_guard_options(
        {"family": "differential", "base": {"stamped": True}, "topics": {"bumper": "/bump"}}, "f", ROS_2_FAMILIES
    )
    assert (stamped.velocity_kind, stamped.topics.bumper) == ("geometry_msgs/TwistStamped", "/bump")


def test_a_base_without_contact_sensing_must_be_accepted() -> None:
    with raises_naming(ConfigError, "topics", "contacts") as caught:
        parse_guard_options({"family": "turtlebot3"}, "file", ROS_2_FAMILIES)
    assert "without_contact" in caught.value.remedy
    parse_guard_options({"family": "turtlebot3", "base": {"without_contact": True}}, "file", ROS_2_FAMILIES)


def test_a_file_that_is_none_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml" in capsys.readouterr().err
