"""Which robot: one YAML file in ``launch/robots/`` names a driver and its options, and this makes the robot of it.

::

    name: fake
    driver: drivers.fake.driver.make_robot   # package.module.factory, a RobotFactory
    options: {wall_x_m: 2.0}                 # what the driver's README lists
    tracker:                                 # optional: who says where objects are
      driver: drivers.object_tracker.driver.make_tracker
      options: {port: 7420}

Beside ``tracker`` there may be ``camera``, ``localizer`` (the policy's) and ``referee`` (the scores'). Each names a
:class:`DeviceFactory`, which receives the robot as built so far; its device replaces the driver's own. The same three
can be chosen when a command starts (:class:`DeviceOverrides`), by the name of a file in ``launch/cameras/`` or
``launch/localizers/`` or by its path::

    name: fused-marvelmind
    driver: robot_runtime.localization.fused.make_localizer
    options: {absolute: {driver: drivers.marvelmind.driver.make_localizer}}
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Camera, Device, Localizer, ObjectTracker, Robot
from robot_runtime.robots.corrected_head import CorrectedHead, load_tilt_servo
from robot_runtime.robots.corrected_odometry import calibrated, load_odometry
from robot_runtime.scenes.scene import Scene, SceneObject
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.rearrangement.episode_objects import added_objects
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
        added_objects: objects of the episodes that the scene does not have.
        images: whether anybody looks at them. Without, a simulator may deliver dark frames, which cost nothing.
    """

    scene: Scene | None
    camera: TrainingCamera | None
    seed: int
    real_time: bool = False
    objects_move: bool = False
    added_objects: tuple[SceneObject, ...] = ()
    images: bool = True

    @classmethod
    def of(
        cls, task: Task, scene: Scene, episodes: Iterable[Episode], seed: int, real_time: bool = False
    ) -> RobotContext:
        """What a robot needs to know to run these episodes of a task."""
        moves = task.rearrangement is not None
        added = added_objects(scene, episodes) if moves else ()
        return cls(scene, task.camera, seed, real_time, moves, added)


@dataclass(frozen=True)
class DeviceConfig:
    """A part of a robot: dotted name of its :class:`DeviceFactory`, and its own options; ``name`` is for logs."""

    driver: str
    options: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class RobotFile:
    """The content of a robot's YAML file.

    Attributes:
        name: of the robot, for logs.
        driver: dotted name of its :class:`RobotFactory`.
        options: the driver's own.
        odometry: the file that ``robot-runtime calibrate odometry`` wrote, of which base and odometry are put right.
        tilt_servo: the file that ``robot-runtime calibrate tilt-servo`` wrote, of which the head is put right.
        camera, localizer, referee, tracker: parts in place of the driver's own; None leaves that one to the driver.
    """

    name: str
    driver: str
    options: dict[str, Any] = field(default_factory=dict)
    odometry: str | None = None
    tilt_servo: str | None = None
    camera: DeviceConfig | None = None
    localizer: DeviceConfig | None = None
    referee: DeviceConfig | None = None
    tracker: DeviceConfig | None = None

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class DeviceOverrides:
    """Parts that are named apart from the robot's file, and go before those in it.

    Each is a preset's name (``launch/cameras/``; ``launch/localizers/`` for the other two), a path ending in
    ``.yaml``, or None for what the robot's file says.

    Attributes:
        camera_options: over those in the camera's file, ``KEY=VALUE``: the key may reach into an option by dots
            (``imaging.mount=interbotix``), the value is read as YAML.
    """

    camera: str | None = None
    localizer: str | None = None
    referee: str | None = None
    camera_options: tuple[str, ...] = ()


