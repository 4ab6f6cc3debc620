"""Channels of a log, one row each, with the schemas by which other tools open it.

Color, poses, transforms, calibration, path and scene have Foxglove's protobuf schemas, depth and map those of ROS 2,
which Foxglove, Lichtblick and Rerun display. The runtime's own records are JSON; their JSON schemas derive from their
classes (``recording.codec``) and are as the parser of Foxglove and Lichtblick takes them: one type per field, items in
every array, no array in an array. So a schema names no field with rows of numbers, such as a covariance, and does not
mention null, which stands for what a record lacks.
"""

import functools
import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
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

from robot_runtime.hal import BaseState
from robot_runtime.hal.events import Event
from robot_runtime.hal.streams import STREAMS
from robot_runtime.recording import ros2_messages
from robot_runtime.recording.codec import Schema
from robot_runtime.recording.header import HEADER_SCHEMA
from robot_runtime.recording.json_records import BASE, COMMANDS, END, EVENT
from robot_runtime.recording.pose_streams import POSES, PoseColumns
from robot_runtime.recording.step_form import HOST, step_form
from robot_runtime.records import EpisodeEnd, EpisodeHeader, SentCommand, StepRecord
from robot_runtime.tasks.state import StateFormat

_CHAIN: Schema = {"type": "string", "description": "SHA-256 over the record and the chain of the one before"}


@dataclass(frozen=True, slots=True)
class Channel:
    """One channel.

    Attributes:
        topic: topic of the messages.
        schema_name: name of their schema.
        schema_encoding: encoding of their schema.
        schema: content of their schema.
        message_encoding: encoding of the messages.
        record: class whose fields JSON messages have; None for others.
    """

    topic: str
    schema_name: str
    schema_encoding: str
    schema: bytes
    message_encoding: str
    record: type | None = None


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


def _json(stream: str, record: type, properties: Schema, name: str = "", about: str = "") -> Channel:
    """The channel of a record; name and description are those of its class by default."""
    title = f"robot_runtime.{name or record.__name__}"
    described = " ".join(inspect.cleandoc(record.__doc__ or "").partition("\n\n")[0].split()).replace("None", "null")
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": about or described,
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }
    data = json.dumps(schema).encode()
    return Channel(STREAMS[stream].topic, title, SchemaEncoding.JSONSchema, data, MessageEncoding.JSON, record)


def poses_channel(topic: str) -> Channel:
    """Channel of a source of poses; see ``recording.pose_streams``."""
    about = (
        "Raw poses of a source, by columns, in the order of arrival; one status may stand for all. The field "
        "covariance has rows [xx, xy, xyaw, yy, yyaw, yawyaw], or one for all."
    )
    return replace(_json("localizer", PoseColumns, POSES.properties, "Poses", about), topic=topic)


@functools.cache
def channels(state: StateFormat) -> tuple[Channel, ...]:
    """The channels of a log but those of poses between steps."""
    form = step_form(state)
    objects = "Where all movable objects are, in map, by id; written with a step at which one is elsewhere than before."
    host = "Host seconds by phase. Not deterministic: two runs with one seed differ here and in the provenance only."
    sent = "Velocities sent to the base since the step before, as its Guard let them through, by columns."
    return (
        _json("episode", EpisodeHeader, {**HEADER_SCHEMA, "chain": _CHAIN}),
        _json("step", StepRecord, {**form.step, "chain": _CHAIN}),
        _json("objects", StepRecord, form.objects, "Objects", objects),
        _json("host", StepRecord, HOST.properties, "HostTimes", host),
        _json("base", BaseState, BASE.properties),
        _json("commands", SentCommand, COMMANDS.properties, "SentCommands", sent),
        _json("events", Event, EVENT.properties),
        _json("end", EpisodeEnd, {**END.properties, "chain": _CHAIN}),
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
"""Channel of color in the log of a stream, instead of the one of the same topic in ``channels``."""

IMAGE_TOPICS: Sequence[str] = tuple(STREAMS[name].topic for name in ("rgb", "depth", "semantic"))
"""Topics whose messages stand in chunks of their own, so that a reader can skip them."""
