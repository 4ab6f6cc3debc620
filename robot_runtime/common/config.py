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
import re
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

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

MAX_YAML_BYTES = 1 << 25
MAX_YAML_DEPTH = 64
MAX_ALIASED_SIZE = 1 << 20
"""Values and characters that the aliases of a document may stand for: a page of text can expand to gigabytes."""

MAX_SCALAR_DIGITS = 400
"""Characters of a number: reading one takes time that grows with their square."""

_MAX_KEY_DIGITS = 17  # longer integers can be chosen so that a dictionary takes quadratic time
_MAX_DIRECTIVES = 16  # libyaml compares each %TAG line with all before it

_FASTEST_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_FASTEST_LOADER):  # type: ignore[misc, valid-type]
    """YAML's safe subset, less two traps of PyYAML: a repeated key loses the first value, and 1e-3 is a string."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is repeated", key.start_mark
                )
            seen.add(key.value)
            if key.tag == "tag:yaml.org,2002:int" and len(key.value) > _MAX_KEY_DIGITS:
                raise yaml.constructor.ConstructorError(None, None, f"a key of {len(key.value)} digits", key.start_mark)
        return dict(super().construct_mapping(node, deep=deep))

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        is_number = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
        if is_number and len(node.value) > MAX_SCALAR_DIGITS:
            raise yaml.constructor.ConstructorError(
                None, None, f"a number of {len(node.value)} characters", node.start_mark
            )
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
            # PyYAML hands impossible dates and tagged text such as `!!int x` to Python unchecked.
            text = node.value if isinstance(node, yaml.ScalarNode) else "a collection"
            raise yaml.constructor.ConstructorError(
                None, None, f"{text!r:.60} is not a valid {node.tag.rpartition(':')[2]:.60}: {error}", node.start_mark
            ) from error


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", SHORT_FLOAT, list("-+0123456789"))


def read_yaml(path: Path) -> Any:
    """The document in a YAML file.

    Raises:
        ConfigError: missing, unreadable, or refused by :func:`parse_yaml`; names file, line and column.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_YAML_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file", "check the path, or list presets with `robot-runtime info`"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error}", "check that it is a readable UTF-8 text file") from error
    return parse_yaml(data, str(path))


def parse_yaml(content: str | bytes, where: str) -> Any:
    """The document that a text of any origin holds.

    Time and memory are bounded by the text's length: what aliases stand for, depth, and digits of numbers are limited.

    Args:
        content: text, or its UTF-8 bytes.
        where: the text's place, for messages.

    Raises:
        ConfigError: too large, not UTF-8, not YAML, with a repeated key or an impossible value, or beyond a limit;
            names ``where``, line and column.
    """
    if len(content) > MAX_YAML_BYTES:
        raise ConfigError(f"{where}: has more than {MAX_YAML_BYTES} bytes", "check that it is the right file")
    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: cannot be read: {error}", "write it as UTF-8 text") from error
    with _yaml_errors(where):
        _check_extent(text, where)
        return yaml.load(text, Loader=_Loader)


