"""Videos have a frame per step, of the log's images."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from recorded_drive import recorded_drive

from robot_runtime.cli.main import run_command
from robot_runtime.export.video import HEIGHT_PX, frames
from robot_runtime.recording.reader import LogReader


def test_a_video_has_a_frame_per_step_that_shows_its_image(tmp_path: Path) -> None:
    log = recorded_drive(tmp_path / "logs")
    out = tmp_path / "drive.mp4"
    assert run_command(["export", "video", str(log), "--out", str(out), "--fps", "2"]) == 0
    with LogReader(log) as reader:
        expected = list(frames(reader))
        colors = [record.frame.rgb for record in reader.steps()]
    with av.open(str(out)) as video:
        stream = video.streams.video[0]
        assert stream.codec_context.name == "h264"
        assert float(stream.average_rate or 0) == 2
        shown = [frame.to_ndarray(format="rgb24") for frame in video.decode(stream)]
    assert len(shown) == len(expected) == 5
    for found, drawn, color in zip(shown, expected, colors, strict=True):
        assert found.shape == drawn.shape
        assert np.abs(found.astype(int) - drawn).mean() < 6, "compression"
        width = drawn.shape[0] and round(color.shape[1] * HEIGHT_PX / color.shape[0])
        assert abs(float(drawn[:HEIGHT_PX, :width].mean()) - float(color.mean())) < 3


def test_each_log_of_a_folder_has_a_video_and_one_file_is_refused_for_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded_drive(tmp_path / "logs")
    recorded_drive(tmp_path / "logs")
    assert run_command(["export", "video", str(tmp_path / "logs"), "--out", str(tmp_path / "one.mp4")]) == 2
    assert "name a folder" in capsys.readouterr().err
    assert run_command(["export", "video", str(tmp_path / "logs"), "--out", str(tmp_path / "videos")]) == 0
    assert len(list((tmp_path / "videos").glob("*.mp4"))) == 2
