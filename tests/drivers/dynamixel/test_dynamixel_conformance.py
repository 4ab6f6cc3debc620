"""The emulated servos as the head of a robot without physics, by the conformance suite."""

from __future__ import annotations

from dynamixel_rig import HeadRig

from robot_runtime.conformance import HeadConformance
from robot_runtime.hal import Robot


class TestInterbotixHead(HeadConformance):
    def make_robot(self) -> Robot:
        return HeadRig(variant="interbotix").robot


class TestPyrobotHead(HeadConformance):
    def make_robot(self) -> Robot:
        return HeadRig(variant="pyrobot", speed_deg_s=60.0).robot
