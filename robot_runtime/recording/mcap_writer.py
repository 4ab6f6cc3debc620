"""Writer of MCAP files whose chunks end when it is told to, each compressed or not (https://mcap.dev/spec).

The library's own writer always compresses at zstd's third level, which takes three times the first level's CPU time and
makes the prediction errors of an image (``recording.images``) no smaller.
"""

import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import zstandard
from mcap import records as mcap_records
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.writer import LIBRARY_IDENTIFIER, MCAP0_MAGIC

Buffer = bytes | memoryview

_ZSTD_LEVEL = 1
_MESSAGE = struct.Struct("<BQHIQQ")
_MESSAGE_FIELDS_BYTES = _MESSAGE.size - struct.calcsize("<BQ")
_CHUNK = struct.Struct("<BQQQQII")
_LENGTH = struct.Struct("<Q")
_FOOTER = struct.Struct("<BQQQ")
_FOOTER_BYTES = 20


class Sink(Protocol):
    """Where the file goes to."""

    def write(self, *parts: Buffer) -> int:
        """Write all bytes of all parts; return their number."""

    def tell(self) -> int:
        """Number of bytes written so far."""


class McapWriter:
    """Writer of a file to an empty sink. Not thread-safe.

    Raises:
        OSError: from every method that writes, as from ``sink``.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._zstd = zstandard.ZstdCompressor(level=_ZSTD_LEVEL)
        self._schemas: list[mcap_records.Schema] = []
        self._channels: list[mcap_records.Channel] = []
        self._attachments: list[mcap_records.AttachmentIndex] = []
        self._metadata: list[mcap_records.MetadataIndex] = []
        self._chunks: list[mcap_records.ChunkIndex] = []
        self._counts: Counter[int] = Counter()
        self._parts: list[Buffer] = []
        self._size = 0
        self._indexes: dict[int, list[int]] = {}
        """Times and offsets in turns, by channel."""

    def start(self, profile: str = "", library: str = LIBRARY_IDENTIFIER) -> None:
        """Write the beginning of the file."""
        self._sink.write(MCAP0_MAGIC + _record(mcap_records.Header(profile, library)))

    def add_metadata(self, name: str, metadata: dict[str, str]) -> None:
        """Write metadata outside the chunks."""
        offset = self._sink.tell()
        length = self._sink.write(_record(mcap_records.Metadata(name=name, metadata=metadata)))
        self._metadata.append(mcap_records.MetadataIndex(offset=offset, length=length, name=name))

    def add_attachment(self, attachment: mcap_records.Attachment) -> None:
        """Write an attachment outside the chunks."""
        offset = self._sink.tell()
        length = self._sink.write(_record(attachment))
        index = mcap_records.AttachmentIndex(
            offset=offset,
            length=length,
            log_time=attachment.log_time,
            create_time=attachment.create_time,
            data_size=len(attachment.data),
            name=attachment.name,
            media_type=attachment.media_type,
        )
        self._attachments.append(index)

    def register_schema(self, name: str, encoding: str, data: bytes) -> int:
        """Add a schema to the chunk; return its number."""
        self._schemas.append(mcap_records.Schema(id=len(self._schemas) + 1, data=data, encoding=encoding, name=name))
        self._append(_record(self._schemas[-1]))
        return len(self._schemas)

    def register_channel(self, topic: str, encoding: str, schema: int, metadata: dict[str, str] | None = None) -> int:
        """Add a channel, whose messages have an encoding and a schema, to the chunk; return its number."""
        channel = mcap_records.Channel(
            id=len(self._channels) + 1,
            topic=topic,
            message_encoding=encoding,
            metadata=metadata or {},
            schema_id=schema,
        )
        self._channels.append(channel)
        self._append(_record(channel))
        return channel.id

    def add_message(self, channel: int, log_ns: int, publish_ns: int, sequence: int, data: Sequence[Buffer]) -> None:
        """Add a message to the chunk.

        Args:
            channel: number of the channel.
            log_ns: time of the recording in nanoseconds.
            publish_ns: time of the message's origin in nanoseconds.
            sequence: number of the message.
            data: parts of the message's data, which must not change until the chunk has ended.
        """
        self._indexes.setdefault(channel, []).extend((log_ns, self._size))
        length = _MESSAGE_FIELDS_BYTES + sum(map(len, data))
        self._append(_MESSAGE.pack(Opcode.MESSAGE, length, channel, sequence, log_ns, publish_ns), *data)

    def end_chunk(self, compress: bool = True, check: bool = True) -> None:
        """Write the chunk, compressed and with a checksum where wanted, if there are messages in it."""
        if not self._indexes:
            return
        checksum = 0
        for part in self._parts if check else ():
            checksum = zlib.crc32(part, checksum)
        packed: Sequence[Buffer] = [self._zstd.compress(b"".join(self._parts))] if compress else self._parts
        packed_bytes, compression = sum(map(len, packed)), b"zstd" if compress else b""
        start_ns = min(min(entries[::2]) for entries in self._indexes.values())
        end_ns = max(max(entries[::2]) for entries in self._indexes.values())
        head = b"".join(
            (
                _CHUNK.pack(
                    Opcode.CHUNK,
                    _CHUNK.size - struct.calcsize("<BQ") + len(compression) + _LENGTH.size + packed_bytes,
                    start_ns,
                    end_ns,
                    self._size,
                    checksum,
                    len(compression),
                ),
                compression,
                _LENGTH.pack(packed_bytes),
            )
        )
        offset = self._sink.tell()
        indexes = [_index_record(channel, entries) for channel, entries in self._indexes.items()]
        places, at = {}, offset + len(head) + packed_bytes
        for channel, index in zip(self._indexes, indexes, strict=True):
            places[channel], at = at, at + len(index)
        self._sink.write(head, *packed, *indexes)
        self._counts.update({channel: len(entries) // 2 for channel, entries in self._indexes.items()})
        self._chunks.append(
            mcap_records.ChunkIndex(
                chunk_length=len(head) + packed_bytes,
                chunk_start_offset=offset,
                compression=compression.decode(),
                compressed_size=packed_bytes,
                message_end_time=end_ns,
                message_index_length=sum(map(len, indexes)),
                message_index_offsets=places,
                message_start_time=start_ns,
                uncompressed_size=self._size,
            )
        )
        self._parts, self._size, self._indexes = [], 0, {}

    def finish(self) -> None:
        """Write the last chunk, the summary by which other tools find chunks, and the end of the file."""
        self.end_chunk()
        self._sink.write(_record(mcap_records.DataEnd(0)))
        start = self._sink.tell()
        groups: list[tuple[Opcode, Iterable[mcap_records.McapRecord]]] = [
            (Opcode.SCHEMA, self._schemas),
            (Opcode.CHANNEL, self._channels),
            (Opcode.STATISTICS, [self._statistics()]),
            (Opcode.CHUNK_INDEX, self._chunks),
            (Opcode.ATTACHMENT_INDEX, self._attachments),
            (Opcode.METADATA_INDEX, self._metadata),
        ]
        summary, offsets = b"", b""
        for opcode, records in groups:
            data = b"".join(map(_record, records))
            if data:
                offset = mcap_records.SummaryOffset(opcode, start + len(summary), len(data))
                offsets += _record(offset)
            summary += data
        offset_start = start + len(summary)
        summary += offsets
        checksum = zlib.crc32(_FOOTER.pack(Opcode.FOOTER, _FOOTER_BYTES, start, offset_start), zlib.crc32(summary))
        footer = mcap_records.Footer(summary_start=start, summary_offset_start=offset_start, summary_crc=checksum)
        self._sink.write(summary + _record(footer) + MCAP0_MAGIC)

    def _append(self, *parts: Buffer) -> None:
        self._parts += parts
        self._size += sum(map(len, parts))

    def _statistics(self) -> mcap_records.Statistics:
        chunks = self._chunks
        return mcap_records.Statistics(
            attachment_count=len(self._attachments),
            channel_count=len(self._channels),
            channel_message_counts=dict(self._counts),
            chunk_count=len(chunks),
            message_count=self._counts.total(),
            message_end_time=max((chunk.message_end_time for chunk in chunks), default=0),
            message_start_time=min((chunk.message_start_time for chunk in chunks), default=0),
            metadata_count=len(self._metadata),
            schema_count=len(self._schemas),
        )


def _index_record(channel: int, entries: list[int]) -> bytes:
    """Message index of a channel, from times and offsets in turns."""
    size = 8 * len(entries)
    return struct.pack(f"<BQHI{len(entries)}Q", Opcode.MESSAGE_INDEX, 6 + size, channel, size, *entries)


def _record(record: mcap_records.McapRecord) -> bytes:
    builder: Any = RecordBuilder()
    record.write(builder)
    data: bytes = builder.end()
    return data
