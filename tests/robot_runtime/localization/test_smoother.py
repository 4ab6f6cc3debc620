"""A drive with known truth: wheels that slip, beacons that err, jump and fall silent."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from raising import raises_naming

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import RecordingError
from robot_runtime.hal import PoseEstimate, PoseStatus
from robot_runtime.localization.smoother import smooth

START = SE2(2.0, 1.0, 0.7)
NS = 1_000_000_000
NOISE_M = 0.02


def truth(count: int = 600) -> list[SE2]:
    """60 s at 10 Hz: straight lines of 1 m, turns of 90 degrees, rests."""
    poses = [START]
    while len(poses) < count:
        phase = len(poses) % 100
        step = SE2(0.025) if phase < 40 else SE2(0, 0, math.radians(4.5)) if 50 <= phase < 70 else SE2()
        poses.append(poses[-1] @ step)
    return poses


def odometry(poses: list[SE2]) -> list[PoseEstimate]:
    """1 % too long and noisy, from a zero of its own."""
    random = np.random.default_rng(2)
    at = SE2(5.0, 5.0, -1.0)
    told = [at]
    for before, after in pairwise(poses):
        step = after.relative_to(before)
        way, turn = math.hypot(step.x_m, step.y_m), abs(step.yaw_rad)
        at = at @ SE2(
            step.x_m * 1.01 + random.normal(0, 0.005) * math.sqrt(way),
            step.y_m,
            step.yaw_rad + random.normal(0, 0.01) * math.sqrt(turn) + random.normal(0, 0.005) * math.sqrt(way),
        )
        told.append(at)
    return [PoseEstimate(i * NS // 10, pose, "odom") for i, pose in enumerate(told)]


def beacons(poses: list[SE2], outliers: bool = True, knows_yaw: bool = False) -> list[PoseEstimate]:
    random = np.random.default_rng(3)
    yaw_variance = math.radians(3) ** 2 if knows_yaw else math.inf
    covariance = np.diag([NOISE_M**2, NOISE_M**2, yaw_variance])
    measured = []
    for i, pose in enumerate(poses):
        if 200 <= i < 220:
            continue
        jump = 0.8 if outliers and i % 20 == 7 else 0.0
        x, y, yaw = random.normal(0, 1, 3)
        seen = SE2(
            pose.x_m + NOISE_M * x + jump, pose.y_m + NOISE_M * y, pose.yaw_rad + yaw * 0.05 if knows_yaw else 0.0
        )
        measured.append(PoseEstimate(i * NS // 10, seen, "map", covariance))
    return measured


def errors_m(found: tuple[SE2, ...], poses: list[SE2]) -> np.ndarray:
    return np.array([a.distance_to(b) for a, b in zip(found, poses, strict=True)])


STEPS = range(45, 600, 50)
STAMPS = [i * NS // 10 for i in STEPS]


@pytest.mark.parametrize("knows_yaw", [False, True])
def test_a_smoothed_pose_is_better_than_a_measurement(knows_yaw: bool) -> None:
    poses = truth()
    found = smooth(odometry(poses), beacons(poses, knows_yaw=knows_yaw), STAMPS, poses[45] @ SE2(0.1, -0.1, 0.2))
    wanted = [poses[i] for i in STEPS]
    assert np.sqrt(np.mean(errors_m(found.poses, wanted) ** 2)) < 0.01
    assert max(abs(wrap_angle(a.yaw_rad - b.yaw_rad)) for a, b in zip(found.poses, wanted, strict=True)) < 0.03
    sigmas = np.sqrt(np.trace(found.covariances[:, :2, :2], axis1=1, axis2=2))
    assert np.all((sigmas > 0.002) & (sigmas < 0.02))
    assert found.stamps_ns == tuple(STAMPS)


def test_covariances_lie_along_the_map() -> None:
    """Odometry alone after a fix knows how far it came worse across than along: along x it drove, y is across."""
    poses = [SE2(0.05 * i) for i in range(100)]
    fix = PoseEstimate(0, poses[0], "map", np.diag([1e-6, 1e-6, math.radians(2) ** 2]))
    ahead = smooth([PoseEstimate(i * NS // 10, p, "odom") for i, p in enumerate(poses)], [fix], [99 * NS // 10], SE2())
    assert ahead.covariances[0, 1, 1] > 4 * ahead.covariances[0, 0, 0]


def test_what_says_lost_does_not_count() -> None:
    poses = truth(200)
    wrong = [
        replace(m, pose=SE2(m.pose.x_m + 3, m.pose.y_m), status=PoseStatus.LOST) for m in beacons(poses, outliers=False)
    ]
    good = beacons(poses, outliers=False)
    found = smooth(odometry(poses), [*wrong, *good], STAMPS[:3], poses[45])
    assert errors_m(found.poses, [poses[i] for i in (45, 95, 145)]).max() < 0.03


@pytest.mark.parametrize(
    ("keeps", "measures", "says"),
    [(slice(0, 0), True, "no odometry"), (slice(0, 300), True, "s outside"), (slice(None), False, "absolute pose")],
)
def test_logs_that_cannot_be_smoothed_say_why(keeps: slice, measures: bool, says: str) -> None:
    poses = truth()
    with raises_naming(RecordingError, says):
        smooth(odometry(poses)[keeps], beacons(poses) if measures else [], STAMPS, START)
