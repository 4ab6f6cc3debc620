"""What the robot sees and does while it stands still with its head as at an episode's start."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robot_runtime.common.clock import seconds_to_ns, wait_for
from robot_runtime.common.geometry import SE2, optical_axes, wrap_angle
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import RgbdFrame, Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.streams import STREAMS
from robot_runtime.imaging.floor import CameraAboveFloor, find_floor
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.task import TrainingCamera

HEAD_TIMEOUT_S = 10.0
POLL_S = 0.02
CAPTURE_TIMEOUT_S = 2.0

HEADING_RAD = math.radians(15)
BESIDE = 2
"""Headings to either side that a camera sees, too."""

LONGEST_M = 5.0


@dataclass(frozen=True, slots=True)
class StartView:
    """One frame, and where the camera was.

    Attributes:
        tilt_rad: as the head says, at rest, up positive.
        floor: where the camera is by the floor that it sees; None where it sees none.
        expected: what the training camera would see there; None where nobody knows, as on a real robot.
    """

    frame: RgbdFrame
    tilt_rad: float
    floor: CameraAboveFloor | None
    expected: RgbdFrame | None


def observe_start(robot: Robot, trained: TrainingCamera) -> StartView:
    """Turn the head as at an episode's start, and look once.

    Raises:
        DeviceFault: the head does not come to rest, or the camera does not deliver.
    """
    robot.head.command(0.0, trained.tilt_rad)
    # The head's state may lag its command.
    robot.clock.sleep_until(robot.clock.now_ns() + seconds_to_ns(STREAMS["head"].max_age_s))

    def rested() -> float | None:
        state = robot.head.state(STREAMS["head"].max_age_s)
        return None if state.moving else state.tilt_rad

    rested_rad = wait_for(robot.clock, rested, HEAD_TIMEOUT_S, POLL_S)
    if rested_rad is None:
        raise DeviceFault(f"head: still moving after {HEAD_TIMEOUT_S:g} s", "see whether something holds the head")
    frame = robot.camera.capture(robot.clock.now_ns(), CAPTURE_TIMEOUT_S)
    info = robot.camera.info
    floor = find_floor(frame.depth_m, info.intrinsics, info.mount.z_m, rested_rad)
    return StartView(frame, rested_rad, floor, _from_training_camera(robot, trained))


def open_start_pose(scene: Scene, radius_m: float) -> SE2:
    """Where a simulated robot stands free and looks over the most free floor, not just along a gap."""
    free = scene.map.navigable(radius_m)
    here = scene.map.most_open_point()
    headings_rad = np.arange(0, 2 * math.pi, HEADING_RAD)
    steps_m = np.arange(0, LONGEST_M, scene.map.resolution_m)
    far_m = np.full(len(headings_rad), LONGEST_M)
    for number, yaw_rad in enumerate(headings_rad):
        for step_m in steps_m:
            row, column = scene.map.to_cell(here[0] + step_m * math.cos(yaw_rad), here[1] + step_m * math.sin(yaw_rad))
            if not (0 <= row < free.shape[0] and 0 <= column < free.shape[1] and free[row, column]):
                far_m[number] = step_m
                break
    area_m2 = np.sum([np.roll(far_m**2, shift) for shift in range(-BESIDE, BESIDE + 1)], axis=0)
    return SE2(*here, wrap_angle(float(headings_rad[np.argmax(area_m2)])))


def _from_training_camera(robot: Robot, trained: TrainingCamera) -> RgbdFrame | None:
    if robot.simulation is None:
        return None
    base = robot.simulation.pose()
    pose = np.eye(4)
    pose[:3, :3] = optical_axes(base.yaw_rad, trained.tilt_rad)
    pose[:3, 3] = base.x_m, base.y_m, trained.height_m
    rgb, depth_m = robot.simulation.render(Lens.of(trained.intrinsics), pose)
    return RgbdFrame(robot.clock.now_ns(), rgb, depth_m)