def _check_extent(text: str, where: str) -> None:
    """Check depth and aliases before PyYAML follows them on the stack."""
    if text.count("\n%") > _MAX_DIRECTIVES:
        raise ConfigError(f"{where}: has more than {_MAX_DIRECTIVES} lines that begin with %", "remove them")
    sizes: dict[str, int] = {}  # by anchor: values and characters
    open_sizes, open_anchors = [0], [""]
    aliased = 0
    for event in yaml.parse(text, Loader=_FASTEST_LOADER):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.CollectionStartEvent):
            open_sizes.append(1)
            open_anchors.append(event.anchor or "")
            if len(open_sizes) > MAX_YAML_DEPTH + 1:
                raise _too_deep(where, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            size, anchor = open_sizes.pop(), open_anchors.pop()
            open_sizes[-1] += size
            sizes[anchor] = size
        elif isinstance(event, yaml.ScalarEvent):
            size = 1 + len(event.value)
            open_sizes[-1] += size
            if event.anchor:
                sizes[event.anchor] = size
        elif isinstance(event, yaml.AliasEvent):
            anchor = event.anchor or ""
            if anchor in open_anchors:
                raise ConfigError(f"{where}: line {line}: {anchor!r} holds itself", "write the value out")
            size = sizes.get(anchor, 0)
            open_sizes[-1] += size
            aliased += size
            if aliased > MAX_ALIASED_SIZE:
                raise ConfigError(
                    f"{where}: line {line}: its aliases stand for more than {MAX_ALIASED_SIZE} values and characters",
                    "write the values out",
                )


def _too_deep(where: str, line: int) -> ConfigError:
    return ConfigError(
        f"{where}: line {line} is nested more than {MAX_YAML_DEPTH} deep", "write it as the documentation shows"
    )


@contextmanager
def _yaml_errors(where: str) -> Iterator[None]:
    try:
        yield
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if mark and "maximum nesting depth" in str(error):  # libyaml looks ahead, and has a limit of its own
            raise _too_deep(where, mark.line + 1) from error
        place = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        raise ConfigError(
            f"{where}:{place} is not valid YAML: {problem!s:.200}", "correct the YAML at that place"
        ) from error


def check_positive(owner: object, *names: str) -> None:
    """Check fields in a ``__post_init__``; all of the owner's by default. Raises ``ValueError`` for one not above 0."""
    for name in names or vars(owner):
        value = getattr(owner, name)
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a positive number, got {value}")


def parse(data: Any, cls: type[T], where: str) -> T:
    """``data``, of mappings, sequences, strings and numbers, as an instance of the dataclass ``cls``.

    Types are taken as they are written: neither ``"3"`` nor ``true`` is the number that a field asks for.

    Raises:
        ConfigError: names ``where``, the field's path, what was found and what was expected.
    """
    # By way of JSON, where a strict reading still makes tuples of lists and enums of words.
    try:
        text = json.dumps(_arranged(data, cast(Any, cls), where), default=str)
    except TypeError as error:
        raise ConfigError(f"{where}: a key is neither text nor number: {error}", "write it in quotes") from error
    try:
        document: T = _adapter(cast(Hashable, cls)).validate_json(text, strict=True)
        return document
    except ValidationError as error:
        # A misspelt key also leaves the right one missing: the misspelling is the cause.
        problem = min(error.errors(), key=lambda e: e["type"] != "unexpected_keyword_argument")
        misspelt = problem["type"] == "unexpected_keyword_argument"
        field = ".".join(_place(problem["loc"], cast(Hashable, cls))) or "document"
        observed = (
            "" if misspelt or isinstance(problem["input"], (dict, list)) else f" (found {problem['input']!r:.200})"
        )
        message = "there is no such field" if misspelt else problem["msg"].removeprefix("Value error, ") + observed
        close = difflib.get_close_matches(str(problem["loc"][-1]), _field_names(cls), n=1) if misspelt else []
        remedy = f"did you mean {close[0]!r}?" if close else f"correct {field!r:.200} there"
        raise ConfigError(f"{where}: field {field!r:.200}: {message:.1000}", remedy) from error


INLINED = "__inlined__"
"""Attribute of a dataclass with the name of a field whose content stands next to the other fields in files.

Such a class has two class methods: ``arrange(document)`` returns a document with that content under the field's name,
and ``inlined_types()`` the types that it may have, for suggestions.
"""


def _place(location: tuple[int | str, ...], cls: Any) -> list[str]:
    """The place of a value in a file, where inlined fields have no name."""
    parts = [str(part) for part in location]
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
        if not hasattr(cls, INLINED):
            return document
        if (inlined := getattr(cls, INLINED)) in document:
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
    own = {getattr(cls, INLINED)} if hasattr(cls, INLINED) else set()
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
    "drivers.ros_locobot.part.make_localizer": "drivers.ros_locobot.localizer_factory.make_localizer",
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


@functools.cache
def _adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def _field_names(kind: Any) -> set[str]:
    """Every key that may stand somewhere in a document of a type: its fields, and those of the types within."""
    if not _is_dataclass(kind):
        return set().union(*(_field_names(part) for part in get_args(kind)))
    names = {field.name for field in dataclasses.fields(kind)}
    types = [*_hints(kind).values(), *(kind.inlined_types() if hasattr(kind, INLINED) else ())]
    return names.union(*map(_field_names, types))


def _parents(module_name: str) -> tuple[str, ...]:
    parts = module_name.split(".")
    return tuple(".".join(parts[:i]) for i in range(1, len(parts)))


ROS_MODULES = (
    "rospy",
    "rosgraph",
    "kobuki_msgs",
    "ca_msgs",
    "create_msgs",
    "interbotix_xs_msgs",
    "robot_runtime_simulation",
)
ROS_REMEDY = "install ROS 1 and build ros_ws (`make test`), then `source ros_ws/devel/setup.bash` in this shell"
"""Modules of ROS and of this repository's workspace, and the remedy where Python does not find them."""


def _spelling_hint(missing: str) -> str:
    if "." in missing:  # its package was found
        return "check the spelling of the driver"
    return f"check the spelling of the driver, or put the folder that holds {missing!r} on PYTHONPATH"


def _install_hint(module_name: str, missing: str) -> str:
    extras = {
        "onnxruntime": "onnx",
        "torch": "torch",
        "serial": "marvelmind",
        "dynamixel_sdk": "dynamixel",
        "pupil_apriltags": "apriltag",
        "pyrealsense2": "realsense",
        "libusb_package": "realsense",
    }
    if missing in ROS_MODULES:
        return ROS_REMEDY
    extra = extras.get(missing, {"sim_bridge": "sim"}.get(module_name.split(".")[0]))
    return f"pip install 'robot-runtime[{extra}]'" if extra else f"install the package that provides {missing!r}"
