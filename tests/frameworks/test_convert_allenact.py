"""A checkpoint of AllenAct's RoboTHOR ObjectNav policy becomes a package that does what AllenAct does."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from robot_runtime.actions.discrete import Action
from robot_runtime.cli.main import run_command
from robot_runtime.policies.package.files import read_manifest

CHECKPOINT = "exp__stage_00__steps_000003000000.pt"


def make_checkpoint(folder: Path, images: str, backbone: str) -> tuple[Path, str]:
    """Writes one of random weights; returns its backbone's file and hash."""
    script = Path(__file__).with_name("allenact_checkpoint.py")
    subprocess.run([sys.executable, str(script), str(folder), images, backbone], check=True, capture_output=True)
    file = folder / "backbone.pt"
    return file, hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("images", "backbone", "steps", "against"),
    [
        ("rgb+depth", "resnet18", 50, "AllenAct 0.5.4 (ResnetTensorNavActorCritic), torch"),
        ("rgb", "clip_rn50", 12, "AllenAct 0.5.4 (ResnetTensorNavActorCritic on CLIP's RN50), torch"),
    ],
)
def test_a_checkpoint_becomes_a_proven_package(
    images: str, backbone: str, steps: int, against: str, tmp_path: Path
) -> None:
    file, digest = make_checkpoint(tmp_path, images, backbone)
    out = tmp_path / "package"
    arguments = ["--license", "MIT", "--task", "objectnav_robothor2021", "--framework-python", sys.executable]
    arguments += ["--steps", str(steps)]
    arguments += ["--backbone", str(file), "--backbone-sha256", digest, "--backbone-license", "BSD-3-Clause"]
    assert run_command(["policy", "export", str(tmp_path / CHECKPOINT), "--out", str(out), *arguments]) == 0
    manifest = read_manifest(out)
    assert manifest.proof.against.startswith(against)
    assert (manifest.proof.steps, manifest.proof.same_actions) == (steps, steps)
    assert manifest.proof.max_logit_difference <= 1e-4
    assert manifest.task.actions.index(Action.STOP) == 3
    assert manifest.task.categories["AlarmClock"].id == 0
    assert manifest.needs == (*images.split("+"), "objectgoal")
    assert (manifest.task.camera.width, manifest.task.camera.height) == (400, 300)
    assert [source.sha256 for source in manifest.sources][1] == digest
