"""Values of any type as JSON, for logs and for files of results.

Enum members are written by name, so that files do not depend on their numbers. JSON has no infinity and no NaN: they
are written as the strings ``Infinity``, ``-Infinity`` and ``NaN``, which ``float()`` reads back.
"""

import functools
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum, Flag
from pathlib import Path, PurePath
from typing import Any, TextIO

import numpy as np

from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task

_TO_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def plain(value: Any) -> Any:
    """Convert dataclasses, enums, arrays, paths and containers to types that JSON has.

    Raises:
        TypeError: an object has any other type.
    """
    return _conversion(type(value))(value)


STANDARD_OUTPUT = Path("-")
"""Path that stands for standard output."""


@contextmanager
def results_file(path: Path) -> Iterator[TextIO]:
    """A file for results, or standard output. Raises ``RecordingError`` if the file cannot be written."""
    if path == STANDARD_OUTPUT:
        yield sys.stdout
        return
    from robot_runtime.common.creating import creating

    with creating(path) as draft, draft.open("w", encoding="utf-8") as file:
        yield file


def write_json(path: Path | None, value: Any) -> None:
    """Write a value as :func:`plain` converts it, indented, to :func:`results_file`; nothing without a path.

    Raises:
        RecordingError: the file cannot be written.
    """
    if path is not None:
        with results_file(path) as file:
            file.write(json.dumps(plain(value), indent=2) + "\n")


def _find_conversion(kind: type) -> Callable[[Any], Any]:
    """The function that converts values of a type."""
    if issubclass(kind, Flag):
        return _flag_names
    if issubclass(kind, Enum):
        return lambda value: plain(value.value)
    if issubclass(kind, float):
        return lambda value: value if math.isfinite(value) else _NON_FINITE[str(value)]
    if issubclass(kind, (bool, int, str, type(None))):
        return lambda value: value
    if issubclass(kind, (Episode, Task)):
        return lambda value: plain(value.document())
    if is_dataclass(kind):
        names = tuple(field.name for field in fields(kind))
        return lambda value: {name: plain(getattr(value, name)) for name in names}
    if issubclass(kind, Mapping):
        return lambda value: {str(key): plain(item) for key, item in value.items()}
    if issubclass(kind, (list, tuple)):
        return lambda value: [
            # Most are numbers, and a call for each of them costs more than all the rest.
            item if type(item) is float and math.isfinite(item) else plain(item)
            for item in value
        ]
    if issubclass(kind, (np.generic, np.ndarray)):
        return lambda value: plain(value.tolist())
    if issubclass(kind, PurePath):
        return str
    raise TypeError(f"a {kind.__name__} cannot be written as JSON")


_conversion: Callable[[type], Callable[[Any], Any]] = functools.cache(_find_conversion)
"""Each found once: a step of a log has a thousand values."""


def _flag_names(value: Flag) -> list[str]:
    return [str(member.name).lower() for member in type(value) if member.value and member in value] if value else []


_NON_FINITE = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}


def dumps(value: Any) -> bytes:
    """:func:`plain` as UTF-8 JSON, keys in the order given. Raises ``TypeError``."""
    return _TO_JSON(plain(value)).encode()
