"""Channels of a log, one row each, with the schemas by which other tools open it.

Images, poses, transforms, calibration, map and scene use Foxglove's protobuf schemas, which Foxglove and Rerun display.
The runtime's own records are JSON with JSON schemas.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from foxglove_schemas_protobuf.CameraCalibration_pb2 import CameraCalibration
from foxglove_schemas_protobuf.CompressedImage_pb2 import CompressedImage
from foxglove_schemas_protobuf.FrameTransforms_pb2 import FrameTransforms
from foxglove_schemas_protobuf.Grid_pb2 import Grid
from foxglove_schemas_protobuf.PoseInFrame_pb2 import PoseInFrame
from foxglove_schemas_protobuf.RawImage_pb2 import RawImage
from foxglove_schemas_protobuf.SceneUpdate_pb2 import SceneUpdate
from google.protobuf.descriptor import Descriptor
from mcap.well_known import MessageEncoding, SchemaEncoding
from mcap_protobuf.schema import build_file_descriptor_set

from robot_runtime.hal.streams import STREAMS

LOG_FORMAT = 1
"""Version of the layout of a log, written in its ``/episode`` record."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One channel: its topic, the schema's name, encoding and bytes, and the messages' encoding."""

    topic: str
    schema_name: str
    schema_encoding: str
    schema: bytes
    message_encoding: str


def _protobuf(stream: str, message: Any) -> Channel:
    descriptor: Descriptor = message.DESCRIPTOR
    return Channel(
        STREAMS[stream].topic,
        descriptor.full_name,
        SchemaEncoding.Protobuf,
        build_file_descriptor_set(message).SerializeToString(deterministic=True),
        MessageEncoding.Protobuf,
    )


def _json(stream: str, name: str, about: str, properties: dict[str, dict[str, Any]]) -> Channel:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "description": about,
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }
    return Channel(
        STREAMS[stream].topic, name, SchemaEncoding.JSONSchema, json.dumps(schema).encode(), MessageEncoding.JSON
    )


def poses_channel(topic: str) -> Channel:
    """Channel of one source of poses; see ``recording.pose_streams``."""
    about = "Raw poses of one source, by columns, in the order of arrival; one status or covariance may stand for all."
    columns = {key: {"type": "array"} for key in ("stamp_ns", "x_m", "y_m", "yaw_rad", "status", "covariance")}
    return replace(
        _json("localizer", "robot_runtime.Poses", about, {"source": _TEXT, "frame": _TEXT, **columns}), topic=topic
    )


def _object(*names: str, of: dict[str, Any] | None = None, nullable: bool = False) -> dict[str, Any]:
    inner = of or _NUMBER
    return {"type": ["object", "null"] if nullable else "object", "properties": dict.fromkeys(names, inner)}


def _extend(schema: dict[str, Any], **properties: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "properties": {**schema["properties"], **properties}}


_INTEGER: dict[str, Any] = {"type": "integer"}
_NUMBER: dict[str, Any] = {"type": ["number", "string"], "description": "Infinity, -Infinity and NaN are strings"}
_TEXT: dict[str, Any] = {"type": "string"}
_ANY: dict[str, Any] = {"type": "object"}
_ZONES: dict[str, Any] = {"type": "array", "items": {"enum": ["left", "center", "right"]}}
_SE2 = _object("x_m", "y_m", "yaw_rad")
_DISPLACEMENT = _object("forward_m", "turn_rad", "tilt_rad")
_POSE = _extend(_object("stamp_ns", of=_INTEGER), pose=_SE2, frame=_TEXT, status=_TEXT, covariance={"type": "array"})
_PLACEMENT = _extend(
    _object("error_m", "error_rad", "scatter_m", nullable=True), way=_TEXT, source=_TEXT, goal=_SE2, pose=_SE2
)
_BASE: dict[str, dict[str, Any]] = {
    "stamp_ns": _INTEGER,
    "odom": _SE2,
    "velocity": _object("linear_m_s", "angular_rad_s"),
    "bumper": _ZONES,
    "cliff": _ZONES,
    "wheel_drop": _ZONES,
    "halt": _TEXT,
    "battery_v": _NUMBER,
    "battery_fraction": _NUMBER,
}

_RESULT = _extend(
    _object("duration_s", nullable=True),
    outcome=_TEXT,
    commanded=_DISPLACEMENT,
    measured=_DISPLACEMENT,
    contact=_ZONES,
    detail=_TEXT,
)

