"""The trained network as a policy package: ONNX, manifest, and a golden rollout in the bundled apartment."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.env import Env
from robot_runtime.errors import PackageError
from robot_runtime.policies.convert.draft import draft
from robot_runtime.policies.package import golden, manifest
from robot_runtime.policies.package.formats.network import Execution
from robot_runtime.policies.package.formats.torch_network import TorchNetwork
from robot_runtime.policies.package.rollout import Rollout, prepare
from robot_runtime.policies.package.writer import write_package
from robot_runtime.policy import Observation
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.task import load_task
from sim_bridge.training.export import export_policy, shipped
from sim_bridge.training.mapping import HEIGHT, WIDTH
from sim_bridge.training.network import Head

NAME = "pointnav-depth"
GOLDEN_STEPS = 24
_ORIGINAL = f"torch {torch.__version__}, eager, the network as trained"
_CANDIDATES = 20
_NUDGE_RAD = 2e-7
"""Difference between two processors' sines, as an angle."""


def write_policy(head: Head, folder: Path, task_name: str, source: str, selection: manifest.Selection) -> None:
    """Export the network and write the package; writing checks the golden rollout."""
    task = load_task(task_name)
    folder.mkdir(parents=True, exist_ok=True)
    model_file = folder / "model.onnx"
    export_policy(head, task, model_file)
    about = {
        "name": NAME,
        "sources": [{"what": source, "licence": "as robot_runtime", "location": "sim_bridge/training/pointnav.py"}],
        "preprocess": [
            {"op": "resize", "keys": ["depth"], "height": HEIGHT, "width": WIDTH, "kernel": "torch_nearest"}
        ],
        "selection": asdict(selection),
    }
    described, facts, _ = draft(model_file, about, task_name)
    eager = TorchNetwork(described, shipped(head, task).eval(), Execution(threads=1, device="cpu"))
    recorded = _golden(described, eager)
    write_package(folder, described, facts.model, recorded)


def _golden(described: manifest.Manifest, network: TorchNetwork) -> golden.Golden:
    """A rollout whose map does not depend on the last bit of a sine.

    The map memory rounds to cells, so a point on a border depends on the library that computes the heading's sine. The
    first episode whose final state is the same under such errors is used.

    Raises:
        PackageError: no rollout is robust.
    """
    for seed in range(_CANDIDATES):
        observations = _observations(described, network, seed)
        recorded = golden.record(described, network, observations, original=_ORIGINAL)
        if all(_same_state(described, network, recorded, nudge) for nudge in (-_NUDGE_RAD, _NUDGE_RAD)):
            return recorded
    raise PackageError(f"none of {_CANDIDATES} rollouts is robust against rounding", "try more candidates")


def _same_state(described: manifest.Manifest, network: TorchNetwork, recorded: golden.Golden, nudge_rad: float) -> bool:
    inputs = {name: array.copy() for name, array in recorded.inputs.items()}
    inputs["compass"] += np.float32(nudge_rad)
    agreement = golden.replay(described, replace(recorded, inputs=inputs, sensors=recorded.sensors), network)
    return agreement.state_difference < described.golden.state_atol


def _observations(described: manifest.Manifest, network: TorchNetwork, seed: int) -> list[Mapping[str, golden.Array]]:
    """The policy's observations on the noisy robot in the bundled apartment."""
    task, scene = described.task, load_scene(find_scene("apartment"))
    episode = generate_episodes(scene, task, 1, seed)[0]
    rollout = Rollout(described, network)
    seen: list[Observation] = []
    with (
        load_robot("sim-noisy", RobotContext(scene, task.camera, seed)) as robot,
        Env(robot, task, scene, seed=seed) as env,
    ):
        observation = env.reset(episode, described.name)
        while len(seen) < GOLDEN_STEPS and not env.episode_over:
            seen.append(observation)
            logits, _ = rollout.step(prepare(described, observation))
            chosen = int(np.argmax(logits))
            rollout.acted(chosen)
            observation = env.step(task.actions[chosen])
    return list(seen)
