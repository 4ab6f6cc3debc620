"""The command `teleop`, in a terminal of its own."""

from __future__ import annotations

import os
import pty
from pathlib import Path

import pytest
from terminals import LIMIT_S, read_until, start

from robot_runtime.cli.main import run_command
from robot_runtime.recording.reader import LogReader


@pytest.mark.slow  # a program, and a robot in real time
def test_one_press_is_one_action_in_a_terminal(tmp_path: Path, in_real_time: None) -> None:
    master, terminal = pty.openpty()
    arguments = ["teleop", "--robot", "fake", "--count", "1", "--by", "p07", "--view", "camera"]
    with start([*arguments, "--out", str(tmp_path / "logs")], terminal) as process:
        os.close(terminal)
        for step, key in enumerate((b"w", b"\x1b[1;2D", b"f")):
            for _ in range(2):  # the second time it is shown, the robot waits
                assert b"step %d" % step in (shown := read_until(master, b"step %d" % step)), shown
            os.write(master, key)
        read_until(master, b"logs:")
        assert process.wait(LIMIT_S) == 0
    os.close(master)
    (log,) = (tmp_path / "logs").glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.header.agent == "human"
        steps = list(reader.steps(images=False))
        assert reader.end is not None
        assert reader.end.reason.value == "stop"
    assert [str(step.action) for step in steps[1:]] == ["move_forward", "turn_left", "stop"]
    said = steps[1].policy_info["operator"]
    assert (said["by"], said["device"], said["view"]) == ("p07", "keyboard", "camera")


def test_without_anything_to_drive_with_nothing_is_started(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["teleop", "--robot", "fake"]) == 2
    assert "--console" in capsys.readouterr().err
