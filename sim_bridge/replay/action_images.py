"""Comparison of recorded images with those that the simulator renders where replayed actions lead."""

from __future__ import annotations

import numpy as np

from robot_runtime.errors import RecordingError
from robot_runtime.hal import RgbdFrame
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import StepRecord
from sim_bridge.replay.results import ImageDifference, Note


class ImageComparison:
    """Comparison of the frames of a log with the simulator's.

    Args:
        log: the recording.
        notes: gets one note, with the reason, if frames cannot be compared.
    """

    def __init__(self, log: LogReader, notes: list[Note]) -> None:
        self._log, self._notes = log, notes
        self._noted = False

    def compare(self, record: StepRecord, simulated: RgbdFrame | None) -> ImageDifference | None:
        """The difference at a step; None if an image is missing or the sizes differ."""
        try:
            recorded = self._log.frame(record)
        except RecordingError as error:
            self._note(error.message)
            return None
        if simulated is None or recorded.depth_m.shape != simulated.depth_m.shape:
            size = "none" if simulated is None else _size(simulated)
            self._note(f"step {record.index}: {_size(recorded)} in the log, {size} in the simulator")
            return None
        both = (recorded.depth_m > 0) & (simulated.depth_m > 0)
        depth_same = np.array_equal(recorded.depth_m, simulated.depth_m)
        color_same = np.array_equal(recorded.rgb, simulated.rgb)
        error_mm = None
        if both.any():
            depth_error_m = np.abs(recorded.depth_m - simulated.depth_m)
            error_mm = 0.0 if depth_same else 1000 * float(depth_error_m.mean(where=both, dtype=np.float64))
        rgb_error = 0.0 if color_same else float(np.abs(recorded.rgb.astype(np.int16) - simulated.rgb).mean())
        return ImageDifference(depth_same, color_same, error_mm, rgb_error)

    def _note(self, reason: str) -> None:
        if not self._noted:
            self._notes.append(Note("action", f"not all images are compared: {reason}"))
            self._noted = True


def _size(frame: RgbdFrame) -> str:
    return "x".join(map(str, reversed(frame.depth_m.shape)))
