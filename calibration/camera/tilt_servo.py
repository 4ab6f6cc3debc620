"""``robot-runtime calibrate tilt-servo``: where the tilt servo's zero is, and how much play it has.

Each angle is approached from below and from above, and the floor in the depth image says where the camera really looks.
The mean of both is the servo's error, a straight line over its angles; half their difference is the play, which the
servo's own encoder does not see. The zero is of the camera as its mount has it: calibrate the mount first, or the zero
has the mount's pitch in it.
"""

from __future__ import annotations

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
"""From where an angle is approached: more than any play."""

MIN_ANGLES = 4

_OPTICAL = rotation_rpy(*OPTICAL_RPY_RAD)


@dataclass(frozen=True, eq=False)
class Approach:
    """One angle, reached from one side.

    Attributes:
        commanded_rad: what the servo was told and says. upward: whether it came from below.
        looked_rad: where the camera looks by the floor, tilt up positive.
    """

    commanded_rad: float
    upward: bool
    looked_rad: float


class TiltServoProcedure(Procedure[Approach, TiltServo]):
    """See the module.

    Args:
        mount: where the camera sits; None for where the robot's driver has it.
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
        """Whole pairs are held out."""
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
                f"fewer than {MIN_ANGLES} angles were reached from both sides", "give the head room to move"
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
    """How much farther up the camera looks than its mount and the head's angle say, by the floor."""
    floor = find_floor(view, mount)
    sensor = mount.sensor(SE2(), view.pan_rad, view.tilt_rad)
    # Up, by the floor, in the sensor's frame as the mount turns it; what is left is a turn about the level y axis.
    up = sensor[:3, :3] @ _OPTICAL @ floor.up
    return math.atan2(float(up[0]), float(up[2]))


def _error_rad(servo: TiltServo, capture: Approach) -> float:
    return servo.camera_tilt_rad(capture.commanded_rad, capture.upward) - capture.looked_rad
