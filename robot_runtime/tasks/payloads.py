"""Typed payloads that a kind of task adds to a task's settings and to its episodes, and their place in files.

In Python a task has ``settings`` and an episode has ``details``: dataclasses of the kind, or None. In files their
fields stand next to the others, under the names that the kind gives them.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar

from pydantic import TypeAdapter

from robot_runtime.common.plugins import Registry
from robot_runtime.errors import PluginError

TASK_KINDS = "robot_runtime.task_kinds"
"""Entry-point group of the kinds of tasks."""

COMMON_SENSORS = "robot_runtime.sensors"
"""Entry-point group of the sensors that a task of any kind may have."""


class Payloads:
    """The part of a kind of task (:class:`robot_runtime.tasks.kind.TaskKind`) that tasks and episodes themselves need.

    Attributes:
        settings_field: name of the kind's settings in a task's file; empty if it has none.
        settings_type: dataclass of ``Task.settings``; None if the kind has none.
        details_type: dataclass of ``Episode.details``; None if the kind's episodes have none. In files, its fields
            stand next to those of the episode.
        sensors: sensors that only tasks of this kind have, by name; their ``Moment.goal`` is that of
            ``TaskKind.goal``.
    """

    settings_field: ClassVar[str] = ""
    settings_type: ClassVar[type | None] = None
    details_type: ClassVar[type | None] = None
    sensors: ClassVar[Mapping[str, Any]] = {}

    def check_task(self, task: Any) -> None:
        """Check that the settings of a task go together. Raises ``ValueError``."""


KINDS: Registry[Payloads] = Registry(TASK_KINDS, "kind of task", Payloads)
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


def details_kind(names: Iterable[str], kind: str | None = None) -> str | None:
    """The kind whose episodes have these fields besides the common ones; None if no kind has them.

    Args:
        names: names of the fields.
        kind: kind of the task that the episode belongs to, which comes first; None where a file states none.

    Raises:
        PluginError: two other kinds have these fields, so that a file does not tell whose episode it is.
    """
    wanted = set(names)
    if kind is not None and (own := KINDS.find(kind)) is not None and wanted <= _fields(own):
        return kind
    owners = [name for name, other in KINDS.usable().items() if wanted <= _fields(other)]
    if len(owners) > 1:
        raise PluginError(
            f"episodes with the field {min(wanted)!r} are of the kinds {' and '.join(owners)}",
            "rename the field in the package that was installed last",
        )
    return owners[0] if owners else None


def read_details(document: Any) -> object:
    """The details of an episode.

    Args:
        document: ``kind``, whose details they are, and ``fields``, as values of JSON's types.

    Raises:
        ValueError: no kind of task has episodes with these fields.
        ValidationError: a field of them is missing or of another type.
    """
    kind, own = document["kind"], document["fields"]
    if kind is None:
        raise ValueError(f"no kind of task has episodes with the fields {', '.join(own)}")
    return _adapter(KINDS.load(kind).details_type).validate_json(json.dumps(own, default=str), strict=True)


def details_document(details: object) -> dict[str, Any]:
    """The fields of an episode's details that differ from their defaults, as values of JSON's types."""
    cls: Any = type(details)
    document: dict[str, Any] = _adapter(cls).dump_python(details, mode="json", exclude_defaults=True)
    return document


def _fields(kind: Payloads) -> set[str]:
    return set() if kind.details_type is None else {field.name for field in fields(kind.details_type)}


@cache
def _adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)
