"""Conversion of AllenAct's RoboTHOR ObjectNav checkpoints, recurrent policies on features of a frozen backbone.

Their files hold no configuration and no backbone. Camera, steps and turns are those of
``projects/objectnav_baselines/experiments/objectnav_thor_base.py`` and ``objectnav_base.py``, the same for all of them.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.errors import CheckpointError
from robot_runtime.imaging.preprocess import Divide, Operation, Resize, Standardize
from robot_runtime.policies.convert.checkpoint import Checkpoint, read_checkpoint, state_of, tensors_in
from robot_runtime.policies.convert.conversion import Conversion, Options, Original, recurrent_manifest
from robot_runtime.policies.convert.networks.allenact import SIDE, AllenactConfig, AllenactPolicy, Image
from robot_runtime.policies.convert.networks.frozen import OUT_CHANNELS, FrozenBackbone
from robot_runtime.policies.convert.weights import load_weights, shape_of, without_prefix
from robot_runtime.policies.package.manifest import Manifest, Need, Source
from robot_runtime.tasks.task import Task

Array = NDArray[Any]

ACTIONS = (Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT, Action.STOP, Action.LOOK_UP, Action.LOOK_DOWN)
"""In the order of ``ObjectNavTask`` (``robothor_tasks.py``); the challenge's own order is another one."""

_NORMS: Mapping[Literal["imagenet", "clip"], tuple[tuple[float, ...], tuple[float, ...]]] = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "clip": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
}
_DEPTH_MEAN, _DEPTH_STD = 0.5, 0.25
_POLICY = "AllenAct ResnetTensorNavActorCritic"
_ENCODER = "goal_visual_encoder."
_OLD_NAMES = {"state_encoder.": "state_encoders.single_belief.", f"{_ENCODER}embed_class.": f"{_ENCODER}embed_goal."}


def convert_allenact(checkpoint: Checkpoint, options: Options) -> Conversion:
    """Convert a checkpoint with the weights of its backbone.

    Raises:
        CheckpointError: it is another framework's, of an unsupported architecture, or there is no backbone for it.
    """
    path = checkpoint.path
    data = checkpoint.data if isinstance(checkpoint.data, dict) else {}
    if "state_dict" in data:
        raise CheckpointError(f"{path}: is a checkpoint of habitat-baselines", "convert it with --family habitat")
    tensors = without_prefix(tensors_in(path, data.get("model_state_dict", data), "model_state_dict"), ("module.",))
    tensors = {_renamed(name): value for name, value in tensors.items() if not name.startswith("aux_models.")}
    kind, backbone, backbone_source = _backbone(options)
    network = _network(path, tensors, kind, options.image)
    task = _task(path, network, options)
    module = AllenactPolicy(network)
    load_weights(module, {**tensors, **{f"backbone.{name}": value for name, value in backbone.items()}}, path)
    sources = (
        Source(f"AllenAct checkpoint {path.name}", options.licence, checkpoint.sha256, options.source),
        backbone_source,
    )
    manifest = _manifest(options, network, task, sources)
    return Conversion(module.eval(), manifest, _original(network, tensors, backbone))


def _renamed(name: str) -> str:
    for old, new in _OLD_NAMES.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


def _backbone(options: Options) -> tuple[FrozenBackbone, dict[str, Array], Source]:
    if options.backbone is None:
        raise CheckpointError(
            "AllenAct's checkpoints do not hold the frozen backbone of the policy",
            "give its published weights: --backbone resnet18-f37072fd.pth, or RN50.pt of CLIP",
        )
    file = read_checkpoint(options.backbone)
    if options.backbone_sha256 is not None and file.sha256 != options.backbone_sha256.lower():
        raise CheckpointError(
            f"{file.path}: has SHA-256 {file.sha256}, not {options.backbone_sha256}", "download it again"
        )
    found = state_of(file.path, file.data)
    tensors = {
        name: value.astype(np.float32) if value.dtype.kind == "f" else value
        for name, value in without_prefix(found, ("visual.",)).items()
        if not name.startswith(("fc.", "attnpool."))
    }
    first = tensors.get("conv1.weight", np.zeros((0, 0, 0, 0)))
    if first.shape == (32, 3, 3, 3):
        kind: FrozenBackbone = "clip_rn50"
    elif first.shape == (64, 3, 7, 7):
        kind = "resnet50" if "layer1.0.conv3.weight" in tensors else "resnet18"
    else:
        raise CheckpointError(
            f"{file.path}: neither a torchvision ResNet nor CLIP RN50",
            "give the weights that the policy was trained on",
        )
    for name in [name for name in tensors if name.endswith("running_mean")]:  # older files have no such counts
        tensors.setdefault(name.replace("running_mean", "num_batches_tracked"), np.zeros((), np.int64))
    return (
        kind,
        tensors,
        Source(f"frozen backbone {file.path.name}", options.backbone_license or "unknown", file.sha256),
    )


