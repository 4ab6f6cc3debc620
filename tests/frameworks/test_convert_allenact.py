"""A checkpoint of AllenAct's RoboTHOR ObjectNav policy becomes a package that does what AllenAct does."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from robot_runtime.cli.main import run_command
from robot_runtime.policies.package.files import read_manifest

CHECKPOINT = "exp__stage_00__steps_000003000000.pt"


def test_an_rgbd_checkpoint_becomes_a_proven_package(tmp_path: Path) -> None:
    script = Path(__file__).with_name("allenact_checkpoint.py")
    subprocess.run([sys.executable, str(script), str(tmp_path), "rgb+depth"], check=True, capture_output=True)
    backbone, out = tmp_path / "resnet18.pth", tmp_path / "package"
    digest = hashlib.sha256(backbone.read_bytes()).hexdigest()
    arguments = ["--licence", "MIT", "--task", "objectnav_robothor2021", "--framework-python", sys.executable]
    arguments += ["--backbone", str(backbone), "--backbone-sha256", digest, "--backbone-licence", "BSD-3-Clause"]
    assert run_command(["policy", "export", str(tmp_path / CHECKPOINT), "--out", str(out), *arguments]) == 0
    manifest = read_manifest(out)
    assert manifest.proof.against.startswith("AllenAct 0.5.4")
    assert (manifest.proof.steps, manifest.proof.same_actions) == (50, 50)
    assert manifest.proof.max_logit_difference <= 1e-4
    assert manifest.native_actions == ("MoveAhead", "RotateLeft", "RotateRight", "End", "LookUp", "LookDown")
    assert manifest.stop_id == 3
    assert manifest.goal.vocabulary[0] == "AlarmClock"
    assert (manifest.task.camera.width, manifest.task.camera.height) == (400, 300)
    assert [source.sha256 for source in manifest.sources][1] == digest
