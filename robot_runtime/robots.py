"""Which robot: one YAML file in ``launch/robots/`` names a driver and its options, and this makes the robot of it.

::

    name: fake
    driver: drivers.fake.driver.make_robot   # package.module.factory, a RobotFactory
    options: {wall_x_m: 2.0}                 # what the driver's README lists
    tracker:                                 # optional: who says where objects are, a TrackerFactory
      driver: drivers.object_tracker.driver.make_tracker
      options: {port: 7420}
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from robot_runtime import config
from robot_runtime.episodes.brought import brought_objects
from robot_runtime.episodes.episode import Episode
from robot_runtime.errors import ConfigError
from robot_runtime.hal import ObjectTracker, Robot
from robot_runtime.scene import Scene, SceneObject
from robot_runtime.tasks.task import Task, TrainingCamera


@dataclass(frozen=True)
class RobotContext:
    """What a robot may need to know of the run that it is made for.

    Attributes:
        scene: where it drives; None if unknown. Simulators need it, real robots have a place already.
        camera: the policy's training camera, so that a simulator can render it; None if unknown.
        seed: of everything random that the robot does.
        real_time: whether simulated time must keep pace with the wall clock.
        objects_move: whether the task moves objects, so that a simulator must let them be moved.
        brought: objects that episodes bring along and the scene does not have.
    """

    scene: Scene | None
    camera: TrainingCamera | None
    seed: int
    real_time: bool = False
    objects_move: bool = False
    brought: tuple[SceneObject, ...] = ()

    @classmethod
    def of(
        cls, task: Task, scene: Scene, episodes: Iterable[Episode], seed: int, real_time: bool = False
    ) -> RobotContext:
        """What a robot needs to know to run these episodes of a task."""
        moves = task.rearrangement is not None
        brought = brought_objects(scene, episodes) if moves else ()
        return cls(scene, task.camera, seed, real_time, moves, brought)


@dataclass(frozen=True)
class TrackerPart:
    """Who says where objects are: dotted name of a :class:`TrackerFactory`, and its own options."""

    driver: str
    options: dict[str, Any] = field(default_factory=dict)

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class RobotFile:
    """The content of a robot's YAML file.

    Attributes:
        name: of the robot, for logs.
        driver: dotted name of its :class:`RobotFactory`.
        options: the driver's own.
        tracker: for tasks that move objects; None leaves it to the driver.
    """

    name: str
    driver: str
    options: dict[str, Any] = field(default_factory=dict)
    tracker: TrackerPart | None = None

    __pydantic_config__ = config.STRICT


class TrackerFactory(Protocol):
    """What ``tracker.driver`` names."""

    def __call__(self, robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> ObjectTracker:
        """The tracker of ``robot``, disconnected. Raises ``ConfigError`` for a bad option."""
        ...


class RobotFactory(Protocol):
    """What ``driver`` names."""

    def __call__(self, context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> Robot:
        """The robot, disconnected.

        Args:
            where: file and field that ``options`` come from, to begin error messages with;
                ``config.parse(options, SomeOptions, where)`` does so.

        Raises:
            ConfigError: for a bad option. RuntimeFault: if the robot cannot be made.
        """
        ...


def read_robot_file(name_or_path: str) -> tuple[Path, RobotFile]:
    """A robot's YAML file, by preset name or by path ending in ``.yaml``, and its content. Raises ``ConfigError``."""
    path = config.find_preset("robots", name_or_path)
    return path, config.load(path, RobotFile)


def load_robot(name_or_path: str, context: RobotContext) -> Robot:
    """The robot of a preset name or YAML file, disconnected.

    Raises:
        ConfigError: no such preset, malformed YAML, a bad option, or a driver that makes no robot.
        DriverMissing: naming the file, the driver and what to install.
    """
    path, file = read_robot_file(name_or_path)
    where = f"{path}: field 'driver'"
    factory: RobotFactory = config.resolve(file.driver, where)
    if not callable(factory) or inspect.isclass(factory):
        raise ConfigError(
            f"{where}: {file.driver!r} is not a function", "name the driver's factory function, not one of its parts"
        )
    robot = factory(context, file.name, file.options, f"{path}: options")
    if not isinstance(robot, Robot):
        raise ConfigError(
            f"{where}: {file.driver!r} made a {type(robot).__name__}, not a Robot",
            "name the driver's factory function, not one of its parts",
        )
    return robot if file.tracker is None else replace(robot, tracker=_tracker(path, file.tracker, robot, context))


def _tracker(path: Path, part: TrackerPart, robot: Robot, context: RobotContext) -> ObjectTracker:
    where = f"{path}: field 'tracker.driver'"
    factory: TrackerFactory = config.resolve(part.driver, where)
    makes = callable(factory) and not inspect.isclass(factory)
    made = factory(robot, context, part.options, f"{path}: tracker.options") if makes else None
    if not isinstance(made, ObjectTracker):
        raise ConfigError(
            f"{where}: {part.driver!r} makes no tracker", "name a tracker's factory function, not one of its parts"
        )
    return made
