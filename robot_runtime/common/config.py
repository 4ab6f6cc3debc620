"""YAML to typed, frozen dataclasses; and the one place that turns a driver's name into a class.

A preset is looked up by name in ``launch/`` of the working directory, then in the one that ships with the project.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import json
import re
import sys
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_args, get_type_hints

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from robot_runtime.errors import ConfigError, DriverMissing

T = TypeVar("T")

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
"""Put ``__pydantic_config__ = STRICT`` in a dataclass so that a misspelled key, NaN or infinity is an error."""

SHORT_FLOAT = re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")
"""Text that YAML 1.2 and :func:`read_yaml` read as a number and PyYAML's writers leave unquoted: 1e-3."""

MAX_FOREIGN_DEPTH = 32

_DEEPER = (
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
)
_SHALLOWER = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)

_FASTEST_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_FASTEST_LOADER):  # type: ignore[misc, valid-type]
    """YAML's safe subset, less two traps of PyYAML: a repeated key loses the first value, and 1e-3 is a string."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is repeated", key.start_mark
                )
            seen.add(key.value)
        return dict(super().construct_mapping(node, deep=deep))


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", SHORT_FLOAT, list("-+0123456789"))


def read_yaml(path: Path) -> Any:
    """The document in a YAML file.

    Raises:
        ConfigError: missing, unreadable, not UTF-8 or not YAML, or with a repeated key; names file, line and column.
    """
    try:
        return parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file", "check the path, or list presets with `robot-runtime info`"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}", "check that it is a readable UTF-8 text file") from error


def parse_yaml(text: str, where: str) -> Any:
    """The document that a text holds. Raises ``ConfigError``; names ``where``, line and column."""
    with _yaml_errors(where):
        return yaml.load(text, Loader=_Loader)


def parse_foreign_yaml(data: bytes, where: str) -> Any:
    """The document in bytes of unknown origin.

    Aliases, which can expand a page of text to gigabytes, and depths that exceed the parser's stack are refused.

    Raises:
        ConfigError: for what :func:`read_yaml` refuses, and for those two.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: cannot be read: {error}", "write it as UTF-8 text") from error
    depth = 0
    with _yaml_errors(where):
        for token in yaml.scan(text, Loader=_FASTEST_LOADER):
            if isinstance(token, yaml.AliasToken):
                line = token.start_mark.line + 1
                raise ConfigError(f"{where}: line {line} refers to an anchor", "write the value out")
            if isinstance(token, _DEEPER):
                depth += 1
            elif isinstance(token, _SHALLOWER):
                depth -= 1
            if depth > MAX_FOREIGN_DEPTH:
                raise ConfigError(
                    f"{where}: line {token.start_mark.line + 1} is nested more than {MAX_FOREIGN_DEPTH} deep",
                    "write it as the documentation shows",
                )
    return parse_yaml(text, where)


@contextmanager
def _yaml_errors(where: str) -> Iterator[None]:
    try:
        yield
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        raise ConfigError(f"{where}:{place} is not valid YAML: {problem}", "mend the YAML at that place") from error


def parse(data: Any, cls: type[T], where: str) -> T:
    """``data``, of mappings, sequences, strings and numbers, as an instance of the dataclass ``cls``.

    Types are taken as they are written: neither ``"3"`` nor ``true`` is the number that a field asks for.

    Raises:
        ConfigError: names ``where``, the field's path, what was found and what was expected.
    """
    try:
        # By way of JSON, where a strict reading still makes tuples of lists and enums of words.
        document: T = _adapter(cast(Hashable, cls)).validate_json(json.dumps(data, default=str), strict=True)
        return document
    except ValidationError as error:
        # A misspelt key also leaves the right one missing: the misspelling is the cause.
        problem = min(error.errors(), key=lambda e: e["type"] != "unexpected_keyword_argument")
        misspelt = problem["type"] == "unexpected_keyword_argument"
        field = ".".join(str(part) for part in problem["loc"]) or "document"
        found = "" if misspelt or isinstance(problem["input"], (dict, list)) else f" (found {problem['input']!r})"
        message = "there is no such field" if misspelt else problem["msg"].removeprefix("Value error, ") + found
        close = difflib.get_close_matches(str(problem["loc"][-1]), _field_names(cls), n=1) if misspelt else []
        remedy = f"did you mean {close[0]!r}?" if close else f"mend {field!r} there"
        raise ConfigError(f"{where}: field {field!r}: {message}", remedy) from error


def unparse(value: Any) -> Any:
    """The inverse of :func:`parse`: a dataclass as mappings, lists, strings and numbers, without what is None."""
    return _adapter(cast(Hashable, type(value))).dump_python(value, mode="json", exclude_none=True)


def load(path: Path, cls: type[T]) -> T:
    """A YAML file as an instance of the dataclass ``cls``. Raises ``ConfigError``."""
    return parse(read_yaml(path), cls, str(path))


def preset_roots() -> tuple[Path, ...]:
    """Folders that may hold presets, first match wins: working directory, source checkout, installation."""
    checkout = Path(__file__).resolve().parents[2]
    candidates = (Path.cwd() / "launch", checkout / "launch", Path(sys.prefix) / "share" / "robot_runtime" / "launch")
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
    "drivers.ros_locobot.part.make_localizer": "drivers.ros_locobot.localizer_factory.make_localizer",
    "robot_runtime.localization.wheels.make_localizer": "robot_runtime.localization.wheel_odometry.make_localizer",
}
"""Factories under the names that logs and robot files of version 0.1 have."""


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
            "check the spelling of the driver" if own else _install_hint(module_name, missing),
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


@functools.cache
def _adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def _field_names(kind: Any) -> set[str]:
    """Every key that may stand somewhere in a document of a type: its fields, and those of the types within."""
    if not dataclasses.is_dataclass(kind):
        return set().union(*(_field_names(part) for part in get_args(kind)))
    names = {field.name for field in dataclasses.fields(kind)}
    return names.union(*(_field_names(hint) for hint in get_type_hints(kind).values()))


def _parents(module_name: str) -> tuple[str, ...]:
    parts = module_name.split(".")
    return tuple(".".join(parts[:i]) for i in range(1, len(parts)))


def _install_hint(module_name: str, missing: str) -> str:
    extras = {
        "onnxruntime": "onnx",
        "torch": "torch",
        "serial": "marvelmind",
        "pupil_apriltags": "apriltag",
        "pyrealsense2": "realsense",
        "libusb_package": "realsense",
    }
    extra = extras.get(missing, {"sim_bridge": "sim"}.get(module_name.split(".")[0]))
    return f"pip install 'robot-runtime[{extra}]'" if extra else f"install the package that provides {missing!r}"
