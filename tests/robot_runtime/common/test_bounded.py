"""Data that unpack to a thousand times their size are refused before they take memory."""

from __future__ import annotations

import gzip
import io
import struct
import tracemalloc
import zipfile
import zlib

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.common import bounded, image_files

PIXELS = np.random.default_rng(0).integers(0, 255, (6, 9, 3), np.uint8)


def encoded(kind: str) -> bytes:
    return bytes(cv2.imencode(kind, PIXELS if kind != ".pgm" else PIXELS[..., 0])[1])


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1 << 20)))


@pytest.mark.parametrize("kind", [".png", ".jpg", ".ppm", ".pgm"])
def test_an_honest_image_is_decoded(kind: str) -> None:
    decoded = image_files.decode_image(encoded(kind), cv2.IMREAD_COLOR)
    assert decoded is not None
    assert decoded.shape == (6, 9, 3)


def enlarged_jpeg() -> bytes:
    data = bytearray(encoded(".jpg"))
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", 60_000, 60_000)
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        png(30_000, 30_000),
        png(1, 1 << 30),
        enlarged_jpeg(),
        b"P5\n30000 30000\n255\n",
        b"P5 # a comment\n30000\n# and another\r30000\n255\n",
    ],
)
def test_the_size_is_read_before_the_pixels(data: bytes) -> None:
    with pytest.raises(bounded.TooLarge, match="pixels"):
        image_files.decode_image(data, cv2.IMREAD_GRAYSCALE)


@pytest.mark.slow
@given(st.sampled_from([".png", ".jpg", ".ppm", ".pgm"]), st.integers(0, 90), st.binary(min_size=1, max_size=6))
def test_a_damaged_header_is_no_image_or_has_the_size_that_was_checked(kind: str, at: int, noise: bytes) -> None:
    data = encoded(kind)
    data = data[:at] + noise + data[at + len(noise) :]
    stated = image_files._image_size(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(image_files, "MAX_IMAGE_PIXELS", 1 << 16)
        try:
            decoded = image_files.decode_image(data, cv2.IMREAD_UNCHANGED)
        except bounded.TooLarge:
            return
    assert decoded is None or (stated is not None and decoded.shape[0] * decoded.shape[1] <= stated[0] * stated[1])


def test_gzip_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "FREE_BYTES", 1 << 16)
    honest = gzip.compress(bytes(1 << 15))
    assert bounded.GzipReader(io.BytesIO(honest), len(honest)).read() == bytes(1 << 15)
    bomb = gzip.compress(bytes(1 << 24))
    with pytest.raises(bounded.TooLarge, match="100 times"):
        bounded.GzipReader(io.BytesIO(bomb), len(bomb)).read()


def npz(**arrays: np.ndarray) -> io.BytesIO:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    file.seek(0)
    return file


def test_arrays_come_back() -> None:
    found = bounded.read_arrays(npz(**{"a/b": np.arange(3), "c": np.float64(2)}), 2, 1000)
    assert {name: array.tolist() for name, array in found.items()} == {"a/b": [0, 1, 2], "c": 2.0}


def test_arrays_beyond_a_limit_are_refused() -> None:
    tracemalloc.start()
    with pytest.raises(bounded.TooLarge, match="members"):
        bounded.read_arrays(npz(a=np.zeros(1), b=np.zeros(1)), 1, 1000)
    with pytest.raises(bounded.TooLarge, match="at most 1000"):
        bounded.read_arrays(npz(a=np.zeros(1000)), 9, 1000)
    bomb = io.BytesIO()
    with (
        zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.npy", "w", force_zip64=True) as file,
    ):
        for _ in range(65):
            file.write(bytes(1 << 20))
    tracemalloc.reset_peak()
    with pytest.raises(bounded.TooLarge, match="at most"):
        bounded.read_arrays(bomb, 9, 1 << 40)
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    "content", [b"no array", b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f8', 'shape': (1000000000000,)}"]
)
def test_a_member_that_is_no_array_is_refused(content: bytes) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", content)
    with pytest.raises(ValueError):
        bounded.read_arrays(file, 9, 1000)
