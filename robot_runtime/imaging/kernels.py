"""Resampling kernels of the training frameworks, bit-exact or within 1e-6.

They are not interchangeable: torch's "area" averages over adaptive bins that overlap, OpenCV's ``INTER_AREA`` over
fractional pixels; Pillow's bilinear and torch's with ``antialias`` are a triangle whose width follows the reduction,
OpenCV's one of two pixels. Their results differ by up to ten gray levels, or more where they skip pixels.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def torch_area(image: Array, height: int, width: int) -> Array:
    """``torch.nn.functional.interpolate(mode="area")`` of an image, cast back to its type as habitat-lab does.

    Output pixel ``i`` of ``n`` is the mean over input pixels ``floor(i * size / n)`` to ``ceil((i + 1) * size / n)``,
    in rows as in columns (torch ``aten/src/ATen/native/AdaptivePooling.h``). The cast truncates.

    Args:
        image: (H, W, C), uint8 or float32.
        height: height of the result.
        width: width of the result.

    Returns:
        (height, width, C), of the same type. uint8 exactly as torch's; float32 within 1e-6 relative.
    """
    row_start, row_count = _bins(image.shape[0], height)
    column_start, column_count = _bins(image.shape[1], width)
    exact = image.dtype == np.uint8
    wide = np.uint32 if exact else np.float32
    rows = _window_sums(image, row_start, row_count, 0, np.dtype(np.uint16 if _fits(row_count) and exact else wide))
    sums = _window_sums(rows, column_start, column_count, 1, np.dtype(wide))
    counts = row_count[:, None, None] * column_count[None, :, None]
    if exact:
        return (sums // counts.astype(np.uint32)).astype(np.uint8)
    return (sums / counts.astype(np.float32)).astype(image.dtype)


def pil(image: Array, height: int, width: int, kernel: str) -> Array:
    """``PIL.Image.resize((width, height), kernel)``: bilinear for AllenAct; bicubic, the default, for GNM and ViNT.

    Args:
        image: uint8 (H, W, 3), or float32 (H, W, 1).
        height: height of the result.
        width: width of the result.
        kernel: name of a ``PIL.Image.Resampling``.

    Returns:
        (height, width, C), of the same type.
    """
    from PIL import Image

    plane = image if image.shape[2] == 3 else image[:, :, 0]
    resized = Image.fromarray(np.ascontiguousarray(plane)).resize((width, height), Image.Resampling[kernel])
    return np.asarray(resized, image.dtype).reshape(height, width, image.shape[2])


def opencv(image: Array, height: int, width: int, kernel: str) -> Array:
    """``cv2.resize((width, height), interpolation=kernel)``, whose default is ``INTER_LINEAR``, bilinear of two pixels.

    Arguments and result are those of :func:`torch_antialias`.
    """
    import cv2

    resized = cv2.resize(image, (width, height), interpolation=getattr(cv2, kernel))
    return np.asarray(resized).reshape(height, width, -1)


pil_bilinear, pil_bicubic = partial(pil, kernel="BILINEAR"), partial(pil, kernel="BICUBIC")
cv2_area, cv2_bilinear = partial(opencv, kernel="INTER_AREA"), partial(opencv, kernel="INTER_LINEAR")


def torch_nearest(image: Array, height: int, width: int) -> Array:
    """``torch.nn.functional.interpolate(mode="nearest")``: pixel ``floor(i * (size / n))``, in float32 as torch does.

    Args:
        image: (H, W, C) of any type; the only kernel for images of object ids.
        height: height of the result.
        width: width of the result.
    """
    return image[_nearest(image.shape[0], height)][:, _nearest(image.shape[1], width)]


def torch_antialias(image: Array, height: int, width: int) -> Array:
    """``torch.nn.functional.interpolate(mode="bilinear", antialias=True)``, torchvision's ``Resize`` of a tensor.

    uint8 is computed in 16-bit weights (``aten/src/ATen/native/cpu/UpSampleKernel.cpp``). torch's own results for
    float32 depend on the memory's layout if one column is left; these are those of channels last.

    Args:
        image: (H, W, C), uint8 or float32.
        height: height of the result.
        width: width of the result.

    Returns:
        (height, width, C), of the same type. uint8 exactly as torch's; float32 within 1e-6 relative.
    """
    if image.dtype != np.uint8:
        rows, columns = (_triangles(*pair, np.float32) for pair in zip(image.shape, (height, width), strict=False))
        planes = rows @ np.einsum("ij,rjc->cri", columns, image, optimize=True)
        return np.asarray(planes.transpose(1, 2, 0))
    for axis, count in ((1, width), (0, height)):
        weights = _triangles(image.shape[axis], count, np.float64)
        bits = next(n for n in range(23) if n == 22 or int(0.5 + weights.max() * 2 ** (n + 1)) >= 1 << 15)
        kind = np.float32 if bits <= 16 else np.float64  # sums are exact in either
        whole = np.floor(weights * 2**bits + 0.5).astype(kind)
        sums = np.tensordot(whole, image.astype(kind), (1, axis))
        image = np.moveaxis(np.clip(np.floor(sums / 2**bits + 0.5), 0, 255).astype(np.uint8), 0, axis)
    return image


def _triangles(size: int, count: int, dtype: type[np.floating[Any]]) -> Array:
    """Weights (count, size) of all pixels in each pixel of the result."""
    scale = dtype(size) / dtype(count)
    reach, center = np.maximum(scale, dtype(1)), scale * (np.arange(count)[:, None] + 0.5).astype(dtype)
    pixel = np.arange(size)
    near = (pixel >= (center - reach + dtype(0.5)).astype(int)) & (pixel < (center + reach + dtype(0.5)).astype(int))
    offset = (pixel.astype(dtype) - center + dtype(0.5)) * (dtype(1) / reach)
    weights = np.where(near, np.maximum(dtype(1) - np.abs(offset), dtype(0)), dtype(0))
    return np.asarray(weights / weights.sum(1, keepdims=True))


def _bins(size: int, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First pixel and number of pixels of each output pixel's bin."""
    index = np.arange(count)
    start = index * size // count
    return start.astype(np.intp), (-(-(index + 1) * size // count) - start).astype(np.intp)


def _fits(counts: NDArray[np.intp]) -> bool:
    return int(counts.max()) * 255 <= np.iinfo(np.uint16).max


def _window_sums(
    image: Array, start: NDArray[np.intp], counts: NDArray[np.intp], axis: int, dtype: np.dtype[Any]
) -> Array:
    """Sums over ``counts`` pixels from ``start`` along an axis."""
    total = np.take(image, start, axis).astype(dtype)
    last = image.shape[axis] - 1
    for offset in range(1, int(counts.max())):
        part = np.take(image, np.minimum(start + offset, last), axis)
        inside = counts > offset
        if inside.all():
            total += part
        else:
            where = (slice(None),) * axis + (inside,)
            total[where] += part[where]
    return total


def _nearest(size: int, count: int) -> NDArray[np.intp]:
    scale = np.float32(size) / np.float32(count)
    index = np.floor(np.arange(count, dtype=np.float32) * scale).astype(np.intp)
    return np.asarray(np.minimum(index, size - 1))
