"""The simulated LoCoBot keeps the robot's contract, exact or noisy."""

from __future__ import annotations

import math

import pytest
from things_room import BOWL, crosshair_on, make_scene, make_things_robot

from robot_runtime.common.geometry import SE2
from robot_runtime.conformance import ContactConformance, RobotConformance
from robot_runtime.conformance.manipulation import ObjectConformance, ObjectSite
from robot_runtime.hal import Robot
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import Scene


class TestSimConformance(RobotConformance):
    """``launch/robots/sim.yaml``."""

    preset = "sim"

    @pytest.fixture(autouse=True)
    def _in_room(self, room: Scene) -> None:
        self.scene = room

    def make_robot(self) -> Robot:
        return load_robot(self.preset, RobotContext(scene=self.scene, camera=None, seed=1))


class TestSimNoisyConformance(TestSimConformance):
    """``launch/robots/sim-noisy.yaml``: a pose may be some standard deviations off."""

    preset = "sim-noisy"
    pose_tolerance_m = 0.1
    pose_tolerance_rad = math.radians(5)


class TestSimContactConformance(ContactConformance):
    """``launch/robots/sim.yaml``, facing the room's east wall."""

    preset = "sim"

    @pytest.fixture(autouse=True)
    def _in_room(self, room: Scene) -> None:
        self.scene = room

    def make_robot(self) -> Robot:
        robot = load_robot(self.preset, RobotContext(scene=self.scene, camera=None, seed=1))
        robot.placer.place(SE2(2.4, 0.0, 0.0), 0.0)
        return robot


class TestSimNoisyContactConformance(TestSimContactConformance):
    """``launch/robots/sim-noisy.yaml``, facing the room's east wall."""

    preset = "sim-noisy"
    pose_tolerance_m = 0.1
    pose_tolerance_rad = math.radians(5)


class TestSimHand(ObjectConformance):
    """The magic pointer in a room of its own; what is let go elsewhere falls from the table's height."""

    site = ObjectSite("bowl", BOWL.pose, SE2(), SE2(-1.0, -1.0, 1.0), crosshair_on(BOWL.center), 1.2, tolerance_m=0.03)

    @pytest.fixture(autouse=True)
    def _in_room(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.scene = make_scene(tmp_path_factory.mktemp("things"))

    def make_robot(self) -> Robot:
        return make_things_robot(self.scene)
