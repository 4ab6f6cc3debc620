"""Reader of ``torch.save``'s files, old and new, and of TorchScript's weights, without torch and without running code.

The new format (torch 1.6 on) is a zip of ``data.pkl`` and one file for each storage; the old one is five pickles in a
row, then the storages (torch ``torch/serialization.py``). Published DD-PPO checkpoints are of the old one.
"""

import hashlib
import io
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import CheckpointError
from robot_runtime.policies.convert.pickles import (
    Inert,
    Storage,
    StoredTensor,
    UnsafePickle,
    item_size,
    load,
    load_bytes,
    storage_type,
)

MAX_BYTES = 1 << 32
_MAX_MEMBERS = 1 << 16
_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001

Array = NDArray[Any]
Family = Literal["habitat", "allenact"]


@dataclass(frozen=True)
class Checkpoint:
    """A file's content.

    Attributes:
        path: path of the file.
        data: plain containers, numbers, text, :class:`StoredTensor` and :class:`Inert`.
        sha256: SHA-256 of the file.
        suspect: functions that its pickles ask for and no checkpoint needs, such as ``os.system``; none was called.
    """

    path: Path
    sha256: str
    data: Any
    suspect: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence about each of ``suspect``."""
        return tuple(f"its pickle asks for {name}, which no network needs: it was not called" for name in self.suspect)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint's content without running code in it.

    Raises:
        CheckpointError: there is no such file, it is none of torch's, is damaged, or contains forbidden operations.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CheckpointError(f"{path}: has more than {MAX_BYTES} bytes", "check that it is a checkpoint")
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}", "give a checkpoint's path") from error
    suspect: dict[str, None] = {}
    try:
        read = _read_zip if content.startswith(b"PK\x03\x04") else _read_old
        data = read(content, suspect)
    except Exception as error:  # zipfile and its codecs raise many types for damaged files
        raise CheckpointError(
            f"{path}: is not a checkpoint that torch.save wrote: {error!s:.500}", "download or save it again"
        ) from error
    return Checkpoint(path, hashlib.sha256(content).hexdigest(), data, tuple(suspect))


def family_of(checkpoint: Checkpoint) -> Family:
    """The framework of a checkpoint. Raises ``CheckpointError`` if it is none of the known ones."""
    data = checkpoint.data if isinstance(checkpoint.data, dict) else {}
    if "model_state_dict" in data:
        return "allenact"
    names = data["state_dict"] if isinstance(data.get("state_dict"), dict) else data
    if any(str(name).removeprefix("actor_critic.").startswith("net.") for name in names):
        return "habitat"
    numbers = f"numbers without the network's code ({', '.join(str(name) for name in list(data)[:6])})"
    held = "a pickled program, which is not run" if isinstance(checkpoint.data, Inert) else numbers
    message = f"is neither a network nor a checkpoint of habitat-baselines or AllenAct: it holds {held}"
    raise CheckpointError(
        f"{checkpoint.path}: {'; '.join((message, *checkpoint.warnings))}",
        "export the network where its class is: torch.onnx.export(model.eval(), inputs, 'model.onnx'), then "
        "robot-runtime policy package model.onnx",
    )


def tensors_in(path: Path, found: Any, where: str) -> dict[str, Array]:
    """The arrays of a ``state_dict``.

    Raises:
        CheckpointError: it is no such mapping, or a tensor contradicts its storage or holds NaN or infinity.
    """
    if not isinstance(found, Mapping) or not found:
        raise CheckpointError(f"{path}: {where} has no tensors", "check that the checkpoint is of this framework")
    arrays = {}
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, StoredTensor):
            raise CheckpointError(
                f"{path}: {where}: {name!r} is not a tensor", "save the model's state_dict(), and nothing else, there"
            )
        try:
            array = value.array()
        except UnsafePickle as error:
            raise CheckpointError(f"{path}: {where}: {name}: {error}", "download or save it again") from error
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise CheckpointError(
                f"{path}: {where}: {name} holds {int((~np.isfinite(array)).sum())} numbers that are not finite",
                "the training had diverged: convert an earlier checkpoint",
            )
        arrays[name] = array
    return arrays


def state_of(path: Path, data: Any) -> dict[str, Array]:
    """The tensors of a module that was saved as ``state_dict`` or as TorchScript (``clip``'s files).

    Raises:
        CheckpointError: it is neither.
    """
    if isinstance(data, Inert):
        found: dict[str, StoredTensor] = {}
        _module_tensors(data, "", found, 0)
        return tensors_in(path, found, "the module")
    return tensors_in(path, data, "the file")


def _module_tensors(module: Inert, prefix: str, found: dict[str, StoredTensor], depth: int) -> None:
    state = module.state
    if not isinstance(state, dict) or depth > 64:
        return
    for name, value in state.items():
        if isinstance(value, StoredTensor):
            found[f"{prefix}{name}"] = value
        elif isinstance(value, Inert):
            _module_tensors(value, f"{prefix}{name}.", found, depth + 1)


def _read_zip(content: bytes, suspect: dict[str, None]) -> Any:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
        if len(names) > _MAX_MEMBERS or len(set(names)) < len(names):
            raise UnsafePickle("a zip with too many members, or two of the same name")
        if sum(member.compress_size for member in archive.infolist()) > len(content):
            raise UnsafePickle("a zip whose members share their bytes")
        pickles = [name for name in names if name.count("/") == 1 and name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise UnsafePickle("there is no data.pkl in it")
        root = pickles[0].removesuffix("data.pkl")
        if f"{root}byteorder" in names and _member(archive, f"{root}byteorder").strip() != b"little":
            raise UnsafePickle("its numbers are big-endian")
        storages: dict[str, Storage] = {}

        def storage(pid: Any) -> Storage:
            dtype, key, count = _storage_reference(pid)
            if key not in storages:
                storages[key] = Storage(dtype, count, _member(archive, f"{root}data/{key}"))
            return storages[key]

        return load_bytes(_member(archive, pickles[0]), storage, suspect.setdefault)


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).compress_type != zipfile.ZIP_STORED:  # so none is larger than the file
        raise UnsafePickle(f"{name} is compressed, which torch.save never does")
    return archive.read(name)


def _read_old(content: bytes, suspect: dict[str, None]) -> Any:
    file = io.BytesIO(content)
    if load(file) != _MAGIC or load(file) != _PROTOCOL:
        raise UnsafePickle("it begins like no checkpoint")
    system = load(file)
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise UnsafePickle("its numbers are big-endian")
    storages: dict[str, Storage] = {}

    def storage(pid: Any) -> Any:
        if isinstance(pid, tuple) and len(pid) > 1 and pid[0] == "module":
            return pid[1]  # a class with its source, where a module was pickled whole
        dtype, key, count = _storage_reference(pid)
        if len(pid) > 5 and pid[5] is not None:
            raise UnsafePickle("storages that are views, which torch wrote before 0.4")
        return storages.setdefault(key, Storage(dtype, count))

    data = load(file, storage, suspect.setdefault)
    keys = load(file)
    if not isinstance(keys, list) or set(keys) != set(storages):
        raise UnsafePickle("its storages are not those of its tensors")
    for key in keys:
        _fill(file, storages[key])
    return data


def _fill(file: BinaryIO, storage: Storage) -> None:
    size = file.read(8)
    if len(size) < 8 or struct.unpack("<q", size)[0] != storage.count:
        raise UnsafePickle("it ends before its storages do, or their sizes differ from its tensors'")
    storage.data = file.read(storage.count * item_size(storage.dtype))


def _storage_reference(pid: Any) -> tuple[str, str, int]:
    if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage":
        raise UnsafePickle("it refers to something that is not a storage")
    _, kind, key, _, count = pid[:5]
    if not isinstance(key, str) or not key.isdigit() or type(count) is not int or not 0 <= count <= MAX_BYTES:
        raise UnsafePickle(f"a storage named {key!r} of {count!r} numbers")
    return storage_type(kind), key, count
