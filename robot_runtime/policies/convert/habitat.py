"""From a DD-PPO checkpoint of habitat-baselines, its tensors and its configuration, to network and manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.errors import CheckpointError, PolicyError
from robot_runtime.imaging.preprocess import Cast, CenterCrop, Operation, ResizeShortestEdge, preprocess
from robot_runtime.policies.convert.checkpoint import Checkpoint, tensors_in
from robot_runtime.policies.convert.conversion import CONVERTER, UNPROVEN, Conversion, Options, Original
from robot_runtime.policies.convert.habitat_config import HabitatFacts, read_facts
from robot_runtime.policies.convert.habitat_task import habitat_task
from robot_runtime.policies.convert.networks.ddppo import CHANNELS, SENSES, DdppoConfig, DdppoPolicy, Image, Sense
from robot_runtime.policies.convert.networks.resnet import BACKBONES, Backbone
from robot_runtime.policies.convert.weights import load_weights, without_prefix
from robot_runtime.policies.package.manifest import SCHEMA, Goal, Manifest, PreviousAction, Recurrent, Source, Tensor
from robot_runtime.policies.package.writer import golden_file
from robot_runtime.tasks.task import Task

Array = NDArray[Any]

_RESIZED_PX = 256
_REFUSED = {
    "net.heading_embedding": "the sensor heading",
    "net.proximity_embedding": "the sensor proximity",
    "net.imagegoal_encoder": "image goals",
    "net.instance_imagegoal_encoder": "instance image goals",
    "net.goal_visual_encoder": "image goals",
    "action_distribution.mu": "continuous actions",
    "net.visual_encoder.backbone.attnpool": "a CLIP backbone of habitat-baselines",
    "net.visual_encoder.backbone.bn1": "a CLIP backbone of habitat-baselines",
}


def convert_habitat(checkpoint: Checkpoint, options: Options) -> Conversion:
    """Our network with a checkpoint's weights, and its manifest.

    Raises:
        CheckpointError: it is another framework's, holds what no network of ours does, contradicts itself, or does not
            say something that no option says either.
    """
    path = checkpoint.path
    data = checkpoint.data if isinstance(checkpoint.data, dict) else {}
    if "model_state_dict" in data:
        raise CheckpointError(f"{path}: is a checkpoint of AllenAct", "convert it with --family allenact")
    found = data.get("state_dict", data.get("model_state_dict", data))
    tensors = without_prefix(tensors_in(path, found, "state_dict"), ("module.", "actor_critic."))
    tensors = {name: value for name, value in tensors.items() if not name.startswith("aux_loss_modules.")}
    network = _network(path, tensors)
    facts = read_facts(path, data.get("config"), network.images)
    _check_network(path, network, facts)
    network = replace(
        network, polar=facts.polar, senses=_senses(tensors, facts), images=_order(network, facts, options)
    )
    task, notes = habitat_task(path, network, facts, options)
    operations = _operations(path, task, network, tensors, facts, options)
    height, width = _image_size(path, task, network, operations)
    network = replace(network, height=height, width=width)
    module = DdppoPolicy(network)
    load_weights(module, tensors, path)
    manifest = _manifest(checkpoint, options, network, task, facts, operations)
    return Conversion(module.eval(), manifest, _original(network, operations, tensors), notes)


def _network(path: Path, tensors: Mapping[str, Array]) -> DdppoConfig:
    """What names and shapes alone say; image size is not among it."""
    for prefix, what in _REFUSED.items():
        if any(name.startswith(prefix) for name in tensors):
            raise CheckpointError(f"{path}: its policy has {what}, which cannot be converted", "train one without")
    first = _shape(path, tensors, "net.visual_encoder.backbone.conv1.0.weight", 4)
    actions = _shape(path, tensors, "net.prev_action_embedding.weight", 2)[0] - 1
    rows, hidden = _shape(path, tensors, "action_distribution.linear.weight", 2)
    if rows != actions:
        raise CheckpointError(f"{path}: has logits of {rows} actions and embeds {actions}", "check where it is from")
    gates = _shape(path, tensors, "net.state_encoder.rnn.weight_hh_l0", 2)[0] // hidden
    if gates not in (3, 4):
        raise CheckpointError(f"{path}: its recurrent layer is neither LSTM nor GRU", "check where it is from")
    images: dict[int, tuple[Image, ...]] = {1: ("depth",), 3: ("rgb",), 4: ("depth", "rgb")}
    if first[1] not in images:
        raise CheckpointError(
            f"{path}: its images have {first[1]} channels; depth has 1, RGB 3, both 4", "train with those alone"
        )
    categories = tensors.get("net.obj_categories_embedding.weight", np.zeros((0, 0)))
    return DdppoConfig(
        backbone=_backbone(path, tensors),
        rnn="LSTM" if gates == 4 else "GRU",
        rnn_layers=sum(name.startswith("net.state_encoder.rnn.weight_hh_l") for name in tensors),
        hidden=hidden,
        actions=actions,
        images=images[first[1]],
        senses=(),
        categories=len(categories),
        normalize="net.visual_encoder.running_mean_and_var._mean" in tensors,
        base_planes=first[0],
    )


def _backbone(path: Path, tensors: Mapping[str, Array]) -> Backbone:
    prefix = "net.visual_encoder.backbone.layer"
    blocks = {tuple(name.removeprefix(prefix).split(".")[:2]) for name in tensors if name.startswith(prefix)}
    depths = tuple(sum(layer == str(number) for layer, _ in blocks) for number in range(1, 5))
    second = _shape(path, tensors, f"{prefix}1.0.convs.3.weight", 4)
    found = (
        depths,
        f"{prefix}1.0.convs.6.weight" in tensors,
        second[0] != second[1],
        f"{prefix}1.0.se.excite.0.weight" in tensors,
    )
    for name, kind in BACKBONES.items():
        if found == (kind.depths, kind.bottleneck, kind.next, kind.squeeze):
            return name
    raise CheckpointError(
        f"{path}: its backbone of {depths} blocks is none of {', '.join(BACKBONES)}", "train with one of those"
    )


def _check_network(path: Path, network: DdppoConfig, facts: HabitatFacts) -> None:
    built = {
        "backbone": network.backbone,
        "rnn_type": network.rnn,
        "num_recurrent_layers": network.rnn_layers,
        "hidden_size": network.hidden,
    }
    for name, said in facts.network.items():
        if str(said).lower() != str(built[name]).lower():
            raise CheckpointError(
                f"{path}: its configuration says {name} {said}, its tensors {built[name]}",
                "it holds the configuration of another training: convert the state_dict alone with --task",
            )


def _senses(tensors: Mapping[str, Array], facts: HabitatFacts) -> tuple[Sense, ...]:
    found = {sense for sense, layer in SENSES.items() if f"net.{layer}.weight" in tensors}
    if facts.polar != "pointgoal_with_gps_compass":
        found = found - {"pointgoal_with_gps_compass"} | {facts.polar}
    return tuple(sense for sense in SENSES if sense in found)


def _order(network: DdppoConfig, facts: HabitatFacts, options: Options) -> tuple[Image, ...]:
    """Of the first convolution's channels: RGB first up to 0.2.2, depth first from 0.2.3 on."""
    if len(network.images) < 2:
        return network.images
    if options.channel_order is not None:
        return ("depth", "rgb") if options.channel_order == "depth_rgb" else ("rgb", "depth")
    if facts.dialect is None:
        raise CheckpointError(
            "an RGB-D checkpoint without configuration does not say the order of its channels",
            "give --channel-order rgb_depth for habitat-lab to 0.2.2, depth_rgb from 0.2.3 on",
        )
    return ("depth", "rgb") if facts.dialect == "hydra" else ("rgb", "depth")


