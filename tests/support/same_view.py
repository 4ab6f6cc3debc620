"""Comparison of a backend's images with those of the synthetic flat, for tests of adapters."""

from __future__ import annotations

import math

import numpy as np
import pytest
import synthetic

from robot_runtime.common.geometry import SE2

VIEWS = pytest.mark.parametrize(
    ("pose", "tilt_deg"),
    [
        (SE2(1.0, 1.9, 0.0), 0.0),
        (SE2(1.2, 2.6, math.radians(130)), 0.0),
        (SE2(4.2, 1.0, math.radians(60)), -30.0),
        (SE2(2.0, 1.2, math.radians(-75)), 30.0),
    ],
)


def assert_same_view(seen: tuple[np.ndarray, np.ndarray], pose: SE2, tilt_rad: float) -> None:
    """Compare color and depth with the images of the flat from a pose."""
    rgb, depth_m = seen
    frame = synthetic.render(synthetic.pointnav_task().camera.intrinsics, pose, tilt_rad)
    same = np.abs(depth_m - frame.depth_m) < 0.002
    assert same.mean() > 0.995  # rays along edges may fall on either side
    assert np.abs(rgb.astype(int) - frame.rgb)[same].max() <= 2
