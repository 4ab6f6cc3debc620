"""A runtime in a process of its own: connects to a robot, drives for ever, tells every action, and reconnects.

::

    python driver_program.py '{"family": ...}'

Prints one line per event: ``connected``, ``outcome reached``, ``fault TYPE: MESSAGE | REMEDY``.
"""

from __future__ import annotations

import json
import sys

from drivers.ros_locobot.driver import make_robot
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import SystemClock
from robot_runtime.errors import DeviceFault
from robot_runtime.motion.controller import MotionController
from robot_runtime.robots.loader import RobotContext

host = SystemClock()
robot = make_robot(RobotContext(None, None, 0), "program", json.loads(sys.argv[1]), "argument")


def tell(error: DeviceFault) -> None:
    print(f"fault {type(error).__name__}: {error.message} | {error.remedy}".replace("\n", " "), flush=True)


while True:
    try:
        with robot:
            print("connected", flush=True)
            robot.clock.sleep(0.4)
            motion = MotionController(robot.clock, robot.base, robot.head)
            turn_rad = 0.5
            while motion.fault is None:
                turn_rad = -turn_rad
                result = motion.execute(Displacement(turn_rad=turn_rad))
                print(f"outcome {result.outcome.value}", flush=True)
            tell(motion.fault)
    except DeviceFault as error:
        tell(error)
    host.sleep(0.2)
