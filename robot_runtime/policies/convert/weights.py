"""Loading of a checkpoint's tensors into a network."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from robot_runtime.errors import CheckpointError

_MAX_NAMES = 4


def load_weights(module: nn.Module, tensors: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Set all parameters and buffers of a module.

    Raises:
        CheckpointError: tensors are missing, unexpected or of other sizes; names them.
    """
    own = module.state_dict()
    missing, unexpected = sorted(own.keys() - tensors.keys()), sorted(tensors.keys() - own.keys())
    if missing or unexpected:
        parts = [
            f"{what} {_first_names(names)}" for what, names in (("no", missing), ("unexpected", unexpected)) if names
        ]
        raise CheckpointError(
            f"{path}: is not of this architecture: {'; '.join(parts)}",
            "check that it is a checkpoint of the policy that you mean, of this framework",
        )
    wrong = [
        f"{name} is {list(tensors[name].shape)} and should be {list(own[name].shape)}"
        for name in own
        if tuple(tensors[name].shape) != tuple(own[name].shape)
    ]
    if wrong:
        raise CheckpointError(
            f"{path}: sizes do not match: {_first_names(wrong)}",
            "check image size, transforms and categories: they decide the sizes of the network's layers",
        )
    with torch.no_grad():
        for name, target in own.items():
            target.copy_(torch.from_numpy(np.array(tensors[name])))


def without_prefix(tensors: Mapping[str, NDArray[Any]], prefixes: Iterable[str]) -> dict[str, NDArray[Any]]:
    """The tensors under a prefix, without it; all of them where none has it."""
    found = dict(tensors)
    for prefix in prefixes:
        if any(name.startswith(prefix) for name in found):
            found = {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}
    return found


def shape_of(
    path: Path, tensors: Mapping[str, NDArray[Any]], policy: str, name: str, dimensions: int
) -> tuple[int, ...]:
    """The shape of a tensor that every checkpoint of ``policy`` holds.

    Raises:
        CheckpointError: there is no such tensor of so many dimensions.
    """
    if name not in tensors or tensors[name].ndim != dimensions or 0 in tensors[name].shape:
        raise CheckpointError(
            f"{path}: has no {name} of {dimensions} dimensions, as {policy} has", f"give a checkpoint of {policy}"
        )
    return tensors[name].shape


def _first_names(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more
