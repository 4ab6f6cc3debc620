"""The fake robot keeps the contract, in open space and with slow sensors."""

from __future__ import annotations

from drivers.fake.driver import make_robot
from robot_runtime.conformance import ContactConformance, RobotConformance
from robot_runtime.hal import Robot
from robot_runtime.robots import RobotContext

SMALL = {"width": 32, "height": 24}


class TestFakeRobot(RobotConformance):
    def make_robot(self) -> Robot:
        return make_robot(RobotContext(None, None, seed=0), "fake", SMALL, "test")


class TestSlowFakeRobot(RobotConformance):
    """Rates and latencies at the edge of what the streams table allows."""

    def make_robot(self) -> Robot:
        options = {
            **SMALL,
            "rate_hz": 50,
            "camera_rate_hz": 10,
            "camera_latency_s": 0.2,
            "pose_rate_hz": 8,
            "pose_latency_s": 0.2,
            "head_speed_rad_s": 0.8,
        }
        return make_robot(RobotContext(None, None, seed=0), "slow", options, "test")


class TestFakeRobotAtWall(ContactConformance):
    def make_robot(self) -> Robot:
        return make_robot(RobotContext(None, None, seed=0), "wall", {**SMALL, "wall_x_m": 0.5}, "test")
