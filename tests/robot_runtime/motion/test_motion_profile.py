"""The pure mathematics of a motion: the trapezoid, and how the profile's settings are checked."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.hal.motion_profile import MotionProfile
from robot_runtime.motion.trapezoid import Trapezoid

distances = st.floats(-10, 10).filter(lambda d: d == 0 or abs(d) > 1e-6)
speeds = st.floats(0.05, 3)
accels = st.floats(0.1, 5)
fractions = st.floats(0, 1)


@given(distances, speeds, accels)
def test_a_trapezoid_starts_at_zero_and_ends_exactly_at_its_distance(distance: float, speed: float, accel: float):
    trapezoid = Trapezoid.plan(distance, speed, accel)
    assert trapezoid.position(-1.0) == trapezoid.position(0.0) == 0.0
    assert trapezoid.position(trapezoid.duration_s) == distance
    assert trapezoid.position(trapezoid.duration_s + 100) == distance


@given(distances, speeds, accels, fractions, fractions)
def test_a_trapezoid_never_turns_back_and_never_exceeds_its_speed(
    distance: float, speed: float, accel: float, a: float, b: float
):
    trapezoid = Trapezoid.plan(distance, speed, accel)
    early, late = sorted((a * trapezoid.duration_s, b * trapezoid.duration_s))
    covered = trapezoid.position(late) - trapezoid.position(early)
    assert covered * distance >= -1e-12
    assert abs(covered) <= speed * (late - early) + 1e-9


@given(distances, speeds, accels, fractions)
def test_a_trapezoid_never_exceeds_its_acceleration(distance: float, speed: float, accel: float, where: float):
    trapezoid = Trapezoid.plan(distance, speed, accel)
    h = 1e-3
    t = where * trapezoid.duration_s
    second_difference = trapezoid.position(t + h) - 2 * trapezoid.position(t) + trapezoid.position(t - h)
    assert abs(second_difference) <= accel * h * h + 1e-9


@given(distances, speeds, accels)
def test_a_trapezoid_takes_the_least_time_that_the_limits_allow(distance: float, speed: float, accel: float):
    length = abs(distance)
    triangle = length * accel <= speed * speed
    least_s = 2 * math.sqrt(length / accel) if triangle else length / speed + speed / accel
    assert Trapezoid.plan(distance, speed, accel).duration_s == pytest.approx(least_s, rel=1e-9, abs=1e-12)


@given(distances, speeds, accels, fractions)
def test_a_trapezoid_backwards_mirrors_the_one_forwards(distance: float, speed: float, accel: float, where: float):
    forwards, backwards = Trapezoid.plan(distance, speed, accel), Trapezoid.plan(-distance, speed, accel)
    t = where * forwards.duration_s
    assert backwards.position(t) == pytest.approx(-forwards.position(t), abs=1e-12)


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
