"""Any pinhole with square pixels is cut out of an image that has its principal point in the middle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens
from sim_bridge.replay.backends.base import UnsupportedBySimulator
from sim_bridge.replay.backends.pinhole_camera import TOLERANCE_PX, pinhole_camera


@settings(max_examples=50, deadline=None)
@given(
    width=st.integers(2, 400),
    height=st.integers(2, 400),
    focal=st.floats(50, 900),
    right=st.floats(-0.4, 0.4),
    down=st.floats(-0.4, 0.4),
)
def test_every_pixel_is_drawn_within_the_tolerance(width: int, height: int, focal: float, right: float, down: float):
    lens = Lens(width, height, focal, focal, (0.5 + right) * (width - 1), (0.5 + down) * (height - 1))
    camera = pinhole_camera(lens, "it")
    drawn = Intrinsics(
        camera.width, camera.height, camera.focal_px, camera.focal_px, (camera.width - 1) / 2, (camera.height - 1) / 2
    )
    corners = np.array([[0, 0], [width - 1, 0], [0, height - 1], [width - 1, height - 1]])
    where = Lens.of(drawn).project(lens.rays(corners)) - (camera.columns[0], camera.rows[0])
    assert np.abs(where - corners).max() <= TOLERANCE_PX + 1e-6
    assert camera.crop(np.zeros((camera.height, camera.width, 3))).shape == (height, width, 3)


def test_a_training_camera_is_drawn_as_it_is():
    given_camera = Intrinsics.from_hfov(640, 480, 79.0)
    camera = pinhole_camera(Lens.of(given_camera), "it")
    assert (camera.width, camera.height) == (640, 480)
    assert camera.hfov_deg == pytest.approx(79.0)
    assert camera.vfov_deg == pytest.approx(63.4, abs=0.1)


def test_pixels_that_are_not_square_are_refused_where_it_shows():
    pinhole_camera(Lens(640, 480, 615.0, 615.5, 319.5, 239.5), "it")
    with raises_naming(UnsupportedBySimulator, "fx 600.00", "fy 615.00"):
        pinhole_camera(Lens(640, 480, 600.0, 615.0, 319.5, 239.5), "it")
