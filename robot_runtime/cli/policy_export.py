"""``robot-runtime policy export``: conversion of a training framework's checkpoint to a package."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.cli_options import completion
from robot_runtime.cli_options.option_groups import grouped_options

if TYPE_CHECKING:
    from robot_runtime.imaging.preprocess import Operation
    from robot_runtime.policies.convert.export import Exported


@dataclass(frozen=True)
class ResultOptions:
    """Properties of the package that is made."""

    name: Annotated[str | None, typer.Option(help="Of the policy; the file's without it.")] = None
    source: Annotated[str, typer.Option(help="Where the checkpoint is from: URL, repository and commit.")] = ""
    format: Annotated[str, typer.Option(help="onnx, torch_export or torchscript.")] = "onnx"
    selection: Annotated[str, typer.Option(help="sample, as both frameworks evaluate, or argmax.")] = "sample"
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0


@dataclass(frozen=True)
class NetworkOptions:
    """Properties of a network that its checkpoint may not have."""

    channel_order: Annotated[
        str | None, typer.Option(help="Of an RGB-D network of habitat: rgb_depth to 0.2.2, depth_rgb from 0.2.3 on.")
    ] = None
    transform: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SIZE",
            help="resize_shortest_edge=256 or center_crop=256x256, repeated in order, for a checkpoint without "
            "configuration.",
        ),
    ] = None
    eye: Annotated[
        str, typer.Option(help="What an AllenAct policy with one image sees: rgb or depth. Its file does not say.")
    ] = "rgb"


@dataclass(frozen=True)
class BackboneOptions:
    """Weights of a backbone that are not in the checkpoint."""

    backbone: Annotated[
        Path | None, typer.Option(help="Weights of the frozen backbone, which AllenAct's checkpoints do not hold.")
    ] = None
    backbone_sha256: Annotated[str | None, typer.Option(help="That these weights must have.")] = None
    backbone_license: Annotated[str, typer.Option(help="Of these weights.")] = ""


@grouped_options
def export(
    *,
    checkpoint: Annotated[Path, typer.Argument(help="What torch.save wrote. No code in it is run.")],
    out: Annotated[Path, typer.Option(help="The package: a zip if it ends in .zip, else a folder.")],
    license_: Annotated[str, typer.Option("--license", help="Of the weights: an SPDX identifier or a name.")],
    task: Annotated[
        str | None,
        typer.Option(
            help="Task preset or YAML file, for what the checkpoint does not say (categories; without a configuration "
            "everything).",
            autocompletion=completion.tasks,
        ),
    ] = None,
    family: Annotated[str, typer.Option(help="auto, habitat or allenact.")] = "auto",
    framework_python: Annotated[
        Path | None, typer.Option(help="Python that has the framework: the proof is then against the framework itself.")
    ] = None,
    result: ResultOptions,
    network: NetworkOptions,
    backbone: BackboneOptions,
    steps: Annotated[int, typer.Option(min=2, help="Of the rollout that proves.")] = 50,
) -> None:
    """Convert a checkpoint of habitat-baselines (DD-PPO) or AllenAct (RoboTHOR ObjectNav), and prove the result.

    Examples:
        robot-runtime policy export ckpt.pth --out pointnav.zip --license MIT
        robot-runtime policy export ckpt.pth --out objectnav.zip --license MIT --task objectnav_hm3d2022
        robot-runtime policy export exp__stage_00.pt --out allenact.zip --license MIT --task objectnav_robothor2021
        --backbone resnet18-f37072fd.pth --framework-python frameworks/bin/python
    """
    from robot_runtime.common import config
    from robot_runtime.tasks.task import load_task

    export_checkpoint = config.resolve("robot_runtime.policies.convert.export:export_checkpoint", "policy export")
    said = {
        "licence": license_,
        "family": family,
        "steps": steps,
        "name": result.name or checkpoint.stem,
        "source": result.source,
        "format": result.format,
        "mode": result.selection,
        "seed": result.seed,
        "channel_order": network.channel_order,
        "transforms": tuple(map(_transform, network.transform or ())),
        "image": network.eye,
        **asdict(backbone),
    }
    kind = config.resolve("robot_runtime.policies.convert.conversion:Options", "policy export")
    options = replace(config.parse(said, kind, "policy export"), task=None if task is None else load_task(task))
    _print_result(out, export_checkpoint(checkpoint, out, options, framework_python))


def _print_result(out: Path, done: Exported) -> None:
    from robot_runtime.common.console import say

    for proof in done.proofs:
        say(
            f"proven against {proof.against}: the same action at {proof.same_actions} of {proof.steps} steps, logits "
            f"within {proof.max_logit_difference:.2g}"
        )
    for note in done.notes:
        say(f"the checkpoint: {note}")
    say(f"{out}: {done.package.manifest.name}, in task {done.package.manifest.task.name}")


def _transform(text: str) -> Operation:
    """Parse ``NAME=SIZE``, for both images; the converter leaves out the one that a network does not take."""
    from robot_runtime.errors import ConfigError
    from robot_runtime.imaging.preprocess import CenterCrop, ResizeShortestEdge

    name, _, size = text.partition("=")
    try:
        if name == "resize_shortest_edge":
            return ResizeShortestEdge(("rgb", "depth"), int(size), "torch_area")
        height, _, width = size.partition("x")
        if name == "center_crop":
            return CenterCrop(("rgb", "depth"), int(height), int(width or height))
    except ValueError as error:
        raise ConfigError(f"--transform {text!r}: {error}", "write center_crop=256x256") from error
    raise ConfigError(
        f"--transform {text!r}: there is no {name!r}", "choose resize_shortest_edge=256 or center_crop=256x256"
    )
