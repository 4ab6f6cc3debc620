"""Runs with a calibration of another robot or one that is too old: refused before anything moves, in plain words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from robot_runtime.cli.main import run_command
from robot_runtime.errors import CalibrationError
from robot_runtime.hal import Velocity
from robot_runtime.imaging.latency import KIND as LATENCY
from robot_runtime.robots.calibration_file import Stamp, write_calibration
from robot_runtime.robots.camera_mount import EXTRINSICS
from sim_bridge.robot.base import SimBase

LONG_AGO = "2020-01-01T00:00:00+00:00"
MOUNT = {"pan_joint_m": [0.0, 0.0, 0.88]}
MODES = ("color=640x360", "depth=424x240")


def write(path: Path, kind: str, robot: str, created: str | None, content: dict[str, object]) -> Path:
    stamp = Stamp.now(kind, robot, "", 180, "by hand", {}, {})
    write_calibration(path, stamp if created is None else replace(stamp, created=created), content)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "kind", "content"),
    [("imaging.mount", EXTRINSICS, MOUNT), ("imaging.latency", LATENCY, {"latency_s": 0.03})],
)
@pytest.mark.parametrize(
    ("robot", "created", "said"), [("lab-2", None, "was made on robot 'lab-2'"), ("sim", LONG_AGO, "days old")]
)
def test_a_run_does_not_begin(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    kind: str,
    content: dict[str, object],
    robot: str,
    created: str | None,
    said: str,
) -> None:
    commanded: list[Velocity] = []
    real = SimBase.command

    def command(base: SimBase, velocity: Velocity) -> Velocity:
        commanded.append(velocity)
        return real(base, velocity)

    monkeypatch.setattr(SimBase, "command", command)
    file = write(tmp_path / "calibration.yaml", kind, robot, created, content)
    camera = ["--camera", "realsense-partial"]
    for change in (*MODES, f"{option}={file}"):
        camera += ["--camera-arg", change]
    out = tmp_path / "logs"
    code = run_command(["run", *camera, "--agent", "oracle", "--count", "1", "--out", str(out)])
    message = " ".join(capfd.readouterr().err.split())
    assert code == CalibrationError.exit_code
    assert str(file) in message
    assert said in message
    assert f"robot-runtime calibrate {kind} --robot sim" in message
    assert all(velocity == Velocity() for velocity in commanded)
    assert not list(out.glob("*.mcap"))
