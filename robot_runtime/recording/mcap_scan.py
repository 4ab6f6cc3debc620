"""Scan of a log file record by record, up to its first damage.

An MCAP file is a magic number, records of (opcode, length, content), and the magic number again
(https://mcap.dev/spec). The library's readers raise at the first incomplete record; in a log whose writer was
killed, all records before it are intact.
"""

import os
import re
import struct
import zlib
from collections.abc import Callable, Collection, Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import lz4.frame
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, McapRecord, Message, Schema
from mcap.writer import MCAP0_MAGIC

from robot_runtime.errors import RecordingError

MAX_CHUNK_BYTES = 1 << 27
"""Of an unpacked chunk: a step with images of 3840x2160 pixels takes half of it."""

MAX_RECORD_BYTES = MAX_CHUNK_BYTES + (1 << 20)
"""Of a record as it is in the file: what does not shrink becomes a little larger by its compression."""

MAX_CHUNK_RECORDS = 1 << 18

_RECORD_HEADER = struct.Struct("<BQ")
_CHUNK_FIELDS = struct.Struct("<QQQII")
_LENGTH = struct.Struct("<Q")
_MESSAGE_FIELDS = struct.Struct("<HIQQ")
_RECORD_AND_CHANNEL = struct.Struct("<BQH")  # a message, or message index, as far as its channel
_ONE_MESSAGE = struct.Struct("<9xH20x")
_FOOTER = struct.Struct("<BQQQI")  # its header, the starts of summary and of summary offsets, and the checksum
_INDEXES = re.compile(rb"(?:\x07\x16\0\0\0\0\0\0\0..\x10\0\0\0.{16})+", re.DOTALL)
"""Message indexes of one message each, nearly all records of a log: one by one they take as long as all the rest."""

_CHANNEL_ID_BYTES = 2
_WINDOW_BYTES = 1 << 14
_CHECKSUM_BYTES = 4
_REMEDY = "run `robot-runtime logs recover` to keep the rest, and check the disk"
R = TypeVar("R")
_OPCODES = frozenset(int(code) for code in Opcode)
_MESSAGE_INDEX, _MESSAGE, _CHUNK = int(Opcode.MESSAGE_INDEX), int(Opcode.MESSAGE), int(Opcode.CHUNK)


class Span(NamedTuple):
    """Location of a complete record: its opcode, and offset and length of its content."""

    opcode: int
    offset: int
    length: int


class ChunkSpan(NamedTuple):
    """Location of a chunk, and the channels of its messages; None if the file ends before they are listed."""

    span: Span
    channels: frozenset[int] | None


