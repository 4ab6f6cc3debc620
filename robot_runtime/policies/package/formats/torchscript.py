"""TorchScript, for policies of the past: torch itself deprecates it.

Its programs run in this process. Reading and writing files is refused by name (:mod:`.torch_archive`), but it stays a
programming language: take such packages only from people whose programs you would run.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import torch

from robot_runtime.policies.package.formats.network import Execution, Network
from robot_runtime.policies.package.formats.torch_archive import checked_archive
from robot_runtime.policies.package.formats.torch_network import TorchNetwork, check_torch, device_of, not_taken
from robot_runtime.policies.package.manifest import Manifest

_KEPT = re.compile(r"(data\.pkl|constants\.pkl|version|byteorder|(data|constants|\.data)/[^/]+|code/.+\.py)")
_LEFT_OUT = re.compile(r"(code/.+\.debug_pkl|traced_inputs(\.pkl|/[^/]+))")
"""Where a program came from in its source, and the example that it was traced with: neither is needed."""

_FORBIDDEN = re.compile(r"\b(?:torch\.(?:from_file|save|load)\b|ops\.(?!prim\b)\w+)")


def open_torchscript(manifest: Manifest, data: bytes, execution: Execution) -> Network:
    """See :func:`robot_runtime.policies.package.formats.network.open_network`."""
    check_torch(manifest)
    archive = checked_archive(data, manifest.model.file, _accept)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # known, and said above
            module = torch.jit.load(archive, map_location=device_of(execution))  # type: ignore[no-untyped-call]
            module.eval()
    except Exception as error:  # RuntimeError in the main, and whatever its compiler finds
        raise not_taken(manifest, error) from error
    return TorchNetwork(manifest, module, execution)


def _accept(path: str, read: Callable[[], bytes]) -> bool:
    if _LEFT_OUT.fullmatch(path):
        return False
    if not _KEPT.fullmatch(path):
        raise ValueError(f"a TorchScript archive has no member {path!r}")
    if path.endswith(".py") and (found := _FORBIDDEN.search(read().decode("utf-8", errors="replace"))):
        raise ValueError(f"{path} calls {found[0]}, which a policy has no use for")
    return True
