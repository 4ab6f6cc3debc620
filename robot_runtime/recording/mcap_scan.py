"""Scan of a log file record by record, up to its first damage.

An MCAP file is a magic number, records of (opcode, length, content), and the magic number again
(https://mcap.dev/spec). The library's readers raise at the first incomplete record; in a log whose writer was
killed, all records before it are intact.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, TypeVar

import lz4.frame
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Chunk, McapRecord
from mcap.stream_reader import CRCValidationError, breakup_chunk
from mcap.writer import MCAP0_MAGIC

from robot_runtime.errors import RecordingError

MAX_CHUNK_BYTES = 1 << 27
"""Of an unpacked chunk: a step with images of 3840x2160 pixels takes half of it."""

MAX_CHUNK_RECORDS = 1 << 18

_RECORD_HEADER = struct.Struct("<BQ")
_REMEDY = "run `robot-runtime recover` to keep the rest, and check the disk"
R = TypeVar("R")
_OPCODES = frozenset(int(code) for code in Opcode)


@dataclass(frozen=True, slots=True)
class Span:
    """Location of a whole record: its opcode, and offset and length of its content."""

    opcode: int
    offset: int
    length: int


class LogFile:
    """A log that is open for reading.

    Args:
        path: of the file.

    Attributes:
        spans: every whole record in file order.
        whole: whether the file has its end; False for a torn one.
        intact_bytes: length of the part with whole records.

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
        self.spans = list(self._scan(path.stat().st_size))
        last = self.spans[-1] if self.spans else None
        self.intact_bytes = last.offset + last.length if last else len(MCAP0_MAGIC)
        self._file.seek(self.intact_bytes)
        closed = last is not None and last.opcode == Opcode.FOOTER
        self.whole = closed and self._file.read(len(MCAP0_MAGIC) + 1) == MCAP0_MAGIC

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def content(self, span: Span) -> bytes:
        """The content of a record."""
        self._file.seek(span.offset)
        return self._file.read(span.length)

    def record(self, span: Span, kind: Callable[[ReadDataStream], R]) -> R:
        """Parse the record at ``span``.

        Args:
            span: its location.
            kind: the ``read`` method of its class.

        Raises:
            Damaged: the content is not that of such a record.
        """
        try:
            return kind(ReadDataStream(BytesIO(self.content(span))))
        except (McapError, struct.error, ValueError) as error:
            raise Damaged(f"{self.path}: the record at byte {span.offset} is damaged: {error!r}", _REMEDY) from error

    def chunk(self, span: Span) -> list[McapRecord]:
        """The records in a chunk.

        Raises:
            Damaged: its checksum is wrong, it cannot be decompressed, or it unpacks to more than ``MAX_CHUNK_BYTES``
                or ``MAX_CHUNK_RECORDS``.
        """
        chunk = self.record(span, Chunk.read)
        try:
            data = _unpacked(chunk)
            _check_records(data)
            return breakup_chunk(replace(chunk, compression="", data=data), validate_crc=True)
        except (McapError, CRCValidationError, zstandard.ZstdError, RuntimeError, struct.error, ValueError) as error:
            raise Damaged(f"{self.path}: the chunk at byte {span.offset} is damaged: {error!r}", _REMEDY) from error

    def _scan(self, size: int) -> Iterator[Span]:
        offset = len(MCAP0_MAGIC)
        while offset + _RECORD_HEADER.size <= size:
            self._file.seek(offset)
            opcode, length = _RECORD_HEADER.unpack(self._file.read(_RECORD_HEADER.size))
            offset += _RECORD_HEADER.size
            # After a power failure, a file system may leave zeros at the end.
            if opcode not in _OPCODES or offset + length > size:
                return
            yield Span(opcode, offset, length)
            if opcode == Opcode.FOOTER:
                return
            offset += length


def _unpacked(chunk: Chunk) -> bytes:
    """The content of a chunk. Raises ``ValueError``, ``ZstdError`` or lz4's ``RuntimeError``."""
    size = chunk.uncompressed_size
    if chunk.compression == "zstd":
        size = max(size, zstandard.frame_content_size(chunk.data))  # -1 where the frame does not state it
    if size > MAX_CHUNK_BYTES:
        raise ValueError(f"it unpacks to {size} bytes, at most {MAX_CHUNK_BYTES} are read")
    data: bytes = chunk.data
    if chunk.compression == "zstd":
        data = zstandard.decompress(data, size)
    elif chunk.compression == "lz4":
        data = lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=size)
    elif chunk.compression:
        raise ValueError(f"its compression is {chunk.compression!r}")
    if len(data) != chunk.uncompressed_size:
        raise ValueError(f"it states {chunk.uncompressed_size} bytes and has {len(data)}")
    return data


def _check_records(data: bytes) -> None:
    """Count the records of a chunk, because a thousand empty ones compress to a few bytes."""
    offset = count = 0
    while offset + _RECORD_HEADER.size <= len(data):
        offset += _RECORD_HEADER.size + _RECORD_HEADER.unpack_from(data, offset)[1]
        count += 1
        if count > MAX_CHUNK_RECORDS:
            raise ValueError(f"it has more than {MAX_CHUNK_RECORDS} records")


class Damaged(RecordingError):
    """A record of full length with damaged content."""
