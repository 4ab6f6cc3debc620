"""Agents get the observations that they declare, and no more; CUDA that is not there is named with its remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from box_world import make_task
from raising import raises_naming

from robot_runtime.errors import PolicyError, PolicyMismatch
from robot_runtime.policies import load_policy
from robot_runtime.policies.stepping import check_policy
from robot_runtime.tasks.task import Task, load_task

AGENTS = """
from types import SimpleNamespace

class Model:
    observation_space = SimpleNamespace(spaces={"gps": None, "compass": None})

    def predict(self, observation, state=None):
        return int(list(observation) != ["gps", "compass"]), None

class Image(Model):
    observation_space = SimpleNamespace(shape=(3, 6, 8), dtype="uint8")

    def predict(self, observation, state=None):
        return int(observation.shape != (6, 8, 3)), None

class Words:
    def reset(self): pass

    def act(self, observations):
        told, asked = observations.get("instruction"), observations.get("question")
        right = told in (None, {"text": "Go.", "tokens": [7, 3, 0]}) and asked in (None, [0, 4], "Why?")
        return int(not (right and (told or asked) and observations.get("question_text", "Why?") == "Why?"))

def plain(observations):
    return int(observations.get("instruction", "Go.") != "Go." or observations.get("question", "Why?") != "Why?")

class Declares:
    needs = ("compass",)

    def reset(self): pass

    def act(self, observations):
        return int(list(observations) != ["compass"])

def declares(observations):
    return int(list(observations) != ["compass"])

declares.needs = ("compass",)

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


@pytest.mark.parametrize("spec", ["gym:{}:Model", "habitat:{}:Declares", "function:{}:declares", "{}:Declares"])
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


TOLD = {"instruction": np.array("Go."), "instruction_tokens": np.array([7, 3, 0])}
ASKED = {"question": np.array("Why?"), "question_tokens": np.array([0, 4, -1])}


@pytest.mark.parametrize(
    ("spec", "task", "seen"),
    [
        ("habitat:{}:Words", "vln_r2r_ce", TOLD),
        ("function:{}:plain", "eqa_embodied", ASKED),
        ("{}:Words", "vln_r2r_ce", TOLD),
        ("{}:Words", "eqa_embodied", ASKED),
        ("{}:Words", "eqa_embodied", {"question": ASKED["question"]}),
    ],
)
def test_agents_of_habitat_are_told_in_habitats_form(file: Path, spec: str, task: str, seen: dict[str, Any]) -> None:
    """habitat-lab ``tasks/vln/vln.py``: text and tokens; ``tasks/eqa/eqa.py``: tokens, here without padding."""
    policy = load_policy(spec.format(file))
    policy.reset(load_task(task), 0)
    assert policy.act(seen).value == "stop"
    policy.close()


def test_a_model_of_one_array_gets_the_sensor_of_its_form(file: Path) -> None:
    policy = load_policy(f"gym:{file}:Image")
    small = small_images(load_task("pointnav_gps_compass"), ("rgb", "depth", "gps"))
    with raises_naming(PolicyMismatch, "uint8 (3, 6, 8)", "0 sensors"):
        check_policy(policy, load_task("pointnav_gps_compass"))
    check_policy(policy, small)
    policy.reset(small, 0)
    seen = {"rgb": np.zeros((6, 8, 3), np.uint8), "depth": np.zeros((6, 8, 1), np.float32)}
    assert policy.act({**seen, "gps": np.zeros(2, np.float32)}).value == "stop"
    policy.close()


def small_images(task: Task, sensors: tuple[str, ...]) -> Task:
    return replace(task, sensors=sensors, camera=replace(task.camera, width=8, height=6))


def test_a_model_of_other_shapes_is_refused_before_the_robot_moves(tmp_path: Path) -> None:
    file = tmp_path / "shapes.py"
    file.write_text(SHAPES)
    policy, task = load_policy(f"gym:{file}:Model"), load_task("pointnav_gps_compass")
    with raises_naming(PolicyMismatch, "rgb as uint8 (3, 6, 8)", "uint8 (480, 640, 3)"):
        check_policy(policy, replace(task, sensors=("rgb", "gps")))
    check_policy(policy, small_images(task, ("rgb", "gps")))
    with raises_naming(PolicyMismatch, "takes gps as float32 (2,)", "(3,)"):
        check_policy(policy, replace(small_images(task, ("rgb", "gps")), gps_dimensions=3))
    policy.close()


SHAPES = """
from types import SimpleNamespace as Space

class Model:
    rgb, gps = Space(shape=(3, 6, 8), dtype="uint8"), Space(shape=(2,), dtype="f4")
    observation_space = Space(spaces={"rgb": rgb, "gps": gps})

    def predict(self, observation): ...
"""
