"""Poses from tags 3 m away, compared with the simulated robot's true pose.

The robot is placed at random in the bundled apartment with an emulated Azure Kinect, level: lens, color noise and the
resampling to the policy's pinhole are in the image. Tags nearer than 2.5 m or farther than 3.5 m are not in the map.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from drivers.apriltag.driver import AprilTagOptions
from drivers.apriltag.localizer import sighting
from drivers.apriltag.pose import CameraOnRobot, solve
from robot_runtime.common.geometry import SE2, optical_axes, wrap_angle
from robot_runtime.common.transforms import transform
from robot_runtime.errors import InvalidStart
from robot_runtime.hal import Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.tag_detector import Detection, TagDetector
from robot_runtime.robots.loader import DeviceOverrides, RobotContext, load_robot
from robot_runtime.scenes.occupancy_map import Cell
from robot_runtime.scenes.scene import Scene, find_scene, load_scene
from robot_runtime.scenes.tag_map import Tag, find_tag_map, load_tag_map
from robot_runtime.tasks.task import TrainingCamera

PLACES = 60
MAX_TRIES = 3000
NEAR_M, FAR_M = 2.5, 3.5
CAMERA = TrainingCamera(640, 480, 79.0, 0.88, 0.1, 10.0, False)
WAIT_S = 2.0


@dataclass(frozen=True)
class Error:
    """Error of one pose.

    Attributes:
        tags: number of tags that the pose was computed from.
        off_m: distance to the true position.
        off_rad: difference to the true heading.
    """

    tags: int
    off_m: float
    off_rad: float


def measure(seed: int) -> tuple[list[Error], int]:
    """Return the errors at random poses, and the number of images rejected as ambiguous."""
    scene = load_scene(find_scene("apartment"))
    tags = load_tag_map(find_tag_map("scene", scene, "bench")).by_id
    robot = load_robot("sim-tags", RobotContext(scene, CAMERA, seed), DeviceOverrides(camera="azure-kinect"))
    detector, random = TagDetector(), np.random.default_rng(seed)
    errors: list[Error] = []
    refused = 0
    with robot:
        for _ in range(MAX_TRIES):
            pose = _random_pose(scene, random)
            far = {tag_id: tag for tag_id, tag in tags.items() if _is_candidate(tag, pose)}
            if len(far) < 2 or not _place(robot, pose):
                continue
            image = robot.camera.capture(robot.clock.now_ns(), WAIT_S).rgb
            found = [item for item in detector.detect(image) if item.id in far]
            if not found:
                continue
            error = _localization_error(robot, found, far, pose)
            if error is None:
                refused += 1
            else:
                errors.append(error)
            if sum(e.tags > 1 for e in errors) >= PLACES:
                break
    return errors, refused


def _localization_error(robot: Robot, found: list[Detection], tags: dict[int, Tag], truth: SE2) -> Error | None:
    accuracy, k, mount = AprilTagOptions().accuracy, robot.camera.info.intrinsics, robot.camera.info.mount
    lens = Lens(k.width, k.height, k.fx, k.fy, k.cx, k.cy)
    sightings = [sighting(item, tags[item.id], lens, accuracy) for item in found]
    camera = CameraOnRobot(transform((mount.x_m, mount.y_m, mount.z_m), optical_axes(0.0, 0.0)))
    solutions = solve(sightings, camera, accuracy.stance)
    if len(solutions) != 1:
        return None
    pose = solutions[0].pose
    return Error(len(solutions[0].used), pose.distance_to(truth), abs(wrap_angle(pose.yaw_rad - truth.yaw_rad)))


def _is_candidate(tag: Tag, pose: SE2) -> bool:
    """Return whether a tag is about 3 m away, in view, and seen from the front."""
    x_m, y_m, z_m = tag.xyz_m
    distance_m = math.hypot(x_m - pose.x_m, y_m - pose.y_m, z_m - CAMERA.height_m)
    bearing_rad = abs(wrap_angle(math.atan2(y_m - pose.y_m, x_m - pose.x_m) - pose.yaw_rad))
    faces = float(np.dot(tag.matrix[:2, 0], (pose.x_m - x_m, pose.y_m - y_m))) > 0
    return faces and NEAR_M <= distance_m <= FAR_M and bearing_rad < math.radians(CAMERA.hfov_deg / 2)


def _random_pose(scene: Scene, random: np.random.Generator) -> SE2:
    free = np.argwhere(scene.map.cells == Cell.FREE)
    row, column = free[random.integers(len(free))].tolist()
    x_m, y_m = scene.map.to_point(row, column)
    return SE2(x_m, y_m, float(random.uniform(-math.pi, math.pi)))


def _place(robot: Robot, pose: SE2) -> bool:
    try:
        robot.placer.place(pose, 0.0)
    except InvalidStart:
        return False
    return True
