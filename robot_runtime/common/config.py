"""YAML to typed, frozen dataclasses; and the one place that turns a driver's name into a class.

A preset is looked up by name in ``launch/`` of the working directory, then in the one that ships with the project.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import json
import math
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from robot_runtime.common import field_errors, quantities
from robot_runtime.common.yaml_text import parse_yaml as parse_yaml
from robot_runtime.common.yaml_text import read_yaml as read_yaml
from robot_runtime.errors import ConfigError, DriverMissing

T = TypeVar("T")

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Strict:
    """Base of dataclasses that are read from files: a misspelled key, NaN or infinity is an error."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)


def check_positive(owner: object, *names: str) -> None:
    """Check fields in a ``__post_init__``; all of the owner's by default. Raises ``ValueError`` for one not above 0."""
    for name in names or vars(owner):
        value = getattr(owner, name)
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a positive number, got {value}")


class FieldError(ConfigError):
    """A field of a document is missing, unknown, of another type, or impossible."""

    def __init__(self, where: str, place: field_errors.Place, problem: str, remedy: str) -> None:
        line = field_errors.line_of(where, place)
        at = f" (line {line})" if line is not None else ""
        field = f"field {'.'.join(map(str, place))!r:.200}: " if place else "the document: "
        super().__init__(f"{where}: {field}{problem}{at}", remedy)
        self.where, self.place, self.problem = where, tuple(place), problem

    def __reduce__(self) -> tuple[type[FieldError], tuple[Any, ...]]:
        return type(self), (self.where, self.place, self.problem, self.remedy)


_MISSING = ("missing", "missing_argument")


def parse(data: Any, cls: type[T], where: str, recorded: bool = False) -> T:
    """``data``, of mappings, sequences, strings and numbers, as an instance of the dataclass ``cls``.

    Types are taken as they are written: neither ``"3"`` nor ``true`` is the number that a field asks for. Numbers with
    units must be physically possible (:mod:`robot_runtime.common.quantities`).

    Args:
        data: the document.
        cls: dataclass.
        where: place of the document, the beginning of error messages.
        recorded: whether the document is part of a record of the past, whose numbers are taken as they are.

    Raises:
        FieldError: names ``where``, the field's path and line, what was found and what was expected.
        ConfigError: a key is neither text nor number.
    """
    # By way of JSON, where a strict reading still makes tuples of lists and enums of words.
    try:
        text = json.dumps(_arranged(data, cast(Any, cls), where), default=str)
    except TypeError as error:
        raise ConfigError(f"{where}: a key is neither text nor number: {error}", "write it in quotes") from error
    try:
        document: T = _adapter(cast(Hashable, cls)).validate_json(text, strict=True)
    except ValidationError as error:
        # A misspelt key also leaves the right one missing: the misspelling is the cause.
        problem = min(error.errors(), key=lambda e: e["type"] != "unexpected_keyword_argument")
        place = _place(problem["loc"], cast(Hashable, cls))
        if problem["type"] == "unexpected_keyword_argument":
            remedy = field_errors.suggestion(cls, place)
            raise FieldError(where, place, "there is no such field", remedy) from error
        is_collection = isinstance(problem["input"], (dict, list))
        observed = "" if is_collection else f" (found {problem['input']!r:.200})"
        message = problem["msg"].removeprefix("Value error, ") + observed
        is_missing = problem["type"] in _MISSING
        if is_missing and isinstance(place[-1], int):  # of a list, which has no names
            is_missing, place, message = False, place[:-1], "a value is missing"
        is_check = problem["type"] == "value_error"
        place += field_errors.named_field(cls, place, message) if is_check else []
        field = f"{'.'.join(map(str, place))!r:.200} there" if place else "the document"
        remedy = f"correct {field}{field_errors.expectation(cls, place) if place or not is_check else ' as it says'}"
        if is_missing:
            beside = [_place(e["loc"], cast(Hashable, cls)) for e in error.errors() if e["type"] in _MISSING]
            remedy = field_errors.missing_block(cls, [other for other in beside if other[:-1] == place[:-1]])
        raise FieldError(where, place, f"{message:.1000}", remedy) from error
    impossible = None if recorded else quantities.problem(document)
    if impossible is not None:
        path, value, quantity = impossible
        message, remedy = quantity.refusal(value) or ("", "")
        raise FieldError(where, _place(path, cast(Hashable, cls)), message, remedy)
    return document


