"""Drives measured both by the robot's odometry and by a referee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration import start_poses
from calibration.operator_guide import Guide
from calibration.procedure import execute_motion
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import PoseEstimate, PoseStatus, Robot
from robot_runtime.motion.controller import MotionController

Array = NDArray[np.float64]

STATIONARY_S = 0.5
"""Duration over which the referee's poses of a stationary robot are averaged."""

HOMING_M = 0.08
HOMING_RAD = math.radians(5)
"""Greatest deviations from the start before the robot returns."""


@dataclass(frozen=True, slots=True, eq=False)
class StationaryPose:
    """Pose of a stationary robot by odometry and by the referee.

    Attributes:
        odom: pose by odometry.
        truth: pose by the referee, in ``map``.
        noise: float64 (3, 3), covariance of ``truth`` (m, m, rad): that of the referee's poses over their number; 0 for
            a single pose.
    """

    odom: SE2
    truth: SE2
    noise: Array


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """Displacement between two stationary poses, in the frame of the first.

    Attributes:
        odom: pose by odometry.
        truth: pose by the referee.
        turned_rad: change of heading by odometry, full turns included.
        truly_turned_rad: the same by the referee.
        noise: float64 (3, 3), covariance of ``truth``.
    """

    odom: SE2
    truth: SE2
    turned_rad: float
    truly_turned_rad: float
    noise: Array

    @classmethod
    def between(cls, before: StationaryPose, after: StationaryPose, turned_rad: float) -> Move:
        """Return the displacement between two poses.

        Args:
            before: first pose.
            after: second pose.
            turned_rad: change of heading by odometry, less than half a turn off the true one.
        """
        truth = after.truth.relative_to(before.truth)
        truly_turned_rad = turned_rad + wrap_angle(truth.yaw_rad - turned_rad)
        c, s = math.cos(before.truth.yaw_rad), math.sin(before.truth.yaw_rad)
        by_start = np.array([[-c, -s, truth.y_m], [s, -c, -truth.x_m], [0, 0, -1]])
        by_end = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
        noise = by_start @ before.noise @ by_start.T + by_end @ after.noise @ by_end.T
        return cls(after.odom.relative_to(before.odom), truth, turned_rad, truly_turned_rad, noise)


class MeasuredDrive:
    """Drive of a connected robot, measured by odometry and referee.

    Raises:
        CalibrationFailed: the referee measures no headings.
    """

    def __init__(self, robot: Robot, guide: Guide, room_m: float) -> None:
        self._robot = robot
        self._motion = MotionController(robot.clock, robot.base, robot.head, robot.motion)
        guide.ask(f"put the robot on free floor with {room_m:g} m around it, where {robot.referee.info.name!r} sees it")
        if robot.simulation is not None:
            start_poses.central_start_pose(robot, robot.simulation)
        self._home = self._here = self.stationary()

    def stationary(self) -> StationaryPose:
        """Stop the robot and measure its pose.

        Raises:
            CalibrationFailed: the referee is lost, or measures no headings.
        """
        state, _ = self._motion.rest()
        referee, clock = self._robot.referee, self._robot.clock
        mark = referee.arrivals().mark
        clock.sleep_until(clock.now_ns() + seconds_to_ns(STATIONARY_S))
        began_ns = state.stamp_ns
        seen = [
            estimate
            for estimate in referee.arrivals(mark).estimates
            if estimate.stamp_ns >= began_ns and estimate.status is PoseStatus.OK
        ]
        if not seen:
            raise CalibrationFailed(
                f"referee {referee.info.name!r} does not see the robot", "clear its view, or name another by --referee"
            )
        return StationaryPose(state.odom, *mean_pose(seen, referee.info.name))

    def move(self, *displacements: Displacement) -> Move:
        """Execute motions one after the other and measure the total displacement.

        Raises:
            CalibrationFailed: a motion was not completed.
            DeviceFault: a device failed in it.
        """
        before = self._here
        turned_rad = sum(self.go(displacement) for displacement in displacements)
        self._here = after = self.stationary()
        return Move.between(before, after, turned_rad)

    def go(self, displacement: Displacement) -> float:
        """Execute one motion and return its turn by odometry, radians. Raises as :meth:`move`."""
        remedy = "clear the floor around the robot, and repeat"
        result = execute_motion(self._motion, displacement, "a motion of the drive", remedy)
        return result.measured.turn_rad

    def return_home(self) -> None:
        """Return to the start of the drive, if the robot has deviated from it."""
        for _ in range(3):
            self._here = self.stationary()
            way = self._home.truth.relative_to(self._here.truth)
            distance_m = math.hypot(way.x_m, way.y_m)
            if distance_m > HOMING_M:
                self.go(Displacement(turn_rad=math.atan2(way.y_m, way.x_m)))
                self.go(Displacement(forward_m=distance_m))
                self._here = self.stationary()
            turn_rad = wrap_angle(self._home.truth.yaw_rad - self._here.truth.yaw_rad)
            if abs(turn_rad) > HOMING_RAD:
                self.go(Displacement(turn_rad=turn_rad))
            elif distance_m <= HOMING_M:
                break
        self._here = self.stationary()


def mean_pose(estimates: Sequence[PoseEstimate], referee: str) -> tuple[SE2, Array]:
    """Return the mean pose of a stationary robot and its covariance, float64 (3, 3).

    Raises:
        CalibrationFailed: the referee measures no headings.
    """
    if not all(math.isfinite(estimate.covariance[2, 2]) for estimate in estimates):
        raise CalibrationFailed(
            f"referee {referee!r} knows positions but no headings",
            "name one that knows both by --referee: motion capture, tags, or a fused localizer",
        )
    first, count = estimates[0].pose, len(estimates)
    poses = np.array([(e.pose.x_m, e.pose.y_m, wrap_angle(e.pose.yaw_rad - first.yaw_rad)) for e in estimates])
    x_m, y_m, turn_rad = poses.mean(axis=0).tolist()
    noise = np.cov(poses, rowvar=False) / count if count > 1 else np.zeros((3, 3))
    return SE2(x_m, y_m, wrap_angle(first.yaw_rad + turn_rad)), noise
