"""A robot that turns while its discovery server dies: ``python ... PRESET DOMAIN ADDRESS PID``.

Prints ``OUTCOME YAW_DEG_AT_DEATH YAW_DEG_AT_REST`` of that turn, the outcome of another, and why a new connection
fails.

A process of its own: Fast DDS keeps what it has read of the server until the process ends.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time

from drivers.ros2.driver import make_robot
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal import Robot
from robot_runtime.motion.controller import MotionController
from robot_runtime.robots.loader import RobotContext, read_robot_file

START = SE2(1.2, 1.36, 0.0)
TURN = Displacement(turn_rad=math.radians(30))
KILLED_AT_RAD = math.radians(10)


def kill_in_mid_turn(robot: Robot, server: int, yaws_rad: list[float]) -> None:
    """Kill the server as soon as the base has turned by ten degrees."""
    start_rad = robot.base.state(1.0).odom.yaw_rad
    while (yaw_rad := robot.base.state(1.0).odom.yaw_rad) - start_rad < KILLED_AT_RAD:
        time.sleep(0.002)
    os.kill(server, signal.SIGKILL)
    yaws_rad.append(yaw_rad - start_rad)


preset, domain, address, server = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
_, file = read_robot_file(preset)
network = {**file.options["network"], "domain_id": domain, "discovery_server": address}


def make() -> Robot:
    """Return the robot, not connected."""
    context = RobotContext(scene=None, camera=None, seed=0)
    return make_robot(context, file.name, {**file.options, "network": network}, preset)


with make() as robot:
    robot.placer.place(START, 0.0)
    motion = MotionController(robot.clock, robot.base, robot.head)
    motion.rest()
    before_rad, yaws_rad = robot.base.state(1.0).odom.yaw_rad, list[float]()
    killer = threading.Thread(target=kill_in_mid_turn, args=(robot, server, yaws_rad))
    killer.start()
    turned = motion.execute(TURN)
    killer.join()
    yaws_rad.append(motion.rest()[0].odom.yaw_rad - before_rad)
    print(turned.outcome.value, *(math.degrees(yaw_rad) for yaw_rad in yaws_rad), flush=True)
    robot.placer.place(START, 0.0)
    motion.forget()
    print(motion.execute(TURN).outcome.value, flush=True)
try:
    make().connect()
except RuntimeFault as fault:
    print(str(fault).replace("\n", " "), flush=True)
