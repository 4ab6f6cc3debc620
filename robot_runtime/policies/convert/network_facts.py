"""Facts in a network's file: names, types and shapes of its inputs and outputs, and its weights."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robot_runtime.errors import ConfigError, PackageError
from robot_runtime.policies.convert.checkpoint import family_of, read_checkpoint
from robot_runtime.policies.package.files import MAX_DATA_BYTES
from robot_runtime.policies.package.manifest import Format

_SUFFIXES: Mapping[str, Format] = {".onnx": "onnx", ".pt2": "torch_export"}
_QUANTIZED = ("Quantize", "Integer", "QLinear")


@dataclass(frozen=True)
class Port:
    """One input or output. A side that is not fixed is a name; a TorchScript's inputs have no known shape."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class NetworkFacts:
    """A network's file.

    Attributes:
        model: its content.
        weights: content of the files that it names.
        outputs: empty where they are known only after a run.
        quantized: whether it computes with integers, which processors round differently.
    """

    path: Path
    format: Format
    minimum_runtime: str
    model: bytes
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    opset: int | None = None
    weights: Mapping[str, bytes] = field(default_factory=dict)
    quantized: bool = False


def format_of(path: Path) -> Format | None:
    """The format of a network's file: by its name, or by its members if it is one of torch's; None of other files."""
    if not path.is_file() or path.suffix in _SUFFIXES:
        return _SUFFIXES.get(path.suffix) if path.is_file() else None
    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as archive:
        members = {name.partition("/")[2] for name in archive.namelist()}
    if any(name.startswith("models/") for name in members):
        return "torch_export"
    return "torchscript" if any(name.startswith("code/") for name in members) else None


def read_facts(path: Path) -> NetworkFacts:
    """Read a network's file; nothing of it is run.

    Raises:
        PackageError: it cannot be read, or is a checkpoint that can be converted.
        CheckpointError: it is neither, with what to do about it.
    """
    found = format_of(path)
    if found is None:
        family = family_of(read_checkpoint(path))
        raise PackageError(
            f"{path}: is a checkpoint of {family}",
            f"robot-runtime policy export {path} --out {path.with_suffix('.zip')} --license LICENSE",
        )
    model = _content(path)
    if found == "onnx":
        return _onnx(path, model)
    try:
        read = _torch_export if found == "torch_export" else _torchscript
        return read(path, model)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{path}: {found} needs {error.name!r}", "pip install 'robot-runtime[torch]'") from error


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_DATA_BYTES:
            raise PackageError(f"{path}: has more than {MAX_DATA_BYTES} bytes", "check that it is a network")
        return path.read_bytes()
    except OSError as error:
        raise PackageError(f"{path}: cannot be read: {error.strerror}", "copy it next to the network again") from error


def _onnx(path: Path, model: bytes) -> NetworkFacts:
    from robot_runtime.policies.package.formats.onnx import DTYPES, open_session
    from robot_runtime.policies.package.formats.onnx_file import read_onnx

    try:
        file = read_onnx(model)
        names = sorted(file.data - {""})
        if any(Path(name).name != name for name in names):
            raise ValueError(f"its weights are in {', '.join(names)}, not next to it")
        weights = {name: _content(path.parent / name) for name in names}
        session = open_session(model, weights=weights)
    except PackageError:
        raise
    except Exception as error:  # ONNX Runtime's own classes derive from Exception, one for each way to fail
        raise PackageError(f"{path}: not a readable ONNX network: {error}", "export it again") from error
    inputs, outputs = (
        [Port(one.name, DTYPES.get(one.type, one.type), tuple(s or "?" for s in one.shape)) for one in ports]
        for ports in (session.get_inputs(), session.get_outputs())
    )
    quantized = any(sign in operator for operator in file.operators for sign in _QUANTIZED)
    return NetworkFacts(path, "onnx", "1.20", model, inputs, outputs, file.opsets[""], weights, quantized)


def _torch_export(path: Path, model: bytes) -> NetworkFacts:
    import torch

    from robot_runtime.policies.package.formats.torch_export import read_program

    program = read_program(model, path.name)
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    inputs, outputs = (
        [Port(str(name), *_tensor(values[str(name)])) for name in names]
        for names in (program.graph_signature.user_inputs, program.graph_signature.user_outputs)
    )
    return NetworkFacts(path, "torch_export", torch.__version__.partition("+")[0], model, inputs, outputs)


def _tensor(value: Any) -> tuple[str, tuple[int, ...]]:
    return str(value.dtype).removeprefix("torch."), tuple(map(int, value.shape))


def _torchscript(path: Path, model: bytes) -> NetworkFacts:
    from robot_runtime.policies.package.formats.torchscript import read_script

    names = [argument.name for argument in read_script(model, path.name).forward.schema.arguments[1:]]
    return NetworkFacts(path, "torchscript", "2.6", model, [Port(name, "float32", ()) for name in names], [])
