"""A pinhole whose principal point is anywhere sees its part of the image of a larger one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_runtime.hal import Intrinsics
from robot_runtime.scenes.scene import Scene
from sim_bridge.physics.scene_model import build_model
from sim_bridge.rendering.renderer import SceneRenderer, camera_rotation

LARGE = Intrinsics.from_hfov(160, 120, 79.0)


@pytest.mark.parametrize(("left", "top"), [(0, 0), (30, 44), (60, 3)])
def test_a_shifted_principal_point_is_a_crop_of_a_larger_image(room: Scene, left: int, top: int) -> None:
    part = Intrinsics(96, 72, LARGE.fx, LARGE.fy, LARGE.cx - left, LARGE.cy - top)
    crop = slice(top, top + 72), slice(left, left + 96)
    renderer = SceneRenderer(build_model(room), LARGE)
    try:
        for yaw_rad in (0.3, 2.5):
            place, rotation = np.array([-1.0, 0.2, 0.9]), camera_rotation(yaw_rad, -0.3)
            renderer.set_intrinsics(LARGE)
            rgb, depth_m = (image[crop].astype(float) for image in renderer.render(place, rotation))
            objects = renderer.segment(place, rotation)[crop]
            renderer.set_intrinsics(part)
            own_rgb, own_m = renderer.render(place, rotation)
            assert np.median(np.abs(own_m - depth_m)) < 1e-4
            assert np.mean(np.abs(own_m - depth_m) > 1e-3) < 0.005
            assert np.mean(np.abs(own_rgb - rgb) > 8) < 0.01
            assert np.mean(renderer.segment(place, rotation) != objects) < 0.005
    finally:
        renderer.close()


def test_pixels_need_not_be_square(room: Scene) -> None:
    renderer = SceneRenderer(build_model(room), LARGE)
    try:
        place, rotation = np.array([-1.0, 0.2, 0.9]), camera_rotation(0.3, -0.3)
        depth_m = renderer.render(place, rotation)[1].copy()
        # Twice as many columns: each pixel is half as wide.
        renderer.set_intrinsics(replace(LARGE, width=320, fx=2 * LARGE.fx, cx=159.5))
        halves = renderer.render(place, rotation)[1].reshape(120, 160, 2).mean(axis=2)
        assert np.mean(np.abs(halves - depth_m) > 0.01) < 0.03
    finally:
        renderer.close()
