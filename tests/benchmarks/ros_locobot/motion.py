"""Benchmark of motion: duration of a forward and a turn over ROS, and their accuracy by the simulator's ground truth.

The simulated robot has a calibrated Kobuki's encoder and gyro noise and its motors (``launch/robots/sim-noisy.yaml``),
and the guard node is used as on a robot. Its motors are measured first. Time is ``/clock``'s. Faster than
real time, it runs at most two of the base's periods ahead of its subscribers, and what they are late counts more.
"""

from __future__ import annotations

from collections.abc import Callable

import rospy

from drivers.ros_locobot.driver import make_robot
from robot_runtime.robots.loader import RobotContext
from tests.benchmarks.report import Row
from tests.benchmarks.ros_locobot.actions import measured_rows
from tests.benchmarks.ros_locobot.network import Network

SIMULATED = ("-m", "sim_bridge.ros", "--robot", "sim-noisy", "--camera", "64x48@79")
OPTIONS = {
    "family": "pyrobot-kobuki",
    "master": {"connect_timeout_s": 30.0},
    "base": {"guard": True},
    "camera": {"mount": "habitat"},
    "referee": {"source": "pose", "topic": "/simulation/ground_truth"},
    "placer": {"by": "simulation"},
    # Motion is by odometry; the localizer's noise is irrelevant.
    "localizer": {"source": "odometry"},
}


def motion_rows(network: Network, trials: int, advance: Callable[[], None], rate: float = 3.0) -> list[Row]:
    """Return durations and errors over ``trials`` actions of each kind; ``advance`` is called after each of them.

    Args:
        network: network without a robot.
        trials: number of actions of each kind.
        advance: called after each action.
        rate: seconds of ``/clock`` per second.
    """
    rospy.set_param("/use_sim_time", True)
    rospy.set_param("/robot_runtime_guard", {"family": "pyrobot-kobuki"})
    network.start(*SIMULATED, "--rate", str(rate))
    network.start("-m", "sim_bridge.ros.simulated_guard")
    robot = make_robot(RobotContext(None, None, 0), "bench", OPTIONS, "bench")
    return measured_rows(robot, trials, advance, "guard node between, ")
