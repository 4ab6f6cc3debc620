"""The contract of ``robot_runtime.hal`` as a test suite that every robot must pass; shipped, so that anyone can run it.

::

    # test_my_robot.py, run with pytest
    from robot_runtime.conformance import RobotConformance

    class TestMyRobot(RobotConformance):
        def make_robot(self) -> Robot:
            return load_robot("my_robot.yaml", RobotContext(scene=None, camera=None, seed=0))

A test site with a wall adds :class:`ContactConformance`; one with an object to take, a robot with a hand,
:class:`robot_runtime.conformance.manipulation.ObjectConformance`.

**It drives the robot**: give it 0.6 m of free floor ahead and room to turn. It waits on the robot's own clock only,
so a simulated robot needs no real time. A check that fails names the rule that was broken.
"""

from robot_runtime.conformance.base import BaseConformance, ContactConformance
from robot_runtime.conformance.camera import CameraConformance
from robot_runtime.conformance.harness import EXPIRY_S, NOT_FINITE, Harness, check, refused
from robot_runtime.conformance.head import HeadConformance
from robot_runtime.conformance.localizer import LocalizerConformance
from robot_runtime.conformance.robot import RobotConformance

__all__ = [
    "EXPIRY_S",
    "NOT_FINITE",
    "BaseConformance",
    "CameraConformance",
    "ContactConformance",
    "Harness",
    "HeadConformance",
    "LocalizerConformance",
    "RobotConformance",
    "check",
    "refused",
]
