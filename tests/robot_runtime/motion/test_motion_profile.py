"""Checks of a profile's settings, and its time limit."""

from __future__ import annotations

import math

import pytest

from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.hal.motion_profile import MotionProfile


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", MotionProfile.__dataclass_fields__)
def test_a_profile_refuses_what_is_not_positive(name: str, value: float):
    with pytest.raises(ValueError, match=name):
        MotionProfile(**{name: value})


def test_a_profile_from_yaml_names_a_misspelt_field():
    with pytest.raises(ConfigError, match="linear_speed") as caught:
        config.parse({"linear_speed": 0.2}, MotionProfile, "robot.yaml: motion")
    assert "robot.yaml" in caught.value.message


def test_the_timeout_grows_with_the_motion():
    profile = MotionProfile(timeout_factor=2.0, timeout_margin_s=0.5)
    assert profile.timeout_s(1.5) == pytest.approx(3.5)
