"""Memory of objects, fused by pose: semantic pixels with depth become cells, clusters of cells become objects."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.common.geometry import SE2
from robot_runtime.imaging.depth import observed_m
from robot_runtime.task_kinds.eqa.questions.boxes import Box
from robot_runtime.tasks.task import TrainingCamera

Counts = NDArray[np.float32]

_BITS = (5, 4, 4)
"""Right shift per channel of CIELAB in 8 bits: 8 x 16 x 16 bins."""

_HALF_PIXELS = 120.0
"""Pixels that count half as much as many: those of an object far away are mixed with what is around it."""

_ELSEWHERE = 0.1
"""Share of objects whose color is any, whatever generated flats say of their category: other homes differ from them."""

BINS = 8 * 16 * 16
WEIGHTS = Path(__file__).with_name("colors.npz")


def histogram(pixels: NDArray[np.uint8]) -> Counts:
    """Number of pixels (N, 3), RGB, in each of :data:`BINS` bins of CIELAB; float32 (BINS,)."""
    lab = cv2.cvtColor(np.ascontiguousarray(pixels)[None], cv2.COLOR_RGB2LAB)[0].astype(np.intp)
    light, a, b = (lab[:, i] >> bits for i, bits in enumerate(_BITS))
    return np.bincount(light << 8 | a << 4 | b, minlength=BINS).astype(np.float32)


@dataclass(frozen=True, eq=False)
class ColorNames:
    """A classifier of histograms: logistic regression on the square roots of their shares (``training.eqa``).

    The category counts, too: a stool whose seat shines is not white, because no stool of the generated flats is.

    Attributes:
        names: names of the colors.
        bins: indices of the bins that have weights.
        weights: (bins, names).
        bias: (names,).
        categories: categories of objects, in words.
        priors: (categories, names), logarithm of each color's share among the objects of a category.
    """

    names: tuple[str, ...]
    bins: NDArray[np.intp]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    categories: tuple[str, ...]
    priors: NDArray[np.float32]

    def probabilities(self, counts: Counts, category: str) -> Mapping[str, float]:
        """Probability of each name.

        Args:
            counts: histogram with at least one pixel.
            category: category of the object, in words; one that is not among ``categories`` says nothing.
        """
        pixels = max(float(counts.sum()), 1.0)
        logits = np.sqrt(counts[self.bins] / pixels) @ self.weights + self.bias
        logits = logits * (pixels / (pixels + _HALF_PIXELS))
        if category in self.categories:
            there = np.exp(self.priors[self.categories.index(category)])
            logits = logits + np.log((1 - _ELSEWHERE) * there + _ELSEWHERE / len(self.names))
        shares = np.exp(logits - logits.max())
        return dict(zip(self.names, (shares / shares.sum()).tolist(), strict=True))


@cache
def color_names() -> ColorNames:
    """The classifier that ships."""
    with np.load(WEIGHTS) as data:
        names, categories = (tuple(str(name) for name in data[key]) for key in ("names", "categories"))
        weights, bias, priors = (data[key].astype(np.float32) for key in ("weights", "bias", "priors"))
        return ColorNames(names, data["bins"].astype(np.intp), weights, bias, categories, priors)


CELL_M = 0.025
_LINK_CELLS = 5
"""Parts of a category are one object if they are in cubes of this many cells that are the same or touch."""

LEAST_PIXELS = 8
_MOST_PIXELS = 1500
"""Pixels of a category in one image beyond which every second, third, ... is used."""

_OUTLIERS_PCT = 1.0
_OFFSET = 1 << 20
_NEIGHBORS = np.stack(np.meshgrid(*[[-1, 0, 1]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)

Cells = NDArray[np.int64]


@dataclass(eq=False)
class RememberedObject:
    """An object, as far as it has been seen.

    Attributes:
        number: counts the objects of the episode.
        category: id in the task.
        cells: (N,), occupied cells of :data:`CELL_M` in the start frame, packed (:func:`packed`) and sorted.
        colors: pixels per bin of :func:`~robot_runtime.task_kinds.eqa.agents.object_memory.histogram`.
        first_step: step at which it was first seen.
        best_step: step at which most of its pixels were seen.
        best_pixels: their number.
        views: number of images that showed it.
    """

    number: int
    category: int
    cells: Cells
    colors: Counts
    first_step: int
    best_step: int
    best_pixels: int
    views: int = 1

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """The middles of the cells, (N, 3), meters."""
        return np.asarray((unpacked(self.cells) + 0.5) * CELL_M, np.float64)

    @cached_property
    def _blocks(self) -> Cells:
        """The cubes of :data:`_LINK_CELLS` cells that hold a cell, (M, 3)."""
        return unpacked(np.unique(packed(unpacked(self.cells) // _LINK_CELLS)))

    def box(self, axis_rad: float) -> Box:
        """The box around the cells, with edges along a direction of the plane."""
        c, s = math.cos(axis_rad), math.sin(axis_rad)
        x, y, z = self.points.T
        spans = [np.percentile(v, [_OUTLIERS_PCT, 100 - _OUTLIERS_PCT]) for v in (c * x + s * y, c * y - s * x, z)]
        (a0, a1), (b0, b1), (z0, z1) = ((float(v[0]) - CELL_M / 2, float(v[1]) + CELL_M / 2) for v in spans)
        p, q, r, t = ((c * a - s * b, s * a + c * b) for a, b in ((a0, b0), (a1, b0), (a1, b1), (a0, b1)))
        return Box((p, q, r, t), z0, z1, (a1 - a0) * (b1 - b0) * (z1 - z0))

    @cached_property
    def center(self) -> tuple[float, float, float]:
        """The cells' mean (x, y, z) in the start frame, meters."""
        x, y, z = self.points.mean(axis=0).tolist()
        return x, y, z

    def touches(self, other: RememberedObject) -> bool:
        """Whether the two are near enough to be one."""
        low, high = other._blocks.min(axis=0) - 1, other._blocks.max(axis=0) + 1
        near = self._blocks[((self._blocks >= low) & (self._blocks <= high)).all(axis=1)]
        around = (near[:, None] + _NEIGHBORS).reshape(-1, 3)
        return bool(np.isin(packed(around), packed(other._blocks)).any())

    def join(self, other: RememberedObject) -> RememberedObject:
        """Both as one object, with the older number."""
        old, best = min(self, other, key=lambda o: o.number), max(self, other, key=lambda o: o.best_pixels)
        return RememberedObject(
            old.number,
            self.category,
            np.union1d(self.cells, other.cells),
            self.colors + other.colors,
            min(self.first_step, other.first_step),
            best.best_step,
            best.best_pixels,
            max(self.views, other.views) + (self.first_step != other.first_step),
        )