class DeviceFactory(Protocol):
    """What the ``driver`` of a part names."""

    def __call__(self, robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Device:
        """The part, disconnected: a ``Camera``, ``Localizer`` or ``ObjectTracker``, as the place asks that names it.

        Args:
            robot: as built so far, in the order camera, localizer, referee, tracker: a localizer may wrap
                ``robot.odometry`` or look through ``robot.camera``. It is disconnected, and a part that keeps one of
                its devices connects and closes that with itself.
            where: as :class:`RobotFactory`'s.

        Raises:
            ConfigError: for a bad option, or a robot that has not what the part needs.
        """
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


def read_robot_file(name_or_path: str, chosen: DeviceOverrides | None = None) -> tuple[Path, RobotFile]:
    """A robot's YAML file, by preset name or by path ending in ``.yaml``, and its content with the chosen parts in it.

    Raises:
        ConfigError: no such file, or one that is not what it should be.
    """
    path = config.find_preset("robots", name_or_path)
    file = config.load(path, RobotFile)
    chosen = chosen or DeviceOverrides()
    parts: dict[str, Any] = {role: config.load(at, DeviceConfig) for role, at in _chosen_paths(chosen).items()}
    file = replace(file, **parts)
    if not chosen.camera_options:
        return path, file
    if file.camera is None:
        raise ConfigError(
            f"{path}: names no camera that takes options: {', '.join(chosen.camera_options)}",
            "choose one with --camera, or change the robot's own in that file",
        )
    options = changed_options(file.camera.options, chosen.camera_options)
    return path, replace(file, camera=replace(file.camera, options=options))


def changed_options(options: Mapping[str, Any], changes: Iterable[str]) -> dict[str, Any]:
    """``options`` with ``KEY=VALUE`` changes in them, as :class:`DeviceOverrides` has them. Raises ``ConfigError``."""
    changed = copy.deepcopy(dict(options))
    for change in changes:
        key, equals, value = change.partition("=")
        *path, last = key.split(".")
        into: Any = changed
        for name in path:
            into = into.setdefault(name, {}) if isinstance(into, dict) else None
        if not (equals and last and isinstance(into, dict)):
            raise ConfigError(f"{change!r} is no option", "write KEY=VALUE, for instance imaging.mount=interbotix")
        into[last] = config.parse_yaml(value, repr(change))
    return changed


def load_robot(name_or_path: str, context: RobotContext, chosen: DeviceOverrides | None = None) -> Robot:
    """The robot of a preset name or YAML file, with the chosen parts, disconnected.

    Raises:
        ConfigError: no such preset, malformed YAML, a bad option, or a driver that makes no robot or no such part.
        DriverMissing: naming the file, the driver and what to install.
    """
    path, file = read_robot_file(name_or_path, chosen)
    return build_robot(file, str(path), context, chosen)


def build_robot(file: RobotFile, path: str, context: RobotContext, chosen: DeviceOverrides | None = None) -> Robot:
    """As :func:`load_robot`, of a file's content with the chosen parts in it.

    Args:
        path: that the content comes from, to begin error messages with.
    """
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
    if file.odometry is not None:
        robot = calibrated(robot, load_odometry(Path(file.odometry), file.name))
    if file.tilt_servo is not None:
        servo = load_tilt_servo(Path(file.tilt_servo), file.name)
        robot = replace(robot, head=CorrectedHead(robot.head, servo))
    chosen_paths = _chosen_paths(chosen or DeviceOverrides())
    for role, kind in _KINDS.items():
        part: DeviceConfig | None = getattr(file, role)
        if part is not None:
            at = str(chosen_paths.get(role, f"{path}: {role}"))
            # One source for both is one device: a port opens once.
            shared = role == "referee" and part == file.localizer
            made: dict[str, Any] = {role: robot.localizer if shared else make_device(part, kind, robot, context, at)}
            robot = replace(robot, **made)
    return replace(robot, placer=robot.placer.fitted(robot))


_KINDS: dict[str, type[Device]] = {
    "camera": Camera,
    "localizer": Localizer,
    "referee": Localizer,
    "tracker": ObjectTracker,
}
"""The parts that a robot's file may name, in the order in which they are made."""

D = TypeVar("D", bound=Device)


def make_device(part: DeviceConfig, kind: type[D], robot: Robot, context: RobotContext, where: str) -> D:
    """What a part's factory makes, for a place that takes a ``kind``; also for parts that are made of parts.

    Args:
        where: file, and field if it is not the whole file, that ``part`` comes from: ``"my.yaml: tracker"``.

    Raises:
        ConfigError: a bad option, or a driver that makes something else. DriverMissing: naming what to install.
    """
    at = f"{where}: field 'driver'"
    factory: DeviceFactory = config.resolve(part.driver, at)
    makes = callable(factory) and not inspect.isclass(factory)
    made = factory(robot, context, part.options, f"{where}: options") if makes else None
    if not isinstance(made, kind):
        raise ConfigError(
            f"{at}: {part.driver!r} makes no {kind.__name__}", "name a part's factory function, not one of its classes"
        )
    return made


def _chosen_paths(chosen: DeviceOverrides) -> dict[str, Path]:
    """The files of those parts that are chosen, by role."""
    folders = {"camera": "cameras", "localizer": "localizers", "referee": "localizers"}
    return {
        role: config.find_preset(folder, name)
        for role, folder in folders.items()
        if (name := getattr(chosen, role)) is not None
    }
