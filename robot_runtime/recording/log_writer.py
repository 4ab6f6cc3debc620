"""Writer of a log file, and its layout.

::

    Header
    Metadata "provenance"        author, host, time, commit: all that differs between identical runs
    Attachments                  scene.yaml, map.yaml, map.pgm, view_points.json, so that scores need the log only
    Chunk                        schemas, channels, /episode, /map, /scene, /camera/camera_info
    per step:
      Chunk                      images
      Chunk                      /step, /pose, /referee/pose, /tf, /scene, /path, /step/host, and /objects if one moved
    in between: Chunk            /base/state, at least every 0.25 s of the robot's time; /events as they happen
    before a step: Chunk         /localizer/<source>: the poses that arrived since the step before
    Chunk                        /end
    DataEnd, summary, Footer

/episode, the /step records and /end are chained (``recording.integrity``): a later change of one is noticed.

Chunks are compressed (Zstandard), and color is PNG. In the log of a stream (:func:`is_stream`) nothing after the header
is compressed, and images have no checksum, which would take a fifth of the time: /step has digests of those that the
policy was given. A copy by ``logs recover`` has compressed chunks with checksums.

Every chunk is written to the operating system as soon as it is complete. Images precede their step, so that each step
in a log has its images, and have chunks of their own, so that a reader can skip them.
"""

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcap.records import Attachment

from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import BaseState, PoseEstimate
from robot_runtime.hal.events import Event
from robot_runtime.hal.streams import STREAMS
from robot_runtime.recording import json_output, json_records, messages, ros2_messages
from robot_runtime.recording.channels import STREAMED_COLOR, Channel, channels, poses_channel
from robot_runtime.recording.durable_file import DurableFile
from robot_runtime.recording.header import header_to_json, provenance_to_text, scene_files
from robot_runtime.recording.images import encode_depth, encode_rgb, encode_semantic, encode_streamed_rgb
from robot_runtime.recording.integrity import Chain, attachment_parts
from robot_runtime.recording.mcap_writer import Buffer, McapWriter
from robot_runtime.recording.pose_streams import poses_to_columns, topic_of
from robot_runtime.recording.step_form import HOST, step_form
from robot_runtime.records import EpisodeEnd, EpisodeHeader, SentCommand, StepRecord
from robot_runtime.tasks.kind import kind_of

SYNC_S = 1.0
"""Largest interval of fsync in seconds while there are new data."""

STREAM_PERIOD_S = 0.1
"""Period of a task's commands below which its log is a stream."""

STREAM_PATH_STEPS = 10
"""Steps of a stream after which the complete path is written again, for viewers."""

BASE_CHUNK_S = 0.25
"""Seconds of the robot's time after which base states are written."""


def is_stream(header: EpisodeHeader) -> bool:
    """Whether images come so fast that they are written as they are, as ``rosbag record`` does.

    At 30 Hz, 640x480, compressing takes 15 % of a core, which a policy may not have left, and writing 7 %.
    """
    control = header.task.control
    velocity = None if control is None else control.velocity
    return velocity is not None and velocity.time_step_s < STREAM_PERIOD_S


