"""Loader of robots: builds a robot from a YAML file in ``launch/robots/`` that names a driver and its options.

::

    name: fake
    driver: drivers.fake.driver.make_robot   # package.module.factory, a RobotFactory
    options: {wall_x_m: 2.0}                 # see the driver's README
    tracker:                                 # optional: measures the poses of objects
      driver: drivers.object_tracker.driver.make_tracker
      options: {port: 7420}

``motion: {linear_m_s: 0.2, patience_s: 5.0}`` changes the defaults of ``MotionProfile``.
``min_battery_fraction: 0.2`` refuses episodes below 20 % of charge; the default is 10 %.
``stop_inputs: {buttons: [{device: /dev/input/by-id/...-event-joystick, code: 305}]}`` names emergency stops.

Besides ``tracker`` there may be ``base``, ``head``, ``camera``, ``localizer`` (for the policy) and ``referee`` (for
scores). Each names a :class:`DeviceFactory` that gets the robot as built so far; its device replaces the driver's
own. The last three can also be chosen on the command line (:class:`DeviceOverrides`), by the name of a file in
``launch/cameras/`` or ``launch/localizers/`` or by its path::

    name: fused-marvelmind
    driver: robot_runtime.localization.fused.make_localizer
    options: {absolute: {driver: drivers.marvelmind.driver.make_localizer}}
"""

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.common.quantities import Fraction
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.hal import Base, Camera, Device, Head, KnownMotors, Localizer, ObjectTracker, Robot
from robot_runtime.hal.motion_profile import DEFAULT_PROFILE, MotionProfile
from robot_runtime.hal.stop_inputs import NO_STOP_INPUTS, StopInputs
from robot_runtime.robots.calibration_file import MOTORS, MotorCalibration, load_content
from robot_runtime.robots.corrected_head import KIND as TILT_SERVO
from robot_runtime.robots.corrected_head import CorrectedHead, TiltServo
from robot_runtime.robots.corrected_odometry import KIND as ODOMETRY
from robot_runtime.robots.corrected_odometry import OdometryCalibration, calibrated
from robot_runtime.scenes.scene import Scene, SceneObject
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.episode_objects import added_objects
from robot_runtime.tasks.task import Task, TrainingCamera


