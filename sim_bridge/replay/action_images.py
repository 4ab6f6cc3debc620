"""What was seen where recorded actions led, beside what the twin sees where they lead there."""

from __future__ import annotations

import numpy as np

from robot_runtime.errors import RecordingError
from robot_runtime.hal import RgbdFrame
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import StepRecord
from sim_bridge.replay.results import ImageDifference, Note


class ImagePairs:
    """Compares frames of a log with the twin's.

    Args:
        notes: where it is said, once, that some are not compared, and why.
    """

    def __init__(self, log: LogReader, notes: list[Note]) -> None:
        self._log, self._notes = log, notes
        self._said = False

    def compare(self, record: StepRecord, made: RgbdFrame | None) -> ImageDifference | None:
        """None if the log or the twin has no image of that step, or theirs are of another size; noted once."""
        try:
            recorded = self._log.frame(record)
        except RecordingError as error:
            self._cannot(error.message)
            return None
        if made is None or recorded.depth_m.shape != made.depth_m.shape:
            theirs = "none" if made is None else _size(made)
            self._cannot(f"step {record.index}: {_size(recorded)} in the log, {theirs} in the twin")
            return None
        both = (recorded.depth_m > 0) & (made.depth_m > 0)
        depth_same = np.array_equal(recorded.depth_m, made.depth_m)
        color_same = np.array_equal(recorded.rgb, made.rgb)
        error_mm = None
        if both.any():
            error_m = 0.0 if depth_same else np.abs(recorded.depth_m - made.depth_m).mean(where=both, dtype=np.float64)
            error_mm = 1000 * float(error_m)
        apart = 0.0 if color_same else np.abs(recorded.rgb.astype(np.int16) - made.rgb).mean()
        return ImageDifference(depth_same, color_same, error_mm, float(apart))

    def _cannot(self, why: str) -> None:
        if not self._said:
            self._notes.append(Note("action", f"not all images are compared: {why}"))
            self._said = True


def _size(frame: RgbdFrame) -> str:
    return "x".join(map(str, reversed(frame.depth_m.shape)))
