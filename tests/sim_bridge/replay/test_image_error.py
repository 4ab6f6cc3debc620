"""Two images of one view as numbers, each checked against what it must be."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from sim_bridge.replay.image_error import BANDS, color_error, depth_error

SHAPE = (48, 64)


def test_a_shift_is_the_bias_and_the_bands() -> None:
    simulator = np.full(SHAPE, 2.0, np.float32)
    simulator[:24] = 3.0
    recorded = simulator.copy()
    recorded[:24] += 0.012
    recorded[24:] -= 0.004
    found = depth_error(recorded, simulator)
    assert (found.compared, found.missing_recorded, found.missing_twin) == (1, 0, 0)
    assert found.mean_abs_mm == pytest.approx(8, abs=0.01)
    assert found.p95_mm == pytest.approx(12, abs=0.01)
    assert found.far_off == 0
    assert found.bands_mm == pytest.approx([12] * (BANDS // 2) + [-4] * (BANDS // 2), abs=0.01)


def test_an_edge_that_moved_is_beyond_five_centimetres_and_no_bias() -> None:
    simulator = np.full(SHAPE, 3.0, np.float32)
    simulator[:, :32] = 1.0
    recorded = np.roll(simulator, 1, axis=1)
    recorded[:, 0] = 1.0
    found = depth_error(recorded, simulator)
    assert found.bias_mm == found.median_mm == 0
    assert found.far_off == pytest.approx(1 / 64)
    assert found.mean_abs_mm == pytest.approx(2000 / 64)


@settings(max_examples=20)
@given(*[st_numpy.arrays(np.bool_, SHAPE)] * 2)
def test_every_pixel_is_compared_or_missing_on_one_side_or_on_both(recorded: np.ndarray, simulator: np.ndarray) -> None:
    found = depth_error(recorded.astype(np.float32), simulator.astype(np.float32))
    neither = (~recorded & ~simulator).mean()
    assert found.compared + found.missing_recorded + found.missing_twin + neither == pytest.approx(1)
    assert found.missing_recorded == pytest.approx((simulator & ~recorded).mean())
    assert (found.bias_mm is None) == (found.compared == 0)


def test_nothing_to_compare_is_no_error_of_zero() -> None:
    found = depth_error(np.zeros(SHAPE, np.float32), np.ones(SHAPE, np.float32))
    assert found.missing_recorded == 1
    assert (found.mean_abs_mm, found.far_off, found.bands_mm) == (None, None, ())


def picture(seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).integers(0, 256, (*SHAPE, 3), np.uint8)
    return np.asarray(cv2.GaussianBlur(noise, (7, 7), 2.0))


def test_one_image_is_itself() -> None:
    found = color_error(picture(), picture())
    assert (found.mean_abs, found.psnr_db, found.ssim) == (0, None, 1)


@settings(max_examples=10)
@given(st.integers(1, 40))
def test_psnr_of_a_shift_is_its_formula(shift: int) -> None:
    image = np.clip(picture(), 0, 255 - shift).astype(np.uint8)
    found = color_error(image, image + np.uint8(shift))
    assert found.mean_abs == pytest.approx(shift)
    assert found.psnr_db == pytest.approx(20 * np.log10(255 / shift))


def test_ssim_is_the_published_one() -> None:
    """Against the formula written out pixel by pixel (Wang et al. 2004), but for the border."""
    a, b = (cv2.cvtColor(picture(seed), cv2.COLOR_RGB2GRAY).astype(np.float64) for seed in (1, 2))
    axis = np.arange(-5, 6)
    window = np.exp(-(axis**2) / (2 * 1.5**2))
    window = np.outer(window, window) / window.sum() ** 2
    values = []
    for row in range(5, SHAPE[0] - 5):
        for column in range(5, SHAPE[1] - 5):
            x, y = (image[row - 5 : row + 6, column - 5 : column + 6] for image in (a, b))
            mx, my = (window * x).sum(), (window * y).sum()
            vx, vy = (window * x * x).sum() - mx**2, (window * y * y).sum() - my**2
            cov = (window * x * y).sum() - mx * my
            c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
            values.append((2 * mx * my + c1) * (2 * cov + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2)))
    found = color_error(picture(1), picture(2)).ssim
    assert found == pytest.approx(np.mean(values), abs=0.05)


def test_ssim_falls_with_blur_less_than_with_another_picture() -> None:
    blurred = np.asarray(cv2.GaussianBlur(picture(), (9, 9), 2.0))
    assert 1 > color_error(picture(), blurred).ssim > color_error(picture(), picture(5)).ssim
