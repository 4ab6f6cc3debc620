"""``torch.export`` programs, ``.pt2``: a graph of torch's own operators, and tensors."""

import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from robot_runtime.policies.package.formats.network import Execution, Network
from robot_runtime.policies.package.formats.torch_archive import checked_archive
from robot_runtime.policies.package.formats.torch_network import TorchNetwork, check_torch, device_of, not_taken
from robot_runtime.policies.package.manifest import Manifest

_PLAIN = re.compile(
    r"(archive_format|archive_version|byteorder|\.data/[^/]+|data/(weights|constants)/(weight|tensor)_\d+)"
)
_GRAPH = re.compile(r"models/[^/]+\.json")
_TENSORS = re.compile(r"data/(weights|constants)/[^/]+_config\.json")
_SAMPLE = re.compile(r"data/sample_inputs/[^/]+\.pt")

_OPERATOR = re.compile(
    r"torch\.ops\.aten\.(?!__)\w+\.(?!__)\w+|_operator\.(getitem|add|sub|mul|floordiv|eq|ne|lt|le|gt|ge)"
)
_SYMBOL = re.compile(r"-?\w{1,32}")
_CONTAINER = re.compile(r'"type":\s*(null|"builtins\.(?:tuple|list|dict)")')


def open_torch_export(manifest: Manifest, data: bytes, execution: Execution) -> Network:
    """Open such a file; see :func:`robot_runtime.policies.package.formats.network.open_network`."""
    check_torch(manifest)
    device = device_of(execution)
    return TorchNetwork(manifest, read_program(data, manifest.model.file).module().to(device), execution)


def read_program(data: bytes, name: str) -> torch.export.ExportedProgram:
    """The program in a file's content. Raises ``PackageError``."""
    archive = checked_archive(data, name, _accept)
    try:
        return torch.export.load(archive)
    except Exception as error:  # its reader and operators raise many types
        raise not_taken(name, error) from error


def _accept(path: str, read: Callable[[], bytes]) -> bool:
    if _SAMPLE.fullmatch(path):
        _check_sample(read())
    elif _TENSORS.fullmatch(path):
        _check_tensors(path, json.loads(read()))
    elif _GRAPH.fullmatch(path):
        _check_graph(path, json.loads(read()))
    elif not _PLAIN.fullmatch(path):
        raise ValueError(f"a .pt2 of tensors and torch's own operators has no member {path!r}")
    return True


def _check_sample(data: bytes) -> None:
    """Check that torch's restricted unpickler can read the exporter's pickled sample inputs."""
    try:
        torch.load(io.BytesIO(data), weights_only=True)
    except Exception as error:  # UnpicklingError, and many types for damaged pickles
        raise ValueError(f"its sample inputs are more than tensors: {error}") from error


def _check_tensors(path: str, document: Any) -> None:
    for item in _dictionaries(document):
        if item.get("use_pickle") is not False and "path_name" in item:
            raise ValueError(f"{path}: {item['path_name']!r} is a pickle, and pickles are programs")


def _check_graph(path: str, document: Any) -> None:
    for item in _dictionaries(document):
        if "target" in item and "inputs" in item and not _OPERATOR.fullmatch(str(item["target"])):
            raise ValueError(f"{path} calls {item['target']!r}, which is not an operator of torch's aten set")
        if "expr_str" in item and not _SYMBOL.fullmatch(str(item["expr_str"])):
            raise ValueError(f"{path} computes a size as {item['expr_str']!r}; export it with fixed sizes")
        if item.get("guards_code"):
            raise ValueError(f"{path} has guards, which are Python; export it with fixed sizes")
        for key in ("in_spec", "out_spec"):
            text = item.get(key) or ""
            if not isinstance(text, str) or text.count('"type"') != len(_CONTAINER.findall(text)):
                raise ValueError(f"{path}: inputs and outputs are more than tuples of tensors")


def _dictionaries(document: Any) -> Iterator[dict[str, Any]]:
    waiting = [document]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
