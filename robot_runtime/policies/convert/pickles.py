"""A pickle's content, as data and nothing else.

A pickle is a program that may call anything. Here it gets at no name of any module: tensors and plain containers are
built by our own functions, and whatever else it names becomes an :class:`Inert` that remembers what was asked of it.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

MAX_ELEMENTS = 1 << 31
"""Of one tensor. A stride of zero makes a huge tensor out of a single number."""

DTYPES: Mapping[str, str] = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "|i1",
    "ByteStorage": "|u1",
    "BoolStorage": "|b1",
}
"""Element types of torch's storages by class name; numpy has no bfloat16, which is half of a float32's bits."""


class UnsafePickle(ValueError):
    """The stream is no pickle, is damaged, or asks for what data does not need."""


class Inert:
    """Where a pickle had an object of a class that we do not run.

    Attributes:
        origin: ``module.name`` of the class or function. arguments: it was called with. state: of the object.
        items, values: what was put into it as a mapping, and as a list or set.
    """

    origin = ""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Inert:
        made = super().__new__(cls)
        made.arguments = arguments
        made.state = None
        made.items = {}
        made.values = []
        return made

    arguments: tuple[Any, ...]
    state: Any
    items: dict[Any, Any]
    values: list[Any]

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items[key] = value

    def append(self, value: Any) -> None:
        """Keep it."""
        self.values.append(value)

    def extend(self, values: Any) -> None:
        """Keep them."""
        self.values.extend(values)

    def add(self, value: Any) -> None:
        """Keep it."""
        self.values.append(value)

    def __call__(self, *arguments: Any) -> Inert:
        raise UnsafePickle(f"it calls what {self.origin} returned")

    def attribute(self, name: str) -> Any:
        """Of the object's state, None if it is not there."""
        for part in self.state if isinstance(self.state, tuple) else (self.state,):
            if isinstance(part, dict) and name in part:
                return part[name]
        return None


@dataclass(eq=False)
class Storage:
    """Numbers that tensors are cut from; ``data`` may be filled in after the pickle was read."""

    dtype: str
    count: int
    data: bytes | None = None

    def __setstate__(self, state: Any) -> None:
        raise UnsafePickle("it changes a storage")


