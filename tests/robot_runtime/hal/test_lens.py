import math

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.rig import RgbdCalibration

TIME_OF_FLIGHT = Lens(
    128, 128, 63.0, 63.1, 64.0, 63.5, "rational", (0.55, -0.02, 2e-5, -7e-5, -0.003, 0.89, 0.086, -0.014), 1.74
)
PLUMB_BOB = Lens(160, 90, 76.4, 76.4, 79.6, 44.9, "brown_conrady", (0.08, -0.11, 3e-4, -2e-4, 0.04))
INVERSE = Lens(160, 90, 80.6, 80.6, 80.0, 45.0, "inverse_brown_conrady", (-0.055, 0.065, -9e-4, 6e-4, -0.021))
LENSES = (TIME_OF_FLIGHT, PLUMB_BOB, INVERSE, Lens.of(Intrinsics.from_hfov(160, 120, 79.0)))


@pytest.mark.parametrize("lens", LENSES, ids=lambda lens: lens.model)
def test_pixels_of_rays_are_the_pixels(lens: Lens) -> None:
    rays = lens.pixel_rays()
    x, y = np.meshgrid(np.arange(lens.width), np.arange(lens.height))
    error = np.abs(lens.project(rays) - np.stack([x, y], -1))
    assert rays.shape == (lens.height, lens.width, 3)
    assert np.nanmax(error) < 1e-6
    assert np.isfinite(error[lens.height // 2 - 20 : lens.height // 2 + 20, lens.width // 2 - 20 :][:, :40]).all()


@given(
    st.lists(st.floats(-0.1, 0.1), min_size=8, max_size=8),
    st.lists(st.tuples(st.floats(-0.6, 0.6), st.floats(-0.6, 0.6)), min_size=1, max_size=5),
)
@settings(max_examples=40, deadline=None)
def test_rays_of_pixels_are_the_rays(coefficients: list[float], points: list[tuple[float, float]]) -> None:
    coefficients[2:4] = [value / 50 for value in coefficients[2:4]]
    lens = Lens(640, 480, 400.0, 410.0, 320.0, 240.0, "rational", tuple(coefficients))
    ideal = np.array([(x, y, 1.0) for x, y in points])
    inside = np.hypot(ideal[:, 0], ideal[:, 1]) < lens.edge_radius - 0.01
    np.testing.assert_allclose(lens.rays(lens.project(ideal))[inside], ideal[inside], atol=1e-9)


@pytest.mark.parametrize("lens", [TIME_OF_FLIGHT, PLUMB_BOB], ids=lambda lens: lens.model)
def test_coefficients_are_opencvs(lens: Lens) -> None:
    points = np.random.default_rng(0).uniform((-0.9, -0.6, 1.0), (0.9, 0.6, 3.0), (200, 3))
    theirs, _ = cv2.projectPoints(points, np.zeros(3), np.zeros(3), lens.matrix, np.array(lens.coefficients))
    np.testing.assert_allclose(lens.project(points), theirs.reshape(-1, 2), atol=1e-9)


def test_inverse_brown_conrady_takes_the_tangential_part_of_the_distorted_point() -> None:
    k1, k2, p1, p2, k3 = INVERSE.coefficients
    x, y = 0.5, -0.3
    r2 = x * x + y * y
    factor = 1 + k1 * r2 + k2 * r2**2 + k3 * r2**3
    fx, fy = x * factor, y * factor
    expected = (
        80.6 * (fx + 2 * p1 * fx * fy + p2 * (r2 + 2 * fx * fx)) + 80.0,
        80.6 * (fy + 2 * p2 * fx * fy + p1 * (r2 + 2 * fy * fy)) + 45.0,
    )
    np.testing.assert_allclose(INVERSE.project((x, y, 1.0)), expected, atol=1e-9)


def test_nothing_is_seen_beyond_the_edge_or_behind() -> None:
    assert np.isnan(TIME_OF_FLIGHT.project((1.8, 0.0, 1.0))).all()
    assert np.isfinite(TIME_OF_FLIGHT.project((1.7, 0.0, 1.0))).all()
    assert np.isnan(PLUMB_BOB.project((0.1, 0.1, -1.0))).all()
    assert np.isnan(PLUMB_BOB.project((0.1, 0.1, 0.0))).all()
    assert np.isnan(TIME_OF_FLIGHT.rays((0.0, 0.0))[:2]).all()


def test_a_polynomial_that_turns_back_ends_the_lens_there() -> None:
    lens = Lens(640, 480, 300.0, 300.0, 319.5, 239.5, "brown_conrady", (-0.4, 0.0, 0.0, 0.0))
    turn = math.sqrt(1 / (3 * 0.4))  # of r - 0.4 r^3
    assert lens.edge_radius == pytest.approx(turn, abs=0.01)
    assert np.isnan(lens.project((turn + 0.05, 0.0, 1.0))).all()
    inside = lens.rays((319.5 + 300 * turn * (1 - 0.4 * turn**2) * 0.99, 239.5))
    assert inside[0] < turn


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "fisheye"}, "lens model"),
        ({"coefficients": (0.1,)}, "4 or 5 coefficients, got 1"),
        ({"width": 0}, "0x90"),
        ({"fx": -1.0}, "fx must be in pixels"),
        ({"cx": float("nan")}, "finite"),
        ({"max_radius": 0.0}, "max_radius"),
    ],
)
def test_a_lens_refuses_what_is_none(change: dict[str, object], said: str) -> None:
    fields = {**config.unparse(PLUMB_BOB), "coefficients": PLUMB_BOB.coefficients, **change}
    with pytest.raises(ValueError, match=said):
        Lens(**fields)


