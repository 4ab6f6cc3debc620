"""Reader of logs: header with scene, steps and end, from the intact part of the file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from mcap.opcode import Opcode
from mcap.records import Attachment, Channel, McapRecord, Message, MessageIndex, Metadata
from typing_extensions import Self

from robot_runtime.errors import ConfigError, RecordingError, SceneError
from robot_runtime.hal import BaseState, PoseEstimate, RgbdFrame
from robot_runtime.hal.events import Event
from robot_runtime.hal.streams import STREAMS
from robot_runtime.recording import images, json_records, observations
from robot_runtime.recording.channels import IMAGE_TOPICS, LOG_FORMAT
from robot_runtime.recording.header import header_from_json
from robot_runtime.recording.mcap_scan import Damaged, LogFile, Span
from robot_runtime.recording.pose_streams import poses_from_json
from robot_runtime.records import EpisodeEnd, EpisodeHeader, StepRecord
from robot_runtime.scenes.objects import ObjectPose

_TOPICS = {name: stream.topic for name, stream in STREAMS.items()}


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A chunk and its channels; None if the file ends before they are listed."""

    span: Span
    channels: frozenset[int] | None


class LogReader:
    """One log, whole or torn.

    Args:
        path: a file that ``Recorder`` wrote, or its intact part.

    Attributes:
        header: of the episode, with the scene in the log; ``scene.folder`` had the meshes when it was written.

    Raises:
        RecordingError: no such file; not a log; torn before the header was written; damaged in the middle.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = LogFile(path)
        try:
            self._chunks = list(_index_chunks(self._file))
            self._topics: dict[int, str] = {}
            self._image_chunks: dict[int, _Chunk] = {}
            self._digests: dict[int, dict[str, Any]] = {}
            self.header = self._read_header()
            self._end = self._read_end()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def end(self) -> EpisodeEnd | None:
        """The last record; None if the writer was killed before it."""
        return self._end

    @property
    def complete(self) -> bool:
        """Whether the file is whole and has its last record."""
        return self._file.whole and self._end is not None

    def steps(self, images: bool = True) -> Iterator[StepRecord]:
        """Yield the steps in order, reading the file as needed.

        Args:
            images: whether to read images. Without, ``frame`` has arrays of no pixels, ``observation`` has no images,
                and no image data are read; see :meth:`with_images` and :meth:`frame`.

        Raises:
            RecordingError: the middle of the file is damaged.
        """
        image_chunk: _Chunk | None = None
        phase_s: dict[int, dict[str, float]] = {}
        objects: dict[int | None, dict[str, ObjectPose]] = {None: {}}
        for chunk in self._chunks:
            if self._holds_images_only(chunk):
                image_chunk = chunk
                continue
            for topic, message in self._messages(chunk):
                if topic in IMAGE_TOPICS:
                    image_chunk = chunk
                elif topic == _TOPICS["host"]:
                    phase_s = {message.sequence: _loads(message)["phase_s"]}
                elif topic == _TOPICS["objects"]:
                    objects = {None: {}, message.sequence: json_records.objects_from_json(_loads(message)["poses"])}
                elif topic == _TOPICS["step"]:
                    try:
                        data = _loads(message)
                        record = _step(data, phase_s.get(message.sequence, {}), objects)
                    except (KeyError, ValueError, TypeError) as error:
                        raise self._malformed(f"step {message.sequence}", error) from error
                    self._digests[record.index] = observations.digests_of(data["observation"])
                    if image_chunk is not None:
                        self._image_chunks[record.index] = image_chunk
                    yield self.with_images(record) if images else record

    def with_images(self, record: StepRecord) -> StepRecord:
        """A step of ``steps(images=False)`` with its frame and the images that the policy was given.

        The latter are computed from the frame, and must have the digest that was logged when the policy got them.

        Raises:
            RecordingError: the log has no images of that step, or the computed images differ.
        """
        where = f"{self.path}: step {record.index}"
        digests = self._digests.get(record.index, {})
        return observations.with_images(self.header, record, self.frame(record), digests, where)

    def frame(self, record: StepRecord) -> RgbdFrame:
        """The camera's images of a step from :meth:`steps`.

        Raises:
            RecordingError: the log has none.
        """
        chunk = self._image_chunks.get(record.index)
        found: dict[str, Any] = {}
        try:
            for topic, message in self._messages(chunk) if chunk is not None else ():
                if topic in _DECODERS and message.sequence == record.index:
                    name, decode = _DECODERS[topic]
                    found[name] = decode(message.data)
        except (DecodeError, ValueError) as error:
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
                yield json_records.base_from_json(_loads(message))

    def events(self) -> Iterator[Event]:
        """Yield the events between the steps, in the order in which they were reported. Raises ``RecordingError``."""
        for topic, message in self._records():
            if topic == _TOPICS["events"]:
                yield json_records.event_from_json(_loads(message))

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
                source, estimates = self._poses(topic, message)
                arrived.setdefault(source, []).extend(estimates)
            elif topic == _TOPICS["step"] and arrived:
                yield message.sequence, arrived
                arrived = {}
        if arrived:
            yield None, arrived

    def _poses(self, topic: str, message: Message) -> tuple[str, list[PoseEstimate]]:
        try:
            return poses_from_json(_loads(message))
        except (KeyError, ValueError, TypeError) as error:
            raise self._malformed(f"the poses on {topic}", error) from error

    def _records(self) -> Iterator[tuple[str, Message]]:
        """Every message that is no image."""
        for chunk in self._chunks:
            if not self._holds_images_only(chunk):
                yield from self._messages(chunk)

    def _holds_images_only(self, chunk: _Chunk) -> bool:
        return bool(chunk.channels) and all(
            self._topics.get(channel) in IMAGE_TOPICS for channel in chunk.channels or ()
        )

    def _messages(self, chunk: _Chunk) -> Iterator[tuple[str, Message]]:
        """Yield (topic, message) of a chunk; none for a last chunk that a power failure damaged."""
        try:
            records: list[McapRecord] = self._file.chunk(chunk.span)
        except Damaged:
            if self._file.whole or chunk is not self._chunks[-1]:
                raise
            return
        for record in records:
            if isinstance(record, Channel):
                self._topics[record.id] = record.topic
            elif isinstance(record, Message) and record.channel_id in self._topics:
                yield self._topics[record.channel_id], record

    # --- header and end ---

    def _read_header(self) -> EpisodeHeader:
        data: dict[str, Any] | None = None
        for topic, message in self._messages(self._chunks[0]) if self._chunks else ():
            if topic == _TOPICS["episode"]:
                data = _loads(message)
        if data is None:
            raise RecordingError(
                f"{self.path}: has no episode header",
                "it was torn before its first record, or another program wrote it; record the episode again",
            )
        if data["format"] != LOG_FORMAT:
            raise RecordingError(
                f"{self.path}: has log format {data['format']}, this version reads {LOG_FORMAT}",
                "read it with the version that its provenance names",
            )
        provenance: dict[str, str] = {}
        attachments: dict[str, bytes] = {}
        for span in self._file.spans:
            if span.opcode == Opcode.METADATA:
                record = self._file.record(span, Metadata.read)
                if record.name == "provenance":
                    provenance = record.metadata
            elif span.opcode == Opcode.ATTACHMENT:
                attachment = self._file.record(span, Attachment.read)
                attachments[attachment.name] = attachment.data
        if "scene.yaml" not in attachments:
            raise RecordingError(
                f"{self.path}: has no attached map and rooms",
                "use the original: tools that cut or filter MCAP files leave out attachments by default",
            )
        try:
            return header_from_json(self.path, data, attachments, provenance)
        except (KeyError, ValueError, TypeError, ConfigError, SceneError) as error:
            raise self._malformed("its header", error) from error

    def _read_end(self) -> EpisodeEnd | None:
        for chunk in reversed(self._chunks):
            if not self._holds_images_only(chunk):
                try:
                    ends = [_loads(m) for topic, m in self._messages(chunk) if topic == _TOPICS["end"]]
                    return json_records.end_from_json(ends[-1]) if ends else None
                except (KeyError, ValueError, TypeError) as error:
                    raise self._malformed("its end", error) from error
        return None

    def _malformed(self, what: str, error: Exception) -> RecordingError:
        return RecordingError(f"{self.path}: {what} is malformed: {error!r}", "read it with the version that wrote it")


def read_log(path: Path | str) -> LogReader:
    """Open a log; use it in a ``with`` statement. Raises ``RecordingError``."""
    return LogReader(Path(path))


def _index_chunks(file: LogFile) -> Iterator[_Chunk]:
    """Yield the chunks; a chunk's message indexes follow it, and are complete if another record follows them."""
    span: Span | None = None
    channels: set[int] = set()
    for record in file.spans:
        if record.opcode == Opcode.MESSAGE_INDEX:
            channels.add(file.record(record, MessageIndex.read).channel_id)
            continue
        if span is not None:
            yield _Chunk(span, frozenset(channels))
        span, channels = (record if record.opcode == Opcode.CHUNK else None), set()
    if span is not None:
        yield _Chunk(span, None)


def _step(
    data: dict[str, Any], phase_s: dict[str, float], objects: Mapping[int | None, Mapping[str, ObjectPose]]
) -> StepRecord:
    observation = observations.numbers_of(data["observation"])
    frame = RgbdFrame(data["frame"]["stamp_ns"], np.empty((0, 0, 3), np.uint8), np.empty((0, 0), np.float32))
    since = (data.get("objects") or {}).get("since")
    if since not in objects:
        # A log that was torn and recovered: poses written with other steps are not valid here.
        raise ValueError(f"the objects' poses that were written with step {since} are lost")
    return json_records.step_from_json(data, observation, frame, phase_s, objects[since])


def _loads(message: Message) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(message.data)
    return result


_DECODERS: dict[str, tuple[str, Any]] = {
    _TOPICS["rgb"]: ("rgb", images.decode_rgb),
    _TOPICS["depth"]: ("depth_m", images.decode_depth),
    _TOPICS["semantic"]: ("semantic", images.decode_semantic),
}
