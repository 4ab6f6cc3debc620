"""Walks for the learned navigator: shortest paths of actions to objects, seen by a camera without physics."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.grid_interpolation import Floats, bilinear
from robot_runtime.scenes.scene import Scene, load_scene
from robot_runtime.task_kinds.eqa.questions.starts import PathFinder
from robot_runtime.tasks.categories import object_goal
from robot_runtime.tasks.task import load_task
from sim_bridge.physics.scene_model import build_model
from sim_bridge.rendering.renderer import SceneRenderer
from sim_bridge.training.eqa_views import TASK, camera_image, questions_by_object, shrunk

ACTIONS = load_task(TASK).actions
LONGEST = 50
"""Actions of a walk; the paper's longest start is T-50."""

BEYOND = 4
"""Turns after the end of the path: what an agent sees that stops too late."""

WALKS = 20
"""Objects of a flat that are walked to."""

_STEP_M = 0.01


@dataclass(frozen=True, eq=False)
class Walks:
    """Walks in one flat.

    Attributes:
        frames: uint8 (N, SIDE, SIDE, 3), of all walks: one before every action and :data:`BEYOND` after the end.
        actions: actions of each walk, (T,), indices of :data:`ACTIONS`, the last one ``stop``.
        asked: text, answer and template of the questions about the object of each walk.
    """

    frames: NDArray[np.uint8]
    actions: list[NDArray[np.int64]]
    asked: list[list[tuple[str, str, str]]]

    @classmethod
    def read(cls, path: Path) -> Walks:
        """The walks of :func:`write_walks`."""
        with np.load(path) as data:
            actions = np.split(data["actions"], np.cumsum(data["lengths"])[:-1])
            asked = [[tuple(one) for one in questions] for questions in json.loads(str(data["asked"]))]
            return cls(data["frames"], actions, asked)


class Walker:
    """A robot with the task's camera that moves over a map: it stops where it touches, and does not slide."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.task = scene, load_task(TASK)
        self._renderer = SceneRenderer(build_model(scene), self.task.camera.intrinsics)
        self._clearance_m = scene.map.clearance_m()

    def close(self) -> None:
        """Release the renderer."""
        self._renderer.close()

    def image(self, pose: SE2) -> NDArray[np.uint8]:
        """The camera's image from a pose, (H, W, 3)."""
        return camera_image(self._renderer, pose, self.task)

    def moved(self, pose: SE2, action: Action) -> SE2:
        """The pose after an action."""
        way = self.task.magnitudes.displacement(action)
        if not way.forward_m:
            return pose @ SE2(0.0, 0.0, way.turn_rad)
        steps = round(way.forward_m / _STEP_M)
        along_m = np.arange(steps + 1, dtype=np.float64) * _STEP_M
        grid = self.scene.map
        x: Floats = (pose.x_m + along_m * math.cos(pose.yaw_rad) - grid.origin_x_m) / grid.resolution_m
        y: Floats = (pose.y_m + along_m * math.sin(pose.yaw_rad) - grid.origin_y_m) / grid.resolution_m
        free = bilinear(self._clearance_m, x, y) - self.task.robot_radius_m
        hits = np.flatnonzero(~(free[1:] >= 0) & ~(free[1:] >= free[:-1]))
        return pose @ SE2(float(along_m[hits[0] if hits.size else steps]), 0.0, 0.0)


def write_walks(job: tuple[Path, Path]) -> None:
    """Write the walks of a flat that exists, whose seed is its folder's name, unless they exist.

    Args:
        job: folder of the flat, file of the walks.
    """
    folder, out = job
    if out.exists():
        return
    walks = shortest_walks(load_scene(folder), int(folder.name))
    part = out.with_suffix(".part.npz")
    lengths = np.array([len(actions) for actions in walks.actions])
    flat = np.concatenate(walks.actions)
    np.savez(part, frames=walks.frames, actions=flat, lengths=lengths, asked=np.array(json.dumps(walks.asked)))
    part.replace(out)


def shortest_walks(scene: Scene, seed: int, most: int = WALKS) -> Walks:
    """Walks to some objects, at most ``most``, that there are questions about; at most :data:`LONGEST` actions long."""
    walker, rng = Walker(scene), random.Random(seed)
    finder = PathFinder(scene, walker.task.magnitudes, walker.task.robot_radius_m, seed)
    by_object = questions_by_object(scene)
    frames: list[NDArray[np.uint8]] = []
    actions, asked = [], []
    try:
        for target in rng.sample(sorted(by_object), len(by_object)):
            goal = object_goal(scene, scene.object(target))
            path = finder.path([goal], LONGEST) if goal.view_points else None
            if path is None:
                continue
            poses = [path.start, *(step.pose for step in path.steps)][-LONGEST - 1 :]
            done = [ACTIONS.index(step.action) for step in path.steps][-LONGEST:]
            side = rng.choice((Action.TURN_LEFT, Action.TURN_RIGHT))
            for _ in range(BEYOND):
                poses.append(walker.moved(poses[-1], side))
            frames += [shrunk(walker.image(pose)) for pose in poses]
            actions.append(np.array([*done, ACTIONS.index(Action.STOP)], np.int64))
            asked.append(by_object[target])
            if len(actions) == most:
                break
    finally:
        walker.close()
    return Walks(np.array(frames), actions, asked)


def frames_of(actions: Sequence[NDArray[np.int64]]) -> list[slice]:
    """Slice of each walk among the frames of all."""
    ends = np.cumsum([len(one) + BEYOND for one in actions])
    return [slice(int(end) - len(one) - BEYOND, int(end)) for end, one in zip(ends, actions, strict=True)]
