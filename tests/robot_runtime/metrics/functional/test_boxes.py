"""Overlap of oriented boxes: against random points, a polygon library, and general properties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from robot_runtime.metrics.functional.boxes import Box, intersection_volume, iou


def rotation(random: np.random.Generator) -> NDArray[np.float64]:
    q, r = np.linalg.qr(random.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    q[:, 0] *= np.linalg.det(q)
    return q


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    return Box(random.uniform(-0.5, 0.5, 3), random.uniform(0.1, 2, 3), rotation(random))


def inside(box: Box, points: NDArray[np.float64]) -> NDArray[np.bool_]:
    return (np.abs((points - box.center) @ box.rotation) <= box.size / 2).all(axis=1)


@given(boxes(), boxes(), st.integers(0, 100))
@settings(max_examples=60)
def test_against_random_points(a: Box, b: Box, seed: int) -> None:
    """40,000 points in one box: the share that lies in the other is known to 5 standard errors."""
    count = 40_000
    points = a.center + (np.random.default_rng(seed).uniform(-0.5, 0.5, (count, 3)) * a.size) @ a.rotation.T
    share = inside(b, points).mean()
    error = 5 * math.sqrt(max(share * (1 - share), 1 / count) / count)
    assert intersection_volume(a, b) / a.volume == pytest.approx(share, abs=error)


@given(boxes(), boxes(), st.integers(0, 100))
def test_always(a: Box, b: Box, seed: int) -> None:
    shared = iou(a, b)
    assert 0 <= shared <= 1
    assert iou(b, a) == pytest.approx(shared, abs=1e-9)
    random = np.random.default_rng(seed)
    turn, shift = rotation(random), random.uniform(-100, 100, 3)
    moved = [Box(turn @ box.center + shift, box.size, turn @ box.rotation) for box in (a, b)]
    assert iou(*moved) == pytest.approx(shared, abs=1e-9)
    assert iou(a, a) == pytest.approx(1.0)


@given(st.integers(0, 10_000))
@settings(max_examples=60)
def test_upright_boxes_against_polygons(seed: int) -> None:
    geometry = pytest.importorskip("shapely", reason="shapely is not installed")
    random = np.random.default_rng(seed)
    footprints, made = [], []
    for _ in range(2):
        center, size, yaw = random.uniform(-0.5, 0.5, 3), random.uniform(0.1, 2, 3), random.uniform(-4, 4)
        made.append(Box.upright(center, size, yaw))
        footprints.append(geometry.Polygon(made[-1].corners()[[0, 2, 6, 4], :2]))
    low = max(box.center[2] - box.size[2] / 2 for box in made)
    high = min(box.center[2] + box.size[2] / 2 for box in made)
    expected = footprints[0].intersection(footprints[1]).area * max(0.0, high - low)
    assert intersection_volume(*made) == pytest.approx(expected, abs=1e-9)


def test_worked() -> None:
    unit = Box.between((0, 0, 0), (1, 1, 1))
    assert iou(unit, Box.between((0.5, 0, 0), (1.5, 1, 1))) == pytest.approx(1 / 3)
    assert iou(unit, Box.between((0.25, 0.25, 0.25), (0.75, 0.75, 0.75))) == pytest.approx(1 / 8)
    octagon = 2 * math.sqrt(2) - 2  # area that a unit square shares with itself turned by 45 degrees
    assert iou(unit, Box.upright((0.5, 0.5, 0.5), (1, 1, 1), math.pi / 4)) == pytest.approx(octagon / (2 - octagon))


@pytest.mark.parametrize("shift", [(1, 0, 0), (1, 1, 0), (1, 1, 1), (0, 0, 5)])
def test_boxes_that_touch_share_nothing(shift: tuple[float, float, float]) -> None:
    unit = Box.between((0, 0, 0), (1, 1, 1))
    assert iou(unit, Box.between(shift, np.add(shift, 1).tolist())) == 0


def test_the_same_box_with_its_axes_numbered_otherwise() -> None:
    a = Box.upright((3, 4, 5), (1, 2, 0.5), 0.3)
    assert iou(a, Box.upright((3, 4, 5), (2, 1, 0.5), 0.3 + math.pi / 2)) == pytest.approx(1.0, abs=1e-12)
    assert iou(a, Box.upright((3, 4, 5), (1, 2, 0.5), 0.3 + math.pi)) == pytest.approx(1.0, abs=1e-12)


def test_on_one_floor_far_from_the_origin() -> None:
    """Faces in one plane, coordinates of 1 km: the commonest and the least favourable case for cutting."""
    a = Box.upright((1000, -1000, 0.5), (1, 1, 1), 0.1)
    assert iou(a, Box.upright((1000, -1000, 0.25), (1, 1, 0.5), 0.1)) == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize(
    ("center", "size", "turn"),
    [
        ((0, 0, math.nan), (1, 1, 1), np.eye(3)),
        ((0, 0, 0), (1, 0, 1), np.eye(3)),
        ((0, 0, 0), (1, -1, 1), np.eye(3)),
        ((0, 0), (1, 1, 1), np.eye(3)),
        ((0, 0, 0), (1, 1, 1), np.diag([1, 1, -1])),
        ((0, 0, 0), (1, 1, 1), 2 * np.eye(3)),
    ],
)
def test_no_box(center: Any, size: Any, turn: Any) -> None:
    with pytest.raises(ValueError):
        Box(center, size, turn)
