"""One motion for each key, in the robot's limits."""

from __future__ import annotations

import os
import pty
import re
from pathlib import Path

import pytest
from terminals import LIMIT_S, read_until, start

from robot_runtime.actions.discrete import Displacement, Magnitudes
from robot_runtime.cli.jog import displacement_of
from robot_runtime.cli.main import run_command
from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.errors import ConfigError, DeviceFault

MAGNITUDES = Magnitudes(0.1, 15.0, 10.0)


def test_each_key_is_one_motion(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["jog", "--robot", "fake", "--keys", "wsadzcxfw"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == list("wsadzc"), "x has no motion, and f ends"
    measured = [float(re.findall(r"[+-][0-9.]+", line)[0]) for line in lines]
    assert measured == pytest.approx([0.1, -0.1, 15.0, -15.0, 10.0, -10.0], abs=0.2)
    assert all("reached" in line for line in lines)


def test_neither_camera_nor_localizer_is_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    robot = tmp_path / "robot.yaml"
    robot.write_text(
        "name: fake\ndriver: drivers.fake.driver.make_robot\ncamera: {driver: no_such_package.make_camera}\n"
        "localizer: {driver: no_such_package.make_localizer}\nreferee: {driver: no_such_package.make_localizer}\n",
        encoding="utf-8",
    )
    assert run_command(["jog", "--robot", str(robot), "--keys", "w"]) == 0
    assert "reached" in capsys.readouterr().out


def test_motions_with_faults_do_not_end_with_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    robot = tmp_path / "robot.yaml"
    robot.write_text(
        "name: fake\ndriver: drivers.fake.driver.make_robot\n"
        "options: {faults: [{kind: silent_base, from_s: 2.2, to_s: 8.0}]}\n",
        encoding="utf-8",
    )
    assert run_command(["jog", "--robot", str(robot), "--keys", "www"]) == DeviceFault.exit_code
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3, "the keys after a fault are carried out"
    assert any("fault" in line and "+0.000" not in line for line in lines)


PRESETS = sorted((Path(__file__).resolve().parents[3] / "launch" / "robots").glob("*.yaml"))
FREE_OF_ROS = [path.stem for path in PRESETS if "driver: drivers.ros" not in path.read_text(encoding="utf-8")]
"""The others are in tests/ros and tests/ros2."""


@pytest.mark.slow
@pytest.mark.parametrize("robot", FREE_OF_ROS)
def test_a_session_without_faults_prints_no_warning(
    robot: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["jog", "--robot", robot, "--keys", "wadszcw"]) == 0
    assert not [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    assert capsys.readouterr().err == ""


def test_arrows_move_and_unknown_keys_do_not() -> None:
    assert displacement_of("up", MAGNITUDES) == Displacement(forward_m=0.1)
    assert displacement_of("down", MAGNITUDES) == Displacement(forward_m=-0.1)
    assert displacement_of("q", MAGNITUDES) is None


def test_without_a_keyboard_keys_must_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["jog", "--robot", "fake"]) == ConfigError.exit_code
    assert "--keys" in capsys.readouterr().err


@pytest.mark.slow
def test_a_held_key_moves_no_farther_than_the_motion_that_it_began() -> None:
    terminal, far = pty.openpty()
    process = start(["jog", "--robot", "fake", "--step-m", "0.05"], far)
    os.close(far)
    read_until(terminal, b"one motion for each key")
    os.write(terminal, b"wwww")
    output = read_until(terminal, b"reached")
    clock = SystemClock()

    def ended() -> bool | None:
        os.write(terminal, b"f")  # once more while the motion before it is being printed
        return True if process.poll() is not None else None

    assert wait_for(clock, ended, LIMIT_S, 0.1)
    output += read_until(terminal, b"never")
    assert process.wait(LIMIT_S) == 0
    assert output.count(b"reached") == 1
    os.close(terminal)