CHANNELS: tuple[Channel, ...] = (
    _json(
        "episode",
        "robot_runtime.EpisodeHeader",
        "Everything needed to score and to replay the episode; scene and map are attachments.",
        {
            "format": _INTEGER,
            "episode": _ANY,
            "task": _ANY,
            "scene": _object("name", "digest", of=_TEXT),
            "robot": _TEXT,
            "robot_config": _ANY,
            "agent": _TEXT,
            "seed": _INTEGER,
            "intrinsics": _object("width", "height", "fx", "fy", "cx", "cy"),
            "depth_unit_m": _NUMBER,
            "mount": {"type": "array", "items": _NUMBER},
            "start_ns": _INTEGER,
            "dataset": _TEXT,
            "object_source": {"type": ["string", "null"]},
            "origin": {**_POSE, "type": ["object", "null"]},
            "placement": _PLACEMENT,
            "localizers": {"type": "object", "additionalProperties": {"type": "array", "items": _TEXT}},
            "policy": {"type": ["object", "null"], "description": "what the agent can be loaded from again"},
        },
    ),
    _json(
        "step",
        "robot_runtime.StepRecord",
        "One step: an action (null at the reset), how it ended, and what was observed afterwards.",
        {
            "index": _INTEGER,
            "action": {"type": ["string", "null"]},
            "command": {"type": ["object", "null"], "description": "of a continuous action, in m, rad and s"},
            "result": _RESULT,
            "observation": {"type": "object", "description": "numbers or text, or for an image its CRC-32"},
            "frame": _ANY,
            "pose": _POSE,
            "referee": _POSE,
            "base": {"type": "object", "properties": _BASE},
            "head": _extend(_object("pan_rad", "tilt_rad"), stamp_ns=_INTEGER, moving={"type": "boolean"}),
            "times": _object("action_start_ns", "action_end_ns", "exposed_ns", "observed_ns", of=_INTEGER),
            "policy_info": _ANY,
            "objects": {
                "type": ["object", "null"],
                "description": "null in a task that moves none; 'since': the step whose /objects still holds",
                "properties": {
                    "since": {"type": ["integer", "null"]},
                    "held": {"type": "array", "items": _TEXT},
                    "grab": _object("outcome", "object_id", "detail", of={"type": ["string", "null"]}, nullable=True),
                    "phase": _TEXT,
                },
            },
        },
    ),
    _json(
        "objects",
        "robot_runtime.Objects",
        "Where all movable objects are, in map, by id; written with a step at which one is elsewhere than before.",
        {"index": _INTEGER, "poses": _ANY},
    ),
    _json(
        "host",
        "robot_runtime.HostTimes",
        "Host seconds by phase. Not deterministic: two runs with one seed differ here and in the provenance only.",
        {"index": _INTEGER, "phase_s": _ANY},
    ),
    _json("base", "robot_runtime.BaseState", "The base; contact, cliff and wheel drop are levels.", _BASE),
    _json(
        "events",
        "robot_runtime.Event",
        "Something that happened beside the steps: pauses, and what localizers noticed about themselves.",
        {"stamp_ns": _INTEGER, "source": _TEXT, "kind": _TEXT, "detail": _TEXT},
    ),
    _json(
        "end",
        "robot_runtime.EpisodeEnd",
        "The last record; a log without it was interrupted. Action and result: of what no step tells, else null.",
        {
            "reason": _TEXT,
            "steps": _INTEGER,
            "stamp_ns": _INTEGER,
            "detail": _TEXT,
            "action": {"type": ["string", "null"]},
            "result": _RESULT,
        },
    ),
    _protobuf("rgb", CompressedImage),
    _protobuf("depth", RawImage),
    _protobuf("semantic", RawImage),
    _protobuf("camera_info", CameraCalibration),
    _protobuf("pose", PoseInFrame),
    _protobuf("referee", PoseInFrame),
    _protobuf("tf", FrameTransforms),
    _protobuf("map", Grid),
    _protobuf("scene", SceneUpdate),
)

IMAGE_TOPICS: Sequence[str] = tuple(STREAMS[name].topic for name in ("rgb", "depth", "semantic"))
"""Topics whose messages stand in chunks of their own, so that a reader can skip them."""
