"""Repair of a truncated log: a copy of every intact message in a complete file that any MCAP tool opens."""

from contextlib import suppress
from pathlib import Path

from mcap.opcode import Opcode
from mcap.records import Attachment, Channel, Header, Message, Metadata, Schema

from robot_runtime.common.creating import creating
from robot_runtime.errors import RecordingError
from robot_runtime.recording.durable_file import DurableFile
from robot_runtime.recording.mcap_scan import Damaged, LogFile, Span
from robot_runtime.recording.mcap_writer import McapWriter, Sink


def recover(source: Path, destination: Path) -> int:
    """Copy all intact chunks in order, without those of a wrong checksum; return the number of messages in the copy.

    Args:
        source: the truncated log.
        destination: path of the new file, which must not exist.

    Raises:
        RecordingError: ``source`` is not a log; ``destination`` exists or cannot be written.
    """
    log = LogFile(source)
    try:
        with creating(destination, "give a new file on a disk with room", fresh=True) as draft:
            sink = DurableFile(draft, sync_s=1.0)
            try:
                messages = _Copier(log, sink).run()
                if not messages:
                    raise RecordingError(f"{source}: has no complete message", "record the episode again")
                sink.sync()
            finally:
                sink.close()
    finally:
        log.close()
    return messages


class _Copier:
    """Copy of a file into another, with new ids of schemas and channels."""

    def __init__(self, log: LogFile, sink: Sink) -> None:
        self._log = log
        self._out = McapWriter(sink)
        self._schemas: dict[int, int] = {0: 0}
        self._channels: dict[int, int] = {}
        self._messages = 0

    def run(self) -> int:
        """Copy everything, and return the number of messages."""
        spans = self._log.spans
        header = Header("", "")
        if spans and spans[0].opcode == Opcode.HEADER:
            with suppress(Damaged):
                header = self._log.record(spans[0], Header.read)
        self._out.start(header.profile, header.library)
        for span in spans:
            with suppress(Damaged):
                self._record(span)
        self._out.finish()
        return self._messages

    def _record(self, span: Span) -> None:
        if span.opcode == Opcode.METADATA:
            metadata = self._log.record(span, Metadata.read)
            self._out.add_metadata(metadata.name, metadata.metadata)
        elif span.opcode == Opcode.ATTACHMENT:
            self._out.add_attachment(self._log.record(span, Attachment.read))
        elif span.opcode == Opcode.CHUNK:
            self._chunk(span)

    def _chunk(self, span: Span) -> None:
        for record in self._log.chunk(span, schemas=True):
            if isinstance(record, Schema):
                if record.id not in self._schemas:
                    self._schemas[record.id] = self._out.register_schema(record.name, record.encoding, record.data)
            elif isinstance(record, Channel):
                if record.id not in self._channels:
                    self._channels[record.id] = self._out.register_channel(
                        record.topic, record.message_encoding, self._schemas[record.schema_id], record.metadata
                    )
            elif isinstance(record, Message) and record.channel_id in self._channels:
                self._messages += 1
                self._out.add_message(
                    self._channels[record.channel_id],
                    record.log_time,
                    record.publish_time,
                    record.sequence,
                    [record.data],
                )
        self._out.end_chunk()
