"""Preprocessing of observations for a network: an ordered list of operations, each bit-exact.

The order is part of the policy: resize, then crop, is another image than crop, then resize. Each operation names the
keys that it changes and its arithmetic, so that two readers of a manifest compute the same bits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from robot_runtime.common import config
from robot_runtime.errors import PolicyError
from robot_runtime.imaging import kernels

Array = NDArray[Any]

Kernel = Literal[
    "torch_area", "torch_antialias", "torch_nearest", "pil_bilinear", "pil_bicubic", "cv2_area", "cv2_bilinear"
]

MAX_SIDE = 4096
"""Pixels; a manifest with larger sizes is damaged or malicious."""

_KERNELS: dict[str, Callable[[Array, int, int], Array]] = {name: getattr(kernels, name) for name in get_args(Kernel)}


@dataclass(frozen=True)
class _Operation(config.Strict):
    """Base class of the operations, with the keys that they change."""

    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.keys or len(set(self.keys)) < len(self.keys):
            raise ValueError(f"needs one key or more, each once, got {list(self.keys)}")

    def apply(self, array: Array) -> Array:
        """The changed array; the given one is not modified.

        Raises:
            ValueError: for an array of an unsupported shape or type.
        """
        raise TypeError(f"{type(self).__name__} is not an operation")


@dataclass(frozen=True)
class ResizeShortestEdge(_Operation):
    """Habitat's ``ResizeShortestEdge``: both sides times ``size / shorter side``, truncated to integers.

    ``habitat_baselines/utils/common.py``, ``image_resize_shortest_edge``: the scale is a double, the sides are
    ``int(side * scale)``, uint8 is truncated.
    """

    size: int
    kernel: Kernel
    op: Literal["resize_shortest_edge"] = "resize_shortest_edge"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sides(self.size)

    @override
    def apply(self, array: Array) -> Array:
        height, width = _image(array, self.kernel).shape[:2]
        scale = self.size / min(height, width)
        height, width = int(height * scale), int(width * scale)
        if not (0 < height <= MAX_SIDE and 0 < width <= MAX_SIDE):
            raise ValueError(f"an image of {array.shape} would become {height}x{width}")
        return array if array.shape[:2] == (height, width) else _KERNELS[self.kernel](array, height, width)


@dataclass(frozen=True)
class Resize(_Operation):
    """Resize to a size, regardless of the aspect ratio."""

    height: int
    width: int
    kernel: Kernel
    op: Literal["resize"] = "resize"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sides(self.height, self.width)

    @override
    def apply(self, array: Array) -> Array:
        _image(array, self.kernel)
        if array.shape[:2] == (self.height, self.width):
            return array
        return _KERNELS[self.kernel](array, self.height, self.width)


@dataclass(frozen=True)
class ResizeWithPad(_Operation):
    """Resize to fit into a size, proportions kept, and center it in zeros; what is left over is right and below.

    openpi's ``resize_with_pad``, and NavDP's ``process_image`` where what is left over is even.
    """

    height: int
    width: int
    kernel: Kernel
    op: Literal["resize_with_pad"] = "resize_with_pad"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sides(self.height, self.width)

    @override
    def apply(self, array: Array) -> Array:
        rows, columns, channels = _image(array, self.kernel).shape
        whole = round if self.kernel.startswith("cv2") else int
        scale = max(rows / self.height, columns / self.width)
        rows, columns = max(whole(rows / scale), 1), max(whole(columns / scale), 1)
        top, left = (self.height - rows) // 2, (self.width - columns) // 2
        padded = np.zeros((self.height, self.width, channels), array.dtype)
        padded[top : top + rows, left : left + columns] = Resize(self.keys, rows, columns, self.kernel).apply(array)
        return padded


@dataclass(frozen=True)
class CenterCrop(_Operation):
    """Habitat's ``CenterCropper``, from ``side // 2 - size // 2`` on."""

    height: int
    width: int
    op: Literal["center_crop"] = "center_crop"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sides(self.height, self.width)

    @override
    def apply(self, array: Array) -> Array:
        height, width = _image(array).shape[:2]
        if height < self.height or width < self.width:
            raise ValueError(f"cannot crop {self.height}x{self.width} out of {height}x{width}")
        top, left = height // 2 - self.height // 2, width // 2 - self.width // 2
        return array[top : top + self.height, left : left + self.width]


@dataclass(frozen=True)
class NormalizeRange(_Operation):
    """Clip to ``[low, high]``, then ``(x - low) / (high - low)``, in float32: Habitat's rule for depth in meters."""

    low: float
    high: float
    op: Literal["normalize_range"] = "normalize_range"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_range(self.low, self.high)

    @override
    def apply(self, array: Array) -> Array:
        low = np.float32(self.low)
        clipped = np.clip(_float(array), low, np.float32(self.high))
        return np.asarray((clipped - low) / np.float32(self.high - self.low))


@dataclass(frozen=True)
class Clip(_Operation):
    """Clip to ``[low, high]``, in float32."""

    low: float
    high: float
    op: Literal["clip"] = "clip"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_range(self.low, self.high)

    @override
    def apply(self, array: Array) -> Array:
        return np.clip(_float(array), np.float32(self.low), np.float32(self.high))


