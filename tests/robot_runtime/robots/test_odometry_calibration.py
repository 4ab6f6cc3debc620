"""A robot whose odometry is put right keeps the contract, and adds up what really was driven."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from drivers.fake.driver import make_robot
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.conformance import BaseConformance, LocalizerConformance
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Robot
from robot_runtime.robots.corrected_odometry import CalibratedBase, OdometryCalibration, OdometryCorrection, calibrated
from robot_runtime.robots.loader import RobotContext

CALIBRATION = OdometryCalibration.from_scales(1.04, 0.97, "gyro", 0.035, 0.23)


class TestCalibratedRobot(BaseConformance, LocalizerConformance):
    def make_robot(self) -> Robot:
        robot = make_robot(RobotContext(None, None, seed=0), "fake", {"width": 32, "height": 24}, "test")
        return calibrated(robot, CALIBRATION)


def test_localizers_in_odom_are_put_right_and_those_in_the_map_are_left() -> None:
    plain = make_robot(RobotContext(None, None, seed=0), "fake", {"width": 32, "height": 24}, "test")
    robot = calibrated(plain, CALIBRATION)
    assert isinstance(robot.base, CalibratedBase)
    assert robot.referee is plain.referee
    assert robot.localizer is plain.localizer
    assert robot.odometry is not plain.odometry
    both = calibrated(replace(plain, localizer=plain.odometry), CALIBRATION)
    assert both.localizer is both.odometry


moves = st.lists(st.tuples(st.floats(-0.05, 0.05), st.floats(-0.1, 0.1)), min_size=1, max_size=60)


@settings(max_examples=30)
@given(moves, st.floats(0.8, 1.2), st.floats(0.8, 1.2))
def test_what_is_reported_too_long_is_put_right(
    steps: list[tuple[float, float]], linear: float, angular: float
) -> None:
    """Small arcs as they were driven, and as wheels with these scales report them."""

    def arc(forward_m: float, turn_rad: float) -> SE2:
        return SE2(forward_m * math.cos(turn_rad / 2), forward_m * math.sin(turn_rad / 2), turn_rad)

    correction = OdometryCorrection(OdometryCalibration.from_scales(linear, angular, "wheels", 0.035, 0.23))
    start = SE2(1.0, -2.0, 0.5)
    true = reported = start
    assert correction.update(start) == start
    for forward_m, turn_rad in steps:
        true = true @ arc(forward_m, turn_rad)
        reported = reported @ arc(forward_m * linear, turn_rad * angular)
        found = correction.update(reported)
    assert found.distance_to(true) < 1e-9
    assert abs(wrap_angle(found.yaw_rad - true.yaw_rad)) < 1e-9


@pytest.mark.parametrize("scale", [0.4, 2.5])
def test_impossible_scales_are_refused(scale: float) -> None:
    document = {"linear_scale": scale, "angular_scale": 1.0, "heading": "gyro", "wheel_radius_m": 0.035}
    with raises_naming(ConfigError, "linear_scale"):
        config.parse(document, OdometryCalibration, "odometry.yaml")
