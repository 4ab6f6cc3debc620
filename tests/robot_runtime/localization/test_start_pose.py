"""The episode's origin, from poses of a robot that stands still."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from raising import raises_naming

from robot_runtime.common.clock import NS_PER_S, SimulatedClock
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import DeviceFault, LocalizationLost, StaleData
from robot_runtime.hal import LocalizerInfo, PoseEstimate, PoseStatus
from robot_runtime.localization.pose_monitor import mean_pose
from tests.benchmarks.runtime.synthetic_drives import ReplayedLocalizer

TRUTH = SE2(2.0, -1.0, math.pi - 0.001)
NOISE = np.diag((0.02**2, 0.02**2, math.radians(2) ** 2))
Make = Callable[[int, int], PoseEstimate]


def white(stamp_ns: int, index: int) -> PoseEstimate:
    """Independent errors, stated as they are; headings on both sides of the wrap."""
    x, y, yaw = np.random.default_rng(index).standard_normal(3).tolist()
    pose = SE2(TRUTH.x_m + 0.02 * x, TRUTH.y_m + 0.02 * y, wrap_angle(TRUTH.yaw_rad + math.radians(2) * yaw))
    return PoseEstimate(stamp_ns, pose, "map", NOISE)


def mean_of(make: Make, rate_hz: float = 10.0, window_s: float = 1.0, latency_s: float = 0.1) -> PoseEstimate:
    clock = SimulatedClock(10_000_000)
    period_ns = round(NS_PER_S / rate_hz)
    arriving = [
        (i * period_ns + round(latency_s * NS_PER_S), make(i * period_ns, i)) for i in range(round(12 * rate_hz))
    ]
    source = ReplayedLocalizer(clock, LocalizerInfo("tags", "map", rate_hz), arriving)
    with source:
        clock.sleep(2.0)
        return mean_pose(clock, source, window_s)


def off(estimate: PoseEstimate) -> tuple[float, float]:
    return estimate.pose.distance_to(TRUTH), abs(wrap_angle(estimate.pose.yaw_rad - TRUTH.yaw_rad))


def test_independent_errors_average_out() -> None:
    origin = mean_of(white, rate_hz=30.0, window_s=3.0)
    off_m, off_rad = off(origin)
    assert off_m < 0.01
    assert off_rad < math.radians(1)
    assert math.sqrt(origin.covariance[0, 0]) < 0.012
    assert origin.frame == "map"


def test_errors_that_all_poses_share_do_not() -> None:
    origin = mean_of(lambda stamp_ns, _: PoseEstimate(stamp_ns, TRUTH @ SE2(0.01, 0, 0), "map", NOISE))
    np.testing.assert_allclose(origin.covariance, NOISE, atol=1e-12)


def test_a_source_that_states_no_errors_is_judged_by_its_scatter() -> None:
    def make(stamp_ns: int, index: int) -> PoseEstimate:
        return PoseEstimate(stamp_ns, white(stamp_ns, index).pose, "map")

    origin = mean_of(make, rate_hz=30.0, window_s=2.0)
    assert math.sqrt(origin.covariance[0, 0]) == pytest.approx(0.02 / math.sqrt(60), rel=0.4)


def test_what_a_filter_knew_before_it_settled_weighs_little() -> None:
    def make(stamp_ns: int, index: int) -> PoseEstimate:
        std_m = 0.3 if stamp_ns < 2.5 * NS_PER_S else 0.01
        return PoseEstimate(stamp_ns, TRUTH @ SE2(std_m, 0, 0), "map", np.diag((std_m**2, std_m**2, 1e-4)))

    assert off(mean_of(make))[0] < 0.02


def test_one_wild_pose_does_not_shift_it() -> None:
    def make(stamp_ns: int, index: int) -> PoseEstimate:
        wild = index % 9 == 4
        return PoseEstimate(stamp_ns, white(stamp_ns, index).pose @ SE2(1.5 * wild, 0, 0), "map", NOISE)

    assert off(mean_of(make))[0] < 0.03


@pytest.mark.parametrize(("rate_hz", "latency_s"), [(1.0, 0.3), (100.0, 0.0), (8.0, 0.4)])
def test_slow_fast_and_late_sources(rate_hz: float, latency_s: float) -> None:
    assert off(mean_of(white, rate_hz, latency_s=latency_s))[0] < 0.03


def test_a_lost_robot_has_no_origin() -> None:
    def make(stamp_ns: int, index: int) -> PoseEstimate:
        return PoseEstimate(stamp_ns, TRUTH, "map", status=PoseStatus.LOST if index >= 25 else PoseStatus.OK)

    with raises_naming(LocalizationLost, "'tags'"):
        mean_of(make)


def test_a_source_that_finds_the_robot_only_now_is_waited_for() -> None:
    def make(stamp_ns: int, index: int) -> PoseEstimate:
        found = index > 24
        pose = white(stamp_ns, index).pose if found else SE2()
        return PoseEstimate(stamp_ns, pose, "map", NOISE, PoseStatus.OK if found else PoseStatus.LOST)

    assert off(mean_of(make))[0] < 0.03


def test_positions_alone_have_no_heading() -> None:
    covariance = np.diag((1e-4, 1e-4, math.inf))
    with raises_naming(DeviceFault, "positions", "fused"):
        mean_of(lambda stamp_ns, _: PoseEstimate(stamp_ns, TRUTH, "map", covariance))


def test_a_source_slower_than_it_says_is_named() -> None:
    clock = SimulatedClock(10_000_000)
    arriving = [(i * NS_PER_S, PoseEstimate(i * NS_PER_S, TRUTH, "map")) for i in range(20)]
    source = ReplayedLocalizer(clock, LocalizerInfo("tags", "map", 30.0), arriving)
    with source, raises_naming(StaleData, "tags"):
        mean_pose(clock, source, 1.0)
    assert clock.now_ns() < 3 * NS_PER_S