@dataclass(frozen=True)
class Divide(_Operation):
    """Divide by a number, in float32, such as colors by 255."""

    by: float
    op: Literal["divide"] = "divide"

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.float32(self.by) == 0:
            raise ValueError(f"cannot divide by {self.by}")

    @override
    def apply(self, array: Array) -> Array:
        return np.asarray(array.astype(np.float32) / np.float32(self.by))


@dataclass(frozen=True)
class Standardize(_Operation):
    """``(x - mean) / std`` per channel, the last axis, in float32."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    op: Literal["standardize"] = "standardize"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.mean) != len(self.std) or not self.mean or np.array(self.std, np.float32).min() <= 0:
            raise ValueError(f"needs a mean and a positive std per channel, got {self.mean} and {self.std}")

    @override
    def apply(self, array: Array) -> Array:
        if not array.ndim or array.shape[-1] != len(self.mean):
            raise ValueError(f"has {len(self.mean)} channels, the array has shape {array.shape}")
        return np.asarray((_float(array) - np.array(self.mean, np.float32)) / np.array(self.std, np.float32))


@dataclass(frozen=True)
class ChannelOrder(_Operation):
    """Channel ``order[i]`` becomes channel ``i``: ``[2, 1, 0]`` makes BGR of RGB."""

    order: tuple[int, ...]
    op: Literal["channel_order"] = "channel_order"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.order or sorted(self.order) != list(range(len(self.order))):
            raise ValueError(f"order must name each channel once, got {list(self.order)}")

    @override
    def apply(self, array: Array) -> Array:
        if _image(array).shape[2] != len(self.order):
            raise ValueError(f"has {len(self.order)} channels, the image has {array.shape[2]}")
        return array[:, :, list(self.order)]


@dataclass(frozen=True)
class ChannelsFirst(_Operation):
    """Transpose (H, W, C) to (C, H, W)."""

    op: Literal["channels_first"] = "channels_first"

    @override
    def apply(self, array: Array) -> Array:
        return np.moveaxis(_image(array), 2, 0)


@dataclass(frozen=True)
class Cast(_Operation):
    """Cast to another type; floats are truncated to integers, and must lie in the type's range."""

    dtype: Literal["uint8", "int32", "int64", "float32"]
    op: Literal["cast"] = "cast"

    @override
    def apply(self, array: Array) -> Array:
        wanted = np.dtype(self.dtype)
        if wanted.kind in "iu" and array.size:
            limits, low, high = np.iinfo(wanted), array.min(), array.max()
            if not limits.min <= low <= high <= limits.max:  # NaN is not there either
                raise ValueError(f"values from {low} to {high} do not fit into {self.dtype}")
        return array.astype(wanted)


Operation = Annotated[
    ResizeShortestEdge
    | Resize
    | ResizeWithPad
    | CenterCrop
    | NormalizeRange
    | Clip
    | Divide
    | Standardize
    | ChannelOrder
    | ChannelsFirst
    | Cast,
    Field(discriminator="op"),
]


def preprocess(observation: Mapping[str, Array], operations: Sequence[Operation]) -> dict[str, Array]:
    """The observation after all operations, in order. Keys that none names are passed on, not copied.

    Raises:
        PolicyError: an operation names a missing key, or an array of an unsupported shape or type; says which.
    """
    result = dict(observation)
    for position, operation in enumerate(operations):
        where = f"preprocessing, operation {position} ({operation.op})"
        for key in operation.keys:
            if key not in result:
                raise PolicyError(f"{where}: there is no {key!r}", f"use one of {', '.join(result)}")
            try:
                result[key] = operation.apply(result[key])
            except ValueError as error:
                raise PolicyError(f"{where} of {key!r}: {error}", "correct the policy's preprocessing") from error
    return result


def _check_sides(*sides: int) -> None:
    if not all(0 < side <= MAX_SIDE for side in sides):
        raise ValueError(f"sides must lie in 1..{MAX_SIDE} pixels, got {sides}")


def _check_range(low: float, high: float) -> None:
    if not np.float32(low) < np.float32(high):
        raise ValueError(f"need low < high, got {low} and {high}")


def _image(array: Array, kernel: Kernel | None = None) -> Array:
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(f"takes an image (H, W, C), got an array of shape {array.shape}")
    if kernel not in (None, "torch_nearest") and array.dtype not in (np.uint8, np.float32):
        raise ValueError(f"{kernel} averages uint8 or float32, got {array.dtype}")
    if kernel in ("pil_bilinear", "pil_bicubic") and (array.dtype.name, array.shape[2]) not in (
        ("uint8", 3),
        ("float32", 1),
    ):
        raise ValueError(f"{kernel} takes uint8 (H, W, 3) or float32 (H, W, 1), got {array.dtype} {array.shape}")
    return array


def _float(array: Array) -> Array:
    if array.dtype != np.float32:
        raise ValueError(f"takes float32, got {array.dtype}: divide or cast first")
    return array