@dataclass(frozen=True, eq=False)
class StoredTensor:
    """Where in a storage a tensor lies."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def __setstate__(self, state: Any) -> None:
        raise UnsafePickle("it changes a tensor")

    def array(self) -> NDArray[Any]:
        """The tensor, copied; bfloat16 as float32.

        Raises:
            UnsafePickle: it reaches beyond its storage, or is larger than any network's.
        """
        if len(self.shape) != len(self.strides) or min((self.offset, *self.shape, *self.strides)) < 0:
            raise UnsafePickle(f"a tensor of shape {self.shape} and strides {self.strides}")
        count = 1
        for side in self.shape:
            count *= side
        if count == 0:
            return np.zeros(self.shape, _element(self.storage.dtype))
        last = self.offset + sum((side - 1) * step for side, step in zip(self.shape, self.strides, strict=True))
        if count > min(MAX_ELEMENTS, max(self.storage.count, 1)) or last >= self.storage.count:
            raise UnsafePickle(f"a tensor of shape {self.shape} in a storage of {self.storage.count} numbers")
        flat = _numbers(self.storage)
        strides = tuple(step * flat.itemsize for step in self.strides)
        return np.array(np.lib.stride_tricks.as_strided(flat[self.offset :], self.shape, strides))


class DataUnpickler(pickle.Unpickler):
    """Reads one pickle; nothing that it names is ever imported.

    Args:
        file: at the pickle. storages: gives the storage of a persistent id; None where there are none.
    """

    def __init__(self, file: BinaryIO, storages: Callable[[Any], Any] | None = None) -> None:
        super().__init__(file, encoding="utf-8", errors="surrogateescape")
        self._storages = storages
        self._classes: dict[str, type[Inert]] = {}

    def find_class(self, module: str, name: str, /) -> Any:
        """One of our builders for tensors and containers, else an inert class."""
        build = _BUILDERS.get((module, name))
        if build is not None:
            return _Builder(build)
        origin = f"{module}.{name}"
        if origin not in self._classes:
            self._classes[origin] = type("Inert", (Inert,), {"origin": origin})
        return self._classes[origin]

    def persistent_load(self, pid: Any, /) -> Any:
        """The storage."""
        if self._storages is None:
            raise UnsafePickle("it refers to something outside of itself")
        return self._storages(pid)


def load(file: BinaryIO, storages: Callable[[Any], Any] | None = None) -> Any:
    """The next object of a stream.

    Raises:
        UnsafePickle: it is none, is damaged, or asks for what data does not need.
    """
    try:
        return DataUnpickler(file, storages).load()
    except UnsafePickle:
        raise
    except Exception as error:  # a damaged pickle makes the unpickler raise nearly every kind
        raise UnsafePickle(f"no readable pickle: {type(error).__name__}: {error}") from error


def load_bytes(data: bytes, storages: Callable[[Any], Any] | None = None) -> Any:
    """:func:`load` of bytes."""
    return load(io.BytesIO(data), storages)


def storage_type(found: Any) -> str:
    """Element type of a storage class in a persistent id. Raises ``UnsafePickle``."""
    name = found.origin if isinstance(found, type) and issubclass(found, Inert) else ""
    if not name.startswith("torch.") or name.rpartition(".")[2] not in DTYPES:
        raise UnsafePickle(f"a storage of type {name or found!r}")
    return DTYPES[name.rpartition(".")[2]]


def item_size(dtype: str) -> int:
    """Bytes of one element."""
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


def _element(dtype: str) -> np.dtype[Any]:
    return np.dtype(np.float32 if dtype == "bfloat16" else dtype)


def _numbers(storage: Storage) -> NDArray[Any]:
    if storage.data is None or len(storage.data) != storage.count * item_size(storage.dtype):
        raise UnsafePickle(f"a storage of {storage.count} numbers is not in the file in full")
    if storage.dtype == "bfloat16":
        return (np.frombuffer(storage.data, "<u2").astype(np.uint32) << 16).view(np.float32)
    if storage.dtype == "|b1":
        return np.asarray(np.frombuffer(storage.data, np.uint8) != 0)
    return np.frombuffer(storage.data, storage.dtype)


class _Builder:
    """A function that a pickle may call and cannot change."""

    __slots__ = ("_build",)

    def __init__(self, build: Callable[..., Any]) -> None:
        self._build = build

    def __call__(self, *arguments: Any) -> Any:
        return self._build(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise UnsafePickle("it changes a function")


class _Ordered(dict[Any, Any]):
    """An OrderedDict, less the attributes that torch hangs on it (``_metadata``)."""

    def __setstate__(self, state: Any) -> None:
        pass


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> StoredTensor:
    numbers = (offset, *shape, *strides)
    if not isinstance(storage, Storage) or not all(type(number) is int for number in numbers) or len(shape) > 16:
        raise UnsafePickle("a tensor that is not one")
    return StoredTensor(storage, offset, tuple(shape), tuple(strides))


def _parameter(data: Any, *_: Any) -> Any:
    return data


def _dict(pairs: Any = ()) -> dict[Any, Any]:
    if not isinstance(pairs, (list, tuple, dict)):
        raise UnsafePickle("a dictionary that is not one")
    return _Ordered(pairs)


def _tuple(values: Any = ()) -> tuple[Any, ...]:
    if not isinstance(values, (list, tuple)):
        raise UnsafePickle("a size that is not one")
    return tuple(values)


def _set(values: Any = ()) -> frozenset[Any]:
    if not isinstance(values, (list, tuple, set, frozenset)):
        raise UnsafePickle("a set that is not one")
    return frozenset(values)


_BUILDERS: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch", "Size"): _tuple,
    ("collections", "OrderedDict"): _dict,
    ("builtins", "dict"): _dict,
    ("builtins", "set"): _set,
    ("builtins", "frozenset"): _set,
    ("__builtin__", "set"): _set,
    ("__builtin__", "frozenset"): _set,
}