@dataclass(frozen=True)
class RobotContext:
    """The run that a robot is built for.

    Attributes:
        scene: scene in which the robot drives; None if unknown. Simulators need it, real robots have a place already.
        camera: the policy's training camera, for a simulator to render; None if unknown.
        seed: seed of all random numbers of the robot.
        real_time: whether simulated time must keep pace with the wall clock.
        objects_move: whether the task moves objects; a simulator must allow it.
        added_objects: objects of the episodes that the scene does not have.
        images: whether images are used. If not, a simulator may deliver black frames, because they cost nothing.
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
    ) -> "RobotContext":
        """The context for these episodes of a task."""
        moves = Action.GRAB_RELEASE in task.actions
        added = added_objects(scene, episodes) if moves else ()
        return cls(scene, task.camera, seed, real_time, moves, added)


@dataclass(frozen=True)
class DeviceConfig(config.Strict):
    """The configuration of a device.

    Attributes:
        driver: dotted name of its :class:`DeviceFactory`.
        options: options for the factory.
        name: name for logs.
    """

    driver: str
    options: dict[str, Any] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True)
class RobotFile(config.Strict):
    """The content of a robot's YAML file.

    Attributes:
        name: name of the robot, for logs.
        driver: dotted name of its :class:`RobotFactory`.
        options: options for the factory.
        odometry: file of ``robot-runtime calibrate odometry``, with which base and odometry are corrected.
        motors: file of ``robot-runtime calibrate motors``; replaces what the driver knows of its base's motors.
        tilt_servo: file of ``robot-runtime calibrate tilt-servo``, with which the head is corrected.
        motion: speeds, tolerances and time limits of its motions.
        stop_inputs: buttons and switches that engage the emergency stop.
        min_battery_fraction: charge of the base's battery below which no episode begins, 0 to 1.
        base: replaces the driver's own, and its odometry; None keeps them.
        head: replaces the driver's own; None keeps that.
        camera: replaces the driver's own; None keeps that.
        localizer: replaces the driver's own; None keeps that.
        referee: replaces the driver's own; None keeps that.
        tracker: replaces the driver's own; None keeps that.
    """

    name: str
    driver: str
    options: dict[str, Any] = field(default_factory=dict)
    odometry: str | None = None
    motors: str | None = None
    tilt_servo: str | None = None
    motion: MotionProfile = DEFAULT_PROFILE
    stop_inputs: StopInputs = NO_STOP_INPUTS
    min_battery_fraction: Fraction = 0.1
    base: DeviceConfig | None = None
    head: DeviceConfig | None = None
    camera: DeviceConfig | None = None
    localizer: DeviceConfig | None = None
    referee: DeviceConfig | None = None
    tracker: DeviceConfig | None = None


@dataclass(frozen=True)
class DeviceOverrides:
    """Devices chosen on the command line; they take precedence over those in the robot's file.

    Each is the name of a preset (``launch/cameras/``, or ``launch/localizers/`` for the other two), a path ending in
    ``.yaml``, or None to keep the robot's file.

    Attributes:
        camera: camera for observations.
        localizer: localizer for the policy.
        referee: referee for scores.
        camera_options: ``KEY=VALUE`` changes of the options in the camera's file: dots in the key select nested options
            (``imaging.mount=interbotix``), the value is read as YAML.
        robot_options: the same for the options in the robot's file.
        base_and_head: whether only these move: the file's camera and sources of poses are left out.
    """

    camera: str | None = None
    localizer: str | None = None
    referee: str | None = None
    camera_options: tuple[str, ...] = ()
    robot_options: tuple[str, ...] = ()
    base_and_head: bool = False


class DeviceFactory(Protocol):
    """Type of the function that the ``driver`` of a :class:`DeviceConfig` names.

    A camera for any robot::

        def make_camera(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Camera:
            chosen = config.parse(options, MyOptions, where)    # MyOptions: a frozen dataclass
            return MyCamera(robot.clock, chosen)
    """

    def __call__(self, robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Device:
        """Build the device, disconnected.

        Args:
            robot: robot as built so far, in the order head, camera, localizer, referee, tracker: a localizer may use
                ``robot.odometry`` or ``robot.camera``. It is disconnected; a device that uses another one connects and
                closes it with itself.
            context: the run that the robot is built for.
            options: options of the file, for ``config.parse(options, SomeOptions, where)``.
            where: file and field of ``options``, the beginning of error messages.

        Returns:
            A ``Head``, ``Camera``, ``Localizer`` or ``ObjectTracker``, as the field of the robot's file requires.

        Raises:
            ConfigError: for a bad option, or a robot that lacks what the device needs.
        """
        ...


class RobotFactory(Protocol):
    """Type of the function that ``driver`` in a robot's file names.

    A minimal driver (``drivers/fake/driver.py`` is a complete one)::

        @dataclass(frozen=True)
        class MyOptions(config.Strict):     # unknown and mistyped options are errors that name file and field
            port: str = "/dev/ttyUSB0"

        def make_robot(context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> Robot:
            chosen = config.parse(options, MyOptions, where)
            clock = SystemClock()
            base, head, camera = MyBase(clock, chosen.port), MyHead(clock), MyCamera(clock)
            odometry = MyOdometry(clock, base)
            placer = OperatorPlacer(clock, base, head, localizer=odometry, referee=odometry)
            return Robot(name, clock, base, head, camera, odometry, odometry, placer, odometry=odometry)

    The interfaces and their contracts are in ``robot_runtime.hal``; ``robot_runtime.conformance.RobotConformance``
    tests them.
    """

    def __call__(self, context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> Robot:
        """Build the robot. Open no port and start no thread: ``Robot.connect`` does so later, and ``close`` ends it.

        Args:
            context: the run that the robot is built for; a real robot may ignore it.
            name: name of the robot, for logs and messages.
            options: options of the file, for ``config.parse(options, SomeOptions, where)``.
            where: file and field of ``options``, the beginning of error messages.

        Returns:
            The robot with all its devices, disconnected. They share its clock.

        Raises:
            ConfigError: for a bad option.
            RuntimeFault: the robot cannot be built.
        """
        ...


def read_robot_file(name_or_path: str, chosen: DeviceOverrides | None = None) -> tuple[Path, RobotFile]:
    """Read a robot's file and apply the overrides.

    Args:
        name_or_path: preset name, or path ending in ``.yaml``.
        chosen: devices that replace those in the file.

    Raises:
        ConfigError: no such file, or a malformed one.
    """
    path = config.find_preset("robots", name_or_path)
    file = config.load(path, RobotFile)
    chosen = chosen or DeviceOverrides()
    devices: dict[str, Any] = {role: config.load(at, DeviceConfig) for role, at in _chosen_paths(chosen).items()}
    if chosen.base_and_head:
        devices |= dict.fromkeys(_DEVICE_TYPES)
    file = replace(file, options=changed_options(file.options, chosen.robot_options), **devices)
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
    """``options`` with ``KEY=VALUE`` changes; see :class:`DeviceOverrides`. Raises ``ConfigError``."""
    changed = copy.deepcopy(dict(options))
    for change in changes:
        key, equals, value = change.partition("=")
        *path, last = key.split(".")
        into: Any = changed
        for name in path:
            into = into.setdefault(name, {}) if isinstance(into, dict) else None
        if not (equals and last and isinstance(into, dict)):
            raise ConfigError(f"{change!r} is not an option", "write KEY=VALUE, for example imaging.mount=interbotix")
        into[last] = config.parse_yaml(value, repr(change))
    return changed


def load_robot(name_or_path: str, context: RobotContext, chosen: DeviceOverrides | None = None) -> Robot:
    """Build the robot of a preset name or YAML file, disconnected.

    Raises:
        ConfigError: no such preset, malformed YAML, a bad option, or a driver that builds no robot or no such device.
        DriverMissing: naming the file, the driver and the package to install.
    """
    path, file = read_robot_file(name_or_path, chosen)
    return build_robot(file, str(path), context, chosen)


def build_robot(file: RobotFile, path: str, context: RobotContext, chosen: DeviceOverrides | None = None) -> Robot:
    """Build the robot of a file's content, disconnected.

    Args:
        file: content with the overrides applied.
        path: path of the content, the beginning of error messages.
        context: the run that the robot is built for.
        chosen: the overrides, for error messages.

    Raises:
        ConfigError: as :func:`load_robot`.
    """
    where = f"{path}: field 'driver'"
    factory: RobotFactory = config.resolve(file.driver, where)
    if not callable(factory) or inspect.isclass(factory):
        raise ConfigError(
            f"{where}: {file.driver!r} is not a function", "name the driver's factory function, not one of its parts"
        )
    _check_takes(factory, file.driver, where, "context", "name", "options", "where")
    with _naming_origin(path, "--robot-arg", chosen.robot_options if chosen is not None else ()):
        robot = factory(context, file.name, file.options, f"{path}: options")
    if not isinstance(robot, Robot):
        raise ConfigError(
            f"{where}: {file.driver!r} made a {type(robot).__name__}, not a Robot",
            "name the driver's factory function, not one of its parts",
        )
    if file.base is not None:
        robot = _with_base(robot, make_device(file.base, Base, robot, context, f"{path}: base"))
    if file.head is not None:
        robot = replace(robot, head=make_device(file.head, Head, robot, context, f"{path}: head"))
    with _naming_origin(path):
        if file.odometry is not None:
            robot = calibrated(robot, load_content(Path(file.odometry), OdometryCalibration, ODOMETRY, file.name))
        if file.motors is not None:
            motors = load_content(Path(file.motors), MotorCalibration, MOTORS, file.name)
            robot.base.motors = KnownMotors(motors.model, calibrated=True)
        if file.tilt_servo is not None:
            servo = load_content(Path(file.tilt_servo), TiltServo, TILT_SERVO, file.name)
            robot = replace(robot, head=CorrectedHead(robot.head, servo))
    chosen_paths = _chosen_paths(chosen or DeviceOverrides())
    for role, kind in _DEVICE_TYPES.items():
        device: DeviceConfig | None = getattr(file, role)
        if device is not None:
            at = str(chosen_paths.get(role, f"{path}: {role}"))
            # One source for both is one device: a port opens once.
            shared = role == "referee" and device == file.localizer
            with _naming_origin(at, "--camera-arg", chosen.camera_options if chosen and role == "camera" else ()):
                made: dict[str, Any] = {
                    role: robot.localizer if shared else make_device(device, kind, robot, context, at)
                }
            robot = replace(robot, **made)
    robot = replace(
        robot, min_battery_fraction=file.min_battery_fraction, motion=file.motion, stop_inputs=file.stop_inputs
    )
    if not (robot.localizer.info.is_truth and robot.referee.info.is_truth):
        from robot_runtime.robots.checked_localizer import checked

        robot = checked(robot, context.scene)
    if chosen is not None and chosen.base_and_head:
        from robot_runtime.hal.stand_ins import UnusedCamera

        robot = replace(robot, camera=UnusedCamera())
    return replace(robot, placer=robot.placer.fitted(robot))


@contextmanager
def _naming_origin(where: str, option: str = "", changes: Sequence[str] = ()) -> Iterator[None]:
    """Errors of fields that the command line gave name it, not the preset; others also say where they come from."""
    try:
        yield
    except (ConfigError, RecordingError) as error:
        if isinstance(error, config.FieldError):
            field = ".".join(map(str, error.place))
            given = [change for change in changes if _overlap(change.partition("=")[0], field)]
            if not given:
                raise
            arguments = " ".join(f"{option} {change}" for change in given)
            raise ConfigError(f"{arguments}: field {field!r}: {error.problem}", error.remedy) from error
        if not changes and where in error.message:
            raise
        origin = "with " + " ".join(f"{option} {change}" for change in changes) if changes else f"named in {where}"
        raise type(error)(f"{error.message} ({origin})", error.remedy) from error


def _overlap(one: str, other: str) -> bool:
    """Whether one of two dotted paths contains the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _with_base(robot: Robot, base: Base) -> Robot:
    """The robot with another base, whose odometry takes the place of the robot's own, for policy and scores too."""
    if base.odometry is None:
        return replace(robot, base=base)
    own, new = robot.odometry, base.odometry
    localizer, referee = (new if source is own else source for source in (robot.localizer, robot.referee))
    return replace(robot, base=base, odometry=new, localizer=localizer, referee=referee)


_DEVICE_TYPES: dict[str, type[Device]] = {
    "camera": Camera,
    "localizer": Localizer,
    "referee": Localizer,
    "tracker": ObjectTracker,
}
"""The devices that a robot's file may name, in the order of construction."""

D = TypeVar("D", bound=Device)


def make_device(device: DeviceConfig, kind: type[D], robot: Robot, context: RobotContext, where: str) -> D:
    """Build a device of a type; also used by devices that consist of others.

    Args:
        device: factory and options.
        kind: required type.
        robot: robot as built so far.
        context: the run that the robot is built for.
        where: file, and field if it is only a part of it: ``"my.yaml: tracker"``.

    Raises:
        ConfigError: a bad option, or a driver that builds something else.
        DriverMissing: naming the package to install.
    """
    at = f"{where}: field 'driver'"
    factory: DeviceFactory = config.resolve(device.driver, at)
    makes = callable(factory) and not inspect.isclass(factory)
    if makes:
        _check_takes(factory, device.driver, at, "robot", "context", "options", "where")
    made = factory(robot, context, device.options, f"{where}: options") if makes else None
    if not isinstance(made, kind):
        raise ConfigError(
            f"{at}: {device.driver!r} makes no {kind.__name__}",
            "name a device's factory function, not one of its classes",
        )
    return made


def _check_takes(factory: Callable[..., Any], driver: str, where: str, *arguments: str) -> None:
    """Raise ``ConfigError`` for a factory that cannot be called with these arguments."""
    try:
        inspect.signature(factory).bind(*arguments)
    except (TypeError, ValueError) as error:  # ValueError: a function of C that states no arguments
        given = ", ".join(arguments)
        raise ConfigError(
            f"{where}: {driver!r} is not called as {driver.rpartition('.')[2]}({given}): {error}",
            f"write the factory as `def {driver.rpartition('.')[2]}({given})`: docs/robots/own-robot.md",
        ) from error


def _chosen_paths(chosen: DeviceOverrides) -> dict[str, Path]:
    """The files of the overrides, by field."""
    folders = {"camera": "cameras", "localizer": "localizers", "referee": "localizers"}
    return {
        role: config.find_preset(folder, name)
        for role, folder in folders.items()
        if (name := getattr(chosen, role)) is not None
    }
