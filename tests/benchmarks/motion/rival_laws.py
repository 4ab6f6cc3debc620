"""Laws of motion of other software, driven on the same base: written anew from what the originals do.

Both read odometry as it arrives and know nothing of motors. The time of an action ends when the robot rests.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import Velocity
from tests.benchmarks.motion.bases import BenchRobot

LIMIT_S = 15.0
"""Neither has a time limit of its own."""


class ProportionalSpeed:
    """Speed of PyRobot's ``ProportionalControl``: ramps by 0.01 per tick, learns the speed at which motion begins.

    At 10 Hz; https://github.com/facebookresearch/pyrobot, ``locobot/base_controllers.py``.

    Args:
        way: signed distance or angle.
        max_speed: 0.5 m/s or 1 rad/s.
        arrived: 1 cm or 1 degree: also what counts as motion.
        ramp_share: share of the way that must be left for the speed to grow: 0.6 or 0.5.
    """

    STEP = 0.01

    def __init__(self, way: float, max_speed: float, arrived: float, ramp_share: float) -> None:
        self._way, self._max_speed, self._arrived, self._ramp_share = way, max_speed, arrived, ramp_share
        self._initial = way
        self._speed, self._least = 0.0, 0.0
        self._moved = False

    def __call__(self, left: float) -> float | None:
        """The speed for a signed error; None when it has arrived."""
        if abs(left) < self._arrived:
            return None
        if not self._moved and abs(left - self._initial) > self._arrived:
            self._moved, self._least = True, abs(self._speed)
        if left / self._initial > self._ramp_share:
            if abs(self._speed) < self._max_speed:
                self._speed += math.copysign(self.STEP, left)
        elif abs(self._speed) > 0.75 * self._least:
            self._speed -= math.copysign(self.STEP, left)
        if abs(left) > abs(self._initial):
            self._initial = left
        if left * self._initial < 0:
            self._speed, self._initial = self._speed / 10, left
        return self._speed


def proportional(robot: BenchRobot, displacement: Displacement) -> bool:
    """An action by PyRobot's proportional law; whether it ended by itself."""
    if displacement.forward_m:
        speed = ProportionalSpeed(displacement.forward_m, 0.5, 0.01, 0.6)
        return _drive(robot, displacement, speed, 0.1)
    speed = ProportionalSpeed(displacement.turn_rad, 1.0, math.radians(1), 0.5)
    return _drive(robot, displacement, speed, 0.1)


class ThresholdSpeed:
    """Speed of ROS4VSN's forward move: grows and falls with the distance, and ends 5 mm before the goal.

    https://github.com/gramuah/ros4vsn, ``discrete_move``.

    Args:
        way_m: distance of the move.
    """

    TOP_M_S, SHARE, OFFSET_M = 0.5, 0.3, 0.5 / 6

    def __init__(self, way_m: float) -> None:
        self._way_m, self._speed_m_s = way_m, self.TOP_M_S

    def __call__(self, left_m: float) -> float | None:
        """The speed for what is left; None when it has arrived."""
        if left_m <= 0.005:
            return None
        if left_m > self._way_m * (1 - self.SHARE):
            self._speed_m_s = self.TOP_M_S * (self._way_m - left_m + self.OFFSET_M) / self.SHARE
        if left_m < self._way_m * self.SHARE:
            self._speed_m_s = self.TOP_M_S * (left_m + self.OFFSET_M) / self.SHARE
        return self._speed_m_s


def threshold(robot: BenchRobot, displacement: Displacement) -> bool:
    """An action by ROS4VSN's laws, at 10 Hz: a turn ends 0.08 rad before the goal, from 0.5 rad/s."""

    def turn(left_rad: float) -> float | None:
        return None if abs(left_rad) <= 0.08 else math.copysign(0.5, displacement.turn_rad)

    forward_m = displacement.forward_m
    return _drive(robot, displacement, ThresholdSpeed(forward_m) if forward_m else turn, 0.1)


def _drive(
    robot: BenchRobot, displacement: Displacement, speed: Callable[[float], float | None], period_s: float
) -> bool:
    clock, base = robot.clock, robot.base
    start = base.state(1.0).odom
    begin_ns = clock.now_ns()
    turned_rad, yaw_rad = 0.0, start.yaw_rad
    while (clock.now_ns() - begin_ns) / 1e9 < LIMIT_S:
        odom: SE2 = base.state(1.0).odom
        turned_rad += wrap_angle(odom.yaw_rad - yaw_rad)
        yaw_rad = odom.yaw_rad
        if displacement.forward_m:
            left = displacement.forward_m - math.hypot(odom.x_m - start.x_m, odom.y_m - start.y_m)
        else:
            left = displacement.turn_rad - turned_rad
        wanted = speed(left)
        if wanted is None:
            base.stop()
            return True
        for _ in range(round(period_s * base.info.rate_hz)):
            base.command(Velocity(wanted, 0.0) if displacement.forward_m else Velocity(0.0, wanted))
            clock.sleep(1 / base.info.rate_hz)
    base.stop()
    return False