def _place(location: tuple[int | str, ...], cls: Any) -> list[int | str]:
    """The place of a value in a file, where inlined fields have no name."""
    parts = list(location)
    for name in _inlined(cls).intersection(parts):
        parts.remove(name)
    return parts


def _arranged(data: Any, cls: Any, where: str) -> Any:
    """The document in the shape of the dataclasses that it is read as.

    Raises:
        ConfigError: the document has a field by the name that stands for the inlined ones.
    """
    if not _inlined(cls):
        return data
    if _is_dataclass(cls):
        if not isinstance(data, dict):
            return data
        hints = _hints(cls)
        document = {name: _arranged(value, hints.get(name), where) for name, value in data.items()}
        if not hasattr(cls, field_errors.INLINED):
            return document
        if (inlined := getattr(cls, field_errors.INLINED)) in document:
            message = f"{where}: field {inlined!r}: there is no such field"
            raise ConfigError(
                message, "write its content next to the other fields, under the names of the kind of task"
            )
        return cls.arrange(document)
    part = next(part for part in _parts(cls) if _inlined(part))
    if isinstance(data, (list, tuple)):
        return [_arranged(item, part, where) for item in data]
    if isinstance(data, dict) and get_origin(cls) is dict:
        return {name: _arranged(value, part, where) for name, value in data.items()}
    return _arranged(data, part, where)


@functools.cache
def _inlined(cls: Any) -> frozenset[str]:
    """Names of the inlined fields of a type and of the types within."""
    own = {getattr(cls, field_errors.INLINED)} if hasattr(cls, field_errors.INLINED) else set()
    return frozenset(own.union(*map(_inlined, _parts(cls))))


@functools.cache
def _parts(cls: Any) -> tuple[Any, ...]:
    """The types of a dataclass's fields, or those that a type is made of."""
    return tuple(_hints(cls).values()) if _is_dataclass(cls) else get_args(cls)


def _is_dataclass(cls: Any) -> bool:
    return dataclasses.is_dataclass(cls)


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def unparse(value: Any) -> Any:
    """The inverse of :func:`parse`: a dataclass as mappings, lists, strings and numbers, without what is None."""
    return _adapter(cast(Hashable, type(value))).dump_python(value, mode="json", exclude_none=True)


def load(path: Path, cls: type[T]) -> T:
    """A YAML file as an instance of the dataclass ``cls``. Raises ``ConfigError``."""
    return parse(read_yaml(path), cls, str(path))


def preset_roots() -> tuple[Path, ...]:
    """Folders that may hold presets, first match wins: of the working directory, and of this package."""
    candidates = (Path.cwd() / "launch", (Path(__file__).parents[1] / "launch").resolve())
    return tuple(dict.fromkeys(root for root in candidates if root.is_dir()))


def presets(kind: str) -> Iterator[tuple[str, Path]]:
    """``(name, file)`` of every preset of a kind (``robots``, ``tasks``)."""
    seen: set[str] = set()
    for root in preset_roots():
        for path in sorted((root / kind).glob("*.yaml")):
            if path.stem not in seen:
                seen.add(path.stem)
                yield path.stem, path


def find_preset(kind: str, name: str) -> Path:
    """The file of a preset, given its name or a path to a YAML file.

    Raises:
        ConfigError: naming the presets that exist, the nearest one first.
    """
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    known = dict(presets(kind))
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    raise ConfigError(
        f"there is no {kind[:-1]} preset {name!r}",
        f"{meant}There are: {', '.join(sorted(known))}; or give a path ending in .yaml",
    )


