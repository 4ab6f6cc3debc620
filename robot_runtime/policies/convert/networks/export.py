"""Export of a torch module to a package's model file, in each format."""

import io
import logging
import warnings
from typing import Any

import numpy as np
import torch
from torch import nn

from robot_runtime.policies.package.formats.network import Execution
from robot_runtime.policies.package.formats.torch_network import TorchNetwork
from robot_runtime.policies.package.manifest import Format, Manifest

OPSET = 20


def examples(manifest: Manifest) -> tuple[torch.Tensor, ...]:
    """Inputs of the manifest's types and shapes, in its order: small numbers, and a mask that is true."""
    random = np.random.default_rng(0)
    arrays = []
    for tensor in manifest.inputs:
        shape = [side or 1 for side in tensor.shape]
        numbers = random.random(shape) if tensor.dtype == "float32" else np.ones(shape)
        arrays.append(numbers.astype(tensor.dtype))
    return tuple(torch.from_numpy(array) for array in arrays)


def export(module: nn.Module, manifest: Manifest, format: Format) -> bytes:
    """Export a module as a model file.

    Args:
        module: takes the manifest's inputs in order and returns its outputs in order; is put in evaluation mode.
        manifest: manifest of the package.
        format: format of the file.
    """
    module.eval()
    file = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # about the exporters' internals
        if format == "onnx":
            logging.getLogger("torch.onnx").setLevel(logging.ERROR)
            program = torch.onnx.export(
                module,
                examples(manifest),
                input_names=[tensor.name for tensor in manifest.inputs],
                output_names=[tensor.name for tensor in manifest.outputs],
                opset_version=OPSET,
                dynamo=True,
                external_data=False,
                verbose=False,
            )
            assert program is not None
            return without_notes(program.model_proto).SerializeToString()  # type: ignore[no-any-return]
        if format == "torch_export":
            torch.export.save(torch.export.export(module, examples(manifest)), file)
        else:
            torch.jit.save(torch.jit.trace(module, examples(manifest)), file)  # type: ignore[no-untyped-call]
    return file.getvalue()


def without_notes(model: Any) -> Any:
    """Clear the exporter's notes in an ``onnx.ModelProto``: stack traces with this machine's paths."""
    graph = model.graph
    for part in (graph, *graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    return model


class EagerNetwork(TorchNetwork):
    """Network of a module in eager PyTorch, the reference of golden rollouts and exports."""

    def __init__(self, manifest: Manifest, module: nn.Module, threads: int = 1) -> None:
        module.eval()
        super().__init__(manifest, module, Execution(threads, "cpu"))
        self.runtime = f"eager {self.runtime}"
