"""Speed of decoding, and what noise costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drivers.kobuki.protocol import (
    Basic,
    CliffReadings,
    Current,
    Decoder,
    DockInfrared,
    GeneralInput,
    Inertia,
    RawGyro,
    encode,
)
from robot_runtime.common.clock import Stopwatch
from tests.benchmarks.report import Row

FRAMES = 4000
CHUNK = 64
"""Bytes at a time, as from a USB adapter."""


def _frame(number: int) -> bytes:
    sample = (0, 0, number % 100)
    parts = Basic(20 * number % 65536), DockInfrared(0, 0, 0), Inertia(0, 0), CliffReadings(1800, 1800, 1800)
    return encode(*parts, Current(1, 2), RawGyro(number % 256, (sample, sample)), GeneralInput(0, (0, 0, 0, 0)))


def decoding_rows(advance: Callable[..., None]) -> list[Row]:
    """Return the bytes decoded per second, half of them noise, and the frames that a burst of noise costs."""
    random = np.random.default_rng(0)
    frames = [_frame(number) for number in range(FRAMES)]
    stream = b"".join(frame + random.bytes(int(random.integers(0, 2 * len(frame)))) for frame in frames)
    timer, decoder, found = Stopwatch(), Decoder(), 0
    for at in range(0, len(stream), CHUNK):
        found += len(decoder.feed(stream[at : at + CHUNK]))
    seconds = timer.elapsed_s()
    worst = 0
    for trial in range(FRAMES):
        noise = random.bytes(int(random.integers(1, 100)))
        cut = frames[trial][int(random.integers(1, 80)) :]
        worst = max(worst, 3 - len(Decoder().feed(noise + cut + b"".join(frames[:3]))))
    advance()
    note = f"{found} of {FRAMES} frames in {len(stream)} bytes, about half of them noise, {CHUNK} at a time"
    return [
        Row("frames_per_s_fuzz", "bytes decoded per second", len(stream) / seconds, "B/s", note=note),
        Row("resync_frames", f"frames lost after noise, most of {FRAMES} bursts", float(worst), "", 1, "<="),
    ]
