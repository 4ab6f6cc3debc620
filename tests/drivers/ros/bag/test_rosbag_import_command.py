"""The command ``robot-runtime logs import`` with bags of foreign drives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bag_drive
import pytest
from bag_drive import FORWARD, REST, START_NS

from robot_runtime.cli.main import run_command
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.recording.reader import LogReader

SHORT = [REST, FORWARD, REST]


def test_the_command_finds_the_family_and_leaves_no_half_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short, out = bag_drive.record(tmp_path / "short.bag", SHORT), tmp_path / "logs"
    assert run_command(["logs", "import", "--rosbag", str(short), "--out", str(out)]) == 0
    [log] = out.glob("*.mcap")
    with LogReader(log) as reader:
        options = reader.header.robot_config["options"]
    assert options["referee"] == options["localizer"] == {"source": "tf"}, "not the simulator's"
    assert options["camera"]["mount"] == "pyrobot-kobuki"
    log.unlink()
    arguments = ["logs", "import", "--rosbag", str(short), "--out", str(out), "--poses", "odometry"]
    assert run_command([*arguments, "--every-m", "0.1"]) == 0
    assert len(list(out.glob("*.mcap"))) == 1
    assert run_command([*arguments, "--robot", "fake"]) == 2
    assert "drivers.fake.driver.make_robot" in capsys.readouterr().err


def test_a_bag_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = bag_drive.record(
        tmp_path / "a.bag", [REST], change=lambda topic, m, at_ns: (m, at_ns) if topic == "/tf" else None
    )
    assert run_command(["logs", "import", "--rosbag", str(path), "--out", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert "a.bag" in message
    assert "/tf" in message


def test_an_import_that_fails_midway_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def blind(topic: str, message: Any, at_ns: int) -> tuple[Any, int]:
        if topic.endswith("color/image_raw") and at_ns > START_NS + NS_PER_S:
            message.encoding = "yuv422"
        return message, at_ns

    path = bag_drive.record(tmp_path / "a.bag", SHORT, change=blind)
    out = tmp_path / "logs"
    assert run_command(["logs", "import", "--rosbag", str(path), "--out", str(out), "--poses", "odometry"]) == 7
    assert "yuv422" in capsys.readouterr().err
    assert not list(out.glob("*"))
