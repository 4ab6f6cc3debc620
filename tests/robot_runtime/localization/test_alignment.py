from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import CalibrationFailed
from robot_runtime.localization.alignment import Alignment, AlignmentSample, solve_alignment

TRUTH = SE2(3.0, -2.0, math.radians(140))
LEVER_M = (0.08, -0.05)


def drive(count: int = 60) -> list[SE2]:
    """An L of 1.2 m and 1 m."""
    ahead = [SE2(0.5 + 1.2 * i / count, 0.3, 0.2) for i in range(count // 2)]
    corner = ahead[-1]
    return ahead + [SE2(corner.x_m, corner.y_m + 1.0 * i / count * 2, 1.8) for i in range(count // 2)]


def samples(
    poses: list[SE2] | None = None,
    truth: SE2 = TRUTH,
    lever_m: tuple[float, float] = LEVER_M,
    noise_m: float = 0.0,
    unit_m: float = 1.0,
    mirrored: bool = False,
    yaw_offset_rad: float | None = None,
    outliers: int = 0,
) -> list[AlignmentSample]:
    random = np.random.default_rng(1)
    made = []
    for index, pose in enumerate(poses or drive()):
        x, y = truth.inverse().apply(*pose.apply(*lever_m))
        x, y = x + random.normal(0, noise_m), y + random.normal(0, noise_m)
        if index % 20 < outliers:
            x += 1.3
        heading = None if yaw_offset_rad is None else wrap_angle(pose.yaw_rad - truth.yaw_rad - yaw_offset_rad)
        made.append(AlignmentSample(x / unit_m, (-y if mirrored else y) / unit_m, pose, heading))
    return made


def assert_close(found: Alignment, truth: SE2, position_m: float, angle_rad: float) -> None:
    assert found.map_from_source.distance_to(truth) < position_m
    assert abs(wrap_angle(found.map_from_source.yaw_rad - truth.yaw_rad)) < angle_rad


@settings(max_examples=30, deadline=None)
@given(st.floats(-20, 20), st.floats(-20, 20), st.floats(-math.pi, math.pi), st.booleans())
def test_exact_positions_give_the_exact_alignment(x: float, y: float, yaw: float, knows_lever: bool) -> None:
    truth = SE2(x, y, yaw)
    found = solve_alignment(samples(truth=truth), LEVER_M if knows_lever else None)
    assert_close(found, truth, 1e-6, 1e-7)
    assert found.lever_m == pytest.approx(LEVER_M, abs=1e-6)
    assert found.rms_m == pytest.approx(0.0, abs=1e-6)
    assert found.max_m == pytest.approx(0.0, abs=1e-6)
    assert (found.samples, found.outliers) == (60, 0)


def test_two_centimeters_of_noise_and_five_percent_of_outliers() -> None:
    found = solve_alignment(samples(noise_m=0.02, outliers=1), LEVER_M)
    assert found.outliers == 3
    assert_close(found, TRUTH, 0.02, math.radians(1.0))
    assert found.rms_m == pytest.approx(0.028, abs=0.01)


def test_headings_of_a_source_that_counts_from_another_zero() -> None:
    found = solve_alignment(samples(yaw_offset_rad=math.radians(90)), LEVER_M)
    assert found.yaw_offset_rad == pytest.approx(math.radians(90), abs=1e-6)
    assert solve_alignment(samples(), LEVER_M).yaw_offset_rad is None


def test_surveyed_points_suffice() -> None:
    points = [SE2(x, y, 0.0) for x in (0.0, 1.0, 2.0) for y in (0.0, 1.0, 2.0)]
    assert_close(solve_alignment(samples(points, noise_m=0.005), LEVER_M), TRUTH, 0.02, 0.01)


@pytest.mark.parametrize(
    ("bad", "lever_m", "says"),
    [
        (samples()[:5], LEVER_M, "5 positions .* 8 are needed"),
        (samples([SE2(1 + 0.001 * i, 2, 0.1) for i in range(40)]), LEVER_M, r"0\.0\d m only, 0\.25 m"),
        (samples([SE2(0.1 * i, 0, 0.1) for i in range(40)]), None, "0°.* 60°"),
        (samples(mirrored=True), LEVER_M, "mirrored"),
        (samples(unit_m=0.001), LEVER_M, r"0\.001 m.*millimeters"),
        (samples(unit_m=0.8), LEVER_M, r"0\.8 m"),
        (samples()[:30] + samples(truth=TRUTH @ SE2(1.0, 0.5, 0.4))[30:], LEVER_M, "of 60 positions"),
        ([*samples(), AlignmentSample(math.nan, 0, SE2())], LEVER_M, "not finite"),
    ],
)
def test_what_cannot_be_aligned_is_named(
    bad: list[AlignmentSample], lever_m: tuple[float, float] | None, says: str
) -> None:
    with pytest.raises(CalibrationFailed) as caught:
        solve_alignment(bad, lever_m)
    assert re.search(says, f"{caught.value.message} {caught.value.remedy}"), caught.value


def test_headings_that_do_not_turn_with_the_robot_are_named() -> None:
    turned = [SE2(pose.x_m, pose.y_m, 0.1 * i) for i, pose in enumerate(drive())]
    fixed = [AlignmentSample(s.x_m, s.y_m, s.robot, 0.0) for s in samples(turned)]
    with raises_naming(CalibrationFailed, "alignment", "heading"):
        solve_alignment(fixed, LEVER_M)
