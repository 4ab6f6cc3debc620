"""Views for learned question answering: the last frames of approaches to objects, with questions about them."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.scene import Scene, load_scene
from robot_runtime.task_kinds.eqa.questions.generate import generate_questions
from robot_runtime.task_kinds.eqa.questions.names import category_name
from robot_runtime.task_kinds.eqa.questions.rules import FEW_SCENES, FURTHER_TEMPLATES, V1_TEMPLATES
from robot_runtime.tasks.task import Task, load_task
from sim_bridge.physics.scene_model import build_model
from sim_bridge.rendering.renderer import SceneRenderer, camera_rotation
from sim_bridge.scenes.generate import generate_scene

TASK = "eqa_embodied"
FRAMES = 5
SIDE = 112
"""Pixels along a frame's edge: every second one of the task's."""

SIZES = ("robothor", "medium")
_VIEWS_PER_OBJECT = 2
_AIM_RAD = math.radians(3.0)


@dataclass(frozen=True, eq=False)
class Views:
    """Approaches to objects of a flat.

    Attributes:
        frames: uint8 (N, FRAMES, SIDE, SIDE, 3), the last frame last.
        semantic: int8 (N, SIDE, SIDE), category ids of the last frame, -1 for none.
        category: int8 (N,), of the object, -1 for none of the task's.
        asked: text, answer and template of each question about the object of each approach.
    """

    frames: NDArray[np.uint8]
    semantic: NDArray[np.int8]
    category: NDArray[np.int8]
    asked: list[list[tuple[str, str, str]]]

    @classmethod
    def read(cls, path: Path) -> Views:
        """The views of :func:`write_views`."""
        with np.load(path) as data:
            asked = [[tuple(one) for one in questions] for questions in json.loads(str(data["asked"]))]
            return cls(data["frames"], data["semantic"], data["category"], asked)


def write_views(job: tuple[Path, Path]) -> None:
    """Make a flat, whose seed is its folder's name, and write its views, unless they exist.

    Args:
        job: folder of the flat, file of the views.
    """
    folder, out = job
    if out.exists():
        return
    seed = int(folder.name)
    if not folder.exists():
        generate_scene(folder, seed, SIZES[seed % len(SIZES)])
    views = approach_views(load_scene(folder), seed)
    part = out.with_suffix(".part.npz")
    asked = np.array(json.dumps(views.asked))
    np.savez(part, frames=views.frames, semantic=views.semantic, category=views.category, asked=asked)
    part.replace(out)


def approach_views(scene: Scene, seed: int) -> Views:
    """Approaches to the objects of a scene that there are questions about."""
    task, rng, by_object = load_task(TASK), random.Random(seed), questions_by_object(scene)
    ids = {name: category.id for category in task.categories.values() for name in category.matches}
    of_object = np.array([*(ids.get(item.category, -1) for item in scene.objects), -1], np.int8)
    clearance_m = scene.map.clearance_m()
    renderer = SceneRenderer(build_model(scene), task.camera.intrinsics)
    frames, semantic, category, asked = [], [], [], []
    try:
        for item in scene.objects:
            places = list(scene.view_points.get(item.id, ())) if item.id in by_object else []
            for place in rng.sample(places, min(_VIEWS_PER_OBJECT, len(places))):
                yaw_rad = math.atan2(item.center[1] - place.y_m, item.center[0] - place.x_m)
                end = SE2(place.x_m, place.y_m, yaw_rad + rng.gauss(0, _AIM_RAD))
                poses = _approach(end, task, rng, scene, clearance_m)
                frames.append(np.stack([shrunk(camera_image(renderer, pose, task)) for pose in poses]))
                position, rotation = _camera(end, task)
                semantic.append(of_object[renderer.segment(position, rotation)][1::2, 1::2])
                category.append(ids.get(item.category, -1))
                asked.append(by_object[item.id])
    finally:
        renderer.close()
    return Views(np.array(frames), np.array(semantic), np.array(category, np.int8), asked)


def questions_by_object(scene: Scene) -> dict[str, list[tuple[str, str, str]]]:
    """Text, answer and template of the questions about a scene, by the id of their target."""
    rules = replace(FEW_SCENES, templates=(*V1_TEMPLATES, FURTHER_TEMPLATES[0]))
    found: dict[str, list[tuple[str, str, str]]] = {}
    for question in generate_questions([scene], rules).questions:
        for target in question.targets:
            found.setdefault(target, []).append((question.text, question.answer, question.type))
    return found


def category_words() -> dict[str, str]:
    """The names in words of the task's categories, by the names of categories in scenes."""
    categories = load_task(TASK).categories.items()
    return {match: category_name(key, {}) for key, category in categories for match in category.matches}


def _approach(end: SE2, task: Task, rng: random.Random, scene: Scene, clearance_m: NDArray[np.floating]) -> list[SE2]:
    """The poses of the last frames, ``end`` the last: forward moves where there is room, then some turns."""
    poses, turns, side = [end], rng.choice((0, 0, 1, 2, 3, 4)), rng.choice((-1, 1))
    turn = SE2(0.0, 0.0, side * math.radians(task.magnitudes.turn_deg))
    for index in range(FRAMES - 1):
        back = poses[0] @ SE2(-task.magnitudes.forward_m, 0.0, 0.0)
        free = scene.map.contains(back.x_m, back.y_m)
        free = free and clearance_m[scene.map.to_cell(back.x_m, back.y_m)] > task.robot_radius_m
        poses.insert(0, back if index >= turns and free else poses[0] @ turn)
    return poses


def _camera(pose: SE2, task: Task) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    position = np.array([pose.x_m, pose.y_m, task.camera.height_m])
    return position, camera_rotation(pose.yaw_rad, task.camera.tilt_rad)


def camera_image(renderer: SceneRenderer, pose: SE2, task: Task) -> NDArray[np.uint8]:
    """The image of the task's camera on a robot at a pose, (H, W, 3)."""
    return renderer.render(*_camera(pose, task))[0]


def shrunk(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The image with :data:`SIDE` pixels a side."""
    return np.asarray(cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8)
