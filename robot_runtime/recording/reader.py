"""Reader of logs: header with scene, steps and end, from the intact part of the file."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.message import DecodeError
from mcap.opcode import Opcode
from mcap.records import Attachment, Channel, McapRecord, Message, Metadata

from robot_runtime.common.closing import Closing
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, RecordingError, SceneError
from robot_runtime.hal import BaseState, PoseEstimate, RgbdFrame
from robot_runtime.hal.events import Event
from robot_runtime.hal.streams import STREAMS
from robot_runtime.policy import Observation
from robot_runtime.recording import images, json_records
from robot_runtime.recording.channels import IMAGE_TOPICS
from robot_runtime.recording.header import LOG_FORMAT, header_from_json
from robot_runtime.recording.integrity import POSE_STREAMS, Integrity, stated_digest
from robot_runtime.recording.json_records import BASE, COMMANDS, END, EVENT
from robot_runtime.recording.json_values import MALFORMED, loads
from robot_runtime.recording.log_files import sha256_of
from robot_runtime.recording.mcap_scan import ChunkSpan, Damaged, LogFile
from robot_runtime.recording.pose_streams import poses_from_json
from robot_runtime.recording.step_form import HOST, step_form
from robot_runtime.records import EpisodeEnd, EpisodeHeader, SentCommand, StepRecord
from robot_runtime.tasks.categories import object_category_ids
from robot_runtime.tasks.kind import kind_of, sensor_of
from robot_runtime.tasks.sensor import Moment

_TOPICS = {name: stream.topic for name, stream in STREAMS.items()}

_STEP, _HOST, _OBJECTS, _END = (_TOPICS[name] for name in ("step", "host", "objects", "end"))
_STEP_TOPICS = frozenset((_STEP, _HOST, _OBJECTS))
_POSE_TOPICS = {_TOPICS[name]: name for name in POSE_STREAMS}
_VERIFIED_TOPICS = _STEP_TOPICS | _POSE_TOPICS.keys() | {_END}
R = TypeVar("R")
T = TypeVar("T")


class LogReader(Closing):
    """One log, complete or truncated.

    Args:
        path: a file that ``Recorder`` wrote, or its intact part.

    Attributes:
        header: header of the episode, with the scene in the log; ``scene.folder`` had the meshes when it was written.
        end: the last record; None if the writer was killed before it.

    Raises:
        RecordingError: no such file; not a log; truncated before the header was written; damaged in the middle.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = LogFile(path)
        try:
            self._chunks = self._file.chunks
            self._topics: dict[int, str] = {}
            self._image_channels: frozenset[int] = frozenset()
            self._image_chunks: dict[int, ChunkSpan] = {}
            self._digests: dict[int, dict[str, Any]] = {}
            self._header_data, self._attachments = self._read_header()
            self.header = self._parse_header()
            self._form = step_form(kind_of(self.header.task).state)
            self._content = ""
            self.end = self._read_end()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def complete(self) -> bool:
        """Whether the file is complete and has its last record."""
        return self._file.complete and self.end is not None

    @property
    def chained(self) -> bool:
        """Whether its records are chained, see ``recording.integrity``; those of older logs are not."""
        return bool(stated_digest(self._header_data))

    @property
    def content(self) -> str:
        """SHA-256 that is equal for copies of a log: of header, steps and end, or of the file if it has no chain."""
        if not self._content:
            self._content = sha256_of(self.path)
        return self._content

    def steps(self, images: bool = True, verify: bool = False) -> Iterator[StepRecord]:
        """Yield the steps in order, reading the file as needed.

        Args:
            images: whether to read images. Without, ``frame`` has arrays of no pixels, ``observation`` has no images,
                and no image data are read; see :meth:`with_images` and :meth:`frame`.
            verify: whether to check that nothing was altered since the log was written, see ``recording.integrity``.

        Raises:
            RecordingError: the middle of the file is damaged, or, with ``verify``, altered; names the step.
        """
        integrity = Integrity(self.path, self._header_data, self._attachments) if verify else None
        topics = _VERIFIED_TOPICS if verify else _STEP_TOPICS
        beside = {channel for channel, topic in self._topics.items() if topic not in (*topics, *IMAGE_TOPICS)}
        image_chunk: ChunkSpan | None = None
        phase_s: dict[int, dict[str, float]] = {}
        shared: dict[int | None, dict[str, Any]] = {None: {}}
        for chunk in self._chunks:
            if chunk.channels and chunk.channels <= beside:
                continue
            if self._holds_images_only(chunk):
                image_chunk = chunk
                continue
            for topic, message in self._messages(chunk, beside):
                if topic in _POSE_TOPICS:
                    if integrity is not None:
                        integrity.on_pose(_POSE_TOPICS[topic], message.data)
                elif topic == _STEP:
                    decode = partial(self._step, phase_s=phase_s.get(message.sequence, {}), shared=shared)
                    record, digests = self._decode(message, "step", decode)
                    self._digests[record.index] = digests
                    if integrity is not None:
                        integrity.on_step(message.data, record)
                    if image_chunk is not None:
                        self._image_chunks[record.index] = image_chunk
                    yield self.with_images(record) if images else record
                elif topic == _HOST:
                    host = self._decode(message, "the host times of step", HOST.decode)
                    phase_s = {message.sequence: host["phase_s"]}
                elif topic in IMAGE_TOPICS:
                    image_chunk = chunk
                elif topic == _OBJECTS:
                    poses = self._decode(message, "the objects of step", self._form.decode_objects)
                    shared = {None: {}, message.sequence: poses}
                    if integrity is not None:
                        integrity.on_objects(message.data)
                elif topic == _END and integrity is not None:
                    end = self._decode(message, "the end after step", END.decode)
                    integrity.on_end(message.data, end)

    def with_images(self, record: StepRecord) -> StepRecord:
        """A step of ``steps(images=False)`` with its frame and the images that the policy was given.

        The latter are computed from the frame, and must have the digest that was logged when the policy got them.

        Raises:
            RecordingError: the log has no images of that step, or the computed images differ.
        """
        header, task, frame = self.header, self.header.task, self.frame(record)
        digests = self._digests.get(record.index, {})
        shows_goal = any(sensor_of(task, name).goal_type for name in digests)
        goal = kind_of(task).goal(task, header.scene, header.episode, SE2()) if shows_goal else None
        moment = Moment(task, frame, SE2(), SE2(), goal, object_category_ids(task, header.scene))
        observation: Observation = {}
        for name in task.sensors:
            if name in record.observation:
                observation[name] = record.observation[name]
            elif name in digests:
                observation[name] = sensor_of(task, name).value(moment)
                if json_records.array_to_json(observation[name]) != digests[name]:
                    raise RecordingError(
                        f"{self.path}: step {record.index}: observation {name!r} from the logged frame is not the one "
                        "that the policy was given",
                        "read the log with the version that its provenance names, or use frame(), the camera's images",
                    )
        return replace(record, frame=frame, observation=observation)

    def frame(self, record: StepRecord) -> RgbdFrame:
        """The camera's images of a step from :meth:`steps`. Raises ``RecordingError``: the log has none."""
        chunk = self._image_chunks.get(record.index)
        found: dict[str, Any] = {}
        try:
            for topic, message in self._messages(chunk) if chunk is not None else ():
                if topic in _DECODERS and message.sequence == record.index:
                    name, decode = _DECODERS[topic]
                    found[name] = decode(message.data)
        except (DecodeError, *MALFORMED) as error:
            raise RecordingError(
                f"{self.path}: step {record.index}: an image cannot be decoded: {error}", "check the disk"
            ) from error
        if not {"rgb", "depth_m"} <= found.keys():
            raise RecordingError(
                f"{self.path}: step {record.index} has no images",
                "use data without images, such as the actions; or record it again",
            )
        return RgbdFrame(record.frame.stamp_ns, **found)

    def base_states(self) -> Iterator[BaseState]:
        """Yield the base states between the steps, at the logged rate. Raises ``RecordingError``."""
        for topic, message in self._records():
            if topic == _TOPICS["base"]:
                yield self._decode(message, "a base state", BASE.decode)

    def commands(self) -> Iterator[SentCommand]:
        """Yield the velocities that were sent to the base. Raises ``RecordingError``."""
        for topic, message in self._records():
            if topic == _TOPICS["commands"]:
                yield from self._decode(message, "commands", COMMANDS.decode)

    def events(self) -> Iterator[Event]:
        """Yield the events between the steps, in the order in which they were reported. Raises ``RecordingError``."""
        for topic, message in self._records():
            if topic == _TOPICS["events"]:
                yield self._decode(message, "an event", EVENT.decode)

    def poses(self) -> dict[str, list[PoseEstimate]]:
        """All raw poses by source (``LocalizerInfo.name``), in the order of arrival. Raises ``RecordingError``."""
        found: dict[str, list[PoseEstimate]] = {}
        for _, arrived in self.poses_by_step():
            for source, estimates in arrived.items():
                found.setdefault(source, []).extend(estimates)
        return found

    def poses_by_step(self) -> Iterator[tuple[int | None, dict[str, list[PoseEstimate]]]]:
        """The raw poses of :meth:`poses`, by the step whose observation was complete when they had arrived.

        Yields:
            The step's index, and by source the poses that arrived since the step before, in the order of arrival; None
            for poses after the last step. Steps before which none arrived are left out.

        Raises:
            RecordingError: the log is damaged.
        """
        arrived: dict[str, list[PoseEstimate]] = {}
        for topic, message in self._records():
            if topic.startswith(f"{_TOPICS['localizer']}/"):
                source, estimates = self._decode(message, f"a message on {topic}", poses_from_json)
                arrived.setdefault(source, []).extend(estimates)
            elif topic == _STEP and arrived:
                yield message.sequence, arrived
                arrived = {}
        if arrived:
            yield None, arrived

    def _records(self) -> Iterator[tuple[str, Message]]:
        """Every message other than images."""
        for chunk in self._chunks:
            if not self._holds_images_only(chunk):
                yield from self._messages(chunk)

    def _holds_images_only(self, chunk: ChunkSpan) -> bool:
        channels = chunk.channels
        return bool(channels and channels <= self._image_channels)

    def _messages(self, chunk: ChunkSpan, skipped: Collection[int] = ()) -> Iterator[tuple[str, Message]]:
        """Yield (topic, message) of a chunk; none for a last chunk that a power failure damaged."""
        try:
            records: list[McapRecord] = self._file.chunk(chunk.span, skipped)
        except Damaged:
            if self._file.complete or chunk is not self._chunks[-1]:
                raise
            return
        for record in records:
            if isinstance(record, Message):
                if record.channel_id in self._topics:
                    yield self._topics[record.channel_id], record
            elif isinstance(record, Channel):
                self._topics[record.id] = record.topic
                self._image_channels = frozenset(
                    channel for channel, topic in self._topics.items() if topic in IMAGE_TOPICS
                )

    # --- header and end ---

    def _read_header(self) -> tuple[bytes, dict[str, bytes]]:
        """The header's JSON, and the attachments."""
        found = [
            message.data
            for topic, message in (self._messages(self._chunks[0]) if self._chunks else ())
            if topic == _TOPICS["episode"]
        ]
        if len(found) != 1:
            raise RecordingError(
                f"{self.path}: has {len(found) or 'no'} episode header{'s' if found else ''}",
                "it was truncated before its first record, or another program wrote it; record the episode again",
            )
        attachments: dict[str, bytes] = {}
        for span in self._file.spans:
            if span.opcode == Opcode.ATTACHMENT:
                attachment = self._file.record(span, Attachment.read)
                attachments[attachment.name] = attachment.data
        return found[0], attachments

    def _parse_header(self) -> EpisodeHeader:
        try:
            data = loads(self._header_data)
            log_format = data["format"]
        except MALFORMED as error:
            raise self._malformed("its header", error) from error
        if log_format != LOG_FORMAT:
            raise RecordingError(
                f"{self.path}: has log format {log_format!r:.50}, this version reads {LOG_FORMAT}",
                "read it with the version that its provenance names",
            )
        if "scene.yaml" not in self._attachments:
            raise RecordingError(
                f"{self.path}: has no attached map and rooms",
                "use the original: tools that cut or filter MCAP files leave out attachments by default",
            )
        provenance: dict[str, str] = {}
        for span in self._file.spans:
            if span.opcode == Opcode.METADATA:
                record = self._file.record(span, Metadata.read)
                if record.name == "provenance":
                    provenance = record.metadata
        try:
            return header_from_json(self.path, data, self._attachments, provenance)
        except (*MALFORMED, ConfigError, SceneError) as error:
            raise self._malformed("its header", error) from error

    def _read_end(self) -> EpisodeEnd | None:
        for chunk in reversed(self._chunks):
            if not self._holds_images_only(chunk):
                ends = [message for topic, message in self._messages(chunk) if topic == _END]
                if not ends:
                    return None
                self._content = stated_digest(ends[-1].data) if self.chained else ""
                end: EpisodeEnd = self._decode(ends[-1], "the end after step", END.decode)
                return end
        return None

    def _step(
        self, data: dict[str, Any], phase_s: dict[str, float], shared: Mapping[int | None, Mapping[str, Any]]
    ) -> tuple[StepRecord, dict[str, Any]]:
        """A step, and the digests of its images: a log has no other form of them."""
        digests = {name: array for name, array in data["observation"].items() if "crc32" in array}
        return self._form.decode(data, phase_s, shared), digests

    def _decode(self, message: Message, what: str, decode: Callable[[dict[str, Any]], R]) -> R:
        """The record in a JSON message; ``what`` names it in the error of a malformed one."""
        try:
            return decode(loads(message.data))
        except MALFORMED as error:
            named = f"{what} {message.sequence}" if what.endswith("step") else what
            raise self._malformed(named, error) from error

    def _malformed(self, what: str, error: Exception) -> RecordingError:
        return RecordingError(f"{self.path}: {what} is malformed: {error!r}", "read it with the version that wrote it")


def before_damage(items: Iterable[T]) -> tuple[list[T], RecordingError | None]:
    """The items of a log up to its damage, and the damage; None without any."""
    found: list[T] = []
    try:
        found.extend(items)  # retains the items before an error
    except RecordingError as error:
        return found, error
    return found, None


def read_log(path: Path | str) -> LogReader:
    """Open a log; use it in a ``with`` statement. Raises ``RecordingError``."""
    return LogReader(Path(path))


_DECODERS: dict[str, tuple[str, Any]] = {
    _TOPICS["rgb"]: ("rgb", images.decode_rgb),
    _TOPICS["depth"]: ("depth_m", images.decode_depth),
    _TOPICS["semantic"]: ("semantic", images.decode_semantic),
}
