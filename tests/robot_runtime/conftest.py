"""Recorded synthetic episodes for every test that reads logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import synthetic

from robot_runtime.actions.discrete import Action
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeEnd, EpisodeHeader

Record = Callable[..., Path]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """``record(header, actions, end=None, tilt_rad=0.0)`` drives and records an episode, and gives its file."""
    recorder = Recorder(tmp_path / "logs")

    def drive_and_record(
        header: EpisodeHeader, actions: Sequence[Action], end: EpisodeEnd | None = None, tilt_rad: float = 0.0
    ) -> Path:
        synthetic.play(recorder, header, synthetic.drive(header, actions, tilt_rad), end)
        assert recorder.path is not None
        return recorder.path

    return drive_and_record
