"""The layout of LeRobot's format; LeRobot's own loader reads it in ``tests/frameworks``."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pyarrow import parquet
from recorded_drive import recorded_drive

from robot_runtime.cli.main import run_command
from robot_runtime.export.lerobot import ACTIONS
from robot_runtime.recording.reader import LogReader


def test_a_frame_has_an_observation_and_the_action_that_followed(tmp_path: Path) -> None:
    log = recorded_drive(tmp_path / "logs")
    out = tmp_path / "dataset"
    assert run_command(["export", "lerobot", str(log), "--out", str(out)]) == 0
    info = json.loads((out / "meta/info.json").read_text(encoding="utf-8"))
    assert (info["codebase_version"], info["total_episodes"], info["total_frames"]) == ("v3.0", 1, 4)
    rows = parquet.read_table(out / "data/chunk-000/file-000.parquet").to_pylist()
    assert [ACTIONS[row["action"]] for row in rows] == ["move_forward", "turn_left", "look_up", "stop"]
    assert [row["next.done"] for row in rows] == [False, False, False, True]
    with LogReader(log) as reader:
        for row, record in zip(rows, reader.steps(), strict=False):
            image = Image.open(io.BytesIO(row["observation.images.color"]["bytes"]))
            np.testing.assert_array_equal(np.asarray(image), record.frame.rgb)
            np.testing.assert_array_equal(np.array(row["observation.depth_m"], np.float32), record.frame.depth_m)
            assert row["observation.state"][0] == pytest.approx(record.pose.pose.x_m)
    statistics = json.loads((out / "meta/stats.json").read_text(encoding="utf-8"))
    assert statistics["action"]["max"] == [max(row["action"] for row in rows)]
    assert np.shape(statistics["observation.images.color"]["mean"]) == (3, 1, 1)


def test_an_existing_folder_is_not_written_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = recorded_drive(tmp_path / "logs")
    assert run_command(["export", "lerobot", str(log), "--out", str(tmp_path)]) == 2
    assert "exists" in capsys.readouterr().err


def test_a_data_set_that_cannot_be_completed_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = recorded_drive(tmp_path / "logs"), tmp_path / "dataset"
    (torn := tmp_path / "torn.mcap").write_bytes(log.read_bytes()[:400])
    assert run_command(["export", "lerobot", str(log), str(torn), "--out", str(out)]) != 0
    assert "torn.mcap" in capsys.readouterr().err
    assert not out.exists()
