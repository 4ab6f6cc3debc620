"""Reader of a pickle's content as data.

A pickle is a program that may call any function. Here it has no access to modules: tensors and plain containers are
built by functions of this module, and every other name becomes an :class:`Inert` that records its use.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

MAX_ELEMENTS = 1 << 31
"""Upper bound of a tensor's size. A stride of zero makes a huge tensor out of a single number."""

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
"""Element types of torch's storages by class name; numpy has no bfloat16, the upper half of a float32's bits."""


class UnsafePickle(ValueError):
    """The stream is not a pickle, is damaged, or contains forbidden operations."""


class Inert:
    """Placeholder of an object whose class is not imported.

    Attributes:
        origin: ``module.name`` of the class or function.
        arguments: arguments of the call.
        state: state of the object.
        items: items of the object as a mapping.
        values: values of the object as a list or set.
    """

    origin = ""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Inert:
        """Create a placeholder; pickles may do so without a call of ``__init__``."""
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
        """Record a list item."""
        self.values.append(value)

    def extend(self, values: Any) -> None:
        """Record list items."""
        self.values.extend(values)

    def add(self, value: Any) -> None:
        """Record a set item."""
        self.values.append(value)

    def __call__(self, *arguments: Any) -> Inert:
        """Raise ``UnsafePickle``."""
        raise UnsafePickle(f"it calls what {self.origin} returned")

    def attribute(self, name: str) -> Any:
        """An attribute in the object's state; None if there is none."""
        for part in self.state if isinstance(self.state, tuple) else (self.state,):
            if isinstance(part, dict) and name in part:
                return part[name]
        return None


@dataclass(eq=False)
class Storage:
    """Storage of tensors; ``data`` may be set after the pickle is read."""

    dtype: str
    count: int
    data: bytes | None = None

    def __setstate__(self, state: Any) -> None:
        raise UnsafePickle("it changes a storage")


@dataclass(frozen=True, eq=False)
class StoredTensor:
    """A tensor as a view of a storage; offset and strides in elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def __setstate__(self, state: Any) -> None:
        raise UnsafePickle("it changes a tensor")

    def array(self) -> NDArray[Any]:
        """A copy of the tensor; bfloat16 as float32.

        Raises:
            UnsafePickle: it reaches beyond its storage, or is too large.
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


class DataUnpickler(pickle._Unpickler):
    """Unpickler of a pickle that imports nothing.

    The one in Python: that in C takes gigabytes for a ten-byte pickle that stores a value under a large number.

    Args:
        file: positioned at the pickle.
        storages: returns the storage of a persistent id; None if the pickle must not have any.

    Attributes:
        suspect: names of functions and classes in the pickle that no checkpoint needs, such as ``os.system``.
    """

    def __init__(self, file: BinaryIO, storages: Callable[[Any], Any] | None = None) -> None:
        super().__init__(file, encoding="utf-8", errors="surrogateescape")
        self._storages = storages
        self._classes: dict[str, type[Inert]] = {}
        self.suspect: list[str] = []

    def find_class(self, module: str, name: str, /) -> Any:
        """A builder of tensors or containers, else a class of placeholders."""
        build = _BUILDERS.get((module, name))
        if build is not None:
            return _Builder(build)
        origin = f"{module}.{name}"
        if origin not in self._classes:
            if _is_suspect(module, name):
                self.suspect.append(origin)
            self._classes[origin] = type("Inert", (Inert,), {"origin": origin})
        return self._classes[origin]

    def persistent_load(self, pid: Any, /) -> Any:
        """The storage of a persistent id."""
        if self._storages is None:
            raise UnsafePickle("it refers to something outside of itself")
        return self._storages(pid)


def load(
    file: BinaryIO, storages: Callable[[Any], Any] | None = None, on_suspect: Callable[[str], None] | None = None
) -> Any:
    """Read the next pickle of a stream.

    Args:
        file: positioned at the pickle.
        storages: returns the storage of a persistent id; None if the pickle must not have any.
        on_suspect: called with each of :attr:`DataUnpickler.suspect`; nothing of it is called or imported.

    Raises:
        UnsafePickle: it is not a pickle, is damaged, or contains forbidden operations.
    """
    unpickler = DataUnpickler(file, storages)
    try:
        data = unpickler.load()
    except UnsafePickle:
        raise
    except Exception as error:  # damaged pickles raise many types
        raise UnsafePickle(f"no readable pickle: {type(error).__name__}: {error}") from error
    if on_suspect is not None:
        for origin in unpickler.suspect:
            on_suspect(origin)
    return data


def load_bytes(
    data: bytes, storages: Callable[[Any], Any] | None = None, on_suspect: Callable[[str], None] | None = None
) -> Any:
    """:func:`load` of bytes."""
    return load(io.BytesIO(data), storages, on_suspect)


def _is_suspect(module: str, name: str) -> bool:
    """Whether a name is of Python itself and no container or value, or of torch's loaders."""
    top = module.partition(".")[0]
    if top in ("builtins", "__builtin__"):
        return name not in _PLAIN_BUILTINS
    if (module, name) == ("_operator", "getitem"):  # of a type like dict[str, int]
        return False
    return (top in sys.stdlib_module_names and top not in _PLAIN_MODULES) or module in (
        "torch.hub",
        "torch.serialization",
    )


def storage_type(found: Any) -> str:
    """Element type of a storage class in a persistent id. Raises ``UnsafePickle``."""
    name = found.origin if isinstance(found, type) and issubclass(found, Inert) else ""
    if not name.startswith("torch.") or name.rpartition(".")[2] not in DTYPES:
        raise UnsafePickle(f"a storage of type {name or found!r}")
    return DTYPES[name.rpartition(".")[2]]


def item_size(dtype: str) -> int:
    """Bytes of an element."""
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
    """Function that a pickle may call but not change."""

    __slots__ = ("_build",)

    def __init__(self, build: Callable[..., Any]) -> None:
        self._build = build

    def __call__(self, *arguments: Any) -> Any:
        return self._build(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise UnsafePickle("it changes a function")


class _Ordered(dict[Any, Any]):
    """Dictionary that ignores the attributes of torch's OrderedDict (``_metadata``)."""

    def __setstate__(self, state: Any) -> None:
        pass


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> StoredTensor:
    numbers = (offset, *shape, *strides)
    if not isinstance(storage, Storage) or not all(type(number) is int for number in numbers) or len(shape) > 16:
        raise UnsafePickle("a tensor that is not one")
    return StoredTensor(storage, offset, tuple(shape), tuple(strides))


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


# fmt: off
_PLAIN_BUILTINS = frozenset((
    "Ellipsis", "bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "long", "object",
    "range", "set", "slice", "str", "tuple", "unicode", "xrange",
))
_PLAIN_MODULES = frozenset((
    "_codecs", "argparse", "collections", "copyreg", "datetime", "decimal", "enum", "fractions", "functools", "numbers",
    "pathlib", "types", "typing", "uuid",
))
# fmt: on
"""Modules of the standard library whose objects configurations and optimizers hold."""

_BUILDERS: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
    ("torch", "Size"): _tuple,
    ("collections", "OrderedDict"): _dict,
    ("builtins", "dict"): _dict,
    ("builtins", "set"): _set,
    ("builtins", "frozenset"): _set,
    ("__builtin__", "set"): _set,
    ("__builtin__", "frozenset"): _set,
}
