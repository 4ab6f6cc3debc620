"""Serialization of steps: the fields of all, and the state of the task's kind."""

import functools
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from robot_runtime.recording.codec import INTEGER, OBJECT, Schema, object_codec, optional, parts_of
from robot_runtime.recording.json_records import SPECIAL
from robot_runtime.records import StepRecord
from robot_runtime.tasks.state import NO_STATE, StateFormat

_PARTS = parts_of(StepRecord, SPECIAL)
_STEP = object_codec({name: part for name, part in _PARTS.items() if name not in ("phase_s", "state")})

HOST = object_codec({name: _PARTS[name] for name in ("index", "phase_s")})
"""Codec of a step's message in the channel ``host``."""


class StepForm:
    """JSON form of the steps of a kind of task.

    A step has neither its images nor ``phase_s``, which depends on the host's speed (:data:`HOST`). The shared field of
    its state, if any, is in the channel ``objects``, written with the step that the field ``since`` names.

    Attributes:
        step: JSON schemas of a step's fields by name.
        objects: JSON schemas of the fields in the channel ``objects`` by name.
    """

    def __init__(self, state: StateFormat) -> None:
        parts = parts_of(state.payload, SPECIAL)
        for field in fields(state.payload):
            if field.default is not MISSING or field.default_factory is not MISSING:
                parts[field.name] = optional(parts[field.name])
        self._format, self._shared = state, parts.pop(state.shared, OBJECT)
        self._own = object_codec(parts)
        own: Schema = {"type": "object", "description": state.about, "properties": self._own.properties}
        if state.shared:
            own["description"] += "; 'since': the step whose /objects still holds"
            own["properties"] = {"since": INTEGER.schema, **own["properties"]}
        self.step: Schema = {**_STEP.properties, state.field: own}
        self.objects: Schema = {"index": INTEGER.schema, state.shared or "poses": OBJECT.schema}

    def encode(self, record: StepRecord, since: int | None) -> dict[str, Any]:
        """A step for ``json_output.dumps``.

        Args:
            record: the step.
            since: index of the step with which the shared field was last written; None if it never was.

        Raises:
            TypeError: its state is not one of the kind.
        """
        state: dict[str, Any] | None = None
        if record.state != NO_STATE:
            if type(record.state) is not self._format.payload:
                raise TypeError(f"a {type(record.state).__name__} is not the state of this kind of task")
            state = {**({"since": since} if self._format.shared else {}), **self._own.encode(record.state)}
        return {**_STEP.encode(record), self._format.field: state}

    def decode(
        self, data: Mapping[str, Any], phase_s: dict[str, float], shared: Mapping[int | None, Mapping[str, Any]]
    ) -> StepRecord:
        """The inverse of :meth:`encode`, without images.

        Args:
            data: JSON of the step.
            phase_s: host seconds by phase, of :data:`HOST`.
            shared: values of the shared field by the index of the step that they were written with.

        Raises:
            LookupError, ValueError, TypeError, AttributeError: the step is malformed, or its shared values are lost.
        """
        own, state = data.get(self._format.field), NO_STATE
        if own is not None:
            values = self._own.decode(own)
            if self._format.shared:
                since = own.get("since")
                if since not in shared:
                    # A truncated log that was recovered: values written with other steps are not valid here.
                    raise ValueError(f"the {self._format.shared} that were written with step {since} are lost")
                values[self._format.shared] = shared[since]
            state = self._format.payload(**values)
        record = StepRecord(**_STEP.decode(data), phase_s=phase_s, state=state)
        if record.command is not None and record.command.action is not record.action:
            raise ValueError(f"a command of {record.command.action} belongs to the action {record.action}")
        return record

    def shared(self, record: StepRecord) -> dict[str, Any]:
        """The values of the shared field of a step's state; empty without."""
        return dict(getattr(record.state, self._format.shared, {}))

    def encode_objects(self, index: int, shared: Mapping[str, Any]) -> dict[str, Any]:
        """The message of a step in ``objects``."""
        return {"index": index, self._format.shared: self._shared.encode(shared)}

    def decode_objects(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The inverse of :meth:`encode_objects`: the values of the shared field."""
        shared: dict[str, Any] = self._shared.decode(data[self._format.shared])
        return shared


step_form = functools.cache(StepForm)
"""The form of a kind's steps; made once."""
