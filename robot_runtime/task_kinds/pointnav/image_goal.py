"""Goals shown as images: what the camera sees at the goal (habitat-lab ``tasks/nav/nav.py``, ``ImageGoalSensor``)."""

import base64
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self, override

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, EpisodeError
from robot_runtime.hal import Robot
from robot_runtime.hal.streams import STREAMS
from robot_runtime.tasks.episode import Episode, EpisodeDetails
from robot_runtime.tasks.session import TaskSession
from robot_runtime.tasks.task import Task, TrainingCamera

_DATA = "data:image/png;base64,"


@dataclass(frozen=True)
class GoalImage(EpisodeDetails, config.Strict):
    """What episodes with the sensor ``imagegoal`` have besides the common fields.

    Attributes:
        goal_image: PNG or JPEG as ``data:`` URL; in the runtime's own YAML also a file's path, from the YAML's folder.
    """

    goal_image: str = ""
    seen: ClassVar[tuple[str, ...]] = ("goal_image",)

    @classmethod
    @override
    def from_yaml(cls, fields: Mapping[str, Any], path: Path, where: str) -> Self:
        given = str(fields["goal_image"])
        try:
            url = given if given.startswith("data:") else _url((path.parent / given).read_bytes())
        except OSError as error:
            raise ConfigError(
                f"{path}: {where}goal_image {given!r} cannot be read: {error.strerror}", "name a PNG or JPEG"
            ) from error
        return cls(url)

    @property
    @override
    def has_end(self) -> bool:
        return False


@lru_cache(maxsize=4)
def goal_image(url: str, camera: TrainingCamera) -> NDArray[np.uint8]:
    """The image of a ``data:`` URL, read-only uint8 (H, W, 3). Raises ``EpisodeError`` if it is not the camera's."""
    import cv2  # most tasks show no images of goals

    from robot_runtime.common.image_files import decode_image

    try:
        image = decode_image(base64.b64decode(url.partition(",")[2]), cv2.IMREAD_COLOR_RGB)
    except ValueError:
        image = None
    size = (camera.height, camera.width)
    if image is None or image.shape[:2] != size:
        found = "is not a PNG or JPEG" if image is None else f"has {image.shape[1]}x{image.shape[0]} pixels"
        raise EpisodeError(
            f"the goal image {found}; the task's camera has {size[1]}x{size[0]}",
            "take it at the goal with the robot's camera in this task",
        )
    image.flags.writeable = False
    return image


class PointNavSession(TaskSession):
    """Session of point-goal navigation: in simulation it takes the image of the goal, in a direction by chance."""

    def __init__(self, robot: Robot, task: Task) -> None:
        self._robot, self._task = robot, task

    @override
    def begin_episode(self, episode: Episode, place: Callable[[], object]) -> Episode:
        if "imagegoal" not in self._task.sensors:
            return episode
        if not (url := GoalImage.of(episode).goal_image) and self._robot.placer.way != "teleport":
            raise EpisodeError(
                f"episode {episode.id!r} has no image of its goal",
                "state 'goal_image: FILE' in the episode's YAML, or use a task without the sensor 'imagegoal'",
            )
        camera = self._task.camera
        if not url:
            import cv2

            random, goal = np.random.default_rng(zlib.crc32(episode.key.encode())), episode.goals[0]
            self._robot.placer.place(SE2(goal.x_m, goal.y_m, random.uniform(-math.pi, math.pi)), camera.tilt_rad)
            frame = self._robot.camera.capture(self._robot.clock.now_ns(), STREAMS["rgb"].max_age_s)
            url = _url(cv2.imencode(".png", frame.rgb[:, :, ::-1])[1].tobytes())
        goal_image(url, camera)
        return replace(episode, details=GoalImage(url))


def _url(data: bytes) -> str:
    return _DATA + base64.b64encode(data).decode()
