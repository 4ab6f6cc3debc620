"""Conversion of DD-PPO checkpoints of habitat-baselines, from tensors and configuration to network and manifest."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.errors import CheckpointError, PolicyError
from robot_runtime.imaging.preprocess import Cast, CenterCrop, Operation, ResizeShortestEdge, preprocess
from robot_runtime.policies.convert.checkpoint import Checkpoint, tensors_in
from robot_runtime.policies.convert.conversion import Conversion, Options, Original, recurrent_manifest
from robot_runtime.policies.convert.habitat_config import HabitatFacts, read_facts
from robot_runtime.policies.convert.habitat_task import habitat_task
from robot_runtime.policies.convert.networks.ddppo import (
    CHANNELS,
    SENSOR_LAYERS,
    DdppoConfig,
    DdppoPolicy,
    Image,
    VectorSensor,
)
from robot_runtime.policies.convert.networks.resnet import BACKBONES, Backbone
from robot_runtime.policies.convert.weights import load_weights, shape_of, without_prefix
from robot_runtime.policies.package.manifest import Manifest, Need, Source
from robot_runtime.tasks.task import Task

Array = NDArray[Any]

_POLICY = "habitat-baselines PointNavResNetPolicy"
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
    """Convert a checkpoint.

    Raises:
        CheckpointError: it is another framework's, of an unsupported architecture, inconsistent, or lacks a fact that
            the options do not give either.
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
        network, polar=facts.polar, sensors=_vector_sensors(tensors, facts), images=_order(network, facts, options)
    )
    task, notes = habitat_task(path, network, facts, options)
    operations = _operations(path, task, network, tensors, facts, options)
    height, width = _image_size(path, task, network, operations)
    network = replace(network, height=height, width=width)
    module = DdppoPolicy(network)
    load_weights(module, tensors, path)
    manifest = _manifest(checkpoint, options, network, task, operations)
    return Conversion(module.eval(), manifest, _original(network, operations, tensors), notes)


def _network(path: Path, tensors: Mapping[str, Array]) -> DdppoConfig:
    """The network as far as names and shapes of its tensors determine it; image size is not determined."""
    for prefix, what in _REFUSED.items():
        if any(name.startswith(prefix) for name in tensors):
            raise CheckpointError(f"{path}: its policy has {what}, which cannot be converted", "train one without")
    first = shape_of(path, tensors, _POLICY, "net.visual_encoder.backbone.conv1.0.weight", 4)
    actions = shape_of(path, tensors, _POLICY, "net.prev_action_embedding.weight", 2)[0] - 1
    rows, hidden = shape_of(path, tensors, _POLICY, "action_distribution.linear.weight", 2)
    if rows != actions:
        raise CheckpointError(
            f"{path}: has logits of {rows} actions and embeds {actions}", "give an unmodified checkpoint"
        )
    gates = shape_of(path, tensors, _POLICY, "net.state_encoder.rnn.weight_hh_l0", 2)[0] // hidden
    if gates not in (3, 4):
        raise CheckpointError(f"{path}: its recurrent layer is neither LSTM nor GRU", "train with one of those")
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
        sensors=(),
        categories=len(categories),
        normalize="net.visual_encoder.running_mean_and_var._mean" in tensors,
        base_planes=first[0],
    )


def _backbone(path: Path, tensors: Mapping[str, Array]) -> Backbone:
    prefix = "net.visual_encoder.backbone.layer"
    blocks = {tuple(name.removeprefix(prefix).split(".")[:2]) for name in tensors if name.startswith(prefix)}
    depths = tuple(sum(layer == str(number) for layer, _ in blocks) for number in range(1, 5))
    second = shape_of(path, tensors, _POLICY, f"{prefix}1.0.convs.3.weight", 4)
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
    for name, value in facts.network.items():
        if str(value).lower() != str(built[name]).lower():
            raise CheckpointError(
                f"{path}: its configuration has {name} {value}, its tensors {built[name]}",
                "it holds the configuration of another training: convert the state_dict alone with --task",
            )


