"""Emulated servos on the simulated robot: the camera goes where they go, as with the simulated robot's own head."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from drivers.dynamixel.driver import make_head
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Robot
from robot_runtime.motion.controller import MotionController
from robot_runtime.records import Outcome
from robot_runtime.robots.loader import RobotContext


def with_servos(robot: Robot, **options: object) -> Robot:
    context = RobotContext(None, None, seed=0)
    return replace(robot, head=make_head(robot, context, {"variant": "interbotix", **options}, "test"))


def tilts_deg(robot: Robot) -> list[float]:
    """The camera's true tilts after two placements, each with looks of 30 degrees."""
    found: list[float] = []
    with robot:
        for start_rad in (-0.3, 0.2):
            robot.placer.place(SE2(), start_rad)
            motion = MotionController(robot.clock, robot.base, robot.head)
            motion.rest()
            for look_deg in (30, -30, -30):
                result = motion.execute(Displacement(tilt_rad=math.radians(look_deg)))
                assert result.outcome is Outcome.REACHED, result
                assert robot.simulation is not None
                found.append(math.degrees(robot.simulation.head_angles()[1]))
    return found


def test_looks_end_where_the_robots_own_head_ends(sim: Callable[..., Robot]) -> None:
    assert tilts_deg(with_servos(sim())) == pytest.approx(tilts_deg(sim()), abs=0.1)


def test_a_placement_is_no_look(sim: Callable[..., Robot]) -> None:
    with with_servos(sim()) as robot:
        robot.head.command(0.5, 0.4)
        robot.clock.sleep(0.1)
        robot.placer.place(SE2(), -0.2)
        robot.clock.sleep(1.0)
        state = robot.head.state(0.2)
        assert (state.pan_rad, state.tilt_rad, state.moving) == (
            pytest.approx(0.0, abs=0.002),
            pytest.approx(-0.2, abs=0.002),
            False,
        )
