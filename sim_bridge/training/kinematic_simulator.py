"""Kinematic simulator of the robot for training, several times faster than physics.

It moves a disc over the scene's map and renders depth. Its errors are those of a robot preset at the end of an action:
motion is closed over odometry, so the robot truly moves by what odometry measures wrongly. Contact stops the disc, and
a forward move towards what it touches is refused, as by the Guard. Policies are evaluated on the simulated robot.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, compass, gps, polar_goal, wrap_angle
from robot_runtime.imaging.depth import training_depth
from robot_runtime.policy import Observation
from robot_runtime.robots.loader import read_robot_file
from robot_runtime.scenes.grid_interpolation import Floats, bilinear
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task
from sim_bridge.physics.scene_model import build_model
from sim_bridge.rendering.renderer import SceneRenderer, camera_rotation
from sim_bridge.robot.driver import SimOptions

_STEP_M = 0.01
_TOUCH_M = 0.004
_BUMPER_RAD = math.radians(90.0)
_INTERPOLATED = 0.75
"""Mean share of a pose's noise that remains after interpolation between two measurements."""

_ORIGIN_SAMPLES = 10


@dataclass(frozen=True)
class Errors:
    """Errors of the robot in one episode.

    Attributes:
        share: factor of its errors; 0 for none.
    """

    options: SimOptions
    share: float


def preset_options(name: str) -> SimOptions:
    """The options of a robot preset of the simulator. Raises ``ConfigError``."""
    path, file = read_robot_file(name)
    return config.parse(dict(file.options), SimOptions, f"{path}: options")


class KinematicSimulator:
    """One robot in one scene; bound to the thread that made it.

    Args:
        scene: scene with meshes.
        task: its camera may be smaller than the published one, with the same field of view.
    """

    def __init__(self, scene: Scene, task: Task) -> None:
        self.scene, self.task = scene, task
        camera = task.camera
        self._renderer = SceneRenderer(build_model(_untextured(scene)), camera.intrinsics)
        self._clearance_m = scene.map.clearance_m()
        self._radius_m = task.robot_radius_m

    def close(self) -> None:
        """Release the renderer."""
        self._renderer.close()

    def reset(self, episode: Episode, errors: Errors, random: np.random.Generator) -> Observation:
        """Place the robot at the start, and return the first observation."""
        self._random, self._errors = random, errors
        self._pose = episode.start
        self._start = self._measured(1 / math.sqrt(_ORIGIN_SAMPLES))
        goal = episode.goals[0]
        self._goal = self._start.inverse().apply(goal.x_m, goal.y_m)
        return self._observe()

    def step(self, action: Action) -> Observation:
        """Execute one action, and return the observation after it."""
        displacement = self.task.magnitudes.displacement(action)
        if displacement.forward_m:
            self._drive(displacement.forward_m)
        if displacement.turn_rad:
            self._turn(displacement.turn_rad)
        return self._observe()

    def _drive(self, forward_m: float) -> None:
        odometry, share = self._errors.options.odometry, self._errors.share
        along, about = self._random.standard_normal(2)
        root = math.sqrt(forward_m)
        scale = 1 + share * (1 / odometry.linear_scale - 1)
        distance_m = forward_m * scale - share * along * odometry.linear_noise_m * root
        turn_rad = -share * about * odometry.heading_noise_rad * root
        if self._refused():
            return
        steps = max(1, math.ceil(distance_m / _STEP_M))
        heading_rad = self._pose.yaw_rad + turn_rad / 2
        along_m = distance_m * np.arange(steps + 1) / steps
        x, y = self._pose.x_m + math.cos(heading_rad) * along_m, self._pose.y_m + math.sin(heading_rad) * along_m
        free_m = self._free_m(x, y)
        hits = np.flatnonzero((free_m[1:] < 0) & (free_m[1:] < free_m[:-1]))
        last = int(hits[0]) if hits.size else steps
        self._pose = SE2(float(x[last]), float(y[last]), wrap_angle(self._pose.yaw_rad + turn_rad * last / steps))

    def _turn(self, turn_rad: float) -> None:
        odometry, share = self._errors.options.odometry, self._errors.share
        noise_rad = self._random.standard_normal() * odometry.angular_noise_rad * math.sqrt(abs(turn_rad))
        true_rad = turn_rad * (1 + share * (1 / odometry.angular_scale - 1)) - share * noise_rad
        self._pose = SE2(self._pose.x_m, self._pose.y_m, wrap_angle(self._pose.yaw_rad + true_rad))

    def _refused(self) -> bool:
        """Whether the robot touches something within the bumper's angle."""
        step_m = self.scene.map.resolution_m
        x = self._pose.x_m + step_m * np.array([0.0, 1.0, -1.0, 0.0, 0.0])
        y = self._pose.y_m + step_m * np.array([0.0, 0.0, 0.0, 1.0, -1.0])
        here_m, east_m, west_m, north_m, south_m = self._free_m(x, y).tolist()
        if here_m > _TOUCH_M:
            return False
        slope_x, slope_y = east_m - west_m, north_m - south_m
        if not (math.isfinite(slope_x) and math.isfinite(slope_y)):
            return True
        return abs(wrap_angle(math.atan2(-slope_y, -slope_x) - self._pose.yaw_rad)) < _BUMPER_RAD

    def _free_m(self, x: Floats, y: Floats) -> Floats:
        """Distance between the robot's rim and the nearest obstacle; negative where they overlap or outside the map."""
        grid = self.scene.map
        columns, rows = (x - grid.origin_x_m) / grid.resolution_m, (y - grid.origin_y_m) / grid.resolution_m
        clearance_m = bilinear(self._clearance_m, columns, rows)
        return np.where(np.isfinite(clearance_m), clearance_m - self._radius_m, -np.inf)

    def _measured(self, share: float) -> SE2:
        """The localizer's pose with this share of its noise."""
        localizer = self._errors.options.localizer
        x, y, yaw = (share * self._errors.share * self._random.standard_normal(3)).tolist()
        return SE2(
            self._pose.x_m + x * localizer.noise_m,
            self._pose.y_m + y * localizer.noise_m,
            wrap_angle(self._pose.yaw_rad + yaw * math.radians(localizer.noise_deg)),
        )

    def _observe(self) -> Observation:
        camera, options = self.task.camera, self._errors.options.camera
        position = np.array([self._pose.x_m, self._pose.y_m, camera.height_m])
        _, depth_m = self._renderer.render(position, camera_rotation(self._pose.yaw_rad, camera.tilt_rad))
        if self._errors.share:
            depth_m = np.where((depth_m < options.depth_min_m) | (depth_m > options.depth_max_m), 0, depth_m)
        pose = self._measured(_INTERPOLATED)
        return {
            "depth": training_depth(depth_m.astype(np.float32), camera),
            "gps": gps(self._start, pose).astype(np.float32),
            "compass": np.array([compass(self._start, pose)], np.float32),
            "pointgoal": polar_goal(SE2(), *self._goal).astype(np.float32),
            "pointgoal_with_gps_compass": polar_goal(pose.relative_to(self._start), *self._goal).astype(np.float32),
        }


def _untextured(scene: Scene) -> Scene:
    """The scene without textures; they take long to load and do not affect depth."""
    plain = {name: replace(material, texture=None) for name, material in scene.file.materials.items()}
    return replace(scene, file=replace(scene.file, materials=plain))
