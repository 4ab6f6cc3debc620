"""A runtime in a process of its own that drives actions, one after the other with a pause after each.

::

    python bag_program.py '{"family": ...}' '[[0.25, 0, 0], ...]'

Actions are metres forward, radians to the left, radians up. Prints ``at [x_m, y_m, yaw_rad]`` after each, by the
referee, and ``done``.
"""

from __future__ import annotations

import json
import sys

from drivers.ros_locobot.driver import make_robot
from robot_runtime.actions.discrete import Displacement
from robot_runtime.motion.controller import MotionController
from robot_runtime.robots.loader import RobotContext

PAUSE_S = 0.5

with make_robot(RobotContext(None, None, 0), "program", json.loads(sys.argv[1]), "argument") as robot:
    robot.clock.sleep(PAUSE_S)
    motion = MotionController(robot.clock, robot.base, robot.head)
    for action in json.loads(sys.argv[2]):
        result = motion.execute(Displacement(*action))
        robot.clock.sleep(PAUSE_S)
        pose = robot.referee.latest(PAUSE_S).pose
        print(f"{result.outcome.value} {result.detail}", flush=True)
        print(f"at {json.dumps([pose.x_m, pose.y_m, pose.yaw_rad])}", flush=True)
    robot.clock.sleep(PAUSE_S)
print("done", flush=True)
