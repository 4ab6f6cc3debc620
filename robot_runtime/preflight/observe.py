"""One frame of a standing robot with its head as at an episode's start."""

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
"""Neighboring headings to either side that lie in the camera's view."""

LONGEST_M = 5.0


@dataclass(frozen=True, slots=True)
class StartView:
    """One frame and the pose of the camera.

    Attributes:
        frame: frame as captured.
        tilt_rad: tilt by the head, at rest, up positive.
        floor: pose of the camera by the visible floor; None without one.
        expected: the training camera's view; None without a simulation.
    """

    frame: RgbdFrame
    tilt_rad: float
    floor: CameraAboveFloor | None
    expected: RgbdFrame | None


def observe_start(robot: Robot, trained: TrainingCamera) -> StartView:
    """Turn the head as at an episode's start, and capture a frame.

    Raises:
        DeviceFault: the head does not come to rest, or the camera does not deliver.
    """
    robot.head.command(0.0, trained.tilt_rad)
    # The head's state may lag its command.
    robot.clock.sleep_until(robot.clock.now_ns() + seconds_to_ns(STREAMS["head"].max_age_s))

    def rested() -> float | None:
        state = robot.head_state()
        return None if state.moving else state.tilt_rad

    rested_rad = wait_for(robot.clock, rested, HEAD_TIMEOUT_S, POLL_S)
    if rested_rad is None:
        raise DeviceFault(f"head: still moving after {HEAD_TIMEOUT_S:g} s", "check whether something blocks the head")
    frame = robot.camera.capture(robot.clock.now_ns(), CAPTURE_TIMEOUT_S)
    info = robot.camera.info
    floor = find_floor(frame.depth_m, info.intrinsics, info.mount.z_m, rested_rad)
    return StartView(frame, rested_rad, floor, _from_training_camera(robot, trained))


def open_start_pose(scene: Scene, radius_m: float) -> SE2:
    """The start pose of a simulated robot with the most free floor in view."""
    free = scene.map.navigable(radius_m)
    place = scene.map.most_open_point()
    headings_rad = np.arange(0, 2 * math.pi, HEADING_RAD)
    steps_m = np.arange(0, LONGEST_M, scene.map.resolution_m)
    free_m = np.full(len(headings_rad), LONGEST_M)
    for number, yaw_rad in enumerate(headings_rad):
        for step_m in steps_m:
            x_m, y_m = place[0] + step_m * math.cos(yaw_rad), place[1] + step_m * math.sin(yaw_rad)
            row, column = scene.map.to_cell(x_m, y_m)
            if not (0 <= row < free.shape[0] and 0 <= column < free.shape[1] and free[row, column]):
                free_m[number] = step_m
                break
    area_m2 = np.sum([np.roll(free_m**2, shift) for shift in range(-BESIDE, BESIDE + 1)], axis=0)
    return SE2(*place, wrap_angle(float(headings_rad[np.argmax(area_m2)])))


def _from_training_camera(robot: Robot, trained: TrainingCamera) -> RgbdFrame | None:
    if robot.simulation is None:
        return None
    base = robot.simulation.pose()
    pose = np.eye(4)
    pose[:3, :3] = optical_axes(base.yaw_rad, trained.tilt_rad)
    pose[:3, 3] = base.x_m, base.y_m, trained.height_m
    rgb, depth_m = robot.simulation.render(Lens.of(trained.intrinsics), pose)
    return RgbdFrame(robot.clock.now_ns(), rgb, depth_m)