def _vector_sensors(tensors: Mapping[str, Array], facts: HabitatFacts) -> tuple[VectorSensor, ...]:
    found = {sensor for sensor, layer in SENSOR_LAYERS.items() if f"net.{layer}.weight" in tensors}
    if facts.polar != "pointgoal_with_gps_compass":
        found = found - {"pointgoal_with_gps_compass"} | {facts.polar}
    return tuple(sensor for sensor in SENSOR_LAYERS if sensor in found)


def _order(network: DdppoConfig, facts: HabitatFacts, options: Options) -> tuple[Image, ...]:
    """The order of the first convolution's channels: RGB first up to 0.2.2, depth first from 0.2.3 on."""
    if len(network.images) < 2:
        return network.images
    if options.channel_order is not None:
        return ("depth", "rgb") if options.channel_order == "depth_rgb" else ("rgb", "depth")
    if facts.dialect is None:
        raise CheckpointError(
            "an RGB-D checkpoint without configuration does not determine the order of its channels",
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
    if facts.transforms or facts.has_transforms:
        return facts.transforms
    # Before 0.1.6 a configuration has no transformers: 0.1.5's network itself resizes and crops to 256 pixels, after it
    # has divided colors by 255, and 0.1.4's takes the camera's image. The compression's channels determine which.
    rows, columns = (-(-(side // 2) // 32) for side in (task.camera.height, task.camera.width))
    compressed = shape_of(path, tensors, _POLICY, "net.visual_encoder.compression.0.weight", 4)[0]
    if compressed == round(2048 / (rows * columns)):
        return ()
    colors: tuple[Operation, ...] = (Cast(("rgb",), "float32"),) if "rgb" in network.images else ()
    resized = ResizeShortestEdge(network.images, _RESIZED_PX, "torch_area")
    return (*colors, resized, CenterCrop(network.images, _RESIZED_PX, _RESIZED_PX))


def _image_size(path: Path, task: Task, network: DdppoConfig, operations: tuple[Operation, ...]) -> tuple[int, int]:
    shape = (task.camera.height, task.camera.width)
    types: dict[str, Array] = {"rgb": np.zeros((*shape, 3), np.uint8), "depth": np.zeros((*shape, 1), np.float32)}
    try:
        made = preprocess({image: types[image] for image in network.images}, operations)
    except PolicyError as error:
        raise CheckpointError(
            f"{path}: its transformers do not fit its camera: {error.message}", error.remedy
        ) from error
    sizes = {array.shape[:2] for array in made.values()}
    if len(sizes) > 1:
        raise CheckpointError(
            f"{path}: RGB and depth come out of its transformers in sizes {sizes}", "train with equal ones"
        )
    return sizes.pop()


def _manifest(
    checkpoint: Checkpoint, options: Options, network: DdppoConfig, task: Task, operations: tuple[Operation, ...]
) -> Manifest:
    cast = any(isinstance(step, Cast) for step in operations)
    size = (network.height, network.width)
    images = tuple(
        Need(image, image, "uint8" if image == "rgb" and not cast else "float32", (1, *size, CHANNELS[image]))
        for image in network.images
    )
    vectors = tuple(
        Need(
            sensor,
            sensor,
            "int64" if sensor == "objectgoal" else "float32",
            (1, 1 if sensor in ("objectgoal", "compass") else 2),
        )
        for sensor in network.sensors
    )
    name = f"habitat-baselines checkpoint {checkpoint.path.name}"
    return recurrent_manifest(
        options,
        network,
        task,
        sources=(Source(name, options.licence, checkpoint.sha256, options.source),),
        sensors=(*images, *vectors),
        preprocess=operations,
    )


def _original(network: DdppoConfig, operations: tuple[Operation, ...], tensors: Mapping[str, Array]) -> Original:
    """The original for the present framework, which puts depth first; an older network's channels are reordered."""
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
        "sensors": list(network.sensors),
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
    return Original("habitat.py", _POLICY, settings, tensors)
