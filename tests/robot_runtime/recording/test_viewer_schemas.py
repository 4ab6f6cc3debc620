"""Channels as foreign viewers read them: JSON schemas that their parser takes, depth and map as ROS 2 messages."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
from mcap.reader import make_reader
from synthetic import FORWARD, LEFT, STOP
from viewer_schema import Refused, fields_of, values_at

from robot_runtime.common.geometry import SE2
from robot_runtime.hal import PoseEstimate, PoseStatus, Zone
from robot_runtime.recording import ros2_messages
from robot_runtime.recording.channels import Channel, channels, poses_channel
from robot_runtime.recording.writer import Recorder
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.tasks.state import StateFormat

JSON_CHANNELS = {
    channel.topic: channel
    for channel in (*channels(StateFormat()), poses_channel("/localizer/odometry"))
    if channel.message_encoding == "json"
}


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The JSON messages of a log by topic, with a contact, a battery and a localizer."""
    header = synthetic.header()
    steps = synthetic.drive(header, [FORWARD, LEFT, STOP])
    touched = replace(steps[0].base, bumper=Zone.LEFT | Zone.CENTER, battery_v=15.5, battery_fraction=0.75)
    steps = [replace(step, base=touched, phase_s={"act": 0.5, "infer": 0.01}) for step in steps]
    recorder = Recorder(tmp_path_factory.mktemp("log"))
    recorder.on_episode_start(header)
    recorder.on_poses("odometry", (PoseEstimate(5, SE2(1.0, 2.0, 0.5), "odom", np.eye(3), PoseStatus.OK),))
    for step in steps:
        recorder.on_base_state(replace(step.base, stamp_ns=step.base.stamp_ns - 1))
        recorder.on_step(step)
    recorder.on_episode_end(synthetic.end_of(steps))
    recorder.close()
    assert recorder.path is not None
    return _messages(recorder.path)


def _messages(path: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    with path.open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages():
            if channel.message_encoding == "json":
                found.setdefault(channel.topic, []).append(json.loads(message.data))
    return found


@pytest.mark.parametrize("channel", JSON_CHANNELS.values(), ids=JSON_CHANNELS)
def test_viewers_take_the_schema(channel: Channel) -> None:
    assert fields_of(json.loads(channel.schema))


def test_messages_have_the_types_of_their_schemas(messages: dict[str, list[dict[str, Any]]]) -> None:
    assert messages.keys() >= {"/episode", "/step", "/step/host", "/base/state", "/end", "/localizer/odometry"}
    python = {"bool": bool, "string": str, "int": int, "float64": (int, float)}
    for topic, several in messages.items():
        fields = fields_of(json.loads(JSON_CHANNELS[topic].schema))
        for path, kind in fields.items():
            for value in _values(several, path):
                assert isinstance(value, python[kind]), (topic, path, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("topic", "path", "value"),
    [
        ("/step", "pose.pose.x_m", 1.0),
        ("/step", "referee.pose.yaw_rad", 0.0),
        ("/step", "result.commanded.forward_m", 0.25),
        ("/step", "action", "move_forward"),
        ("/step", "times.exposed_ns", 1_050_000_000),
        ("/step/host", "phase_s.infer", 0.01),
        ("/base/state", "bumper_bits", 3),
        ("/base/state", "bumper[:]", "left"),
        ("/base/state", "battery_v", 15.5),
        ("/base/state", "velocity.linear_m_s", 0.0),
        ("/localizer/odometry", "x_m[:]", 1.0),
        ("/localizer/odometry", "stamp_ns[:]", 5),
    ],
)
def test_fields_can_be_plotted(
    messages: dict[str, list[dict[str, Any]]], topic: str, path: str, value: float | str
) -> None:
    assert path in fields_of(json.loads(JSON_CHANNELS[topic].schema))
    assert next(_values(messages[topic], path)) == value


def _values(several: list[dict[str, Any]], path: str) -> Iterator[Any]:
    return (value for message in several for value in values_at(message, path))


@pytest.mark.parametrize(
    ("field", "named"),
    [
        ({"type": ["number", "string"]}, "type is"),
        ({"enum": ["left"]}, "type is None"),
        ({"type": "array"}, "items are None"),
        ({"type": "array", "items": {"enum": ["left"]}}, "type is None"),
        ({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}, "items are"),
        ({"type": "null"}, "type is 'null'"),
        ({"oneOf": [{"const": "left"}]}, "oneOf"),
    ],
)
def test_the_rules_refuse_what_viewers_drop(field: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused, match=named):
        fields_of({"type": "object", "properties": {"odd": field}})


def test_a_depth_image_is_a_ros_2_image() -> None:
    pixels = bytes(range(12))
    image = ros2_messages.Image(3_000_000_007, "camera", 2, 3, "16UC1", 6, pixels)
    expected = struct.pack("<4xiII7sxII", 3, 7, 7, b"camera\0", 2, 3)
    expected += struct.pack("<I6sBxII", 6, b"16UC1\0", 0, 6, 12) + pixels
    assert image.to_bytes() == b"\0\1\0\0" + expected[4:]
    assert ros2_messages.Image.from_bytes(image.to_bytes()) == image


def test_a_map_is_a_ros_2_occupancy_grid() -> None:
    cells = np.array([[Cell.FREE, Cell.OCCUPIED, Cell.UNKNOWN]], np.uint8)
    message = ros2_messages.occupancy_grid(OccupancyMap(cells, 0.05, -1.0, 2.0), 3_000_000_007, "map")
    head = struct.pack("<iII4siIfII", 3, 7, 4, b"map\0", 3, 7, 0.05, 3, 1)
    origin = struct.pack("<7d", -1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    padding = b"\0" * (-len(head) % 8)
    assert message == b"\0\1\0\0" + head + padding + origin + struct.pack("<I3b", 3, 0, 100, -1)


def test_depth_and_map_have_the_schemas_that_rerun_displays() -> None:
    named = {channel.topic: (channel.schema_name, channel.schema_encoding) for channel in channels(StateFormat())}
    assert named["/camera/depth"] == ("sensor_msgs/msg/Image", "ros2msg")
    assert named["/map"] == ("nav_msgs/msg/OccupancyGrid", "ros2msg")
    assert named["/path"] == ("foxglove.PointCloud", "protobuf")
