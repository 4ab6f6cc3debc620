"""PNG images for a log: encoded in a millisecond, and small once their chunk is compressed.

A PNG's own compression (DEFLATE) takes several times as long as the chunk's (Zstandard). So the pixels are predicted
from the row above, as PNG's filter "Up" does, and the differences are put into the PNG as they are, in DEFLATE's stored
blocks; Zstandard makes them smaller. Any PNG decoder reads the result.
"""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_UP = 2
_RGB_OF_8_BITS = bytes([8, 2, 0, 0, 0])  # and DEFLATE, the five filters, not interlaced
_ZLIB_HEADER = b"\x78\x01"
_STORED_BYTES = (1 << 16) - 1


def encode_png(rgb: NDArray[np.uint8]) -> list[bytes | memoryview]:
    """Encode uint8 (H, W, 3); returns parts of the PNG, which are copied once when they are joined."""
    height, width, _ = rgb.shape
    rows = rgb.reshape(height, -1)
    filtered = np.empty((height, 1 + rows.shape[1]), np.uint8)
    filtered[:, 0] = _UP
    filtered[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    header = struct.pack(">II", width, height) + _RGB_OF_8_BITS
    return [_SIGNATURE, *_chunk(b"IHDR", header), *_chunk(b"IDAT", *_stored(filtered.reshape(-1))), *_chunk(b"IEND")]


def _stored(data: NDArray[np.uint8]) -> list[bytes | memoryview]:
    """A zlib stream of stored blocks."""
    view = data.data
    parts: list[bytes | memoryview] = [_ZLIB_HEADER]
    for start in range(0, len(view), _STORED_BYTES):
        block = view[start : start + _STORED_BYTES]
        is_last = start + _STORED_BYTES >= len(view)
        parts += (struct.pack("<BHH", is_last, len(block), len(block) ^ 0xFFFF), block)
    return [*parts, struct.pack(">I", zlib.adler32(view))]


def _chunk(kind: bytes, *parts: bytes | memoryview) -> list[bytes | memoryview]:
    checksum = zlib.crc32(kind)
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return [struct.pack(">I", sum(map(len, parts))), kind, *parts, struct.pack(">I", checksum)]