def calibration(**changes: object) -> RgbdCalibration:
    angle = math.radians(4.9)
    matrix = np.eye(4)
    matrix[1:3, 1:3] = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
    matrix[:3, 3] = (-0.032, -0.002, 0.004)
    fields: dict[str, object] = {
        "color": PLUMB_BOB,
        "depth": TIME_OF_FLIGHT,
        "color_from_depth": matrix,
        "depth_unit_m": 0.001,
        "serial": "7",
        "source": "factory",
    }
    return RgbdCalibration(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_calibration_comes_back_from_its_document() -> None:
    given_one = calibration()
    document = given_one.to_document()
    assert document["depth"]["max_radius"] == 1.74
    again = RgbdCalibration.from_document(document, "file")
    assert again == given_one
    assert again.hash == given_one.hash
    assert hash(again) == hash(given_one)


def test_the_hash_is_of_the_geometry_and_the_device() -> None:
    assert calibration().hash == calibration(source="rig.yaml").hash
    assert len({calibration().hash, calibration(serial="8").hash, calibration(depth_unit_m=0.002).hash}) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"color_from_depth": np.eye(3)}, "4x4"),
        ({"color_from_depth": np.diag([1.0, 1.0, -1.0, 1.0])}, "rotation"),
        ({"color_from_depth": np.diag([1.1, 1.0, 1.0, 1.0])}, "rotation"),
        ({"color_from_depth": np.full((4, 4), np.nan)}, "finite"),
        ({"depth_unit_m": 0.0}, "depth_unit_m"),
    ],
)
def test_a_calibration_refuses_what_is_none(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        calibration(**change)


def test_a_bad_calibration_file_is_named() -> None:
    document = calibration().to_document()
    with raises_naming(ConfigError, "rig.yaml", "color_from_depth"):
        RgbdCalibration.from_document({**document, "color_from_depth": [[2.0, 0, 0, 0]] * 4}, "rig.yaml")
    document["depth"]["fx"] = "wide"
    with raises_naming(ConfigError, "rig.yaml", "'depth.fx'"):
        RgbdCalibration.from_document(document, "rig.yaml")


def test_the_matrix_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        calibration().color_from_depth[0, 0] = 2.0
