"""Start poses of a simulated robot for calibrations, with room ahead or around."""

import math

import numpy as np

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import CalibrationFailed, InvalidStart
from robot_runtime.hal import Robot
from robot_runtime.hal.simulation import Simulation
from robot_runtime.scenes.occupancy_map import Cell
from robot_runtime.scenes.scene import Scene

ROOM_M = 3.0
"""Free distance ahead beyond which more is not better."""

TURNING_M = 0.4
"""Clearance around the robot's center."""

_FAN_RAD = np.radians(np.arange(-40, 41, 10))
_HEADINGS = 16
_CANDIDATES = 200
_TRIED = 10
_STEP_M = 0.05


def open_start_pose(robot: Robot, simulation: Simulation) -> SE2:
    """Place the robot at the pose with the longest view, head level, and return it.

    Raises:
        CalibrationFailed: the robot fits nowhere in the scene.
    """
    for pose in open_places(simulation.scene)[:_TRIED]:
        try:
            robot.placer.place(pose, 0.0)
        except InvalidStart:
            continue
        return pose
    raise CalibrationFailed(
        f"scene {simulation.scene.name!r} has no place with room to calibrate", "name another with --scene"
    )


def central_start_pose(robot: Robot, simulation: Simulation) -> SE2:
    """Place the robot at the pose with the greatest clearance, head level, and return it.

    Raises:
        CalibrationFailed: the robot fits nowhere in the scene.
    """
    scene_map = simulation.scene.map
    around_m = scene_map.clearance_m()
    row, column = np.unravel_index(int(np.argmax(around_m)), around_m.shape)
    x_m, y_m = scene_map.to_point(int(row), int(column))
    pose = SE2(float(x_m), float(y_m), 0.0)
    try:
        robot.placer.place(pose, 0.0)
    except InvalidStart as error:
        raise CalibrationFailed(
            f"scene {simulation.scene.name!r} has no place for a robot: {error.message}", "name another with --scene"
        ) from error
    return pose


def open_places(scene: Scene) -> list[SE2]:
    """Return poses on free floor, sorted by the free distance in a fan of ±40° ahead, the longest first."""
    around_m = scene.map.clearance_m()
    # With space to turn, if the scene has any.
    rows, columns = np.nonzero(around_m >= min(TURNING_M, 0.9 * float(around_m.max())))
    chosen = np.random.default_rng(0).permutation(len(rows))[:_CANDIDATES]
    places = [scene.map.to_point(row, column) for row, column in zip(rows[chosen], columns[chosen], strict=True)]
    headings_rad = np.linspace(-math.pi, math.pi, _HEADINGS, endpoint=False).tolist()
    poses = [SE2(float(x_m), float(y_m), yaw_rad) for x_m, y_m in places for yaw_rad in headings_rad]
    return sorted(poses, key=lambda pose: -_room_m(scene, pose))


def _room_m(scene: Scene, pose: SE2) -> float:
    """Return the free length of the shortest ray of the fan, at most ``ROOM_M``; the mean of all breaks ties."""
    steps = np.arange(_STEP_M, ROOM_M, _STEP_M)
    angles = pose.yaw_rad + _FAN_RAD[:, None]
    columns = np.floor((pose.x_m + np.cos(angles) * steps - scene.map.origin_x_m) / scene.map.resolution_m).astype(
        np.intp
    )
    rows = np.floor((pose.y_m + np.sin(angles) * steps - scene.map.origin_y_m) / scene.map.resolution_m).astype(np.intp)
    height, width = scene.map.cells.shape
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    free = inside & (scene.map.cells[rows * inside, columns * inside] == Cell.FREE)
    path_lengths_m = np.where(free.all(axis=1), ROOM_M, steps[np.argmin(free, axis=1)])
    return float(path_lengths_m.min() + 1e-3 * path_lengths_m.mean())
