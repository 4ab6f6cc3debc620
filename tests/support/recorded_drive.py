"""A log of four actions, the last of which is stop."""

from __future__ import annotations

from pathlib import Path

import synthetic
from synthetic import FORWARD, LEFT, STOP, UP

from robot_runtime.recording.writer import Recorder


def recorded_drive(folder: Path) -> Path:
    """The log, in a folder."""
    header, recorder = synthetic.header(), Recorder(folder)
    synthetic.play(recorder, header, synthetic.drive(header, [FORWARD, LEFT, UP, STOP]))
    assert recorder.path is not None
    return recorder.path
