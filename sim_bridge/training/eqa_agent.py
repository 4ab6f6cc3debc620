"""Export of learned question answering: networks as ONNX, the agent as a policy package with its golden rollout."""

import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.policies.convert.draft import draft
from robot_runtime.policies.package import golden
from robot_runtime.policies.package.formats.network import Execution
from robot_runtime.policies.package.formats.torch_network import TorchNetwork
from robot_runtime.policies.package.vocabulary import Vocabulary
from robot_runtime.policies.package.writer import write_package
from robot_runtime.scenes.scene import load_scene
from sim_bridge.training.eqa_navigator import STATE_NUMBERS, Agent
from sim_bridge.training.eqa_network import WORDS
from sim_bridge.training.eqa_views import SIDE, TASK, questions_by_object
from sim_bridge.training.eqa_walks import ACTIONS, Walker

NAME = "eqa-navigator"
GOLDEN_STEPS = 8
_OPSET = 17


def write_agent(agent: Agent, vocabulary: Vocabulary, flat: Path, out: Path, source: str) -> None:
    """Export the agent and write its package; writing checks the golden rollout."""
    out.mkdir(parents=True, exist_ok=True)
    model = out / "model.onnx"
    example = (
        torch.zeros(1, SIDE, SIDE, 3, dtype=torch.uint8),
        torch.ones(1, WORDS, dtype=torch.int64),
        torch.full((1, 1), len(ACTIONS)),
        torch.zeros(1, STATE_NUMBERS),
    )
    inputs, outputs = ("rgb", "question", "prev_action", "state"), ("logits", "answers", "state_out")
    export_network(agent, example, inputs, outputs, model)
    about = {
        "name": NAME,
        "sources": [{"what": source, "licence": "as robot_runtime", "location": "sim_bridge/training/eqa.py"}],
        "preprocess": [{"op": "resize", "keys": ["rgb"], "height": SIDE, "width": SIDE, "kernel": "torch_area"}],
        "prev_action": {"first": len(ACTIONS)},
        "vocabulary": config.unparse(vocabulary),
    }
    described, facts, _ = draft(model, about, TASK)
    eager = TorchNetwork(described, agent, Execution(threads=1, device="cpu"))
    original = f"torch {torch.__version__}, eager, the network as trained"
    recorded = golden.record(described, eager, _observations(flat), keep_sensors=1, original=original)
    write_package(out, described, facts.model, recorded)


def _observations(flat: Path) -> list[dict[str, golden.Array]]:
    """Observations of a turn before the first object of a flat that there are questions about."""
    scene = load_scene(flat)
    by_object = questions_by_object(scene)
    target = next(name for name in sorted(by_object) if scene.view_points.get(name))
    pose, walker = scene.view_points[target][0], Walker(scene)
    question = np.array(by_object[target][0][0])
    try:
        seen = []
        for _ in range(GOLDEN_STEPS):
            seen.append({"rgb": walker.image(pose), "question": question})
            pose = walker.moved(pose, Action.TURN_LEFT)
        return seen
    finally:
        walker.close()


def export_network(
    network: nn.Module, example: tuple[Tensor, ...], inputs: tuple[str, ...], outputs: tuple[str, ...], file: Path
) -> None:
    """Write a network as ONNX."""
    with warnings.catch_warnings():
        # The older exporter: torch's present one takes ten times as long and writes an LSTM as many operators.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            example,
            str(file),
            dynamo=False,
            opset_version=_OPSET,
            input_names=list(inputs),
            output_names=list(outputs),
        )
