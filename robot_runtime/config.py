"""YAML to typed, frozen dataclasses; and the one place that turns a driver's name into a class.

A preset is looked up by name in ``launch/`` of the working directory, then in the one that ships with the project.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from robot_runtime.errors import ConfigError, DriverMissing

T = TypeVar("T")

STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
"""Put ``__pydantic_config__ = STRICT`` in a dataclass so that a misspelt key is an error."""


def read_yaml(path: Path) -> Any:
    """The document in a YAML file.

    Raises:
        ConfigError: missing, unreadable, not UTF-8 or not YAML; names file, line and column.
    """
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file", "check the path, or list presets with `robot-runtime info`"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}", "check that it is a readable UTF-8 text file") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        raise ConfigError(f"{path}:{where} is not valid YAML: {problem}", "mend the YAML at that place") from error


def parse(data: Any, cls: type[T], where: str) -> T:
    """``data`` as an instance of the dataclass ``cls``.

    Raises:
        ConfigError: names ``where``, the field's path, what was found and what was expected.
    """
    try:
        return TypeAdapter(cls).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "document"
        fields = getattr(cls, "__dataclass_fields__", {})
        close = difflib.get_close_matches(str(first["loc"][-1]) if first["loc"] else "", fields, n=1)
        remedy = f"did you mean {close[0]!r}?" if close and first["type"] == "unexpected_keyword_argument" else None
        found = first.get("input")
        shown = "" if isinstance(found, (dict, list)) else f" (found {found!r})"
        raise ConfigError(
            f"{where}: field {field!r}: {first['msg']}{shown}", remedy or f"mend {field!r} there"
        ) from error


def load(path: Path, cls: type[T]) -> T:
    """A YAML file as an instance of the dataclass ``cls``. Raises ``ConfigError``."""
    return parse(read_yaml(path), cls, str(path))


def preset_roots() -> tuple[Path, ...]:
    """Folders that may hold presets, first match wins: working directory, source checkout, installation."""
    checkout = Path(__file__).resolve().parent.parent
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
        ConfigError: naming the nearest presets that exist.
    """
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    known = dict(presets(kind))
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=3) or sorted(known)
    raise ConfigError(
        f"there is no {kind[:-1]} preset {name!r}", f"use one of: {', '.join(close)}; or give a path ending in .yaml"
    )


def resolve(dotted: str, where: str) -> Any:
    """The object named ``package.module.Name`` or ``package.module:Name``.

    Raises:
        DriverMissing: naming the module that is missing and the extra that brings it.
        ConfigError: if the module has no such name.
    """
    module_name, _, attribute = dotted.replace(":", ".").rpartition(".")
    if not module_name:
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


def _parents(module_name: str) -> tuple[str, ...]:
    parts = module_name.split(".")
    return tuple(".".join(parts[:i]) for i in range(1, len(parts)))


def _install_hint(module_name: str, missing: str) -> str:
    extra = {"sim_bridge": "sim"}.get(module_name.split(".")[0])
    return f"pip install 'robot-runtime[{extra}]'" if extra else f"install the package that provides {missing!r}"