def _operations(
    path: Path, task: Task, network: DdppoConfig, tensors: Mapping[str, Array], facts: HabitatFacts, options: Options
) -> tuple[Operation, ...]:
    if facts.dialect is None:
        return tuple(
            replace(step, keys=tuple(key for key in step.keys if key in network.images)) for step in options.transforms
        )
    if facts.transforms or facts.transforms_said:
        return facts.transforms
    # Before 0.1.6 a configuration has no transformers: 0.1.5's network itself resizes and crops to 256 pixels, after it
    # has divided colours by 255, and 0.1.4's takes what the camera gives. How far features are compressed tells which.
    rows, columns = (-(-(side // 2) // 32) for side in (task.camera.height, task.camera.width))
    compressed = _shape(path, tensors, "net.visual_encoder.compression.0.weight", 4)[0]
    if compressed == round(2048 / (rows * columns)):
        return ()
    colours: tuple[Operation, ...] = (Cast(("rgb",), "float32"),) if "rgb" in network.images else ()
    resized = ResizeShortestEdge(network.images, _RESIZED_PX, "torch_area")
    return (*colours, resized, CenterCrop(network.images, _RESIZED_PX, _RESIZED_PX))


def _image_size(path: Path, task: Task, network: DdppoConfig, operations: tuple[Operation, ...]) -> tuple[int, int]:
    shape = (task.camera.height, task.camera.width)
    types: dict[str, Array] = {
        "rgb": np.zeros((*shape, 3), np.uint8),
        "depth": np.zeros((*shape, 1), np.float32),
    }
    try:
        made = preprocess({image: types[image] for image in network.images}, operations)
    except PolicyError as error:
        raise CheckpointError(
            f"{path}: its transformers do not fit its camera: {error.message}", error.remedy
        ) from error
    sizes = {array.shape[:2] for array in made.values()}
    if len(sizes) > 1:
        raise CheckpointError(f"{path}: RGB and depth come out of its transformers in sizes {sizes}", "mend them")
    return sizes.pop()


def _manifest(
    checkpoint: Checkpoint,
    options: Options,
    network: DdppoConfig,
    task: Task,
    facts: HabitatFacts,
    operations: tuple[Operation, ...],
) -> Manifest:
    whole = not any(isinstance(step, Cast) for step in operations)
    images = tuple(
        Tensor(
            image,
            image,
            "uint8" if image == "rgb" and whole else "float32",
            (1, network.height, network.width, channels),
        )
        for image, channels in ((image, CHANNELS[image]) for image in network.images)
    )
    senses = tuple(
        Tensor(sense, sense, "int64" if sense == "objectgoal" else "float32", (1, 1 if sense != _two(sense) else 2))
        for sense in network.senses
    )
    state = ("recurrent_state", "float32", network.state_shape)
    names = tuple(name.upper() for name in (facts.actions or task.actions))
    return Manifest(
        schema=SCHEMA,
        name=options.name,
        task=task,
        native_actions=names,
        stop_id=task.actions.index(Action.STOP),
        sources=(
            Source(
                f"habitat-baselines checkpoint {checkpoint.path.name}",
                options.licence,
                checkpoint.sha256,
                options.source,
            ),
        ),
        converter=CONVERTER,
        proof=UNPROVEN,
        model=options.model,
        inputs=(
            *images,
            *senses,
            Tensor("state", *state),  # type: ignore[arg-type]
            Tensor("previous_action", "previous_action", "int64", (1, 1)),
            Tensor("not_done_mask", "mask", "bool", (1, 1)),
        ),
        outputs=(
            Tensor("logits", "logits", "float32", (1, network.actions)),
            Tensor("value", "value", "float32", (1, 1)),
            Tensor("next_state", *state),  # type: ignore[arg-type]
        ),
        preprocess=operations,
        goal=_goal(network, task),
        selection=options.selection,
        golden=golden_file(),
        recurrent=Recurrent(
            "lstm" if network.rnn == "LSTM" else "gru",
            network.rnn_layers,
            network.hidden,
            "cat_h_c" if network.rnn == "LSTM" else "h",
        ),
        previous_action=PreviousAction(),
    )


def _two(sense: Sense) -> Sense | None:
    return None if sense in ("objectgoal", "compass") else sense


def _goal(network: DdppoConfig, task: Task) -> Goal:
    if "objectgoal" in network.senses:
        by_id: dict[int, str] = {category.id: name for name, category in task.categories.items()}
        return Goal("id", "objectgoal", vocabulary=tuple(by_id[number] for number in sorted(by_id)))
    sensor = next(sense for sense in network.senses if sense.startswith("pointgoal"))
    return Goal("polar", sensor, "left_positive")


def _original(network: DdppoConfig, operations: tuple[Operation, ...], tensors: Mapping[str, Array]) -> Original:
    """For the framework of today, which puts depth first: an older network's channels are put in that order."""
    tensors = dict(tensors)
    if network.images == ("rgb", "depth"):
        first = "net.visual_encoder.backbone.conv1.0.weight"
        tensors[first] = tensors[first][:, [3, 0, 1, 2]]
        for name in ("_mean", "_var"):
            key = f"net.visual_encoder.running_mean_and_var.{name}"
            if key in tensors:
                tensors[key] = tensors[key][:, [3, 0, 1, 2]]
    settings = {
        "images": list(network.images),
        "height": network.height,
        "width": network.width,
        "senses": list(network.senses),
        "polar": network.polar,
        "categories": network.categories,
        "actions": network.actions,
        "hidden_size": network.hidden,
        "num_recurrent_layers": network.rnn_layers,
        "rnn_type": network.rnn,
        "resnet_baseplanes": network.base_planes,
        "backbone": network.backbone,
        "normalize_visual_inputs": network.normalize,
        "transforms": [config.unparse(operation) for operation in operations],
    }
    return Original("habitat.py", "habitat-baselines PointNavResNetPolicy", settings, tensors)


def _shape(path: Path, tensors: Mapping[str, Array], name: str, dimensions: int) -> tuple[int, ...]:
    if name not in tensors or tensors[name].ndim != dimensions or 0 in tensors[name].shape:
        raise CheckpointError(
            f"{path}: has no {name} of {dimensions} dimensions: it is no DD-PPO policy with eyes",
            "give a checkpoint of habitat-baselines' PointNavResNetPolicy, trained with images",
        )
    return tensors[name].shape
