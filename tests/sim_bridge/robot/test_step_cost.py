"""The simulated step's own cost, counted in calls, which no other program of the computer changes."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2
from robot_runtime.motion.controller import MotionController
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import find_scene, load_scene

MAX_CALLS = 150
"""Calls of functions in Python per control period of 10 ms, with two physics steps; 171 before they were counted."""


def test_a_control_period_makes_few_calls() -> None:
    scene = load_scene(find_scene("arena"))
    with load_robot("sim", RobotContext(scene, None, seed=0, images=False)) as robot:
        robot.placer.place(SE2(*scene.map.most_open_point(), 0.0), 0.0)
        motion = MotionController(robot.clock, robot.base, robot.head, robot.motion)
        motion.begin_episode()
        calls = 0

        def count(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal calls
            calls += event == "call"

        start_ns, before = robot.clock.now_ns(), sys.getprofile()
        sys.setprofile(count)
        try:
            motion.execute(Displacement(forward_m=0.25))
            motion.execute(Displacement(turn_rad=0.5))
        finally:
            sys.setprofile(before)
        periods = (robot.clock.now_ns() - start_ns) / NS_PER_S * robot.base.info.rate_hz
    assert calls / periods < MAX_CALLS
