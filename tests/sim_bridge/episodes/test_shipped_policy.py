"""The policy that ships: whole, small, repeatable, and the default where it was trained."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_records import records

from robot_runtime.cli.main import run_command
from robot_runtime.cli_options.options import default_agent
from robot_runtime.errors import PolicyMismatch
from robot_runtime.policies import load_policy
from robot_runtime.policies.package.policy import PackagePolicy
from robot_runtime.policies.shipped import FOLDER
from robot_runtime.scoring.summary import score_log
from robot_runtime.tasks.task import load_task

TASK = load_task("pointnav_gps_compass")


@pytest.fixture(scope="module")
def learned() -> PackagePolicy:
    policy = load_policy("pointnav-depth")
    assert isinstance(policy, PackagePolicy)
    return policy


def test_it_repeats_its_golden_rollout_and_its_proof_says_the_same_actions(learned: PackagePolicy) -> None:
    agreement, proof = learned.package.agreement, learned.manifest.proof
    assert agreement.same_actions == agreement.steps == learned.manifest.golden.steps
    assert proof.same_actions == proof.steps
    assert proof.max_logit_difference <= 1e-4


def test_it_is_small() -> None:
    assert sum(file.stat().st_size for file in (FOLDER / "pointnav_depth").iterdir()) <= 10e6


def test_it_tells_nothing_of_the_computer_that_made_it() -> None:
    files = [path for path in FOLDER.glob("*/*") if path.is_file()]
    assert {path.name for path in files} >= {"model.onnx", "golden.npz", "policy.yaml"}
    assert all(b"stack_trace" not in path.read_bytes() for path in files)


def test_it_is_the_default_where_it_was_trained() -> None:
    assert [default_agent(task) for task in (TASK.name, "pointnav_habitat2019")] == ["pointnav-depth", "classical"]


def test_it_refuses_a_camera_that_it_does_not_know(learned: PackagePolicy) -> None:
    with pytest.raises(PolicyMismatch, match="pointnav_habitat2020"):
        learned.check(load_task("pointnav_habitat2020"))


@pytest.mark.slow
def test_the_same_run_twice_and_every_action_again_from_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without draws: argmax. What is drawn repeats, too (``test_policy_runs``)."""
    argmax = ["--agent-arg", "selection=argmax"]
    run = ["run", "--robot", "sim-noisy", *argmax, "--count", "1", "--seed", "26"]  # a short episode
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        assert run_command([*run, "--out", str(folder)]) == 0
    assert "pointnav-depth" in capsys.readouterr().out
    first, second = map(records, folders)
    assert first == second
    (log,) = folders[0].glob("*.mcap")
    assert score_log(log).metrics["success"] is True
    assert run_command(["policy", "diff", "pointnav-depth", str(log), *argmax]) == 0
    assert "steps: 100 %" in capsys.readouterr().out


def test_the_package_is_installed_with_the_runtime() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert '"policies/shipped/*/*"' in text