class LogWriter:
    """Writer of a log file. Not thread-safe.

    Args:
        path: path of the file, which must not exist.
        header: header of the episode.

    Raises:
        OSError: from every method: disk full, no permission.
        TypeError, ValueError: a record cannot be serialized.
    """

    def __init__(self, path: Path, header: EpisodeHeader) -> None:
        self._file = DurableFile(path, SYNC_S)
        self._mcap = McapWriter(self._file)
        self._channels: dict[str, int] = {}
        self._header = header
        self._last_pose: SE2 = header.episode.start
        self._path = array("f")
        """The referee's x and y in meters, in turns."""
        self._state_format = kind_of(header.task).state
        self._form = step_form(self._state_format)
        self._shared: dict[str, Any] = {}
        self._shared_since: int | None = None
        self._chain = Chain()
        self._chunk_start_ns: int | None = None
        self._streams = is_stream(header)

    def write_header(self) -> None:
        """Write everything before the first step."""
        header, start_ns = self._header, self._header.start_ns
        self._mcap.start()
        self._mcap.add_metadata("provenance", provenance_to_text(header))
        attachments = {}
        for name, media_type, data in scene_files(header):
            attachments[name] = data
            self._mcap.add_attachment(
                Attachment(create_time=0, log_time=start_ns, name=name, media_type=media_type, data=data)
            )
        for channel in channels(self._state_format):
            self._register(STREAMED_COLOR if self._streams and channel.topic == STREAMED_COLOR.topic else channel)
        self._chained("episode", start_ns, 0, header_to_json(header), attachment_parts(attachments))
        grid = ros2_messages.occupancy_grid(header.scene.map, start_ns, messages.MAP_FRAME)
        self._message(STREAMS["map"].topic, start_ns, 0, grid)
        self._protobuf("scene", start_ns, 0, messages.scene(header))
        self._protobuf("camera_info", start_ns, 0, messages.calibration(header))
        self._mcap.end_chunk()
        self._file.sync()

    def write_step(self, record: StepRecord) -> None:
        """Write a step: its images, then its records."""
        self._end_chunk()
        frame, index = record.frame, record.index
        color = encode_streamed_rgb(frame) if self._streams else encode_rgb(frame)
        self._message(STREAMS["rgb"].topic, frame.stamp_ns, index, *color)
        depth = encode_depth(frame, self._header.depth_unit_m)
        self._message(STREAMS["depth"].topic, frame.stamp_ns, index, *depth.parts())
        if frame.semantic is not None:
            self._protobuf("semantic", frame.stamp_ns, index, encode_semantic(frame.stamp_ns, frame.semantic))
        self._end_chunk(check=not self._streams)
        stamp_ns = record.times.observed_ns
        self._protobuf("pose", record.pose.stamp_ns, index, messages.pose_in_frame(record.pose))
        self._protobuf("referee", record.referee.stamp_ns, index, messages.pose_in_frame(record.referee))
        self._protobuf("tf", frame.stamp_ns, index, messages.transforms(self._header, record))
        self._protobuf("scene", stamp_ns, index, messages.track(self._last_pose, record))
        self._path.extend((record.referee.pose.x_m, record.referee.pose.y_m))
        if not self._streams or index % STREAM_PATH_STEPS == 0:
            self._protobuf("path", record.referee.stamp_ns, index, messages.path(self._path, record))
        self._json("host", stamp_ns, index, HOST.encode(record))
        shared = self._write_shared(record)
        self._chained("step", stamp_ns, index, self._form.encode(record, self._shared_since), shared)
        self._last_pose = record.referee.pose
        self._end_chunk()

    def _write_shared(self, record: StepRecord) -> list[bytes]:
        """Write the shared field of the step's state if it differs from the last written; return what is written."""
        shared = self._form.shared(record)
        if shared == self._shared:
            return []
        self._shared, self._shared_since = shared, record.index
        stamp_ns = record.times.observed_ns
        data = json_output.dumps(self._form.encode_objects(record.index, shared))
        self._message(STREAMS["objects"].topic, stamp_ns, record.index, data)
        self._protobuf("scene", stamp_ns, record.index, messages.objects_now(self._header, record))
        return [data]

    def write_base_state(self, state: BaseState) -> None:
        """Write a base state; its chunk ends ``BASE_CHUNK_S`` after it began."""
        self._json("base", state.stamp_ns, 0, json_records.BASE.encode(state))
        if self._chunk_start_ns is None:
            self._chunk_start_ns = state.stamp_ns
        if state.stamp_ns - self._chunk_start_ns >= seconds_to_ns(BASE_CHUNK_S):
            self._end_chunk()

    def write_commands(self, commands: Sequence[SentCommand]) -> None:
        """Write one or more commands by columns; the next step ends their chunk."""
        self._json("commands", commands[-1].stamp_ns, 0, json_records.COMMANDS.encode(commands))

    def write_event(self, event: Event) -> None:
        """Write an event at once."""
        self._json("events", event.stamp_ns, 0, event)
        self._end_chunk()

    def write_poses(self, source: str, estimates: tuple[PoseEstimate, ...]) -> None:
        """Write one or more raw poses of a source; the next step ends their chunk."""
        topic, last_ns = topic_of(source), estimates[-1].stamp_ns
        if topic not in self._channels:
            self._register(poses_channel(topic))
        self._message(topic, last_ns, 0, json_output.dumps(poses_to_columns(source, estimates)))

    def write_end(self, end: EpisodeEnd) -> None:
        """Write the last record."""
        self._chained("end", end.stamp_ns, end.steps, end)
        self._end_chunk()

    def idle(self) -> None:
        """Write pending data, and sync, after a time without records."""
        self._end_chunk()

    def finish(self) -> None:
        """Write the summary, which other tools use as an index, and sync."""
        self._mcap.finish()
        self._file.sync()

    def close(self) -> None:
        """Close the file, finished or not."""
        self._file.close()

    def _end_chunk(self, check: bool = True) -> None:
        self._mcap.end_chunk(not self._streams, check)
        self._chunk_start_ns = None
        self._file.sync_if_due()

    def _register(self, channel: Channel) -> None:
        schema = self._mcap.register_schema(channel.schema_name, channel.schema_encoding, channel.schema)
        self._channels[channel.topic] = self._mcap.register_channel(channel.topic, channel.message_encoding, schema)

    def _json(self, stream: str, stamp_ns: int, sequence: int, value: Any) -> None:
        self._message(STREAMS[stream].topic, stamp_ns, sequence, json_output.dumps(value))

    def _chained(self, stream: str, stamp_ns: int, sequence: int, value: Any, others: Sequence[bytes] = ()) -> None:
        """Write a record of the chain; ``others`` are the data of other messages that belong to it."""
        data = self._chain.append(json_output.dumps(value), others)
        self._message(STREAMS[stream].topic, stamp_ns, sequence, data)

    def _protobuf(self, stream: str, stamp_ns: int, sequence: int, message: Any) -> None:
        self._message(STREAMS[stream].topic, stamp_ns, sequence, message.SerializeToString())

    def _message(self, topic: str, stamp_ns: int, sequence: int, *data: Buffer) -> None:
        self._mcap.add_message(self._channels[topic], stamp_ns, stamp_ns, sequence, data)
