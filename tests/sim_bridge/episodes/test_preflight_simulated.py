"""Preflight of a simulated robot among furniture, and of one whose camera sits and looks wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from robot_runtime.cli.main import run_command
from robot_runtime.errors import PolicyMismatch


@pytest.mark.slow
def test_the_floor_has_the_last_word(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["preflight", "--policy", "pointnav-depth"]) == 0
    said = capfd.readouterr().out
    for line in (
        "camera height, as the floor says",
        "camera tilt, as the floor says",
        "camera roll, as the floor says",
    ):
        (found,) = (row for row in said.splitlines() if row.startswith(line))
        assert found.split()[-1] == "ok"


def test_a_camera_that_is_low_and_looks_down_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    mount, robot = tmp_path / "mount.yaml", tmp_path / "low.yaml"
    mount.write_text(yaml.safe_dump({"pan_joint_m": [0.0, 0.0, 0.61], "camera": {"rpy_deg": [0.0, 18.0, 0.0]}}))
    document = {
        "name": "low",
        "driver": "sim_bridge.robot.driver.make_robot",
        "options": {"camera": {"mount": str(mount)}},
    }
    robot.write_text(yaml.safe_dump(document))
    assert run_command(["preflight", "--policy", "pointnav-depth", "--robot", str(robot)]) == PolicyMismatch.exit_code
    out, err = capfd.readouterr()
    message = " ".join(err.split())
    assert "camera height, as the floor says: trained with 0.88 m, found 0.61 m" in message
    assert "camera tilt, as the floor says: trained with +0.0°, found -18.0°" in message
    assert "20° cost a policy 74 points of success" in " ".join(out.split())
    assert "calibrate extrinsics" in message
