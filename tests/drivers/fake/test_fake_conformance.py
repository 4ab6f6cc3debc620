"""The fake robot keeps the contract, in open space and with slow sensors."""

from __future__ import annotations

from dataclasses import replace

from drivers.fake.driver import make_robot
from robot_runtime.common.geometry import SE2
from robot_runtime.conformance import ContactConformance, RobotConformance
from robot_runtime.conformance.manipulation import ObjectConformance, ObjectSite
from robot_runtime.hal import Robot
from robot_runtime.hal.stand_ins import FixedHead
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.objects import ObjectPose

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


LATE = {**SMALL, "rate_hz": 50, "motors": {"type": "kobuki", "threshold_m_s": (0.03, 0.05), "report_delay_s": 0.04}}


class TestFakeRobotOnMotors(RobotConformance):
    """A base that is late in everything."""

    def make_robot(self) -> Robot:
        return make_robot(RobotContext(None, None, seed=0), "motors", LATE, "test")


class TestFakeRobotOnMotorsAtWall(ContactConformance):
    def make_robot(self) -> Robot:
        return make_robot(RobotContext(None, None, seed=0), "wall", {**LATE, "wall_x_m": 0.5}, "test")


class TestFixedCamera(RobotConformance):
    """A camera that looks down and does not move; a person places the robot."""

    can_place = False

    def make_robot(self) -> Robot:
        robot = make_robot(RobotContext(None, None, seed=0), "fixed", SMALL, "test")
        return replace(robot, head=FixedHead(robot.clock, tilt_rad=-0.3))


class TestFakeRobotAtWall(ContactConformance):
    def make_robot(self) -> Robot:
        return make_robot(RobotContext(None, None, seed=0), "wall", {**SMALL, "wall_x_m": 0.5}, "test")


class TestFakeHand(ObjectConformance):
    site = ObjectSite("mug", ObjectPose((0.9, 0.0, 0.88)), SE2(), SE2(-2.0, 1.0, 2.0), (0.5, 0.5), reach_m=1.2)

    def make_robot(self) -> Robot:
        options = {**SMALL, "wall_x_m": 1.5, "objects": {"mug": [3.0, 3.0, 0.5], "bowl": [-3.0, 0.0, 0.5]}}
        return make_robot(RobotContext(None, None, seed=0), "hand", options, "test")


def test_the_fake_hand_does_not_reach_through_its_wall() -> None:
    with TestFakeHand().make_robot() as robot:
        hand = robot.manipulator
        assert hand is not None
        robot.placer.place_objects({"mug": TestFakeHand.site.pose})
        assert hand.grab_release((0.5, 0.5), 1.2, 1).object_id == "mug"
        robot.placer.place(SE2(1.0, 0.0, 0.0), 0.0)
        grab = hand.grab_release((0.5, 0.5), 1.2, 1)
        assert (grab.object_id, hand.held) == ("mug", ("mug",))
        assert "wall" in grab.detail
