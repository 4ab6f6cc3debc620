"""Agents get the observations that they declare, and no more; CUDA that is not there is named with its remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from box_world import make_task
from raising import raises_naming

from robot_runtime.errors import PolicyError
from robot_runtime.policies import load_policy

AGENTS = """
from types import SimpleNamespace

class Model:
    observation_space = SimpleNamespace(spaces={"gps": None, "compass": None})

    def predict(self, observation, state=None):
        return int(list(observation) != ["gps", "compass"]), None

class Declares:
    needs = ("compass",)

    def reset(self): pass

    def act(self, observations):
        return int(list(observations) != ["compass"])

class Cuda:
    def __init__(self, map_location=None):
        if map_location is None:
            raise RuntimeError("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
                               "False. Please use torch.load with map_location=torch.device('cpu')")

    def reset(self): pass

    def act(self, observations): return 0
"""

OBSERVATION: dict[str, np.ndarray[Any, Any]] = {
    "rgb": np.zeros((2, 2, 3), np.uint8),
    "gps": np.zeros(2, np.float32),
    "compass": np.zeros(1, np.float32),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "declaring.py"
    path.write_text(AGENTS)
    return path


@pytest.mark.parametrize("spec", ["gym:{}:Model", "habitat:{}:Declares", "{}:Declares"])
def test_an_agent_gets_what_it_declares_and_no_more(file: Path, spec: str) -> None:
    policy = load_policy(spec.format(file))
    policy.reset(make_task(), 0)
    assert policy.act(OBSERVATION).value == "stop"
    assert set(policy.needs) <= {"gps", "compass"}
    policy.close()


@pytest.mark.parametrize("spec", ["habitat:{}:Cuda", "{}:Cuda"])
def test_a_checkpoint_of_cuda_names_map_location_and_the_remedy_works(file: Path, spec: str) -> None:
    with raises_naming(PolicyError, "CUDA", "map_location='cpu'"):
        load_policy(spec.format(file))
    load_policy(spec.format(file), map_location="cpu").close()