class LogFile:
    """A log that is open for reading.

    Attributes:
        spans: spans of all complete records in file order, without the message indexes and an intact summary.
        chunks: the chunks among them.
        complete: whether the file has its end; False for a truncated file.
        intact_bytes: length of the part with complete records.

    Raises:
        RecordingError: the file does not exist, or is not an MCAP file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and not path.is_file():  # opening a pipe would block
            raise RecordingError(f"{path}: is not a file", "give a .mcap file that a run wrote")
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise RecordingError(
                f"{path}: cannot be read: {error.strerror}", "check the path and its permissions"
            ) from error
        if self._file.read(len(MCAP0_MAGIC)) != MCAP0_MAGIC:
            self._file.close()
            raise RecordingError(
                f"{path}: is not a log (it does not begin like an MCAP file)", "give a .mcap file that a run wrote"
            )
        self._zstd = zstandard.ZstdDecompressor()
        self.spans: list[Span] = []
        self.chunks: list[ChunkSpan] = []
        self.intact_bytes = len(MCAP0_MAGIC)
        self._scan(path.stat().st_size)
        closed = bool(self.spans) and self.spans[-1].opcode == Opcode.FOOTER
        self.complete = closed and self._read(self.intact_bytes, len(MCAP0_MAGIC) + 1) == MCAP0_MAGIC

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def content(self, span: Span) -> bytes:
        """The content of a record. Raises ``Damaged``: it has more than ``MAX_RECORD_BYTES``."""
        if span.length > MAX_RECORD_BYTES:
            where = f"{self.path}: the record at byte {span.offset}"
            raise Damaged(f"{where} has {span.length} bytes, at most {MAX_RECORD_BYTES} are read", _REMEDY)
        return self._read(span.offset, span.length)

    def record(self, span: Span, kind: Callable[[ReadDataStream], R]) -> R:
        """Parse the record at ``span``.

        Args:
            span: location of the record.
            kind: the ``read`` method of its class.

        Raises:
            Damaged: the content is not that of such a record.
        """
        try:
            return kind(ReadDataStream(BytesIO(self.content(span))))
        except (McapError, struct.error, ValueError, OverflowError) as error:
            raise Damaged(f"{self.path}: the record at byte {span.offset} is damaged: {error!r}", _REMEDY) from error

    def chunk(self, span: Span, skipped: Collection[int] = (), schemas: bool = False) -> list[McapRecord]:
        """The channels, the messages of those that are not ``skipped``, and if wanted the schemas in a chunk.

        Raises:
            Damaged: its checksum is wrong, it cannot be decompressed, or it unpacks to more than ``MAX_CHUNK_BYTES``
                or ``MAX_CHUNK_RECORDS``.
        """
        try:
            return list(_records(self._unpacked(self.content(span)), skipped, schemas))
        except (McapError, zstandard.ZstdError, RuntimeError, struct.error, ValueError, OverflowError) as error:
            raise Damaged(f"{self.path}: the chunk at byte {span.offset} is damaged: {error!r}", _REMEDY) from error

    def _unpacked(self, chunk: bytes) -> bytes:
        """The content of a chunk record. Raises ``ValueError``, ``ZstdError``, ``struct.error``, ``RuntimeError``."""
        _, _, stated_size, checksum, name_length = _CHUNK_FIELDS.unpack_from(chunk)
        start = _CHUNK_FIELDS.size + name_length
        compression = chunk[_CHUNK_FIELDS.size : start]
        (packed_size,) = _LENGTH.unpack_from(chunk, start)
        data = chunk[start + _LENGTH.size :]
        if len(data) != packed_size:
            raise ValueError(f"it states {packed_size} packed bytes and has {len(data)}")
        size = stated_size
        if compression == b"zstd":
            size = max(size, zstandard.frame_content_size(data))  # -1 where the frame does not state it
        if size > MAX_CHUNK_BYTES:
            raise ValueError(f"it unpacks to {size} bytes, at most {MAX_CHUNK_BYTES} are read")
        if compression == b"zstd":
            data = self._zstd.decompress(data, size)
        elif compression == b"lz4":
            data = lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=size)
        elif compression:
            raise ValueError(f"its compression is {compression!r:.50}")
        if len(data) != stated_size:
            raise ValueError(f"it states {stated_size} bytes and has {len(data)}")
        if checksum not in (0, zlib.crc32(data)):
            raise ValueError("its checksum is wrong")
        return data

    def _scan(self, size: int) -> None:
        """List the complete records, reading in windows: most records are message indexes of few bytes."""
        offset, window, start, last = len(MCAP0_MAGIC), b"", 0, -1
        chunk: Span | None = None
        channels: set[int] = set()
        header_bytes, unpack, match_indexes = _RECORD_HEADER.size, _RECORD_AND_CHANNEL.unpack_from, _INDEXES.match
        while offset + header_bytes <= size:
            at = offset - start
            if at > last:
                window, start, at = self._read(offset, _WINDOW_BYTES), offset, 0
                last = len(window) - _RECORD_AND_CHANNEL.size
                if len(window) < header_bytes:  # the file has become shorter
                    break
            opcode, length, channel = unpack(window, at) if at <= last else (*_RECORD_HEADER.unpack_from(window, at), 0)
            begin = offset + header_bytes
            # After a power failure, a file system may leave zeros at the end.
            if begin + length > size or opcode not in _OPCODES:
                break
            offset = begin + length
            if opcode == _MESSAGE_INDEX and length >= _CHANNEL_ID_BYTES:
                channels.add(channel)
            else:
                if chunk is not None:
                    # A chunk's message indexes follow it, and are complete if another record follows them.
                    self.chunks.append(ChunkSpan(chunk, frozenset(channels)))
                span = Span(opcode, begin, length)
                self.spans.append(span)
                chunk, channels = (span if opcode == _CHUNK else None), set()
                if opcode == Opcode.DATA_END and (footer := self._footer(offset, size)) is not None:
                    self.spans.append(footer)
                    offset = footer.offset + footer.length
                    break
                if opcode == Opcode.FOOTER:
                    break
            if found := match_indexes(window, offset - start):
                channels.update(*_ONE_MESSAGE.iter_unpack(found[0]))
                offset += len(found[0])
        self.intact_bytes = offset
        if chunk is not None:
            self.chunks.append(ChunkSpan(chunk, None))

    def _footer(self, start: int, size: int) -> Span | None:
        """The footer, if the file has one, and the summary from ``start`` to it has the checksum that it states."""
        at = size - len(MCAP0_MAGIC) - _FOOTER.size
        if at < start:
            return None
        rest = self._read(start, min(size - start, MAX_CHUNK_BYTES))
        if len(rest) != size - start or not rest.endswith(MCAP0_MAGIC):
            return None
        opcode, length, _, _, checksum = _FOOTER.unpack_from(rest, at - start)
        header_bytes = _RECORD_HEADER.size
        if opcode != Opcode.FOOTER or length != _FOOTER.size - header_bytes:
            return None
        if checksum != zlib.crc32(rest[: at - start + _FOOTER.size - _CHECKSUM_BYTES]):
            return None
        return Span(opcode, at + header_bytes, length)

    def _read(self, offset: int, count: int) -> bytes:
        return os.pread(self._file.fileno(), count, offset)


def _records(data: bytes, skipped: Collection[int], schemas: bool) -> Iterator[McapRecord]:
    """The records in a chunk's content, see :meth:`LogFile.chunk`.

    Their number is limited: a thousand empty ones compress to a few bytes.
    """
    offset, count, end = 0, 0, len(data)
    header_bytes, message_bytes, unpack = _RECORD_HEADER.size, _MESSAGE_FIELDS.size, _RECORD_AND_CHANNEL.unpack_from
    last = end - _RECORD_AND_CHANNEL.size
    while offset < end:
        opcode, length, channel_id = (
            unpack(data, offset) if offset <= last else (*_RECORD_HEADER.unpack_from(data, offset), 0)
        )
        start = offset + header_bytes
        offset = start + length
        count += 1
        if offset > end:
            raise ValueError(f"a record of {length} bytes exceeds it")
        if count > MAX_CHUNK_RECORDS:
            raise ValueError(f"it has more than {MAX_CHUNK_RECORDS} records")
        if opcode == _MESSAGE:
            if length < message_bytes:
                raise ValueError(f"a message has {length} bytes")
            if channel_id not in skipped:
                _, sequence, log_time, publish_time = _MESSAGE_FIELDS.unpack_from(data, start)
                yield Message(channel_id, log_time, data[start + message_bytes : offset], publish_time, sequence)
        elif opcode == Opcode.CHANNEL:
            yield Channel.read(ReadDataStream(BytesIO(data[start:offset])))
        elif opcode == Opcode.SCHEMA and schemas:
            yield Schema.read(ReadDataStream(BytesIO(data[start:offset])))


class Damaged(RecordingError):
    """A record of full length with damaged content."""
