"""A runtime at the desk's end of a link: connects to the robot, then makes a turn for each line of standard input.

Prints ``connecting``, ``connected SECONDS`` and, for each turn, ``ended OUTCOME DETAIL``.
"""

from __future__ import annotations

import sys

from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import Stopwatch
from robot_runtime.motion.controller import MotionController
from robot_runtime.robots.loader import RobotContext, load_robot

TURN_RAD = 1.0


def main(preset: str) -> None:
    """Connect, and turn to and fro."""
    robot = load_robot(preset, RobotContext(None, None, seed=0))
    print("connecting", flush=True)
    timer = Stopwatch()
    with robot:
        robot.base_state()
        print(f"connected {timer.elapsed_s():.1f}", flush=True)
        motion = MotionController(robot.clock, robot.base, robot.head, robot.motion)
        turn_rad = TURN_RAD
        for _ in sys.stdin:
            result = motion.execute(Displacement(turn_rad=turn_rad))
            print(f"ended {result.outcome.value} {result.detail}", flush=True)
            turn_rad = -turn_rad


if __name__ == "__main__":
    main(sys.argv[1])
