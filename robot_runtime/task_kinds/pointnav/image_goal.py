"""Goals shown as images: what the camera sees at the goal (habitat-lab ``tasks/nav/nav.py``, ``ImageGoalSensor``)."""

import base64
import math
import zlib
from dataclasses import replace
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.common.image_files import decode_image
from robot_runtime.errors import EpisodeError
from robot_runtime.hal import Robot
from robot_runtime.hal.streams import STREAMS
from robot_runtime.task_kinds.pointnav.task import GoalImage
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task, TrainingCamera


@lru_cache(maxsize=4)
def goal_image(url: str, camera: TrainingCamera) -> NDArray[np.uint8]:
    """The image of a ``data:`` URL, read-only uint8 (H, W, 3). Raises ``EpisodeError`` if it is not the camera's."""
    try:
        image = decode_image(base64.b64decode(url.partition(",")[2]), cv2.IMREAD_COLOR_RGB)
    except ValueError:
        image = None
    size = (camera.height, camera.width)
    if image is None or image.shape[:2] != size:
        found = "is not a PNG or JPEG" if image is None else f"has {image.shape[1]}x{image.shape[0]} pixels"
        raise EpisodeError(
            f"the goal image {found}; the task's camera has {camera.pixels}",
            "take it at the goal with the robot's camera in this task",
        )
    image.flags.writeable = False
    return image


def with_image(robot: Robot, task: Task, episode: Episode) -> Episode:
    """An episode with the image of its goal. In simulation the robot takes it, in a direction by chance.

    Raises:
        EpisodeError: a robot elsewhere has none, or it is not the task's camera's.
        InvalidStart: the robot does not fit at the goal.
    """
    url, camera = GoalImage.of(episode).goal_image, task.camera
    if not url and robot.placer.way != "teleport":
        raise EpisodeError(
            f"episode {episode.id!r} has no image of its goal",
            "state 'goal_image: FILE' in the episode's YAML, or use a task without the sensor 'imagegoal'",
        )
    if not url:
        random, goal = np.random.default_rng(zlib.crc32(episode.key.encode())), episode.goals[0]
        robot.placer.place(SE2(goal.x_m, goal.y_m, random.uniform(-math.pi, math.pi)), camera.tilt_rad)
        frame = robot.camera.capture(robot.clock.now_ns(), STREAMS["rgb"].max_age_s)
        url = GoalImage.url(cv2.imencode(".png", frame.rgb[:, :, ::-1])[1].tobytes())
    goal_image(url, camera)
    return replace(episode, details=GoalImage(url))