class ObjectMemory:
    """The objects of an episode.

    Attributes:
        objects: objects by number.
        version: changes with the content.
    """

    def __init__(self, camera: TrainingCamera) -> None:
        self.objects: dict[int, RememberedObject] = {}
        self.version = 0
        self._camera, self._count = camera, 0
        k = camera.intrinsics
        self._down = (np.arange(k.height) - k.cy) / k.fy
        self._left = -(np.arange(k.width) - k.cx) / k.fx

    def update(
        self,
        step: int,
        pose: SE2,
        tilt_rad: float,
        rgb: NDArray[np.uint8],
        depth: NDArray[np.float32],
        semantic: NDArray[np.int32],
    ) -> None:
        """Add one image.

        Args:
            step: step of the episode.
            pose: pose of the robot in the start frame.
            tilt_rad: tilt of the camera, up positive.
            rgb: (H, W, 3).
            depth: (H, W, 1), the task's observation.
            semantic: (H, W, 1), category ids, negative for none.
        """
        camera = self._camera
        depth_m = observed_m(depth[..., 0], camera)
        edge_m = 1e-3 * camera.depth_max_m
        measured = (depth_m > camera.depth_min_m + edge_m) & (depth_m < camera.depth_max_m - edge_m)
        ids = np.where(measured, semantic[..., 0], -1)
        for category in np.unique(ids[ids >= 0]).tolist():
            rows, columns = np.nonzero(ids == category)
            if len(rows) < LEAST_PIXELS:
                continue
            every = math.ceil(len(rows) / _MOST_PIXELS)
            rows, columns = rows[::every], columns[::every]
            cells = self._cells(pose, tilt_rad, rows, columns, depth_m[rows, columns])
            for member in _clusters(cells):
                if member.sum() * every >= LEAST_PIXELS:
                    colors = histogram(rgb[rows[member], columns[member]]) * every
                    self._add(step, category, np.unique(packed(cells[member])), colors, int(member.sum()) * every)

    def of(self, category: int) -> list[RememberedObject]:
        """The objects of a category, best seen first."""
        found = [item for item in self.objects.values() if item.category == category]
        return sorted(found, key=lambda item: -item.best_pixels)

    def _add(self, step: int, category: int, cells: Cells, colors: Counts, pixels: int) -> None:
        self._count += 1
        item = RememberedObject(self._count, category, cells, colors, step, step, pixels)
        for other in self.of(category):
            if item.touches(other):
                del self.objects[other.number]
                item = other.join(item)
        self.objects[item.number] = item
        self.version += 1

    def _cells(
        self,
        pose: SE2,
        tilt_rad: float,
        rows: NDArray[np.intp],
        columns: NDArray[np.intp],
        depth_m: NDArray[np.float32],
    ) -> Cells:
        down, left = self._down[rows], self._left[columns]
        c, s = math.cos(tilt_rad), math.sin(tilt_rad)
        forward_m, up_m, left_m = depth_m * (c + s * down), depth_m * (s - c * down), depth_m * left
        c, s = math.cos(pose.yaw_rad), math.sin(pose.yaw_rad)
        x_m = pose.x_m + c * forward_m - s * left_m
        y_m = pose.y_m + s * forward_m + c * left_m
        return np.floor(np.stack([x_m, y_m, self._camera.height_m + up_m], axis=1) / CELL_M).astype(np.int64)


def packed(cells: Cells) -> Cells:
    """Cells (N, 3) as one number each, (N,)."""
    x, y, z = (cells + _OFFSET).T
    return np.asarray((x << 42) | (y << 21) | z)


def unpacked(numbers: Cells) -> Cells:
    """The inverse of :func:`packed`."""
    mask = (1 << 21) - 1
    return np.stack([numbers >> 42, numbers >> 21 & mask, numbers & mask], axis=1) - _OFFSET


def _clusters(cells: Cells) -> list[NDArray[np.bool_]]:
    """Masks of the points whose cells hang together."""
    coarse = cells // _LINK_CELLS
    coarse = coarse - coarse.min(axis=0)
    grid = np.zeros(tuple(coarse.max(axis=0) + 1), np.bool_)
    grid[tuple(coarse.T)] = True
    labels, count = ndimage.label(grid, np.ones((3, 3, 3)))
    label = labels[tuple(coarse.T)]
    return [label == number for number in range(1, count + 1)]
