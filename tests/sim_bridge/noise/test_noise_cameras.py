"""Noise models of cameras: as large as their sources say, honest at edges, and the same for the same seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Intrinsics, Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import CameraMotion
from sim_bridge.noise.azure_kinect import hexagon
from sim_bridge.noise.color import flow, moved
from sim_bridge.noise.models import color_noise, depth_noise
from sim_bridge.noise.stereo import matched
from sim_bridge.noise.surface import pixel_rays

LENS = Lens.of(Intrinsics.from_hfov(160, 120, 60.0))
STILL = CameraMotion()


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def wall(far_m: float, lens: Lens = LENS) -> np.ndarray:
    return np.full((lens.height, lens.width), far_m, np.float32)


def step(near_m: float, far_m: float) -> np.ndarray:
    """A thing in front of a wall, which fills the left half."""
    depth_m = wall(far_m)
    depth_m[:, : LENS.width // 2] = near_m
    return depth_m


def error_mm(model: str, far_m: float, **options: object) -> np.ndarray:
    """Of what is measured of the middle of a wall."""
    measured_m = depth_noise({"model": model, **options}, "test").measure(wall(far_m), LENS, random())[30:90, 60:100]
    return 1000 * (measured_m[measured_m > 0] - far_m)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["azure_kinect", "redwood", "d435"])
@given(far_m=st.floats(0.3, 9.0), seed=st.integers(0, 1000))
@settings(max_examples=10)
def test_the_truth_stays_as_it_is_and_a_seed_repeats(model: str, far_m: float, seed: int) -> None:
    noise, truth = depth_noise({"model": model}, "test"), wall(far_m)
    truth[:20] = 0
    before = truth.copy()
    one, two = (noise.measure(truth, LENS, random(seed)) for _ in range(2))
    assert np.array_equal(one, two)
    assert np.array_equal(truth, before)
    assert one.dtype == np.float32
    assert np.isfinite(one).all()
    assert (one >= 0).all()
    assert not one[:15].any()  # nothing is measured where nothing is
    assert not np.array_equal(one, noise.measure(truth, LENS, random(seed + 1))) or not one.any()


def test_an_azure_kinect_keeps_its_data_sheet() -> None:
    for far_m in (0.5, 1.0, 2.0, 3.0, 3.8):
        error = error_mm("azure_kinect", far_m, mask="none")
        assert error.std() < 17
        assert abs(error.mean()) < 11 + far_m
    spreads = [error_mm("azure_kinect", far_m, mask="none").std() for far_m in (1.0, 2.0, 4.0)]
    assert spreads == sorted(spreads)
    assert spreads[2] > 2 * spreads[1]


def test_less_light_comes_back_from_a_slanted_wall() -> None:
    slanted = (2.0 / (1 - 2.5 * pixel_rays(LENS)[..., 1])).astype(np.float32)
    model = depth_noise(
        {"model": "azure_kinect", "mask": "none", "bias_m": 0, "bias_share": 0, "lateral_px": 0}, "test"
    )
    row = LENS.height // 2
    spread = (model.measure(slanted, LENS, random()) - slanted)[row - 2 : row + 2].std()
    assert spread > 1.5e-3 * error_mm("azure_kinect", 2.0, mask="none", lateral_px=0).std()


def test_an_azure_kinect_sees_no_farther_than_light_comes_back() -> None:
    assert error_mm("azure_kinect", 7.5, mask="none").size == 0


def test_on_an_edge_some_pixels_fly_and_some_are_left_out() -> None:
    options = {"model": "azure_kinect", "mask": "none", "lateral_px": 0, "multipath": 0}
    measured_m = depth_noise(options, "test").measure(step(1.0, 2.0), LENS, random())
    edge = measured_m[:, LENS.width // 2 - 1 : LENS.width // 2 + 1]
    between = (edge > 1.05) & (edge < 1.95)
    assert 0.15 < between.mean() < 0.35
    assert 0.3 < (edge == 0).mean() < 0.5
    away = np.delete(measured_m, [LENS.width // 2 - 1, LENS.width // 2], axis=1)
    assert not ((away > 1.05) & (away < 1.95)).any()
    without = depth_noise({**options, "flying": 0, "edge_holes": 0}, "test").measure(step(1.0, 2.0), LENS, random())
    assert not ((without > 1.05) & (without < 1.95)).any()
    assert without.all()


def test_a_corner_gets_rounder_and_a_flat_wall_does_not() -> None:
    exact = {"model": "azure_kinect", "mask": "none", "axial_m": 0, "axial_growth": 0, "lateral_px": 0, "wiggle_m": 0}
    exact |= {"bias_m": 0, "bias_share": 0, "flying": 0, "edge_holes": 0}
    model = depth_noise(exact, "test")
    corner = (2.0 / (1 + np.abs(pixel_rays(LENS)[..., 0]))).astype(np.float32)
    error_m = (model.measure(corner, LENS, random()) - corner)[LENS.height // 2]
    assert error_m.max() == pytest.approx(0.012, abs=0.008)
    assert (error_m > -1e-5).all()
    flat_m = model.measure(wall(2.0), LENS, random()) - 2.0
    assert np.abs(flat_m).max() < 1e-5


def test_the_hexagon_is_that_of_a_real_unit(shared_data: Path) -> None:
    from drivers.azure_kinect.mkv import MkvReader
    from drivers.azure_kinect.sdk import load_sdk

    path = shared_data / "azure_kinect" / "recording.mkv"
    if not path.is_file():
        pytest.skip(f"the recording of a real Azure Kinect is not at {path}")
    reader = MkvReader(load_sdk(), path)
    capture = reader.next_capture()
    reader.close()
    assert capture is not None
    assert capture.depth is not None
    mask = hexagon(640, 576)
    assert not capture.depth.data[~mask].any() or (capture.depth.data[~mask] > 0).mean() < 0.02
    for row in range(20, 576, 60):
        measured = np.flatnonzero(capture.depth.data[row])
        filled = np.flatnonzero(mask[row])
        assert abs(int(measured[0]) - int(filled[0])) < 12


def test_redwood_rounds_disparity() -> None:
    measured_m = depth_noise({"model": "redwood"}, "test").measure(wall(3.0), LENS, random())
    eighths = 8 * 35.130 / measured_m[measured_m > 0]
    assert np.abs(eighths - np.rint(eighths)).max() < 1e-3
    assert len(np.unique(measured_m)) < 12
    assert not depth_noise({"model": "redwood"}, "test").measure(wall(10.5), LENS, random()).any()
    exact = depth_noise({"model": "redwood", "multiplier": 0}, "test").measure(wall(3.0), LENS, random())
    assert len(np.unique(exact)) == 1


def test_redwood_takes_the_authors_table(tmp_path: Path) -> None:
    path = tmp_path / "dist-model.txt"
    entry = [0.0] * 3 + [2.0] * 5 + [0.0] * 15
    path.write_text("% a table\n" * 5 + "\n".join(map(str, entry * 80 * 80)), encoding="ascii")
    noise = depth_noise({"model": "redwood", "distortion": str(path)}, "test")
    measured_m = noise.measure(wall(4.0), LENS, random())
    assert np.median(measured_m) == pytest.approx(2.0, abs=0.02)
    for bad in (tmp_path / "none.txt", tmp_path / "short.txt"):
        if bad.name == "short.txt":
            bad.write_text("% a table\n" * 5 + "1.0\n" * 100, encoding="ascii")
        with raises_naming(ConfigError, bad):
            depth_noise({"model": "redwood", "distortion": str(bad)}, "test")


def test_stereo_errors_grow_with_the_square_of_the_distance() -> None:
    for far_m in (1.0, 2.0, 4.0):
        expected_mm = 1000 * far_m**2 * 0.08 / (LENS.fx * 0.05)
        # Disparity is rounded, too.
        assert error_mm("d435", far_m).std() == pytest.approx(expected_mm, rel=0.35)


def test_stereo_sees_nothing_too_near_nor_what_only_one_imager_sees() -> None:
    near_m = LENS.fx * 0.05 / 126
    assert error_mm("d435", 0.9 * near_m).size == 0
    disparity = np.array([[0.0, 0.0, 2.0, 2.0, 2.0, 6.0, 6.0, 2.0, 2.0, 2.0]], np.float32)
    # In the right image the near thing of two pixels lies at -1 and 0, where the third pixel would be, too.
    assert matched(disparity).tolist() == [[False, False, False, True, True, False, True, True, True, True]]
    assert matched(np.full((1, 6), 2.0, np.float32)).tolist() == [[False, False, True, True, True, True]]
    measured_m = depth_noise({"model": "d435", "outliers": 0}, "test").measure(step(1.0, 2.0), LENS, random())
    assert measured_m[60, 120] > 0


@given(level=st.integers(20, 235))
@settings(max_examples=10)
def test_photons_and_reading_out_make_noise(level: int) -> None:
    rgb = np.full((60, 80, 3), level, np.uint8)
    noisy = color_noise({"model": "sensor", "photon": 0.05, "read": 2.0}, "test").expose(
        rgb, None, LENS, STILL, random()
    )
    assert noisy.dtype == np.uint8
    assert noisy.std() == pytest.approx(math.sqrt(0.05 * level + 4.0), rel=0.06)
    assert noisy.mean() == pytest.approx(level, abs=0.15)
    gaussian = color_noise({"model": "gaussian", "intensity": 0.02}, "test").expose(rgb, None, LENS, STILL, random())
    assert gaussian.std() == pytest.approx(5.1, rel=0.06)


def test_what_a_turning_camera_sees_flows_as_far_as_it_turns() -> None:
    turning = CameraMotion((0.0, 0.0, 0.0), (0.0, -1.0, 0.0))
    speed = flow(LENS, wall(2.0), turning)
    # To the left it turns, to the right the picture goes: by a focal length per radian in the middle.
    assert speed[60, 80, 0] == pytest.approx(LENS.fx, rel=0.01)
    assert abs(speed[60, 80, 1]) < 1
    driving = flow(LENS, wall(2.0), CameraMotion((0.0, 0.0, 0.5), (0.0, 0.0, 0.0)))
    assert driving[60, 150, 0] == pytest.approx((150 - LENS.cx) * 0.5 / 2.0, rel=0.01)


def test_rows_that_are_read_out_later_are_sheared_and_long_exposures_blur() -> None:
    rgb = np.zeros((120, 160, 3), np.uint8)
    rgb[:, 80:] = 200
    speed = np.zeros((120, 160, 2), np.float32)
    speed[..., 0] = 400.0
    sheared = moved(rgb, speed, 0.0, 0.1)
    edges = [int(np.argmax(row[:, 0] > 100)) for row in sheared]
    assert edges[0] == pytest.approx(80 - 20, abs=1)
    assert edges[60] == pytest.approx(80, abs=1)
    assert edges[-1] == pytest.approx(80 + 20, abs=1)
    blurred = moved(rgb, speed, 0.025, 0.0)[60, :, 0]
    assert [int(blurred[column]) for column in (70, 89)] == [0, 200]
    assert int(blurred[80]) == pytest.approx(100, abs=15)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"model": "kinect"}, ("camera: depth_noise", "'kinect'")),
        ({"axial_m": 1}, ("model", "None")),
        ({"model": "d435", "error": 1}, ("error",)),
        ({"model": "azure_kinect", "flying": 1.5}, ("flying",)),
    ],
)
def test_bad_options_are_refused(sim: Callable[..., Robot], options: dict[str, object], names: tuple[str, ...]) -> None:
    with raises_naming(ConfigError, *names):
        sim({"camera": {"depth_noise": options}})


def test_the_simulated_camera_takes_noise_models_and_repeats_them(sim: Callable[..., Robot]) -> None:
    options = {"camera": {"depth_noise": {"model": "redwood"}, "color_noise": {"model": "sensor"}}}

    def frame(options: dict[str, object], seed: int) -> tuple[np.ndarray, np.ndarray]:
        robot = sim(options, seed=seed)
        with robot:
            robot.placer.place(SE2(-0.5, 0.0, 0.3), -0.2)
            seen = robot.camera.capture(robot.clock.now_ns(), 1.0)
            return seen.rgb, seen.depth_m

    noisy, again, other = frame(options, 1), frame(options, 1), frame(options, 2)
    for mine, same, different in zip(noisy, again, other, strict=True):
        assert np.array_equal(mine, same)
        assert not np.array_equal(mine, different)
    assert np.median(np.abs(noisy[1] - other[1])) < 0.02
    assert 0 < np.abs(noisy[0].astype(int) - other[0]).mean() < 4
