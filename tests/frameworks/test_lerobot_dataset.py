"""LeRobot's own loader reads an exported data set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from recorded_drive import recorded_drive

from robot_runtime.cli.main import run_command
from robot_runtime.export.lerobot import ACTIONS
from robot_runtime.recording.reader import LogReader

READER = Path(__file__).with_name("lerobot_reader.py")


def test_lerobot_reads_images_depth_actions_and_task(tmp_path: Path) -> None:
    log = recorded_drive(tmp_path / "logs")
    recorded_drive(tmp_path / "logs")
    out, frames = tmp_path / "dataset", tmp_path / "frames.npz"
    assert run_command(["export", "lerobot", str(tmp_path / "logs"), "--out", str(out)]) == 0
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(READER), str(out), str(frames)],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    with LogReader(log) as reader:
        records = list(reader.steps())
    with np.load(frames) as found:
        assert found["episode_index"].tolist() == [0] * 4 + [1] * 4
        assert found["frame_index"].tolist() == [0, 1, 2, 3] * 2
        for number in range(8):
            record, following = records[number % 4], records[number % 4 + 1]
            assert following.action is not None
            assert ACTIONS[int(found["action"][number])] == following.action.value
            color = (found["observation.images.color"][number].transpose(1, 2, 0) * 255).round().astype(np.uint8)
            np.testing.assert_array_equal(color, record.frame.rgb)
            np.testing.assert_array_equal(found["observation.depth_m"][number], record.frame.depth_m)
    assert said == {"episodes": 2, "tasks": [records_task(log)] * 8, "batch": 8}


def records_task(log: Path) -> str:
    with LogReader(log) as reader:
        return " ".join(filter(None, (reader.header.task.name, reader.header.episode.category)))
