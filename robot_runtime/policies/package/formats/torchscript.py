"""TorchScript networks, for old policies: torch deprecates the format.

Its programs run in this process. Operators that read and write files are refused by name (:mod:`.torch_archive`), but
TorchScript is a programming language: use such packages only from sources whose programs you would run.
"""

import re
import warnings
from collections.abc import Callable
from typing import Any

import torch

from robot_runtime.policies.package.formats.network import Execution, Network
from robot_runtime.policies.package.formats.torch_archive import checked_archive
from robot_runtime.policies.package.formats.torch_network import TorchNetwork, check_torch, device_of, not_taken
from robot_runtime.policies.package.manifest import Manifest

_COPIED = re.compile(r"(data\.pkl|constants\.pkl|version|byteorder|(data|constants|\.data)/[^/]+|code/.+\.py)")
_LEFT_OUT = re.compile(r"(code/.+\.debug_pkl|traced_inputs(\.pkl|/[^/]+))")
"""Members that are not needed: source locations, and the example of the tracing."""

_FORBIDDEN = re.compile(r"\b(?:torch\.(?:from_file|save|load)\b|ops\.(?!prim\b)\w+)")


def open_torchscript(manifest: Manifest, data: bytes, execution: Execution) -> Network:
    """Open such a file; see :func:`robot_runtime.policies.package.formats.network.open_network`."""
    check_torch(manifest)
    device = device_of(execution)
    return TorchNetwork(manifest, read_script(data, manifest.model.file, device), execution)


def read_script(data: bytes, name: str, device: torch.device | None = None) -> Any:
    """The module in a file's content, in evaluation mode. Raises ``PackageError``."""
    archive = checked_archive(data, name, _accept)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # see the module's docstring
            module = torch.jit.load(archive, map_location=device or "cpu")  # type: ignore[no-untyped-call]
            return module.eval()
    except Exception as error:  # mostly RuntimeError, and many types of its compiler
        raise not_taken(name, error) from error


def _accept(path: str, read: Callable[[], bytes]) -> bool:
    if _LEFT_OUT.fullmatch(path):
        return False
    if not _COPIED.fullmatch(path):
        raise ValueError(f"a TorchScript archive has no member {path!r}")
    if path.endswith(".py") and (found := _FORBIDDEN.search(read().decode("utf-8", errors="replace"))):
        raise ValueError(f"{path} calls {found[0]}, which is forbidden in a policy")
    return True
