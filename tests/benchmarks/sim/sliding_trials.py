"""A sliding robot at random corners of scenes: whether it gets away, and whether its collisions are reported."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import InvalidStart
from robot_runtime.hal import Robot
from robot_runtime.motion.controller import MotionController
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import Scene
from sim_bridge.physics.scene_model import build_model
from sim_bridge.physics.world import World

SPEED_M_S = 0.25
HEADINGS = 12
OFF = 0.05
"""Least component of a unit heading off every touched wall, for a move that must succeed."""

AWAY_M, AWAY_STEPS = 0.003, 20
"""Way that such a move must make in that many steps; lanes may be half a centimeter wider than the robot."""

SHORTENED_M = 0.002


@dataclass
class Corners:
    """Outcome of trials at corners.

    Attributes:
        starts: places at which the body touched something.
        frozen: descriptions of the places where a move off every wall failed.
        deepest_m: greatest depth of the body in a wall.
    """

    starts: int
    frozen: list[str]
    deepest_m: float


def try_corners(scene: Scene, starts: int, seed: int, objects_move: bool = False) -> Corners:
    """Drive the body into corners, then off them in every heading that leads off all walls that it touches."""
    world, random = World(build_model(scene, objects_move=objects_move)), np.random.default_rng(seed)
    result = Corners(0, [], 0.0)
    for x_m, y_m in _places(scene, random):
        if result.starts == starts:
            break
        try:
            world.place(SE2(x_m, y_m, 0.0))
        except InvalidStart:
            continue
        for heading_rad in random.uniform(-math.pi, math.pi, 6):
            _drive(world, world.pose, heading_rad, 250)
        if not (walls := _exact_walls(world)):
            continue
        result.starts += 1
        result.deepest_m = max(result.deepest_m, *(depth_m for _, depth_m in walls))
        corner = world.pose
        for heading_rad in np.arange(HEADINGS) * 2 * math.pi / HEADINGS:
            ahead = math.cos(heading_rad), math.sin(heading_rad)
            if all(np.dot(ahead, direction) < -OFF for direction, _ in walls):
                moved_m = _drive(world, corner, heading_rad, AWAY_STEPS).distance_to(corner)
                if moved_m < AWAY_M:
                    where = f"{scene.name} ({corner.x_m:.3f}, {corner.y_m:.3f})"
                    result.frozen.append(f"{where} heading {math.degrees(heading_rad):.0f}°: {1000 * moved_m:.1f} mm")
    return result


def missed_collisions(scene: Scene, moves: int, seed: int) -> tuple[int, int, int]:
    """Number of shortened moves of ``sim-sliding``, of those that were not reported, and of false reports."""
    random = np.random.default_rng(seed)
    shortened = missed = false = 0
    with load_robot("sim-sliding", RobotContext(scene, None, seed)) as robot:
        places = _places(scene, random)
        motion: MotionController | None = None
        for number in range(moves):
            if number % 8 == 0:
                motion = _placed(robot, places)
            assert motion is not None
            motion.execute(Displacement(turn_rad=float(random.uniform(-1.5, 1.5))))
            before = _pose(robot)
            collided = motion.execute(Displacement(forward_m=0.25)).collided
            is_short = 0.25 - _pose(robot).distance_to(before) > SHORTENED_M
            shortened += is_short
            missed += is_short and not collided
            false += collided and _pose(robot).distance_to(before) > 0.25
    return shortened, missed, false


def _placed(robot: Robot, places: np.ndarray) -> MotionController:
    for x_m, y_m in places:
        try:
            robot.placer.place(SE2(x_m, y_m, 0.0), 0.0)
        except InvalidStart:
            continue
        return MotionController(robot.clock, robot.base, robot.head)
    raise InvalidStart("no place is free", "use another scene")


def _pose(robot: Robot) -> SE2:
    return robot.referee.at(robot.clock.now_ns(), 0.5).pose


def _places(scene: Scene, random: np.random.Generator) -> np.ndarray:
    """Navigable points (N, 2) in random order."""
    cells = np.argwhere(GeodesicMap(scene.map, 0.18).navigable)
    return np.array([scene.map.to_point(*cell) for cell in random.permutation(cells).tolist()])


def _drive(world: World, start: SE2, heading_rad: float, steps: int) -> SE2:
    """Drive from a pose along a heading, sliding, and return the end."""
    world.data.qpos[:3], world.data.qvel[:3] = (start.x_m, start.y_m, heading_rad), 0.0
    mujoco.mj_step1(world.scene_model.model, world.data)
    for _ in range(steps):
        if world.touches:
            world.advance_along_walls(SPEED_M_S, 0.0, 0.0)
        else:
            world.advance(SPEED_M_S, 0.0)
    return world.pose


def _exact_walls(world: World) -> list[tuple[np.ndarray, float]]:
    """Direction (2,) and depth of each touched wall, by distances of the shapes instead of contacts."""
    model, data, body = world.scene_model.model, world.data, world.scene_model
    ends, found = np.zeros(6), []
    for pair in {tuple(pair) for pair in data.contact.geom.tolist()}:
        own = [geom for geom in pair if geom in (body.robot_geom, body.mast_geom)]
        if own:
            other = pair[0] if pair[1] == own[0] else pair[1]
            gap_m = mujoco.mj_geomDistance(model, data, own[0], other, 1.0, ends)
            direction = (ends[3:5] - ends[:2]) * (1 if gap_m >= 0 else -1)
            length = float(np.linalg.norm(direction))
            if length > 1e-6:
                found.append((direction / length, -gap_m))
    return found
