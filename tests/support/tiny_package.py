"""A policy package of a few hundred weights, for tests: depth and goal in, four actions out, with a memory.

The network shrinks the preprocessed depth to nine averages and computes ``tanh(W [depth, goal, state, previous
action])``, the next state, where mask false wipes state and previous action; logits and value are linear in the state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.imaging.preprocess import CenterCrop, ResizeShortestEdge
from robot_runtime.policies.package.formats.network import Network
from robot_runtime.policies.package.golden import Golden, record
from robot_runtime.policies.package.manifest import Converter, Manifest, Model, Need, Proof, Selection, Source, Tensor
from robot_runtime.policies.package.writer import UNKNOWN_SHA256, UNPROVEN, golden_file, manifest_yaml, write_package
from robot_runtime.tasks.task import Success, Task, TrainingCamera

Array = NDArray[Any]

HIDDEN = 8
SIDE = 12
OPSET = 17

TASK = Task(
    name="tiny_pointnav",
    kind="pointnav",
    source="made for tests",
    actions=(Action.STOP, Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT),
    magnitudes=Magnitudes(forward_m=0.25, turn_deg=30.0, tilt_deg=30.0),
    sensors=("rgb", "depth", "gps", "compass", "pointgoal_with_gps_compass"),
    camera=TrainingCamera(32, 24, 79.0, 0.88, 0.1, 10.0, True),
    robot_radius_m=0.18,
    max_steps=30,
    success=Success("distance", distance_m=0.36),
)

MANIFEST = Manifest(
    schema=2,
    name="tiny",
    task=TASK,
    sources=(Source("random weights", "MIT"),),
    converter=Converter("tests", "1"),
    proof=UNPROVEN,
    model=Model("model.onnx", "onnx", UNKNOWN_SHA256, "1.17", OPSET),
    inputs=(
        Need("depth", "depth", "float32", (1, SIDE, SIDE, 1)),
        Need("goal", "pointgoal_with_gps_compass", "float32", (1, 2)),
        Need("state", "recurrent_state", "float32", (1, HIDDEN)),
        Need("previous", "previous_action", "int64", (1, 1)),
        Need("mask", "mask", "bool", (1, 1)),
    ),
    outputs=(
        Tensor("logits", "logits", "float32", (1, 4)),
        Tensor("value", "value", "float32", (1, 1)),
        Tensor("state_out", "recurrent_state", "float32", (1, HIDDEN)),
    ),
    preprocess=(ResizeShortestEdge(("depth",), SIDE, "torch_area"), CenterCrop(("depth",), SIDE, SIDE)),
    selection=Selection("argmax"),
    golden=golden_file(),
)


def weights(seed: int = 0) -> dict[str, Array]:
    """The network's weights."""
    random = np.random.default_rng(seed)
    shapes = {"w": (9 + 2 + HIDDEN + 1, HIDDEN), "w_logits": (HIDDEN, 4), "w_value": (HIDDEN, 1)}
    return {name: random.normal(0, 1.5, shape).astype(np.float32) for name, shape in shapes.items()}


class NumpyNetwork(Network):
    """The same network in numpy: the original that goldens are recorded from."""

    runtime = "numpy"

    def __init__(self, seed: int = 0) -> None:
        self._weights = weights(seed)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        mask = inputs["mask"].astype(np.float32)
        depth = inputs["depth"].reshape(3, 4, 3, 4).mean(axis=(1, 3)).reshape(1, 9)
        previous = inputs["previous"].astype(np.float32)
        features = np.concatenate([depth, inputs["goal"], inputs["state"] * mask, previous * mask], axis=1)
        state = np.tanh(features @ self._weights["w"])
        return {
            "logits": state @ self._weights["w_logits"],
            "value": state @ self._weights["w_value"],
            "state_out": state,
        }


def onnx_bytes(seed: int = 0, poison: float | None = None) -> bytes:
    """The same network as ONNX; ``poison`` is added to every logit."""
    initializers = {**weights(seed), "flat": np.array([1, 9], np.int64), "poison": np.float32(poison or 0.0)}
    nodes = [
        helper.make_node("Transpose", ["depth"], ["planes"], perm=[0, 3, 1, 2]),
        helper.make_node("AveragePool", ["planes"], ["pooled"], kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Reshape", ["pooled", "flat"], ["depth_flat"]),
        helper.make_node("Cast", ["mask"], ["mask_float"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["previous"], ["previous_float"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["state", "mask_float"], ["state_kept"]),
        helper.make_node("Mul", ["previous_float", "mask_float"], ["previous_kept"]),
        helper.make_node("Concat", ["depth_flat", "goal", "state_kept", "previous_kept"], ["features"], axis=1),
        helper.make_node("MatMul", ["features", "w"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["state_out"]),
        helper.make_node("MatMul", ["state_out", "w_logits"], ["clean_logits"]),
        helper.make_node("Add", ["clean_logits", "poison"], ["logits"]),
        helper.make_node("MatMul", ["state_out", "w_value"], ["value"]),
    ]
    kinds = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(t.name, kinds[t.dtype], t.shape) for t in MANIFEST.inputs],
        [helper.make_tensor_value_info(t.name, kinds[t.dtype], t.shape) for t in MANIFEST.outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in initializers.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    return bytes(model.SerializeToString())


def observations(count: int = 6, seed: int = 1) -> list[dict[str, Array]]:
    """Random observations of the tiny task."""
    random = np.random.default_rng(seed)
    camera = TASK.camera
    return [
        {
            "rgb": random.integers(0, 256, (camera.height, camera.width, 3), np.uint8),
            "depth": random.random((camera.height, camera.width, 1), np.float32),
            "gps": random.normal(size=2).astype(np.float32),
            "compass": random.normal(size=1).astype(np.float32),
            "pointgoal_with_gps_compass": random.normal(size=2).astype(np.float32),
        }
        for _ in range(count)
    ]


def golden(manifest: Manifest = MANIFEST, seed: int = 0) -> Golden:
    """A recorded rollout with two episodes."""
    return record(manifest, NumpyNetwork(seed), observations(), starts=(0, 4))


def write_unchecked(path: Path, manifest: Manifest, model: bytes, golden: Golden, proof: Proof = UNPROVEN) -> None:
    """Write a package as another program might: right hashes, and nothing proven."""
    rollout = golden.to_bytes()
    described = replace(
        manifest,
        proof=proof,
        model=replace(manifest.model, sha256=hashlib.sha256(model).hexdigest()),
        golden=replace(manifest.golden, sha256=hashlib.sha256(rollout).hexdigest(), steps=golden.steps),
    )
    path.mkdir(exist_ok=True)
    (path / "policy.yaml").write_text(manifest_yaml(described))
    (path / described.model.file).write_bytes(model)
    (path / described.golden.file).write_bytes(rollout)


def write_tiny(path: Path, manifest: Manifest = MANIFEST, seed: int = 0, **changes: Any) -> Path:
    """A good package, or one of another manifest; ``changes`` are of its fields."""
    write_package(path, replace(manifest, **changes), onnx_bytes(seed), golden(seed=seed))
    return path
