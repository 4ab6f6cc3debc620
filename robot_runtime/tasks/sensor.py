"""A sensor of a task: one entry of an observation, computed from a frame, a pose and the episode's goal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.hal import RgbdFrame
from robot_runtime.scenes.scene import Room
from robot_runtime.tasks.episode import Instruction, Question
from robot_runtime.tasks.task import Task

Bound = float | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """Input of all sensors at one step.

    Attributes:
        task: the task whose sensors are computed.
        frame: exposed while the robot stood at ``pose``.
        pose: of the robot, in the localizer's frame.
        start: origin of the start frame, in the localizer's frame.
        goal: (x, y) of the point goal in the start frame, meters; None where no sensor shows it.
        category_id: of the object or area goal; None where no sensor shows it.
        object_category_ids: of each object that ``frame.semantic`` can show (``objectnav.object_category_ids``).
        instruction: of the episode; None where no sensor shows it.
        question: of the episode; None where no sensor shows it.
        origin: origin of the start frame, in map.
        extras: input of the sensors that only one kind of task has (``TaskState.extras``).
        rooms: of the scene, in map.
    """

    task: Task
    frame: RgbdFrame
    pose: SE2
    start: SE2
    goal: tuple[float, float] | None
    category_id: int | None
    object_category_ids: NDArray[np.int32]
    instruction: Instruction | None = None
    question: Question | None = None
    origin: SE2 = SE2()  # noqa: RUF009 (frozen)
    extras: object = None
    rooms: tuple[Room, ...] = ()


@dataclass(frozen=True, slots=True)
class Sensor:
    """One row of ``robot_runtime.sensors.SENSORS``.

    Attributes:
        doc: meaning of the values, with unit and frame.
        dtype: exact type; of text ``np.str_``.
        shape: exact shape in a task; of text ().
        bounds: (low, high) in a task, inclusive, of every element or of each one; of text none.
        value: a new array of that dtype and shape.
    """

    doc: str
    dtype: type[np.generic]
    shape: Callable[[Task], tuple[int, ...]]
    bounds: Callable[[Task], tuple[Bound, Bound]]
    value: Callable[[Moment], NDArray[Any]]


def text_sensor(doc: str, value: Callable[[Moment], NDArray[Any]]) -> Sensor:
    """A sensor whose value is a text."""
    return Sensor(doc=doc, dtype=np.str_, shape=lambda _: (), bounds=lambda _: (0, 0), value=value)


def image_shape(channels: int) -> Callable[[Task], tuple[int, ...]]:
    """The shape of images of the training camera's size."""
    return lambda task: (task.camera.height, task.camera.width, channels)
