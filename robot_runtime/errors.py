"""The errors that a user can meet, each with the thing that is wrong and the remedy.

Every error the runtime raises on purpose derives from :class:`RuntimeFault`. The command line prints
``message`` and ``remedy`` and exits with ``exit_code``; it shows a traceback only under ``--debug``.
An exception of any other type is a bug.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar


class RuntimeFault(Exception):
    """Base of all deliberate errors.

    Args:
        message: what is wrong, naming the file, field, device or topic.
        remedy: what the reader can do about it, one imperative sentence.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  remedy: {self.remedy}"

    def __reduce__(self) -> tuple[type[RuntimeFault], tuple[str, str]]:
        return type(self), (self.message, self.remedy)


class ConfigError(RuntimeFault):
    """A YAML file or command-line value is malformed or names something that does not exist."""

    exit_code = 2


class DriverMissing(ConfigError):
    """The YAML names a driver whose module or optional dependency cannot be imported."""


class PluginError(ConfigError):
    """What an installed package offers by an entry point cannot be used."""


class CalibrationError(ConfigError):
    """A calibration file is not a calibration, or of another kind."""


class AlteredCalibration(CalibrationError):
    """A calibration file is not as it was written."""


class ForeignCalibration(CalibrationError):
    """A calibration belongs to another robot, or to another device than the robot has."""


class ExpiredCalibration(CalibrationError):
    """A calibration is older than it may be."""


class CalibrationFailed(RuntimeFault):
    """A calibration cannot be solved from what was captured, or fails on captures that it was not solved from."""


class ModelMisfit(CalibrationFailed):
    """A fit was written, but what was captured contradicts its model."""

    exit_code = 10


class RenderingUnavailable(RuntimeFault):
    """Neither EGL nor OSMesa can make an OpenGL context."""

    exit_code = 3


class SceneError(RuntimeFault):
    """A scene folder is incomplete or inconsistent, or a mesh cannot be imported."""

    exit_code = 4


class EpisodeError(RuntimeFault):
    """An episode file is truncated, of an unknown schema, or an episode in it cannot be run."""

    exit_code = 5


class InvalidStart(EpisodeError):
    """The start pose is not in free space for the robot's radius."""


class PlacementFailed(EpisodeError):
    """The robot was not brought to an episode's start, or could not drive there."""


class EpisodeAborted(EpisodeError):
    """The operator ended the episode, or left the robot without anybody who decides."""


class OtherFloor(EpisodeError):
    """An episode's start, goal or object is on another floor than the map shows."""


class UnreachableGoal(EpisodeError):
    """No collision-free path leads from the start to any goal."""


class UnknownAction(RuntimeFault):
    """A policy asked for an action that the task does not have."""

    exit_code = 6


class InvalidCommand(RuntimeFault):
    """A velocity or joint command is not a finite number."""

    exit_code = 6


class DeviceFault(RuntimeFault):
    """A device reports a fault, or cannot do what was asked."""

    exit_code = 7


class NotConnected(DeviceFault):
    """A device was used before ``connect()`` or after ``close()``."""


class LowBattery(DeviceFault):
    """A base's battery is too low to begin an episode."""


class StaleData(DeviceFault):
    """A stream has delivered nothing new within the age that the reader allows."""


class FrozenCamera(StaleData):
    """A camera repeats one picture under new stamps while the robot moves."""


class UnpairedImages(StaleData):
    """Color and depth arrive, but were not exposed together."""


class BlindCamera(DeviceFault):
    """A depth sensor delivers images without a single measurement."""


class LocalizationLost(DeviceFault):
    """The robot's localizers lost it, for longer than an episode waits."""


class RecordingError(RuntimeFault):
    """A log cannot be written (disk full, no permission) or read."""

    exit_code = 8


class PolicyError(RuntimeFault):
    """A policy or agent cannot be loaded, lacks an observation, or raised."""

    exit_code = 9


class LinkLost(PolicyError):
    """The connection to a policy server is lost and could not be restored in time."""


class PolicyChanged(PolicyError):
    """A policy that a log names is gone, or is another version of itself."""


class PackageError(PolicyError):
    """A policy package is incomplete, damaged, contradicts itself, or tries what it must not."""


class CheckpointError(PolicyError):
    """A training framework's checkpoint cannot be read, is of another kind than stated, or contradicts itself."""


class PolicyMismatch(PolicyError):
    """A policy was made for another kind of task, camera, goal or other actions than the task or robot has."""


class PolicyOutputError(PolicyError):
    """A network gave something that no action can be chosen from: NaN, infinity, or another shape than it declared."""


def interruption(error: BaseException) -> str | None:
    """The cause of an interruption, for logs: the operator, a key, or a signal; None for all other errors."""
    if isinstance(error, EpisodeAborted):
        return error.message
    return (str(error) or "interrupted from the keyboard") if isinstance(error, KeyboardInterrupt) else None


@contextmanager
def writing(path: Path, remedy: str = "give another file") -> Iterator[None]:
    """Raise :class:`RecordingError` naming ``path`` for an ``OSError`` of the body."""
    try:
        yield
    except OSError as error:
        folders = path.parents if path.suffix else (path, *path.parents)  # a file with a suffix may just be there
        file = next((place for place in reversed(folders) if place.is_file()), None)
        if file is not None and isinstance(error, (FileExistsError, NotADirectoryError)):
            path, what, remedy = file, "is a file, where a folder is needed", "name a new folder, or move it"
        else:
            what = f"cannot be written: {error.strerror or error}"
        raise RecordingError(f"{path}: {what}", remedy) from error
