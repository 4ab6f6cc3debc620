"""What a framework's part of the conversion takes and gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray
from torch import nn

from robot_runtime import __version__
from robot_runtime.imaging.preprocess import Operation
from robot_runtime.policies.convert.networks.export import OPSET
from robot_runtime.policies.package.manifest import Converter, Format, Manifest, Mode, Model, Proof, Selection
from robot_runtime.policies.package.writer import UNKNOWN_SHA256
from robot_runtime.tasks.task import Task

Family = Literal["habitat", "allenact"]
ChannelOrder = Literal["depth_rgb", "rgb_depth"]

CONVERTER = Converter("robot-runtime policy export", __version__)
UNPROVEN = Proof("nothing yet", 1, 0, 0.0)
"""Until :func:`robot_runtime.policies.convert.export.export_checkpoint` puts the right one."""

_RUNTIMES: Mapping[Format, tuple[str, str]] = {
    "onnx": ("model.onnx", "1.20.1"),
    "torch_export": ("model.pt2", "2.13"),
    "torchscript": ("model.ts", "2.0"),
}


@dataclass(frozen=True)
class Options:
    """What the user says about a checkpoint.

    Attributes:
        licence: of the weights. source: where they are from, in words or as a URL. name: of the policy.
        task: says what the checkpoint does not; None if it says everything.
        format: of the network's file. mode, seed: how actions are chosen.
        steps: of the rollout that proves.
        channel_order: of an RGB-D network, where the configuration's dialect is not to decide.
        transforms: observation transformers in order, for a checkpoint without configuration.
        eye: what an AllenAct policy with one image sees, which its checkpoint does not say.
        backbone: file with the weights of a frozen backbone, which AllenAct's checkpoints do not hold.
        backbone_sha256: that it must have. backbone_licence: of these weights.
    """

    licence: str
    name: str
    source: str = ""
    task: Task | None = None
    format: Format = "onnx"
    mode: Mode = "sample"
    seed: int = 0
    steps: int = 50
    channel_order: ChannelOrder | None = None
    transforms: tuple[Operation, ...] = ()
    eye: Literal["rgb", "depth"] = "rgb"
    backbone: Path | None = None
    backbone_sha256: str | None = None
    backbone_licence: str = ""

    @property
    def model(self) -> Model:
        """What the manifest says of the network's file before there is one."""
        file, minimum = _RUNTIMES[self.format]
        return Model(file, self.format, UNKNOWN_SHA256, minimum, OPSET if self.format == "onnx" else None)

    @property
    def selection(self) -> Selection:
        """For the manifest."""
        return Selection(self.mode, 1.0, self.seed)


@dataclass(frozen=True)
class Original:
    """The network as its own framework builds it, for a Python that has the framework.

    Attributes:
        script: file in ``frameworks/``. settings: what it builds from, as JSON has it. tensors: the checkpoint's.
        framework: its name, for people.
    """

    script: str
    framework: str
    settings: Mapping[str, Any]
    tensors: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Conversion:
    """A checkpoint understood: our network with its weights, everything that the manifest says, and the original."""

    module: nn.Module
    manifest: Manifest
    original: Original
    notes: tuple[str, ...] = ()
