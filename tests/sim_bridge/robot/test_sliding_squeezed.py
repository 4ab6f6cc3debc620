"""A robot that slides, driven into a corner or between two things that leave no room, is not squeezed or spun."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import Robot
from robot_runtime.motion.controller import MotionController
from robot_runtime.records import Outcome
from robot_runtime.scenes.scene import find_scene, load_scene

SimFactory = Callable[..., Robot]

SLIDE = {"contact": {"behaviour": "slide"}}
RIGID_M, DEEPEST_M = 0.178, 0.006


def pose_of(robot: Robot) -> SE2:
    return robot.referee.at(robot.clock.now_ns(), 0.5).pose


@pytest.mark.parametrize("heading_deg", [30.0, 45.0, 70.0])
def test_a_corner_holds_the_body(sim: SimFactory, heading_deg: float) -> None:
    with sim(SLIDE) as robot:
        robot.placer.place(SE2(2.6, 1.6, math.radians(heading_deg)), 0.0)
        motion = MotionController(robot.clock, robot.base, robot.head)
        outcomes = [motion.execute(Displacement(forward_m=0.25)).outcome for _ in range(6)]
        end = pose_of(robot)
    assert outcomes[-4:] == [Outcome.CONTACT] * 4, "a corner shortens every move"
    assert (end.x_m, end.y_m) == (pytest.approx(3 - RIGID_M, abs=0.003), pytest.approx(2 - RIGID_M, abs=0.003))
    assert end.yaw_rad == pytest.approx(math.radians(heading_deg), abs=1e-3)


@pytest.mark.slow
def test_between_two_things_that_leave_no_room_it_neither_goes_nor_spins(sim: SimFactory) -> None:
    apartment = load_scene(find_scene("apartment"))
    with sim(SLIDE, scene=apartment) as robot:
        robot.placer.place(SE2(4.1, 3.3, -math.pi / 2), 0.0)
        world = robot.base.world
        motion = MotionController(robot.clock, robot.base, robot.head)
        deepest_m = 0.0  # in the gap of 24 cm between shower and toilet
        for turn_rad in (0.0, 0.3, 0.3, -0.9, 0.4) * 3:
            before = pose_of(robot)
            assert motion.execute(Displacement(forward_m=0.25)).outcome is Outcome.CONTACT
            assert wrap_angle(pose_of(robot).yaw_rad - before.yaw_rad) == pytest.approx(0, abs=0.01)
            deepest_m = max(deepest_m, -float(world.data.contact.dist.min(initial=0.0)))
            motion.execute(Displacement(turn_rad=turn_rad))
    assert 0 < deepest_m <= DEEPEST_M
