"""Interface of networks, and the list of formats."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.errors import ConfigError, PolicyError
from robot_runtime.policies.package.manifest import Manifest

Array = NDArray[Any]

Device = Literal["auto", "cpu", "cuda"]

_OPENERS = {
    "onnx": "robot_runtime.policies.package.formats.onnx:open_onnx",
    "torch_export": "robot_runtime.policies.package.formats.torch_export:open_torch_export",
    "torchscript": "robot_runtime.policies.package.formats.torchscript:open_torchscript",
}


@dataclass(frozen=True)
class Execution:
    """Execution settings of a network.

    Attributes:
        threads: number of CPU threads within an operator. 1 by default: on a robot's few cores a second thread gains
            little and makes the slowest step many times as slow as the usual one under other load.
        device: ``auto`` takes CUDA where the installed runtime has it.
    """

    threads: int = 1
    device: Device = "auto"

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= 256:
            raise ConfigError(f"threads must lie in 1..256, got {self.threads}", "give at most the number of cores")
        if self.device not in get_args(Device):
            raise ConfigError(f"there is no device {self.device!r}", f"choose one of {', '.join(get_args(Device))}")


class Network(ABC):
    """A loaded network.

    Attributes:
        runtime: library with version, device and threads, for messages and logs.
    """

    runtime: str

    @abstractmethod
    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name. Inputs have the manifest's types and shapes and lie contiguously in memory.

        Raises:
            PolicyError: the network failed.
        """

    def close(self) -> None:
        """Release the network."""


def open_network(
    manifest: Manifest, data: bytes, execution: Execution | None = None, weights: Mapping[str, bytes] | None = None
) -> Network:
    """The network in a model file's bytes, and those of the files with its weights by name.

    Raises:
        PackageError: the file is damaged, of another format, contradicts the manifest, or uses forbidden operations.
        DriverMissing: the library that runs this format is not installed, or older than the manifest's minimum.
        PolicyError: there is no CUDA.
    """
    opener = config.resolve(_OPENERS[manifest.model.format], f"format {manifest.model.format}")
    more = (weights,) if weights else ()
    network: Network = opener(manifest, data, execution or Execution(), *more)
    return network


def check_runtime(library: str, found: str, minimum: str) -> None:
    """Check that a library is new enough. Raises ``PolicyError``."""
    if _version(found) < _version(minimum):
        raise PolicyError(
            f"the policy needs {library} {minimum} or later, installed is {found}", f"pip install -U '{library}'"
        )


def no_cuda(library: str) -> PolicyError:
    """The error where CUDA is asked for and a library finds none."""
    return PolicyError(
        f"the installed {library} finds no CUDA",
        f"use the CPU, --agent-arg device=cpu or of `policy validate` and `bench` --device cpu, or install {library} "
        "with CUDA",
    )


def check_array(name: str, array: Array, dtype: str, shape: Sequence[int | None]) -> None:
    """Check an array's type, and its shape where it does not grow, against the manifest. Raises ``ValueError``."""
    sides = zip(array.shape, shape, strict=False)
    if array.dtype != np.dtype(dtype) or array.ndim != len(shape) or any(s not in (side, None) for side, s in sides):
        raise ValueError(f"{name!r} is {array.dtype} {list(array.shape)}, in the manifest {dtype} {list(shape)}")


def _version(text: str) -> tuple[int, ...]:
    parts = text.split("+")[0].split(".")
    return tuple(int("".join(character for character in part if character.isdigit()) or 0) for part in parts[:3])
