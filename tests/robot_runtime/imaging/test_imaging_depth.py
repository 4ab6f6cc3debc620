"""Depth as the training simulator delivers it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from robot_runtime.imaging.depth import training_depth
from robot_runtime.tasks.task import TrainingCamera


def camera(*, holes: str = "zero", normalized: bool = True, low: float = 0.5, high: float = 5.0) -> TrainingCamera:
    return TrainingCamera(
        width=4,
        height=2,
        hfov_deg=79.0,
        height_m=0.88,
        depth_min_m=low,
        depth_max_m=high,
        depth_normalized=normalized,
        depth_holes=holes,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("depth_m", "meters", "normalized"),
    [
        (0.2, 0.5, 0.0),  # nearer than the range
        (0.5, 0.5, 0.0),
        (2.75, 2.75, 0.5),
        (5.0, 5.0, 1.0),
        (7.0, 5.0, 1.0),  # farther than the range
        (0.0, 0.5, 0.0),  # a hole, rule "zero": clipped up to the nearest distance, as habitat-lab clips 0
        (math.nan, 0.5, 0.0),
        (math.inf, 0.5, 0.0),
        (-1.0, 0.5, 0.0),
        (3e38, 5.0, 1.0),  # a sum of such values overflows
    ],
)
def test_worked_values(depth_m: float, meters: float, normalized: float):
    frame = np.full((2, 4), depth_m, np.float32)
    assert training_depth(frame, camera(normalized=False)) == pytest.approx(meters)
    assert training_depth(frame, camera(normalized=True)) == pytest.approx(normalized)


@pytest.mark.parametrize("hole", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_holes_become_the_far_end_where_the_task_says_so(hole: float):
    frame = np.array([[hole, 1.0], [2.0, hole]], np.float32)
    np.testing.assert_allclose(
        training_depth(frame, camera(holes="max", normalized=False))[:, :, 0], [[5.0, 1.0], [2.0, 5.0]]
    )


@given(
    npst.arrays(np.float32, (3, 5), elements=st.floats(width=32, allow_nan=True, allow_infinity=True)),
    st.sampled_from(["zero", "max"]),
    st.booleans(),
)
def test_any_frame_ends_within_the_range_and_is_left_as_it_was(depth_m: np.ndarray, holes: str, normalized: bool):
    before = depth_m.copy()
    observed = training_depth(depth_m, camera(holes=holes, normalized=normalized))
    low, high = (0.0, 1.0) if normalized else (0.5, 5.0)
    assert (observed.dtype, observed.shape) == (np.float32, (3, 5, 1))
    assert np.all((observed >= low) & (observed <= high))
    np.testing.assert_array_equal(depth_m, before)
    assert not np.shares_memory(observed, depth_m)


def test_the_formula_is_habitats():
    depth_m = np.linspace(0.01, 12, 8, dtype=np.float32).reshape(2, 4)
    expected = (np.clip(depth_m, 0.1, 10.0) - 0.1) / (10.0 - 0.1)
    np.testing.assert_allclose(training_depth(depth_m, camera(low=0.1, high=10.0))[:, :, 0], expected, rtol=1e-6)
