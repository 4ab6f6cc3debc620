"""A sensor of a task: one entry of an observation, computed from a frame, a pose and the episode's goal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, EpisodeError
from robot_runtime.hal import HeadState, RgbdFrame
from robot_runtime.tasks.task import Task

if TYPE_CHECKING:
    from robot_runtime.scenes.scene import Scene

T = TypeVar("T")
Bound = float | tuple[float, ...]

UNBOUNDED = float(np.finfo(np.float32).max)
"""Bound of values without one."""

PI = float(np.float32(math.pi))
"""Bound of angles in radians, as float32 has it."""

MAX_TOKENS = 200
"""Largest number of tokens of a text, to which R2R-CE's preprocessed files pad."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Input of all sensors at one step.

    Attributes:
        task: the task whose sensors are computed.
        frame: frame exposed while the robot stood at ``pose``.
        pose: pose of the robot, in the localizer's frame.
        start: origin of the start frame, in the localizer's frame.
        goal: what the kind's sensors show of the goal (``TaskKind.goal``, or the session's at this step); None where
            the episode has no goal.
        object_category_ids: category id of each object that ``frame.semantic`` can show
            (:func:`robot_runtime.tasks.categories.object_category_ids`).
        origin: origin of the start frame, in map.
        scene: map and rooms; None without an episode.
        mount: camera's place in base_link (x, y, z, m); None for the training camera's, above the robot's center.
        head: pan and tilt at the exposure; None for the training camera's.
    """

    task: Task
    frame: RgbdFrame
    pose: SE2
    start: SE2
    goal: object
    object_category_ids: NDArray[np.int32]
    origin: SE2 = SE2()  # noqa: RUF009 (frozen)
    scene: Scene | None = None
    mount: tuple[float, float, float] | None = None
    head: HeadState | None = None

    @property
    def in_map(self) -> SE2:
        """Pose of the robot in map."""
        return self.origin @ self.pose.relative_to(self.start)


@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor, offered by an entry point or by a kind of task.

    Attributes:
        doc: meaning of the values, with unit and frame.
        dtype: exact type; of text ``np.str_``.
        shape: exact shape in a task; of text ().
        bounds: (low, high) in a task, inclusive, of every element or of each one; of text none.
        value: a new array of that dtype and shape.
        goal_type: class of the ``Moment.goal`` that the sensor shows; None if it shows no goal.
        rank: place among sensors that are added to a task, the lowest first.
        in_habitat: entries of habitat-lab's observation instead of the value, from all values; None for the value.
    """

    doc: str
    dtype: type[np.generic]
    shape: Callable[[Task], tuple[int, ...]]
    bounds: Callable[[Task], tuple[Bound, Bound]]
    value: Callable[[Moment], NDArray[Any]]
    goal_type: type | None = None
    rank: int = 50
    in_habitat: Callable[[Mapping[str, NDArray[Any]]], dict[str, Any]] | None = None


def goal_of(moment: Moment, kind: type[T]) -> T:
    """The goal of a moment, of the class that a sensor shows. Raises ``ConfigError``: the episode has no such goal."""
    if not isinstance(moment.goal, kind):
        raise ConfigError(
            f"task {moment.task.name!r}: the episode has nothing that the task's sensors could show",
            "use episodes of this task's kind",
        )
    return moment.goal


def text_sensor(
    doc: str,
    value: Callable[[Moment], str],
    goal_type: type | None = None,
    in_habitat: Callable[[Mapping[str, NDArray[Any]]], dict[str, Any]] | None = None,
) -> Sensor:
    """A sensor whose value is a text."""
    return Sensor(
        doc=doc,
        dtype=np.str_,
        shape=lambda _: (),
        bounds=lambda _: (0, 0),
        value=lambda moment: np.array(value(moment), np.str_),
        goal_type=goal_type,
        in_habitat=in_habitat,
    )


def token_sensor(name: str, padding: int, tokens: Callable[[Moment], tuple[int, ...]], goal_type: type) -> Sensor:
    """A sensor whose value is a text as the data set's token ids, padded to :data:`MAX_TOKENS`.

    Args:
        name: word for the text, which is also the sensor that shows it: ``question``.
        padding: id that follows the last token.
        tokens: tokens at a moment, without padding.
        goal_type: class of the goal that has them.
    """

    def value(moment: Moment) -> NDArray[np.int64]:
        shown = tokens(moment)
        if not 0 < len(shown) <= MAX_TOKENS:
            raise EpisodeError(
                f"the sensor '{name}_tokens' shows 1 to {MAX_TOKENS} tokens, this episode's {name} has {len(shown)}",
                f"use a dataset with tokens, or a task without this sensor: {name!r} shows the text",
            )
        return np.array([*shown, *[padding] * (MAX_TOKENS - len(shown))], np.int64)

    return Sensor(
        doc=f"the {name} as the dataset's token ids, then {padding}",
        dtype=np.int64,
        shape=lambda _: (MAX_TOKENS,),
        bounds=lambda _: (padding, np.iinfo(np.int64).max),
        value=value,
        goal_type=goal_type,
    )


def image_shape(channels: int) -> Callable[[Task], tuple[int, ...]]:
    """The shape of images of the training camera's size."""
    return lambda task: (task.camera.height, task.camera.width, channels)
