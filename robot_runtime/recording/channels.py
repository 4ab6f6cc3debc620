"""Channels of a log, one row each, with the schemas by which other tools open it.

Color, poses, transforms, calibration, path and scene have Foxglove's protobuf schemas, depth and map those of ROS 2,
which Foxglove, Lichtblick and Rerun display. The runtime's own records are JSON with JSON schemas as the parser of
Foxglove and Lichtblick takes them: one type per field, items in every array, no array in an array. So a schema names no
field with rows of numbers, such as a covariance, and does not mention null, which stands for what a record lacks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from foxglove_schemas_protobuf.CameraCalibration_pb2 import CameraCalibration
from foxglove_schemas_protobuf.CompressedImage_pb2 import CompressedImage
from foxglove_schemas_protobuf.FrameTransforms_pb2 import FrameTransforms
from foxglove_schemas_protobuf.PointCloud_pb2 import PointCloud
from foxglove_schemas_protobuf.PoseInFrame_pb2 import PoseInFrame
from foxglove_schemas_protobuf.RawImage_pb2 import RawImage
from foxglove_schemas_protobuf.SceneUpdate_pb2 import SceneUpdate
from google.protobuf.descriptor import Descriptor
from mcap.well_known import MessageEncoding, SchemaEncoding
from mcap_protobuf.schema import build_file_descriptor_set

from robot_runtime.actions.continuous import VelocityCommand, WaypointCommand
from robot_runtime.hal.streams import STREAMS
from robot_runtime.recording import ros2_messages
from robot_runtime.records import PHASES

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


def _ros2(stream: str, name: str) -> Channel:
    return Channel(
        STREAMS[stream].topic, name, SchemaEncoding.ROS2, ros2_messages.DEFINITIONS[name], MessageEncoding.CDR
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
    about = (
        "Raw poses of one source, by columns, in the order of arrival; one status may stand for all. The field "
        "covariance has rows [xx, xy, xyaw, yy, yyaw, yawyaw], or one for all."
    )
    columns = {"stamp_ns": _list(_INTEGER), "status": _list(_TEXT)}
    columns |= {name: _list(_NUMBER) for name in ("x_m", "y_m", "yaw_rad")}
    return replace(
        _json("localizer", "robot_runtime.Poses", about, {"source": _TEXT, "frame": _TEXT, **columns}), topic=topic
    )


def _object(*names: str, of: dict[str, Any] | None = None, about: str = "") -> dict[str, Any]:
    described = {"description": about} if about else {}
    return {"type": "object", **described, "properties": dict.fromkeys(names, of or _NUMBER)}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _extend(schema: dict[str, Any], **properties: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "properties": {**schema["properties"], **properties}}


_INTEGER: dict[str, Any] = {"type": "integer"}
_NUMBER: dict[str, Any] = {"type": "number", "description": "Infinity, -Infinity and NaN are strings"}
_TEXT: dict[str, Any] = {"type": "string"}
_CHAIN: dict[str, Any] = {"type": "string", "description": "SHA-256 over the record and the chain of the one before"}
_ANY: dict[str, Any] = {"type": "object"}
_ZONES: dict[str, Any] = _list({"type": "string", "enum": ["left", "center", "right"]})
_ZONE_BITS: dict[str, Any] = {"type": "integer", "description": "for plots: 1 left + 2 center + 4 right", "minimum": 0}
_COMMAND = dict.fromkeys(field.name for kind in (VelocityCommand, WaypointCommand) for field in fields(kind))
_SE2 = _object("x_m", "y_m", "yaw_rad")
_DISPLACEMENT = _object("forward_m", "turn_rad", "tilt_rad")
_POSE = _extend(
    _object("stamp_ns", of=_INTEGER, about="its covariance has 3 rows: x, y, yaw"), pose=_SE2, frame=_TEXT, status=_TEXT
)
_PLACEMENT = _extend(_object("error_m", "error_rad", "scatter_m"), way=_TEXT, source=_TEXT, goal=_SE2, pose=_SE2)
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
    "bumper_bits": _ZONE_BITS,
    "cliff_bits": _ZONE_BITS,
    "wheel_drop_bits": _ZONE_BITS,
}

_RESULT = _extend(
    _object("duration_s", about="null without an action"),
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
            "mount": _list(_NUMBER),
            "start_ns": _INTEGER,
            "dataset": _TEXT,
            "object_source": _TEXT,
            "origin": _POSE,
            "placement": _PLACEMENT,
            "localizers": {"type": "object", "additionalProperties": _list(_TEXT)},
            "policy": {"type": "object", "description": "what the agent can be loaded from again"},
            "chain": _CHAIN,
        },
    ),
    _json(
        "step",
        "robot_runtime.StepRecord",
        "One step: an action (null at the reset), how it ended, and what was observed afterwards.",
        {
            "index": _INTEGER,
            "action": _TEXT,
            "command": _object(*_COMMAND, about="of a continuous action; has those of its kind"),
            "result": _RESULT,
            "observation": {"type": "object", "description": "numbers or text, or for an image its CRC-32"},
            "frame": _extend(_object("stamp_ns", of=_INTEGER), shape=_list(_INTEGER), semantic={"type": "boolean"}),
            "pose": _POSE,
            "referee": _POSE,
            "base": {"type": "object", "properties": _BASE},
            "head": _extend(_object("pan_rad", "tilt_rad"), stamp_ns=_INTEGER, moving={"type": "boolean"}),
            "times": _object("action_start_ns", "action_end_ns", "exposed_ns", "observed_ns", of=_INTEGER),
            "policy_info": _ANY,
            "objects": {
                "type": "object",
                "description": "null in a task that moves none; 'since': the step whose /objects still holds",
                "properties": {
                    "since": _INTEGER,
                    "held": _list(_TEXT),
                    "grab": _object("outcome", "object_id", "detail", of=_TEXT),
                    "phase": _TEXT,
                },
            },
            "chain": _CHAIN,
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
        {"index": _INTEGER, "phase_s": _object(*PHASES)},
    ),
    _json("base", "robot_runtime.BaseState", "The base; contact, cliff and wheel drop are levels.", _BASE),
    _json(
        "commands",
        "robot_runtime.SentCommands",
        "Velocities sent to the base since the step before, as its Guard let them through, by columns.",
        {"stamp_ns": _list(_INTEGER), "linear_m_s": _list(_NUMBER), "angular_rad_s": _list(_NUMBER)},
    ),
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
            "action": _TEXT,
            "result": _RESULT,
            "of_policy": {"type": "boolean"},
            "chain": _CHAIN,
        },
    ),
    _protobuf("rgb", CompressedImage),
    _ros2("depth", ros2_messages.IMAGE),
    _protobuf("semantic", RawImage),
    _protobuf("camera_info", CameraCalibration),
    _protobuf("pose", PoseInFrame),
    _protobuf("referee", PoseInFrame),
    _protobuf("tf", FrameTransforms),
    _ros2("map", ros2_messages.OCCUPANCY_GRID),
    _protobuf("path", PointCloud),
    _protobuf("scene", SceneUpdate),
)

STREAMED_COLOR = _ros2("rgb", ros2_messages.IMAGE)
"""Channel of color in the log of a stream, instead of the one of the same topic in ``CHANNELS``."""

IMAGE_TOPICS: Sequence[str] = tuple(STREAMS[name].topic for name in ("rgb", "depth", "semantic"))
"""Topics whose messages stand in chunks of their own, so that a reader can skip them."""
