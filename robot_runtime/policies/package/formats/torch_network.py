"""A torch function of tensors as a network; shared by the formats that torch runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from robot_runtime.errors import PackageError, PolicyError, PolicyOutputError
from robot_runtime.policies.package.formats.network import Array, Execution, Network, check_runtime
from robot_runtime.policies.package.manifest import Manifest


def device_of(execution: Execution) -> torch.device:
    """Where to run. Raises ``PolicyError`` where CUDA is asked for and there is none."""
    cuda = torch.cuda.is_available()
    if execution.device == "cuda" and not cuda:
        raise PolicyError("the installed torch finds no CUDA", "install torch with CUDA, or use device=cpu")
    return torch.device("cuda" if cuda and execution.device != "cpu" else "cpu")


def check_torch(manifest: Manifest) -> None:
    """Whether torch is new enough. Raises ``PolicyError``."""
    check_runtime("torch", torch.__version__, manifest.model.minimum_runtime)


class TorchNetwork(Network):
    """Calls a function with the inputs in the manifest's order; it returns the outputs in the manifest's order.

    Threads are torch's, for the whole process: torch has no others.
    """

    def __init__(self, manifest: Manifest, function: Callable[..., Any], execution: Execution) -> None:
        self._function = function
        self._inputs = [tensor.name for tensor in manifest.inputs]
        self._outputs = [tensor.name for tensor in manifest.outputs]
        self._device = device_of(execution)
        torch.set_num_threads(execution.threads)
        # TensorFloat-32 rounds to 10 bits; the package was proved with 23.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        self.runtime = f"torch {torch.__version__}, {self._device.type.upper()}, threads {execution.threads}"

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        tensors = [torch.from_numpy(np.array(inputs[name])).to(self._device) for name in self._inputs]
        try:
            with torch.inference_mode():
                returned = self._function(*tensors)
        except Exception as error:  # whatever an operator raises
            raise PolicyError(
                f"the network failed: {error}", "check the package: robot-runtime policy validate"
            ) from error
        outputs = returned if isinstance(returned, (tuple, list)) else (returned,)
        if len(outputs) != len(self._outputs) or not all(isinstance(output, torch.Tensor) for output in outputs):
            raise PolicyOutputError(
                f"the network returns {len(outputs)} outputs, the manifest has {len(self._outputs)} tensors",
                "correct 'outputs' in policy.yaml: all of them, in order",
            )
        return {name: output.cpu().numpy() for name, output in zip(self._outputs, outputs, strict=True)}


def not_taken(manifest: Manifest, error: Exception) -> PackageError:
    """For a file that torch itself refuses."""
    return PackageError(
        f"{manifest.model.file}: torch {torch.__version__} does not take it: {error}",
        "check that the file is whole, and the version with which it was written",
    )
