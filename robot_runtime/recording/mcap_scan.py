"""Scan of a log file record by record, up to its first damage.

An MCAP file is a magic number, records of (opcode, length, content), and the magic number again
(https://mcap.dev/spec). The library's readers raise at the first incomplete record; in a log whose writer was
killed, all records before it are intact.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, TypeVar

import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Chunk, McapRecord
from mcap.stream_reader import CRCValidationError, breakup_chunk
from mcap.writer import MCAP0_MAGIC

from robot_runtime.errors import RecordingError

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
            Damaged: its checksum is wrong, or it cannot be decompressed.
        """
        try:
            return breakup_chunk(self.record(span, Chunk.read), validate_crc=True)
        except (McapError, CRCValidationError, zstandard.ZstdError, struct.error, ValueError) as error:
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


class Damaged(RecordingError):
    """A record of full length with damaged content."""
