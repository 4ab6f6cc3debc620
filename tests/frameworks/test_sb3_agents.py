"""Models of Stable-Baselines3 as ``gym:`` agents: what they get is what their ``observation_space`` says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robot_runtime.errors import PolicyMismatch
from robot_runtime.policies import load_policy
from robot_runtime.policies.stepping import check_policy
from robot_runtime.tasks.task import load_task

MODELS = """
import gymnasium, numpy as np
from gymnasium import spaces
from stable_baselines3 import PPO

class Env(gymnasium.Env):
    def __init__(self, space):
        self.observation_space, self.action_space = space, spaces.Discrete(4)
    def reset(self, seed=None, options=None):
        return self.observation_space.sample(), {}
    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}

RGB, GOAL = spaces.Box(0, 255, (48, 64, 3), np.uint8), spaces.Box(-9, 9, (2,), np.float32)

def several():
    return PPO("MultiInputPolicy", Env(spaces.Dict(rgb=RGB, pointgoal_with_gps_compass=GOAL)), device="cpu")

def image():
    return PPO("CnnPolicy", Env(RGB), device="cpu")
"""


@pytest.mark.parametrize(
    ("model", "needs"),
    [("several", {"rgb", "pointgoal_with_gps_compass"}), pytest.param("image", set(), marks=pytest.mark.exhaustive)],
)
def test_a_model_decides_from_the_sensors_of_its_space(tmp_path: Path, model: str, needs: set[str]) -> None:
    (tmp_path / "models.py").write_text(MODELS)
    task = load_task("pointnav_gps_compass")
    small = replace(task, camera=replace(task.camera, width=64, height=48))
    policy = load_policy(f"gym:{tmp_path / 'models.py'}:{model}")
    assert set(policy.needs) == needs
    with pytest.raises(PolicyMismatch):
        check_policy(policy, task)
    check_policy(policy, small)
    policy.reset(small, 0)
    seen = {"rgb": np.zeros((48, 64, 3), np.uint8), "depth": np.zeros((48, 64, 1), np.float32)}
    goals = dict.fromkeys(("gps", "pointgoal", "pointgoal_with_gps_compass"), np.zeros(2, np.float32))
    assert policy.act(seen | goals) in small.actions
    policy.close()
