"""Export of the trained network to ONNX."""

import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from robot_runtime.policies.convert.networks.export import without_notes
from robot_runtime.tasks.task import Task
from sim_bridge.training import mapping
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
