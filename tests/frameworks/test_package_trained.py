"""Policies of Stable-Baselines3 and LeRobot become packages, with their framework as the proof."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from raising import raises_naming

from robot_runtime.actions.timed import TimedAction
from robot_runtime.cli.main import run_command
from robot_runtime.errors import PolicyError
from robot_runtime.policies import load_policy
from robot_runtime.policies.package.observations import patchwork
from robot_runtime.policies.package.policy import load_package

FOLDER = Path(__file__).parent
SEEN = spaces.Dict(
    {
        "rgb": spaces.Box(0, 255, (40, 40, 3), np.uint8),
        "depth": spaces.Box(0.0, 1.0, (16, 16, 1), np.float32),
        "pointgoal_with_gps_compass": spaces.Box(-10.0, 10.0, (2,), np.float32),
    }
)


class Empty(gymnasium.Env[Any, Any]):
    """Spaces without a world."""

    def __init__(self, observation: spaces.Space[Any], action: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = observation, action

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.observation_space.sample(), {}


def package(path: Path, *options: str, code: int = 0, python: str = sys.executable) -> Path:
    command = ["policy", "package", str(path), "--framework-python", python, *options]
    assert run_command([*command, "--out", str(path.parent / "package")]) == code
    return path.parent / "package"


def runs_without(framework: str, path: Path) -> None:
    """The package's network is ONNX, and its proof is against the framework."""
    loaded = load_package(path)
    assert loaded.manifest.model.format == "onnx"
    assert loaded.manifest.proof.against.startswith(framework)
    assert loaded.manifest.proof.same_actions == loaded.manifest.proof.steps


def test_ppo_of_several_sensors(tmp_path: Path) -> None:
    import stable_baselines3

    torch.manual_seed(0)
    model = stable_baselines3.PPO("MultiInputPolicy", Empty(SEEN, spaces.Discrete(4)), n_steps=8, batch_size=8)
    model.save(tmp_path / "ppo.zip")
    with raises_naming(PolicyError, "stable-baselines3", "policy package", "--framework-python"):
        load_policy(str(tmp_path / "ppo.zip"))
    path = package(tmp_path / "ppo.zip")
    runs_without("stable-baselines3", path)
    policy = load_policy(str(path))
    assert set(policy.needs) == set(SEEN)
    assert policy.task is not None
    policy.reset(policy.task, 0)
    policy.act(patchwork(policy.manifest, 0))  # type: ignore[attr-defined]


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["DQN", "A2C", "SAC"])
def test_algorithms_of_one_sensor_ask_what_it_is(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import stable_baselines3

    torch.manual_seed(0)
    act = spaces.Discrete(4) if kind == "DQN" else spaces.Box(np.float32([0, -1]), np.float32([0.5, 1]))
    seen = spaces.Box(-10.0, 10.0, (2,), np.float32)
    getattr(stable_baselines3, kind)("MlpPolicy", Empty(seen, act)).save(tmp_path / "net.zip")
    package(tmp_path / "net.zip", code=9)
    assert "--set observation.role=SENSOR" in capsys.readouterr().err
    timing = () if kind == "DQN" else ("--set", "timing.period_s=0.25")
    path = package(tmp_path / "net.zip", "--set", "observation.role=pointgoal_with_gps_compass", *timing)
    runs_without("stable-baselines3", path)
    policy = load_policy(str(path))
    assert policy.task is not None
    policy.reset(policy.task, 0)
    decision = policy.act(patchwork(policy.manifest, 0))  # type: ignore[attr-defined]
    if isinstance(decision, TimedAction):
        assert 0 <= decision.points[0].linear_m_s <= 0.5


@pytest.mark.exhaustive
def test_actions_of_other_spaces_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import stable_baselines3

    seen = spaces.Box(-10.0, 10.0, (2,), np.float32)
    stable_baselines3.A2C("MlpPolicy", Empty(seen, spaces.MultiDiscrete([2, 2]))).save(tmp_path / "net.zip")
    package(tmp_path / "net.zip", code=9)
    assert "MultiDiscrete([2 2])" in capsys.readouterr().err.replace("\n", " ")


@pytest.fixture
def lerobot_python(tmp_path: Path) -> str:
    """An interpreter that has LeRobot, which imports a torchvision whose compiled part is missing here."""
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -W ignore {FOLDER / "lerobot_python.py"} "$@"\n')
    program.chmod(0o755)
    return str(program)


@pytest.mark.exhaustive
def test_a_folder_of_lerobots_act(lerobot_python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "act"
    command = [lerobot_python, "-I", str(FOLDER / "act_policy.py"), str(folder)]
    subprocess.run(command, check=True, timeout=240, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    with raises_naming(PolicyError, folder, "lerobot", "--framework-python"):
        load_policy(str(folder))
    package(folder, code=9, python=lerobot_python)
    asked = capsys.readouterr().err.replace("\n", " ")
    for said in ("--set observation_state.role=SENSOR", "--set action.role="):
        assert said in asked
    said = ("observation_state.role=gps", "action.role=velocity", "timing.period_s=0.25")
    task = ("--task", "pointnav_trajectory")
    path = package(folder, *task, *(word for one in said for word in ("--set", one)), python=lerobot_python)
    runs_without("lerobot", path)
    policy = load_policy(str(path))
    assert (set(policy.needs), policy.manifest.carry_out) == ({"rgb", "gps"}, 4)  # type: ignore[attr-defined]
    assert policy.task is not None
    policy.reset(policy.task, 0)
    decisions = [policy.act(patchwork(policy.manifest, k)) for k in range(5)]  # type: ignore[attr-defined]
    assert all(isinstance(decision, TimedAction) for decision in decisions)
    assert len(set(decisions)) == 5
