"""Networks of the forms that people publish, a few hundred weights each: what a user's file is, for its packaging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, external_data_helper, helper, numpy_helper, save_model

Side = int | str
Port = tuple[str, str, Sequence[Side]]

_KINDS = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "uint8": TensorProto.UINT8,
    "bool": TensorProto.BOOL,
}


def network(inputs: Sequence[Port], outputs: Sequence[Port], growing: str = "") -> ModelProto:
    """An ONNX network: outputs are weighted means of all inputs; a state is ``tanh(state + mean)``.

    Args:
        inputs: name, type and shape of each.
        outputs: the same; one named ``NAME_out`` is the next value of the state ``NAME``.
        growing: name of a state to which each step appends one row.
    """
    random = np.random.default_rng(0)
    nodes, values = [], []
    initializers: dict[str, np.ndarray[Any, Any]] = {"one": np.array([1, 1], np.int64)}
    for name, _, _ in inputs:
        if name != growing:
            nodes.append(helper.make_node("Cast", [name], [f"{name}_f"], to=TensorProto.FLOAT))
            nodes.append(helper.make_node("ReduceMean", [f"{name}_f"], [f"{name}_m"], keepdims=0))
            nodes.append(helper.make_node("Reshape", [f"{name}_m", "one"], [f"{name}_v"]))
            values.append(f"{name}_v")
    nodes.append(helper.make_node("Concat", values, ["seen"], axis=1))
    for name, kind, shape in outputs:
        state = name.removesuffix("_out")
        numbers = [side for side in shape if isinstance(side, int)]
        if state == growing:
            initializers["weights_row"] = random.normal(0, 1, (len(values), int(np.prod(numbers)))).astype(np.float32)
            initializers["row_shape"] = np.array([side if isinstance(side, int) else 1 for side in shape], np.int64)
            nodes.append(helper.make_node("MatMul", ["seen", "weights_row"], ["row_flat"]))
            nodes.append(helper.make_node("Reshape", ["row_flat", "row_shape"], ["row"]))
            axis = next(index for index, side in enumerate(shape) if not isinstance(side, int))
            nodes.append(helper.make_node("Concat", [state, "row"], [name], axis=axis))
            continue
        size = int(np.prod(numbers))
        initializers[f"w_{name}"] = random.normal(0, 1.5, (len(values), size)).astype(np.float32)
        initializers[f"shape_{name}"] = np.array([side if isinstance(side, int) else 1 for side in shape], np.int64)
        nodes.append(helper.make_node("MatMul", ["seen", f"w_{name}"], [f"{name}_flat"]))
        nodes.append(helper.make_node("Reshape", [f"{name}_flat", f"shape_{name}"], [f"{name}_shaped"]))
        nodes.append(helper.make_node("Tanh", [f"{name}_shaped"], [f"{name}_tanh"]))
        nodes.append(helper.make_node("Cast", [f"{name}_tanh"], [name], to=_KINDS[kind]))
    graph = helper.make_graph(
        nodes,
        "zoo",
        [helper.make_tensor_value_info(name, _KINDS[kind], shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(name, _KINDS[kind], shape) for name, kind, shape in outputs],
        [numpy_helper.from_array(value, name) for name, value in initializers.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


DEPTH: Port = ("depth", "float32", (1, 16, 16, 1))
GOAL: Port = ("goal", "float32", (1, 2))
LOGITS: Port = ("logits", "float32", (1, 4))
SMALL_RGB: Port = ("rgb", "uint8", (1, 16, 16, 3))


@dataclass(frozen=True)
class Kind:
    """A kind of network's file.

    Attributes:
        inputs: see :func:`network`.
        outputs: see :func:`network`.
        growing: see :func:`network`.
        task: that a user has to say; None where the file is enough.
        rgb: the same.
        about: the same.
        needs: sensors that the package must need.
        answer: role of the answer.
        external: whether its weights are in another file.
        quantized: whether it is quantized to int8.
    """

    inputs: Sequence[Port]
    outputs: Sequence[Port]
    growing: str = ""
    task: str | None = None
    rgb: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    needs: Sequence[str] = ("depth", "pointgoal_with_gps_compass")
    answer: str = "logits"
    external: bool = False
    quantized: bool = False

    def write(self, path: Path) -> Path:
        """Write the file."""
        model = network(self.inputs, self.outputs, self.growing)
        if self.external:
            external_data_helper.convert_model_to_external_data(model, location=f"{path.name}.data", size_threshold=60)
        save_model(model, str(path))
        if self.quantized:
            from onnxruntime.quantization import quantize_dynamic

            quantize_dynamic(str(path), str(path), op_types_to_quantize=["MatMul"])
        return path


TRAJECTORY = {"timing": {"period_s": 0.25, "scale": 0.3}}

KINDS: dict[str, Kind] = {
    "rgbd": Kind([SMALL_RGB, DEPTH, GOAL], [LOGITS], needs=("rgb", "depth", "pointgoal_with_gps_compass")),
    "imagenet": Kind([("image", "float32", (1, 3, 16, 16)), GOAL], [LOGITS], rgb="imagenet",
                     needs=("rgb", "pointgoal_with_gps_compass")),
    "habitat lstm": Kind(
        [DEPTH, GOAL, ("rnn_hidden_states", "float32", (1, 4, 8)), ("prev_actions", "int64", (1, 1)),
         ("masks", "bool", (1, 1))],
        [LOGITS, ("value", "float32", (1, 1)), ("rnn_hidden_states_out", "float32", (1, 4, 8))],
    ),
    "gru": Kind([DEPTH, GOAL, ("h", "float32", (1, 1, 8)), ("prev_action", "int64", (1, 1))],
                [LOGITS, ("h_out", "float32", (1, 1, 8))], about={"prev_action": {"offset": 1}}),
    "separate h and c": Kind([DEPTH, GOAL, ("h0", "float32", (1, 1, 8)), ("c0", "float32", (1, 1, 8))],
                             [LOGITS, ("hn", "float32", (1, 1, 8)), ("cn", "float32", (1, 1, 8))]),
    "semantic objectnav": Kind([("semantic", "int64", (1, 16, 16, 1)), DEPTH, ("objectgoal", "int64", (1, 1))],
                               [("logits", "float32", (1, 6))], task="objectnav_hm3d2022",
                               needs=("semantic", "depth", "objectgoal")),
    "growing cache": Kind([DEPTH, GOAL, ("cache", "float32", (1, "past", 8))],
                          [LOGITS, ("cache_out", "float32", (1, "now", 8))], growing="cache"),
    "external data": Kind([DEPTH, GOAL], [LOGITS], external=True),
    "float16": Kind([("depth", "float16", (1, 16, 16, 1)), ("goal", "float16", (1, 2))],
                    [("logits", "float16", (1, 4))]),
    "int8": Kind([DEPTH, GOAL], [LOGITS], quantized=True),
    "dynamic axes": Kind([("depth", "float32", ("batch", "height", "width", 1)), ("goal", "float32", ("batch", 2))],
                         [("logits", "float32", ("batch", 4))]),
    "velocity": Kind([DEPTH, GOAL], [("cmd_vel", "float32", (1, 2))], about=TRAJECTORY, answer="velocity"),
    "chunk of actions": Kind([DEPTH, GOAL, ("prev_action", "int64", (1, 1))], [("logits", "float32", (1, 3, 4))],
                             about={"carry_out": 2}),
    "chunk of velocities": Kind([DEPTH, GOAL], [("cmd_vel", "float32", (1, 4, 2))], about=TRAJECTORY,
                                answer="velocity"),
    "waypoint": Kind([DEPTH, GOAL], [("waypoint", "float32", (1, 3))], about={"timing": {"period_s": 5.0}},
                     answer="waypoint"),
    "history of images": Kind(
        [("obs_img", "float32", (1, 18, 16, 16)), GOAL],
        [("dist_pred", "float32", (1, 1)), ("action_pred", "float32", (1, 5, 4))],
        rgb="imagenet", about=TRAJECTORY | {"obs_img": {"period_s": 0.25}},
        needs=("rgb", "pointgoal_with_gps_compass", "exposure"), answer="trajectory",
    ),
    "diffusion": Kind([("obs_img", "float32", (1, 12, 16, 16)), ("noise", "float32", (1, 8, 2)), GOAL],
                      [("traj", "float32", (1, 8, 2))], rgb="imagenet",
                      about={"timing": {"period_s": 0.25, "deltas": True}},
                      needs=("rgb", "pointgoal_with_gps_compass"), answer="trajectory"),
}  # fmt: skip
