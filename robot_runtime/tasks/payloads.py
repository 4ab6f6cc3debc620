"""Typed payloads that a kind of task adds to a task's settings and to its episodes, and their place in files.

In Python a task has ``settings`` and an episode has ``details``: dataclasses of the kind, or None. In files their
fields stand beside the others, under the names that the kind gives them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Protocol

from pydantic import TypeAdapter

from robot_runtime.common.plugins import Registry
from robot_runtime.errors import PluginError

TASK_KINDS = "robot_runtime.task_kinds"
"""Entry-point group of the kinds of tasks."""

COMMON_SENSORS = "robot_runtime.sensors"
"""Entry-point group of the sensors that a task of any kind may have."""


class Payloads(Protocol):
    """The part of :class:`robot_runtime.tasks.kind.TaskKind` that tasks and episodes themselves need."""

    settings_field: str
    settings_type: type | None
    details_type: type | None
    sensors: Mapping[str, Any]

    def check_task(self, task: Any) -> None:
        """Raise ``ValueError`` for settings that do not go together."""


KINDS: Registry[Payloads] = Registry(
    TASK_KINDS, "kind of task", methods=("check_task", "details_type", "settings_type")
)
SENSORS: Registry[Any] = Registry(COMMON_SENSORS, "sensor")


def sensor_names() -> tuple[str, ...]:
    """Names of all sensors: those of every kind of task, then those of each kind that can be loaded."""
    names = list(SENSORS.names())
    for kind in KINDS.usable().values():
        names += [name for name in kind.sensors if name not in names]
    return tuple(names)


def read_settings(kind: Payloads, document: Any) -> object:
    """The settings of a kind, given as values of JSON's types.

    Raises:
        ValueError: the kind has no settings.
        ValidationError: a field of them is missing, unknown or of another type.
    """
    if kind.settings_type is None:
        raise ValueError("tasks of this kind have no settings of their own")
    wrapped = json.dumps({kind.settings_field: document}, default=str)
    values: dict[str, object] = _adapter(dict[str, kind.settings_type]).validate_json(wrapped, strict=True)  # type: ignore[name-defined]
    return values[kind.settings_field]


def details_type(names: Iterable[str]) -> type | None:
    """The class of the details of episodes that have these fields besides the common ones; None if no kind has them.

    Raises:
        PluginError: two kinds have these fields, so that a file does not tell whose episode it is.
    """
    wanted = set(names)
    owners = {
        name: kind.details_type
        for name, kind in KINDS.usable().items()
        if kind.details_type is not None and wanted <= {field.name for field in fields(kind.details_type)}
    }
    if len(owners) > 1:
        raise PluginError(
            f"episodes with the field {min(wanted)!r} are of the kinds {' and '.join(owners)}",
            "rename the field in the package that was installed last",
        )
    return next(iter(owners.values()), None)


def read_details(document: Any) -> object:
    """The details of an episode, given as values of JSON's types.

    Raises:
        ValueError: no kind of task has episodes with these fields.
        ValidationError: a field of them is missing or of another type.
    """
    cls = details_type(document)
    if cls is None:
        raise ValueError(f"no kind of task has episodes with the fields {', '.join(document)}")
    return _adapter(cls).validate_json(json.dumps(document, default=str), strict=True)


def details_document(details: object) -> dict[str, Any]:
    """The fields of an episode's details that differ from their defaults, as values of JSON's types."""
    cls: Any = type(details)
    document: dict[str, Any] = _adapter(cls).dump_python(details, mode="json", exclude_defaults=True)
    return document


@cache
def _adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)
