"""Chunks that unpack to more than a log's writer puts into one."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import lz4.frame
import pytest
import zstandard
from mcap.opcode import Opcode
from mcap.writer import MCAP0_MAGIC, Writer

from robot_runtime.recording import mcap_scan
from robot_runtime.recording.mcap_scan import MAX_CHUNK_BYTES, Damaged, LogFile

EMPTY_MESSAGE = struct.pack("<BQHIQQ", Opcode.MESSAGE, 22, 1, 0, 0, 0)
ZEROS = bytes(MAX_CHUNK_BYTES + 1)


def chunk_file(tmp_path: Path, compression: str, packed: bytes, stated_size: int) -> Path:
    text = compression.encode()
    content = struct.pack("<QQQII", 0, 0, stated_size, 0, len(text)) + text + struct.pack("<Q", len(packed)) + packed
    path = tmp_path / "bomb.mcap"
    path.write_bytes(MCAP0_MAGIC + struct.pack("<BQ", Opcode.CHUNK, len(content)) + content)
    return path


@pytest.mark.parametrize(
    ("compression", "packed", "stated_size"),
    [
        ("zstd", zstandard.compress(ZEROS), len(ZEROS)),
        ("zstd", zstandard.compress(ZEROS), 100),
        ("zstd", zstandard.ZstdCompressor(write_content_size=False).compress(ZEROS), len(ZEROS)),
        ("zstd", zstandard.ZstdCompressor(write_content_size=False).compress(ZEROS), 100),
        ("zstd", zstandard.compress(b"x"), 1 << 50),
        ("lz4", lz4.frame.compress(ZEROS), len(ZEROS)),
        ("lz4", b"no lz4", 100),
        ("brotli", b"x", 1),
    ],
)
def test_a_chunk_beyond_the_limits_is_refused_before_it_takes_memory(
    tmp_path: Path, compression: str, packed: bytes, stated_size: int
) -> None:
    log = LogFile(chunk_file(tmp_path, compression, packed, stated_size))
    tracemalloc.start()
    try:
        with pytest.raises(Damaged, match=r"bomb\.mcap: the chunk at byte 17"):
            log.chunk(log.spans[0])
        assert tracemalloc.get_traced_memory()[1] < 3e7
    finally:
        tracemalloc.stop()
        log.close()


def test_a_chunk_of_countless_records_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcap_scan, "MAX_CHUNK_RECORDS", 100)
    data = EMPTY_MESSAGE * 101
    log = LogFile(chunk_file(tmp_path, "zstd", zstandard.compress(data), len(data)))
    with pytest.raises(Damaged, match="more than 100 records"):
        log.chunk(log.spans[0])
    log.close()


@pytest.mark.parametrize("compression", ["zstd", "lz4", ""])
def test_an_honest_chunk_is_read(tmp_path: Path, compression: str) -> None:
    data = EMPTY_MESSAGE * 3
    packed = {"zstd": zstandard.compress, "lz4": lz4.frame.compress, "": bytes}[compression](data)
    log = LogFile(chunk_file(tmp_path, compression, packed, len(data)))
    assert len(log.chunk(log.spans[0])) == 3
    log.close()


def test_an_intact_summary_is_skipped_and_an_altered_one_is_read_record_by_record(tmp_path: Path) -> None:
    path = tmp_path / "log.mcap"
    with path.open("wb") as sink:
        writer = Writer(sink)
        writer.start()
        channel = writer.register_channel("/step", "json", 0)
        for number in range(3):
            writer.add_message(channel, number, b"{}", number)
        writer.finish()
    intact = LogFile(path)
    altered = bytearray(path.read_bytes())
    altered[-40] ^= 1  # in the last record before the footer
    path.write_bytes(altered)
    other = LogFile(path)
    assert intact.complete
    assert intact.intact_bytes == len(altered) - len(MCAP0_MAGIC)
    assert intact.chunks == other.chunks
    assert [span.opcode for span in intact.spans[-2:]] == [Opcode.DATA_END, Opcode.FOOTER]
    assert intact.spans[-1] == other.spans[-1]
    assert Opcode.CHUNK_INDEX in {span.opcode for span in other.spans}
    intact.close()
    other.close()
