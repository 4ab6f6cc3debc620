"""The trained network as a policy package: ONNX, manifest, and a golden rollout in the bundled apartment."""

import warnings
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.env import Env
from robot_runtime.errors import PackageError
from robot_runtime.policies.convert.draft import draft
from robot_runtime.policies.convert.networks.export import without_notes
from robot_runtime.policies.package import golden, manifest
from robot_runtime.policies.package.formats.network import Execution
from robot_runtime.policies.package.formats.torch_network import TorchNetwork
from robot_runtime.policies.package.rollout import Rollout, prepare
from robot_runtime.policies.package.writer import write_package
from robot_runtime.policy import Observation
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.task import Task, load_task
from sim_bridge.training import mapping
from sim_bridge.training.mapping import HEIGHT, WIDTH
from sim_bridge.training.network import ACTIONS, STATE_NUMBERS, Head, PointNavPolicy, StopsByRule

OPSET = 20
INPUTS = ("depth", "pointgoal", "gps", "compass", "rnn_state", "prev_action", "not_done_mask")
OUTPUTS = ("logits", "rnn_state_out")


class _WithViews(nn.Module):
    """The policy with its views of the map as further outputs."""

    def __init__(self, policy: PointNavPolicy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        depth, _, gps, compass, state, previous, mask = inputs
        views = self.policy.memory(depth, gps, compass, previous, mask, state[:, 0, : mapping.MAP_NUMBERS])
        return (*self.policy(*inputs), *views[:3])


def export_learner(head: Head, task: Task, path: Path) -> None:
    """Export the policy for collection, with the map views as outputs; ``task`` may have a smaller camera."""
    _export(_WithViews(PointNavPolicy(task, head)), path, (*OUTPUTS, "fine", "coarse", "motion"))


def shipped(head: Head, task: Task) -> StopsByRule:
    """The network of the shipped policy."""
    return StopsByRule(PointNavPolicy(task, head), task)


def export_policy(head: Head, task: Task, path: Path) -> None:
    """Export the shipped policy."""
    _export(shipped(head, task), path, OUTPUTS)


def example_inputs() -> tuple[Tensor, ...]:
    """One step's inputs, in the order of :data:`INPUTS`."""
    return (
        torch.full((1, mapping.HEIGHT, mapping.WIDTH, 1), 0.3),
        torch.tensor([[3.0, 0.5]]),
        torch.zeros(1, 2),
        torch.zeros(1, 1),
        torch.zeros(1, 1, STATE_NUMBERS),
        torch.full((1, 1), ACTIONS - 1),
        torch.ones(1, 1, dtype=torch.bool),
    )


def _export(module: nn.Module, path: Path, outputs: tuple[str, ...]) -> None:
    part = path.with_suffix(".part")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch's exporter warns of its own calls
        program = torch.onnx.export(
            module.eval(),
            example_inputs(),
            dynamo=True,
            external_data=False,
            opset_version=OPSET,
            input_names=list(INPUTS),
            output_names=list(outputs),
            verbose=False,
        )
    assert program is not None
    part.write_bytes(without_notes(program.model_proto).SerializeToString())
    part.replace(path)


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
