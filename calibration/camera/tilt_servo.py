"""``robot-runtime calibrate tilt-servo``: zero, scale and backlash of the tilt servo.

Each angle is approached from below and from above; the floor in the depth image gives the camera's true tilt. The mean
of both is the servo's error, linear in its angle; half their difference is the backlash, which the servo's encoder does
not measure. The mount's pitch would be part of the zero: calibrate the mount first.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration import start_poses
from calibration.camera.floor_plane import DepthView, described_mount, find_floor, points_of
from calibration.camera.raw_images import point_head, require_depth, rig_of, take_view
from calibration.operator_guide import LIVE, Guide
from calibration.procedure import Fit, Procedure
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, rotation_rpy
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Robot
from robot_runtime.robots.camera_mount import CameraMount
from robot_runtime.robots.corrected_head import KIND, TiltServo

Array = NDArray[np.float64]

ANGLES_DEG = (-50.0, -42.0, -35.0, -28.0, -22.0, -16.0)

RUN_UP_RAD = math.radians(8)
"""Distance of an approach, larger than any backlash."""

MIN_ANGLES = 4

_OPTICAL = rotation_rpy(*OPTICAL_RPY_RAD)


@dataclass(frozen=True, eq=False)
class Approach:
    """One angle, reached from one side.

    Attributes:
        commanded_rad: command, equal to the encoder's angle.
        upward: whether it was approached from below.
        looked_rad: true tilt of the camera by the floor, up positive.
    """

    commanded_rad: float
    upward: bool
    looked_rad: float


class TiltServoProcedure(Procedure[Approach, TiltServo]):
    """Calibration of the tilt servo; see the module.

    Args:
        mount: mount of the camera; None for the robot's driver's.
    """

    kind = KIND
    limits: Mapping[str, float] = {"tilt_deg": 0.3}

    def __init__(self, mount: CameraMount | None) -> None:
        self._mount = mount

    def record(self, robot: Robot, guide: Guide) -> list[Approach]:
        require_depth(robot.camera)
        mount = self._mount or described_mount(robot)
        guide.ask("Put the robot on level floor with 2 m of free floor ahead")
        if robot.simulation is not None:
            start_poses.open_start_pose(robot, robot.simulation)
        rig, approaches = rig_of(robot.camera), []
        for number, angle_deg in enumerate(ANGLES_DEG):
            for upward in (True, False):
                goal_rad = math.radians(angle_deg)
                point_head(robot, 0.0, goal_rad - RUN_UP_RAD if upward else goal_rad + RUN_UP_RAD)
                head = point_head(robot, 0.0, goal_rad)
                view = take_view(robot, rig)
                guide.picture(LIVE, view.rgb)
                shot = DepthView(head.pan_rad, head.tilt_rad, points_of(view), rig.serial)
                looked_rad = head.tilt_rad + _tilted_rad(shot, mount)
                approaches.append(Approach(goal_rad, upward, looked_rad))
                side = "below" if upward else "above"
                guide.progress(2 * number + 2 - upward, 2 * len(ANGLES_DEG), f"tilt {angle_deg:+.0f}° from {side}")
        return approaches

    def split(self, captures: Sequence[Approach]) -> tuple[list[Approach], list[Approach]]:
        """Hold out complete pairs of approaches."""
        angles = sorted({capture.commanded_rad for capture in captures})
        held_out = set(angles[1::3])
        training = [capture for capture in captures if capture.commanded_rad not in held_out]
        return training, [capture for capture in captures if capture.commanded_rad in held_out]

    def solve(self, captures: Sequence[Approach]) -> Fit[TiltServo]:
        if (
            len({capture.commanded_rad for capture in captures if capture.upward}) < MIN_ANGLES
            or len({capture.commanded_rad for capture in captures if not capture.upward}) < MIN_ANGLES
        ):
            raise CalibrationFailed(
                f"fewer than {MIN_ANGLES} angles were reached from both sides", "clear the head's range of motion"
            )
        angles = np.array([capture.commanded_rad for capture in captures])
        side = np.array([-1.0 if capture.upward else 1.0 for capture in captures])
        error = np.array([capture.looked_rad for capture in captures]) - angles
        model = np.column_stack([np.ones_like(angles), angles, side / 2])
        (zero, slope, play), *_ = np.linalg.lstsq(model, error, rcond=None)
        servo = TiltServo(math.degrees(zero), 1 + float(slope), max(0.0, math.degrees(play)))
        rms_rad = float(np.sqrt(np.mean([_error_rad(servo, capture) ** 2 for capture in captures])))
        method = f"floor plane, {len(angles)} approaches from both sides"
        return Fit(servo, config.unparse(servo), "", method, {"tilt_deg": math.degrees(rms_rad)})

    def verify(self, solution: TiltServo, held_out: Sequence[Approach]) -> dict[str, float]:
        worst_rad = max(abs(_error_rad(solution, capture)) for capture in held_out)
        return {"tilt_deg": math.degrees(worst_rad), "approaches": float(len(held_out))}


def _tilted_rad(view: DepthView, mount: CameraMount) -> float:
    """Return the camera's tilt by the floor relative to its mount and the head's angle, up positive."""
    floor = find_floor(view, mount)
    sensor = mount.sensor(SE2(), view.pan_rad, view.tilt_rad)
    # The floor's normal, rotated by the mount; the rest is a rotation about the level y axis.
    up = sensor[:3, :3] @ _OPTICAL @ floor.up
    return math.atan2(float(up[0]), float(up[2]))


def _error_rad(servo: TiltServo, capture: Approach) -> float:
    return servo.camera_tilt_rad(capture.commanded_rad, capture.upward) - capture.looked_rad