_MOVED_FACTORIES = {
    "sim_bridge.robot.make_robot": "sim_bridge.robot.driver.make_robot",
    "drivers.ros_locobot.part.make_localizer": "drivers.ros.localizer_factory.make_localizer",
    "drivers.ros_locobot.localizer_factory.make_localizer": "drivers.ros.localizer_factory.make_localizer",
    "robot_runtime.localization.wheels.make_localizer": "robot_runtime.localization.wheel_odometry.make_localizer",
}
"""Factories under the names that older logs and robot files have."""


def resolve(dotted: str, where: str) -> Any:
    """The object named ``package.module.Name`` or ``package.module:Name``.

    Raises:
        DriverMissing: naming the module that is missing and the extra that brings it.
        ConfigError: if the module has no such name.
    """
    dotted = _MOVED_FACTORIES.get(dotted, dotted)
    module_name, _, attribute = dotted.replace(":", ".").rpartition(".")
    if not (module_name and all(part.isidentifier() for part in (*module_name.split("."), attribute))):
        raise ConfigError(f"{where}: {dotted!r} is not of the form package.module.Name", "write the full dotted name")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        own = missing in (module_name, *_parents(module_name))
        raise DriverMissing(
            f"{where}: {dotted!r} cannot be imported: there is no module {missing!r}",
            _spelling_hint(missing) if own else _install_hint(module_name, missing),
        ) from error
    except ImportError as error:
        raise DriverMissing(
            f"{where}: {dotted!r} cannot be imported: {error}", _install_hint(module_name, str(error.name))
        ) from error
    if not hasattr(module, attribute):
        close = difflib.get_close_matches(attribute, dir(module), n=1)
        raise ConfigError(
            f"{where}: module {module_name!r} has no {attribute!r}",
            f"did you mean {close[0]!r}?" if close else "check the spelling",
        )
    return getattr(module, attribute)


def no_constant(name: str) -> float:
    """Refuse NaN and infinities in JSON with ``ValueError``: a ``parse_constant``."""
    raise ValueError(f"{name} is not a number of JSON")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a JSON object a dictionary: an ``object_pairs_hook`` that refuses repeated keys with ``ValueError``."""
    made = dict(pairs)
    if len(made) < len(pairs):
        repeated = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
        raise ValueError(f"the key {repeated!r:.60} is repeated")
    return made


@functools.cache
def _adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def _parents(module_name: str) -> tuple[str, ...]:
    parts = module_name.split(".")
    return tuple(".".join(parts[:i]) for i in range(1, len(parts)))


ROS_MODULES = (
    "rclpy",
    "rospy",
    "rosgraph",
    "kobuki_msgs",
    "ca_msgs",
    "create_msgs",
    "interbotix_xs_msgs",
    "robot_runtime_simulation",
)
ROS_2_REMEDY = "source ROS 2's setup.bash in this shell, or `pip install` its wheels: docs/robots/create3.md"
ROS_REMEDY = "install ROS 1 and build ros_ws (`make test`), then `source ros_ws/devel/setup.bash` in this shell"
"""Modules of ROS and of this repository's workspace, and the remedies where Python does not find them."""


def _spelling_hint(missing: str) -> str:
    if "." in missing:  # its package was found
        return "check the spelling of the driver"
    return f"check the spelling of the driver, or put the folder that holds {missing!r} on PYTHONPATH"


def _install_hint(module_name: str, missing: str) -> str:
    extras = {
        "onnxruntime": "onnx",
        "torch": "torch",
        "serial": "marvelmind",
        "rosbags": "ros",
        "dynamixel_sdk": "dynamixel",
        "pupil_apriltags": "apriltag",
        "pyrealsense2": "realsense",
        "libusb_package": "realsense",
    }
    if missing in ROS_MODULES:
        return ROS_2_REMEDY if missing == "rclpy" else ROS_REMEDY
    extra = extras.get(missing.split(".")[0], {"sim_bridge": "sim"}.get(module_name.split(".")[0]))
    return f"pip install 'robot-runtime[{extra}]'" if extra else f"install the package that provides {missing!r}"
