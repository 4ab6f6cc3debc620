"""The YAML of a ROS LoCoBot: presets that ship are sound, names resolve, mistakes are refused by field."""

from __future__ import annotations

from typing import Any

import pytest
from raising import raises_naming

from drivers.ros.robot_variants import VARIANTS, base_frame, base_info, head_limits, topics_of
from drivers.ros.topics import ROS_1_FAMILIES, family_of, topic_names
from drivers.ros_locobot.options import RosOptions
from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.robots.loader import read_robot_file

CAMERA = {"mount": "habitat"}


def options(**changes: Any) -> RosOptions:
    return config.parse({"family": "pyrobot-kobuki", "camera": CAMERA, **changes}, RosOptions, "test")


@pytest.mark.parametrize("name", ["locobot-ros-pyrobot", "locobot-ros-create", "locobot-ros-interbotix"])
def test_the_presets_that_ship_are_sound(name: str) -> None:
    path, file = read_robot_file(name)
    parsed = config.parse(file.options, RosOptions, str(path))
    topics = topics_of(parsed)
    assert all("{" not in getattr(topics, field) for field in topics.__dataclass_fields__)
    assert topics.velocity
    assert topics.odom


def test_a_namespace_stands_before_every_topic_of_interbotix() -> None:
    topics = topics_of(options(family="interbotix", robot_name="bot"))
    assert topics.velocity == "/bot/mobile_base/commands/velocity"
    assert topics.joint_group == "/bot/commands/joint_group"
    assert base_frame(options(family="interbotix", robot_name="bot")) == "bot/base_footprint"


def test_every_topic_can_be_remapped() -> None:
    names = list(topics_of(options()).__dataclass_fields__)
    remapped = topics_of(options(topics={name: f"/other/{name}" for name in names}))
    assert {getattr(remapped, name) for name in names} == {f"/other/{name}" for name in names}


def test_limits_are_the_yamls_else_the_familys() -> None:
    info = base_info(options(base={"max_linear_m_s": 0.3}), "robot")
    assert (info.max_linear_m_s, info.rate_hz) == (0.3, 50.0)
    assert head_limits(options(head={"max_tilt_rad": 0.5})).max_tilt_rad == 0.5
    for name in ROS_1_FAMILIES:
        family = VARIANTS[name]
        assert family.limits.min_tilt_rad < 0 < family.limits.max_tilt_rad


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"topics": {"velocity": "/navigation_velocity_smoother/raw_cmd_vel"}}, "velocity"),
        ({"topics": {"velocity": "/cmd_vel_mux/input/teleop"}}, "velocity"),
        ({"topics": {"depth": "/camera/depth/image_rect_raw"}}, "align_depth:=true"),
        ({"topics": {"odom": "odom"}}, "odom"),
        ({"referee": {"source": "odometry"}}, "referee"),
        ({"localizer": {"source": "pose"}}, "topic"),
        ({"master": {"uri": "locobot:11311"}}, "http://locobot:11311"),
        ({"clock": {"max_skew_s": 5.0}}, "max_skew_s"),
        ({"base": {"rate_hz": 5}}, "rate_hz"),
        ({"robot_name": "my robot"}, "robot_name"),
        ({"family": "turtlebot"}, "family"),
    ],
)
def test_a_mistake_is_refused_where_it_stands(changes: dict[str, Any], named: str) -> None:
    with raises_naming(ConfigError, named):
        options(**changes)


@pytest.mark.parametrize("family", ROS_1_FAMILIES)
def test_the_family_of_a_network_is_recognized(family: str) -> None:
    names = topic_names(family, "rob").values()
    assert family_of({*names, "/rosout"}) == family
    assert family_of({"/rosout", "/odom"}) is None
