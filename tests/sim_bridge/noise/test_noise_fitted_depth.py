"""Depth noise as ``robot-runtime fit`` writes it: what the options say is what the images show."""

from __future__ import annotations

import numpy as np
import pytest
from raising import raises_naming

from robot_runtime.errors import ConfigError
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens
from sim_bridge.noise.models import depth_noise

LENS = Lens.of(Intrinsics.from_hfov(160, 120, 79.0))


def plane(depth_m: float) -> np.ndarray:
    return np.full((120, 160), depth_m, np.float32)


def measured(truth: np.ndarray, seed: int = 0, **options: object) -> np.ndarray:
    model = depth_noise({"model": "fitted", **options}, "test")
    return model.measure(truth, LENS, np.random.default_rng(seed))


@pytest.mark.parametrize("depth_m", [0.8, 2.0, 4.0])
@pytest.mark.parametrize("window_px", [1, 5])
def test_noise_is_the_polynomial_however_alike_neighbors_are(depth_m: float, window_px: int) -> None:
    found = measured(plane(depth_m), sigma=[0.001, 0.0, 0.002], window_px=window_px)
    inner = found[8:-8, 8:-8] - depth_m
    assert inner.std() == pytest.approx(0.001 + 0.002 * depth_m**2, rel=0.12)
    beside = np.corrcoef(inner[:, 1:].ravel(), inner[:, :-1].ravel())[0, 1]
    assert beside == pytest.approx(1 - 1 / window_px, abs=0.06)


def test_bias_and_holes_depend_on_the_distance() -> None:
    truth = plane(2.0)
    found = measured(truth, bias=[0.01, 0.005, 0.0], holes=[[1.0, 0.0], [3.0, 0.2]])
    assert found[found > 0].mean() == pytest.approx(2.02)
    assert (found == 0).mean() == pytest.approx(0.1, abs=0.015)
    assert (measured(truth, holes=[[3.0, 0.2]]) == 0).mean() == pytest.approx(0.2, abs=0.02)
    assert (measured(np.zeros_like(truth), bias=[0.01, 0.0, 0.0]) == 0).all(), "nothing stays nothing"


def test_edges_err_more_and_are_lost() -> None:
    truth = plane(1.0)
    truth[:, 80:] = 2.0
    found = measured(truth, sigma=[0.005, 0.0, 0.0], edge_gain=4.0, edge_holes=0.5)
    edge, flat = found[:, 79:81], found[:, 20:60]
    assert (edge == 0).mean() == pytest.approx(0.5, abs=0.1)
    assert (flat > 0).all()
    near = edge[:, 0][edge[:, 0] > 0]
    assert near.std() == pytest.approx(0.02, rel=0.3)
    assert flat.std() == pytest.approx(0.005, rel=0.1)


def test_the_same_seed_gives_the_same_image_and_the_truth_stays() -> None:
    truth = plane(1.5)
    first, second = (measured(truth, 3, sigma=[0.01, 0.0, 0.0], holes=[[1.0, 0.1]]) for _ in range(2))
    assert (first == second).all()
    assert (truth == 1.5).all()


@pytest.mark.parametrize(
    "options", [{"sigma": [0.1, 0.2]}, {"holes": [[2.0, 0.1], [1.0, 0.1]]}, {"holes": [[1.0, 1.5]]}, {"window_px": 0}]
)
def test_options_that_mean_nothing_are_refused(options: dict[str, object]) -> None:
    with raises_naming(ConfigError, "test"):
        measured(plane(1.0), **options)
