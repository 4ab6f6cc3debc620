"""Test networks as detectors: one convolution, or constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from onnx import TensorProto, helper, numpy_helper

LABELS = ("", "sofa", "bed")


def write(folder: Path, nodes: list[Any], shapes: dict[str, list[int | str]], **description: Any) -> Path:
    """A network on 8x8 images with its description."""
    shown = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 8, 8])]
    kinds = {"labels": TensorProto.INT64}
    made = [helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), s) for n, s in shapes.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "test", shown, made), opset_imports=[helper.make_opsetid("", 17)], ir_version=9
    )
    onnx.save(model, folder / "model.onnx")
    file = folder / "detector.yaml"
    content = {"model": "model.onnx", "labels": list(LABELS), "width": 8, "height": 8, "outputs": list(shapes)}
    file.write_text(yaml.safe_dump(content | description))
    return file


def constant(name: str, values: Any) -> Any:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(values)))


def masks(folder: Path, gain: float = 20.0, **description: Any) -> Path:
    """Red pixels are a sofa, blue ones a bed, others nothing."""
    weights = gain * np.array([[0, 0, 0], [1, -1, -1], [-1, -1, 1]], np.float32).reshape(3, 3, 1, 1)
    bias = gain * np.array([0.0, -0.2, -0.2], np.float32)
    nodes = [constant("w", weights), constant("b", bias), helper.make_node("Conv", ["image", "w", "b"], ["logits"])]
    return write(folder, nodes, {"logits": [1, 3, 8, 8]}, kind="masks", **description)


def boxes(folder: Path, found: list[tuple[list[float], float, int]], **description: Any) -> Path:
    """Always the same boxes, scores and labels."""
    nodes = [
        constant("boxes", np.array([[box for box, _, _ in found]], np.float32).reshape(1, -1, 4)),
        constant("scores", np.array([[score for _, score, _ in found]], np.float32)),
        constant("labels", np.array([[label for _, _, label in found]], np.int64)),
    ]
    shapes: dict[str, list[int | str]] = {"boxes": [1, "n", 4], "scores": [1, "n"], "labels": [1, "n"]}
    return write(folder, nodes, shapes, kind="boxes", **description)