def _network(path: Path, tensors: Mapping[str, Array], kind: FrozenBackbone, image: Image) -> AllenactConfig:
    if "object_type_embedding.weight" in tensors:
        raise CheckpointError(
            f"{path}: its policy trained its own backbone (ObjectNavActorCritic)", "convert one on frozen features"
        )
    beliefs = {name.split(".")[1] for name in tensors if name.startswith("state_encoders.")}
    if beliefs - {"single_belief"}:
        raise CheckpointError(f"{path}: its policy has several beliefs: {', '.join(sorted(beliefs))}", "train with one")
    images: tuple[Image, ...] = (image,)
    part = _ENCODER
    if f"{_ENCODER}rgb_resnet_compressor.0.weight" in tensors:
        images, part = ("rgb", "depth"), f"{_ENCODER}rgb_"
    first = shape_of(path, tensors, _POLICY, f"{part}resnet_compressor.0.weight", 4)
    if first[1] != OUT_CHANNELS[kind]:
        raise CheckpointError(
            f"{path}: takes {first[1]} features, the backbone {kind} gives {OUT_CHANNELS[kind]}",
            "give the weights of the backbone that it was trained on",
        )
    categories, goal_size = shape_of(path, tensors, _POLICY, f"{_ENCODER}embed_goal.weight", 2)
    actions, hidden = shape_of(path, tensors, _POLICY, "actor.linear.weight", 2)
    recurrent = "state_encoders.single_belief.rnn.weight_hh_l"
    gates = shape_of(path, tensors, _POLICY, f"{recurrent}0", 2)[0] // hidden
    previous = tensors.get("prev_action_embedder.fc.weight", np.zeros((0, 0)))
    return AllenactConfig(
        backbone=kind,
        images=images,
        actions=actions,
        categories=categories,
        goal_size=goal_size,
        compressor=(first[0], shape_of(path, tensors, _POLICY, f"{part}resnet_compressor.2.weight", 4)[0]),
        combiner=(
            shape_of(path, tensors, _POLICY, f"{part}target_obs_combiner.0.weight", 4)[0],
            shape_of(path, tensors, _POLICY, f"{part}target_obs_combiner.2.weight", 4)[0],
        ),
        rnn="LSTM" if gates == 4 else "GRU",
        rnn_layers=sum(name.startswith(recurrent) for name in tensors),
        hidden=hidden,
        previous=previous.shape[0],
        previous_size=previous.shape[1],
    )


def _task(path: Path, network: AllenactConfig, options: Options) -> Task:
    base = options.task
    if base is None or base.kind != "objectnav":
        raise CheckpointError(
            f"{path}: has {network.categories} categories without names",
            "give the task that names them: --task objectnav_robothor2021",
        )
    if network.actions != len(ACTIONS):
        raise CheckpointError(
            f"{path}: has {network.actions} actions, ObjectNav has 6", "give a checkpoint of ObjectNav"
        )
    names = [name for name, _ in sorted(base.categories.items(), key=lambda item: item[1].id)]
    if len(names) != network.categories or names != sorted(names):
        raise CheckpointError(
            f"{path}: has {network.categories} categories in alphabetical order, {base.name!r} has {', '.join(names)}",
            "give the task whose categories it was trained on",
        )
    sensors = base.sensors + tuple(image for image in network.images if image not in base.sensors)
    return replace(
        base,
        name=f"{base.name}_allenact",
        actions=ACTIONS,
        magnitudes=Magnitudes(0.25, 30.0, 30.0),
        camera=replace(base.camera, width=400, height=300, hfov_deg=79.0),
        sensors=sensors,
        max_steps=500,
    )


def _operations(network: AllenactConfig) -> tuple[Operation, ...]:
    operations: list[Operation] = []
    if "rgb" in network.images:
        mean, std = _norm(network)
        operations += [Resize(("rgb",), SIDE, SIDE, "pil_bilinear"), Divide(("rgb",), 255.0)]
        operations.append(Standardize(("rgb",), mean, std))
    if "depth" in network.images:
        operations.append(Standardize(("depth",), (_DEPTH_MEAN,), (_DEPTH_STD,)))
        operations.append(Resize(("depth",), SIDE, SIDE, "pil_bilinear"))
    return tuple(operations)


def _norm(network: AllenactConfig) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return _NORMS["clip" if network.backbone == "clip_rn50" else "imagenet"]


def _manifest(options: Options, network: AllenactConfig, task: Task, sources: tuple[Source, ...]) -> Manifest:
    images = tuple(
        Need(image, image, "float32", (1, SIDE, SIDE, 3 if image == "rgb" else 1)) for image in network.images
    )
    return recurrent_manifest(
        options,
        network,
        task,
        sources=sources,
        sensors=(*images, Need("objectgoal", "objectgoal", "int64", (1, 1))),
        preprocess=_operations(network),
        previous_action=bool(network.previous),
    )


def _original(network: AllenactConfig, tensors: Mapping[str, Array], backbone: Mapping[str, Array]) -> Original:
    mean, std = _norm(network)
    settings = {
        "images": list(network.images),
        "backbone": network.backbone,
        "features": OUT_CHANNELS[network.backbone],
        "categories": network.categories,
        "actions": network.actions,
        "compressor": list(network.compressor),
        "combiner": list(network.combiner),
        "mean": list(mean),
        "std": list(std),
        "arguments": {
            "hidden_size": network.hidden,
            "goal_dims": network.goal_size,
            "num_rnn_layers": network.rnn_layers,
            "rnn_type": network.rnn,
            "add_prev_actions": bool(network.previous),
            "add_prev_action_null_token": network.previous == network.actions + 1,
            "action_embed_size": network.previous_size or 6,
        },
    }
    named = {f"policy/{name}": value for name, value in tensors.items()}
    named.update({f"backbone/{name}": value for name, value in backbone.items()})
    return Original("allenact.py", _POLICY, settings, named)
