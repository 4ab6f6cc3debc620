"""Network that calls a torch function of tensors; shared by the formats that torch runs."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from typing_extensions import override

from robot_runtime.errors import PackageError, PolicyError, PolicyOutputError
from robot_runtime.policies.package.formats.network import Array, Execution, Network, check_runtime, no_cuda
from robot_runtime.policies.package.manifest import Manifest


def device_of(execution: Execution) -> torch.device:
    """The torch device. Raises ``PolicyError`` if CUDA is requested and missing."""
    cuda = torch.cuda.is_available()
    if execution.device == "cuda" and not cuda:
        raise no_cuda("torch")
    return torch.device("cuda" if cuda and execution.device != "cpu" else "cpu")


def check_torch(manifest: Manifest) -> None:
    """Check that torch is new enough. Raises ``PolicyError``."""
    check_runtime("torch", torch.__version__, manifest.model.minimum_runtime)


class TorchNetwork(Network):
    """Network of a function that takes inputs and returns outputs in the manifest's order.

    The number of threads is torch's, for the whole process.
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

    @override
    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        tensors = [torch.from_numpy(np.array(inputs[name])).to(self._device) for name in self._inputs]
        try:
            with torch.inference_mode():
                returned = self._function(*tensors)
        except Exception as error:  # operators raise many types
            remedy = _remedy(error, "check the package: robot-runtime policy validate")
            raise PolicyError(f"the network failed: {error!s:.1000}", remedy) from error
        outputs = returned if isinstance(returned, (tuple, list)) else (returned,)
        if len(outputs) != len(self._outputs) or not all(isinstance(output, torch.Tensor) for output in outputs):
            raise PolicyOutputError(
                f"the network returns {len(outputs)} outputs, the manifest has {len(self._outputs)} tensors",
                "correct 'outputs' in policy.yaml: all of them, in order",
            )
        return {name: output.cpu().numpy() for name, output in zip(self._outputs, outputs, strict=True)}


def not_taken(name: str, error: Exception) -> PackageError:
    """The error for a file that torch refuses."""
    return PackageError(
        f"{name}: torch {torch.__version__} does not take it: {error!s:.1000}",
        _remedy(error, "check that the file is complete, and the version with which it was written"),
    )


def _remedy(error: Exception, otherwise: str) -> str:
    on_gpu = "CUDA" in str(error) and not torch.cuda.is_available()
    return (
        "export it on the CPU, after model.cpu(): its program names a GPU, which is not here" if on_gpu else otherwise
    )
