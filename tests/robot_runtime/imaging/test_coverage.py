import json
import math
from pathlib import Path

import numpy as np
import pytest
from raising import raises_naming

from robot_runtime.errors import ConfigError
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.coverage import check_coverage, coverage
from robot_runtime.imaging.source import SensorMode

ROBOTHOR = Intrinsics.from_hfov(640, 480, 79.0)
HEXAGON = ((152, 0), (510, 0), (640, 228), (640, 376), (521, 576), (146, 576), (0, 333), (0, 272))


def pinhole(width: int, height: int, hfov_deg: float, vfov_deg: float) -> Lens:
    fx, fy = (side / 2 / math.tan(math.radians(angle) / 2) for side, angle in ((width, hfov_deg), (height, vfov_deg)))
    return Lens(width, height, fx, fy, (width - 1) / 2, (height - 1) / 2)


def share(mode: SensorMode, target: Intrinsics = ROBOTHOR, color_from_depth: np.ndarray | None = None) -> float:
    matrix = np.eye(4) if color_from_depth is None else color_from_depth
    return coverage(mode, target, np.eye(3), matrix).fraction


@pytest.mark.parametrize(("hfov_deg", "filled"), [(79.0, 0.529), (69.4, 0.750), (55.0, 0.996)])
def test_a_d435s_color_cannot_fill_wide_images(hfov_deg: float, filled: float) -> None:
    color = SensorMode("color", "1280x720", pinhole(1280, 720, 69.4, 42.5), 30)
    assert share(color, Intrinsics.from_hfov(640, 480, hfov_deg)) == pytest.approx(filled, abs=0.005)


def test_an_outline_is_the_end_of_what_is_seen() -> None:
    lens = pinhole(100, 100, 90.0, 90.0)
    target = Intrinsics.from_hfov(100, 100, 90.0)
    half = ((-0.5, -0.5), (49.5, -0.5), (49.5, 99.5), (-0.5, 99.5))
    assert share(SensorMode("color", "all", lens, 30), target) == 1.0
    found = coverage(SensorMode("color", "half", lens, 30, outline=half), target, np.eye(3), np.eye(4))
    assert (found.fraction, found.rows, found.columns) == (0.5, 0.0, 0.5)


def test_a_turned_sensor_misses_what_it_is_turned_from() -> None:
    lens = pinhole(640, 480, 79.0, 63.4)
    up = math.radians(10)
    turn = np.array([[1, 0, 0], [0, math.cos(up), -math.sin(up)], [0, math.sin(up), math.cos(up)]])
    found = coverage(SensorMode("color", "used", lens, 30), ROBOTHOR, turn, np.eye(4))
    assert 0.7 < found.fraction < 0.9
    assert found.rows < 0.9
    assert found.columns > 0.98


def test_parallax_moves_what_depth_covers() -> None:
    lens = pinhole(640, 480, 79.0, 63.4)
    aside = np.eye(4)
    aside[0, 3] = 0.2
    assert share(SensorMode("depth", "used", lens, 30, 0.5, 5.0)) == 1.0
    far = share(SensorMode("depth", "far", lens, 30, 3.0, 5.0), color_from_depth=aside)
    near = share(SensorMode("depth", "near", lens, 30, 0.5, 1.0), color_from_depth=aside)
    assert near < far < 1


def test_the_refusal_names_the_modes_that_would_do() -> None:
    narrow, wide, depth = (
        coverage(mode, ROBOTHOR, np.eye(3), np.eye(4))
        for mode in (
            SensorMode("color", "narrow", pinhole(1280, 720, 69.4, 42.5), 30),
            SensorMode("color", "wide", pinhole(1280, 960, 90.0, 74.3), 30),
            SensorMode("depth", "depth", pinhole(848, 480, 87.0, 58.0), 30),
        )
    )
    check_coverage([wide, depth], [narrow, wide, depth], ROBOTHOR, "camera 7")
    with raises_naming(ConfigError, "52", "640", "79") as caught:
        check_coverage([narrow, depth], [narrow, wide, depth], ROBOTHOR, "camera 7")
    assert "set color to wide (100%)" in caught.value.remedy
    assert "allow_partial_coverage" in caught.value.remedy
    with pytest.raises(ConfigError) as caught:
        check_coverage([narrow], [narrow, depth], ROBOTHOR, "camera 7")
    assert "no color mode of this camera fills enough" in caught.value.remedy


def test_a_real_kinects_modes(shared_data: Path) -> None:
    document = json.loads((shared_data / "azure_kinect" / "calibration.json").read_text())
    depth, color = document["CalibrationInformation"]["Cameras"][:2]
    matrix = np.eye(4)
    matrix[:3, :3] = np.reshape(color["Rt"]["Rotation"], (3, 3))
    matrix[:3, 3] = color["Rt"]["Translation"]

    def lens(camera: dict, size: tuple[int, int], full: tuple[int, int], corner: tuple[int, int]) -> Lens:
        cx, cy, fx, fy, k1, k2, k3, k4, k5, k6, _, _, p2, p1 = camera["Intrinsics"]["ModelParameters"]
        center = cx * full[0] - corner[0] - 0.5, cy * full[1] - corner[1] - 0.5
        coefficients = (k1, k2, p1, p2, k3, k4, k5, k6)
        return Lens(*size, fx * full[0], fy * full[1], *center, "rational", coefficients, camera["MetricRadius"] or 1.7)

    modes = {
        "720p": SensorMode("color", "720p", lens(color, (1280, 720), (1280, 960), (0, 120)), 30),
        "1536p": SensorMode("color", "1536p", lens(color, (2048, 1536), (2048, 1536), (0, 0)), 30),
        "nfov": SensorMode("depth", "nfov", lens(depth, (640, 576), (1024, 1024), (192, 180)), 30, 0.5, 5, HEXAGON),
        "wfov": SensorMode("depth", "wfov", lens(depth, (1024, 1024), (1024, 1024), (0, 0)), 15, 0.5, 5),
    }
    found = {name: coverage(mode, ROBOTHOR, np.eye(3), matrix) for name, mode in modes.items()}
    assert found["720p"].fraction == pytest.approx(0.919, abs=0.005)
    assert found["720p"].rows == pytest.approx(1 - 35 / 480, abs=0.005)
    assert found["nfov"].fraction == pytest.approx(0.76, abs=0.04)
    assert found["nfov"].columns == pytest.approx(572 / 640, abs=0.01)
    assert found["1536p"].fraction == found["wfov"].fraction == 1.0
    assert all(one.enough for one in found.values())
