"""Types of the conversion that the frameworks share, and the common part of their manifests."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray
from torch import nn

from robot_runtime.common.version import VERSION
from robot_runtime.imaging.preprocess import Operation
from robot_runtime.policies.convert.networks.allenact import AllenactConfig
from robot_runtime.policies.convert.networks.ddppo import DdppoConfig
from robot_runtime.policies.convert.networks.export import OPSET
from robot_runtime.policies.package import manifest as m
from robot_runtime.policies.package.writer import UNKNOWN_SHA256, UNPROVEN, golden_file
from robot_runtime.tasks.task import Task

ChannelOrder = Literal["depth_rgb", "rgb_depth"]

CONVERTER = m.Converter("robot-runtime policy export", VERSION)

_RUNTIMES: Mapping[m.Format, tuple[str, str]] = {
    "onnx": ("model.onnx", "1.20.1"),
    "torch_export": ("model.pt2", "2.13"),
    "torchscript": ("model.ts", "2.0"),
}


@dataclass(frozen=True)
class Options:
    """User's facts about a checkpoint.

    Attributes:
        licence: license of the weights.
        name: name of the policy.
        source: origin of the weights, in words or as a URL.
        task: source of facts that the checkpoint does not hold; None if it holds all.
        format: format of the network's file.
        mode: mode of choosing actions.
        seed: seed of choosing actions.
        family: framework of the checkpoint; ``auto`` to detect it.
        steps: number of steps of the golden rollout.
        channel_order: channel order of an RGB-D network, instead of that of the configuration's dialect.
        transforms: observation transformers in order, for a checkpoint without configuration.
        image: name of the image of an AllenAct policy with one image, which its checkpoint does not name.
        backbone: file with the weights of a frozen backbone, which AllenAct's checkpoints do not hold.
        backbone_sha256: SHA-256 that the file must have; None for any.
        backbone_license: license of these weights.
    """

    licence: str
    name: str
    source: str = ""
    task: Task | None = None
    format: m.Format = "onnx"
    mode: m.Mode = "sample"
    seed: int = 0
    family: Literal["auto", "habitat", "allenact"] = "auto"
    steps: int = 50
    channel_order: ChannelOrder | None = None
    transforms: tuple[Operation, ...] = ()
    image: Literal["rgb", "depth"] = "rgb"
    backbone: Path | None = None
    backbone_sha256: str | None = None
    backbone_license: str = ""

    @property
    def model(self) -> m.Model:
        """The manifest's entry of the network's file, before it is written."""
        file, minimum = _RUNTIMES[self.format]
        return m.Model(file, self.format, UNKNOWN_SHA256, minimum, OPSET if self.format == "onnx" else None)

    @property
    def selection(self) -> m.Selection:
        """The manifest's entry of the choice of actions."""
        return m.Selection(self.mode, 1.0, self.seed)


@dataclass(frozen=True)
class Original:
    """The network in its own framework, for an interpreter with the framework.

    Attributes:
        script: file in ``frameworks/``.
        framework: its name, for messages.
        settings: settings of the network, JSON-serializable.
        tensors: tensors of the checkpoint.
    """

    script: str
    framework: str
    settings: Mapping[str, Any]
    tensors: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Conversion:
    """A converted checkpoint.

    Attributes:
        module: the runtime's network with the checkpoint's weights.
        manifest: without the proof and the hashes.
        original: the network in its own framework.
        notes: sentences about differences between the checkpoint and the given task.
    """

    module: nn.Module
    manifest: m.Manifest
    original: Original
    notes: tuple[str, ...] = ()


def recurrent_manifest(
    options: Options,
    network: DdppoConfig | AllenactConfig,
    task: Task,
    *,
    sources: tuple[m.Source, ...],
    sensors: tuple[m.Need, ...],
    preprocess: tuple[Operation, ...],
    previous_action: bool = True,
) -> m.Manifest:
    """The manifest of a recurrent network.

    Its inputs are, in this order, ``sensors``, the state, the previous action if it takes one, and the mask.
    """
    state = m.Need("state", "recurrent_state", "float32", network.state_shape)
    previous = (m.Need("previous_action", "previous_action", "int64", (1, 1)),) if previous_action else ()
    return m.Manifest(
        schema=m.SCHEMA,
        name=options.name,
        task=task,
        sources=sources,
        converter=CONVERTER,
        proof=UNPROVEN,
        model=options.model,
        inputs=(*sensors, state, *previous, m.Need("not_done_mask", "mask", "bool", (1, 1))),
        outputs=(
            m.Tensor("logits", "logits", "float32", (1, network.actions)),
            m.Tensor("value", "value", "float32", (1, 1)),
            m.Tensor("next_state", "recurrent_state", "float32", network.state_shape),
        ),
        preprocess=preprocess,
        selection=options.selection,
        golden=golden_file(),
    )
