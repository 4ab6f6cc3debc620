"""The checks of pose sources: each kind of wrong pose is lost with its reason, whatever the source."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import LocalizerInfo, PoseEstimate, PoseStatus
from robot_runtime.hal.pose_checks import PoseChecks, implausible
from robot_runtime.hal.pose_limits import PoseLimits

MS = 1_000_000
LIMITS = PoseLimits(max_std_m=0.5, max_std_rad=0.3, max_jump_m=0.3, max_jump_rad=0.3, recover_s=1.0)
PERIOD_MS = 20


class Gate:
    """The checks of a source, with odometry by a function of the stamp."""

    def __init__(self, odom_at: Callable[[int], PoseEstimate | None], **info: Any) -> None:
        self.checks = PoseChecks(LocalizerInfo("mocap", "map", 50.0, **{"limits": LIMITS, **info}))
        self._odom_at = odom_at

    @property
    def reason(self) -> str:
        return self.checks.reason

    def reset(self) -> None:
        self.checks.reset()

    def check(self, estimate: PoseEstimate) -> PoseEstimate:
        return self.checks.check(estimate, self._odom_at(estimate.stamp_ns))


def estimate(at_ms: int, x_m: float, std_m: float = 0.01) -> PoseEstimate:
    return PoseEstimate(at_ms * MS, SE2(x_m, 0.0, 0.0), "map", np.diag([std_m**2, std_m**2, 1e-4]))


def driving(speed_m_s: float) -> Any:
    return lambda stamp_ns: PoseEstimate(stamp_ns, SE2(speed_m_s * stamp_ns / NS_PER_S, 0.0, 0.0), "odom")


def test_a_source_that_agrees_with_odometry_is_believed() -> None:
    gate = Gate(driving(0.5))
    statuses = [gate.check(estimate(ms, 2.0 + 0.5 * ms / 1000)).status for ms in range(0, 3000, 100)]
    assert set(statuses) == {PoseStatus.OK}


def test_a_jump_is_lost_until_it_has_held_for_a_while() -> None:
    gate = Gate(driving(0.0))
    gate.check(estimate(0, 0.0))
    statuses = {ms: gate.check(estimate(ms, 1.0)).status for ms in range(100, 1600, 100)}
    assert statuses[100] is PoseStatus.LOST
    assert statuses[1000] is PoseStatus.LOST
    assert statuses[1100] is PoseStatus.OK, "it has relocalised"


def test_the_reason_says_how_far_it_jumped() -> None:
    gate = Gate(driving(0.0))
    gate.check(estimate(0, 0.0))
    gate.check(estimate(100, 1.0))
    assert "jumped by 1.00 m and 0 degrees" in gate.reason
    assert [event.kind for event in gate.checks.events()] == ["lost"]


def test_an_outlier_costs_one_estimate() -> None:
    gate = Gate(driving(0.0))
    judged = [gate.check(estimate(ms, x_m)).status for ms, x_m in ((0, 0.0), (100, 5.0), (200, 0.0), (300, 0.1))]
    assert judged == [PoseStatus.OK, PoseStatus.LOST, PoseStatus.OK, PoseStatus.OK]


def test_poses_that_jump_about_are_never_believed() -> None:
    gate = Gate(driving(0.0))
    gate.check(estimate(0, 0.0))
    statuses = {gate.check(estimate(100 + 100 * i, 1.0 + i % 2)).status for i in range(50)}
    assert statuses == {PoseStatus.LOST}


def test_a_large_covariance_is_lost_and_then_is_not() -> None:
    gate = Gate(driving(0.0))
    judged = [gate.check(estimate(ms, 0.0, std)).status for ms, std in ((0, 0.1), (100, 0.6), (200, 0.1))]
    assert judged == [PoseStatus.OK, PoseStatus.LOST, PoseStatus.OK]
    assert gate.reason == ""


def test_without_odometry_a_pose_may_be_as_far_as_the_robot_can_drive() -> None:
    gate = Gate(lambda _: None)
    gate.check(estimate(0, 0.0))
    assert gate.check(estimate(1000, 0.9)).status is PoseStatus.OK
    assert gate.check(estimate(1100, 3.0)).status is PoseStatus.LOST


def test_being_placed_is_no_jump() -> None:
    gate = Gate(driving(0.0))
    gate.check(estimate(0, 0.0))
    gate.reset()
    assert gate.check(estimate(100, 7.0)).status is PoseStatus.OK


@given(st.floats(-math.pi, math.pi), st.floats(-0.25, 0.25))
def test_headings_are_compared_the_shorter_way_round(yaw_rad: float, error_rad: float) -> None:
    gate = Gate(driving(0.0))
    gate.check(PoseEstimate(0, SE2(0, 0, yaw_rad), "map"))
    turned = PoseEstimate(100 * MS, SE2(0, 0, yaw_rad + error_rad + 2 * math.pi), "map")
    assert gate.check(turned).status is PoseStatus.OK


# --- drives -----------------------------------------------------------------------------------------------------------


def drive(legs: Iterable[tuple[float, float, float]]) -> list[SE2]:
    """Poses every ``PERIOD_MS`` of legs of (m/s, rad/s, s)."""
    pose, poses = SE2(), [SE2()]
    for linear_m_s, angular_rad_s, seconds in legs:
        for _ in range(round(seconds * 1000 / PERIOD_MS)):
            step_s = PERIOD_MS / 1000
            pose = pose @ SE2(linear_m_s * step_s, 0.0, angular_rad_s * step_s)
            poses.append(pose)
    return poses


REST, FORWARD, LEFT = (0.0, 0.0, 1.0), (0.25, 0.0, 1.0), (0.0, math.radians(30), 1.0)
IN_MAP = SE2(3.0, -1.0, 0.7)


def statuses(
    poses: list[SE2],
    measured: Callable[[int, SE2], SE2],
    variance_rad2: float = 1e-4,
    noise_m: float = 2e-4,
    recover_s: float = 5.0,
) -> tuple[list[PoseStatus], PoseChecks]:
    """Statuses of the poses that a source makes of the true ones."""
    random = np.random.default_rng(0)
    gate = Gate(
        lambda stamp_ns: PoseEstimate(stamp_ns, poses[stamp_ns // MS // PERIOD_MS], "odom"),
        limits=replace(LIMITS, recover_s=recover_s),
    )
    found = []
    for index, true in enumerate(poses):
        pose = measured(index, IN_MAP @ true)
        dx, dy, turn = (noise_m * random.standard_normal(3)).tolist()
        pose = SE2(pose.x_m + dx, pose.y_m + dy, pose.yaw_rad + turn)
        estimate = PoseEstimate(index * PERIOD_MS * MS, pose, "map", np.diag([1e-6, 1e-6, variance_rad2]))
        found.append(gate.check(estimate).status)
    return found, gate.checks


STEPS = drive([REST, FORWARD, REST, LEFT, REST, FORWARD, REST, LEFT, REST, FORWARD, REST, FORWARD, REST])
HALF = len(STEPS) // 4


@pytest.mark.parametrize("variance_rad2", [1e-4, math.inf])
def test_a_source_that_follows_is_never_lost(variance_rad2: float) -> None:
    found, checks = statuses(STEPS, lambda _, pose: pose, variance_rad2)
    assert set(found) == {PoseStatus.OK}
    assert checks.events() == []


def frozen(index: int, pose: SE2) -> SE2:
    return pose if index < HALF else IN_MAP @ STEPS[HALF]


def drifting(index: int, pose: SE2) -> SE2:
    late = max(0, index - HALF)
    return SE2(pose.x_m + 0.002 * late, pose.y_m, pose.yaw_rad)


def sliding_heading(index: int, pose: SE2) -> SE2:
    return SE2(pose.x_m, pose.y_m, pose.yaw_rad + 0.003 * max(0, index - HALF))


@pytest.mark.parametrize(
    ("wrong", "says", "options"),
    [
        pytest.param(frozen, "the pose stays at", {"noise_m": 0.0}, id="frozen"),
        pytest.param(frozen, "did not follow", {}, id="frozen with noise"),
        pytest.param(frozen, "the pose stays at", {"noise_m": 0.0, "variance_rad2": math.inf}, id="frozen position"),
        pytest.param(frozen, "deviates", {"variance_rad2": math.inf}, id="frozen position with noise"),
        pytest.param(drifting, "against odometry", {}, id="position drifts between neighbors"),
        pytest.param(sliding_heading, "against odometry", {}, id="heading drifts between neighbors"),
    ],
)
def test_what_builds_up_is_lost_although_neighbors_agree(wrong: Any, says: str, options: dict[str, Any]) -> None:
    found, checks = statuses(STEPS, wrong, **options)
    assert set(found[:HALF]) == {PoseStatus.OK}
    lost = found.index(PoseStatus.LOST)
    moved = sum(a.distance_to(b) + abs(b.yaw_rad - a.yaw_rad) for a, b in pairwise(STEPS[HALF : lost + 1]))
    assert moved < 1.5, "within a few actions"
    assert found[-1] is PoseStatus.LOST
    assert any(says in event.detail for event in checks.events())


def test_a_source_that_did_not_follow_proves_nothing_by_standing_still() -> None:
    poses = drive([FORWARD, FORWARD, (0.0, 0.0, 10.0)])
    found, _ = statuses(poses, lambda _, pose: IN_MAP)
    assert found[-1] is PoseStatus.LOST


def test_a_robot_that_was_carried_is_found_again() -> None:
    poses = drive([FORWARD, (0.0, 0.0, 3.0)])
    found, _ = statuses(poses, lambda index, pose: pose if index < 60 else SE2(5.0, 5.0, 2.0), recover_s=1.0)
    assert found[60] is PoseStatus.LOST
    assert found[-1] is PoseStatus.OK


@pytest.mark.parametrize(
    ("factor", "unit"), [(1000.0, "millimeters"), (100.0, "centimeters"), (39.37, "39.4 m per meter")]
)
def test_a_wrong_unit_is_named_within_one_action(factor: float, unit: str) -> None:
    poses = drive([REST, FORWARD])
    found, checks = statuses(poses, lambda _, pose: SE2(factor * pose.x_m, factor * pose.y_m, pose.yaw_rad))
    assert found[-1] is PoseStatus.LOST
    assert unit in checks.broken


def test_a_mirrored_frame_is_named() -> None:
    poses = drive([FORWARD, LEFT, FORWARD, LEFT, FORWARD, LEFT] * 3)
    _, checks = statuses(poses, lambda _, pose: SE2(pose.x_m, -pose.y_m, -pose.yaw_rad))
    assert "flipped" in checks.broken


def test_values_that_are_not_finite_are_lost_and_not_an_error() -> None:
    found, checks = statuses(STEPS, lambda index, pose: pose if index < HALF else SE2(math.nan, 0.0, 0.0))
    assert found[HALF:] == [PoseStatus.LOST] * (len(STEPS) - HALF)
    assert [event.kind for event in checks.events()] == ["not_finite"]


def test_a_position_outside_the_map_is_lost() -> None:
    checks = PoseChecks(LocalizerInfo("mocap", "map", 50.0), bounds=(0.0, 0.0, 5.0, 5.0))
    assert checks.check(PoseEstimate(0, SE2(2.0, 2.0, 0.0), "map"), None).status is PoseStatus.OK
    assert checks.check(PoseEstimate(MS, SE2(40.0, 2.0, 0.0), "map"), None).status is PoseStatus.LOST


# --- poses in space ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "quaternion", "says"),
    [
        ((1.0, 2.0, 0.1), (0.0, 0.0, 0.0, 0.0), "zero"),
        ((1.0, math.nan, 0.1), (0.0, 0.0, 0.0, 1.0), "finite"),
        ((1.0, 2.0, 0.1), (0.0, 0.0, math.inf, 1.0), "finite"),
        ((1.0, 2.0, 0.1), (0.0, 0.0, 0.0, 30.0), "length"),
        ((1.0, 2.0, 0.1), (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)), "another axis up"),
        ((1.0, 2.0, 0.1), (math.cos(0.4), 0.0, 0.0, math.sin(0.4)), "order"),
    ],
)
def test_a_pose_that_no_robot_on_a_floor_has_says_why(position: Any, quaternion: Any, says: str) -> None:
    assert says in implausible(position, quaternion)[1]


@given(st.floats(-math.pi, math.pi), st.floats(-0.1, 0.1), st.floats(0.8, 1.2))
def test_a_heading_is_that_of_the_quaternion(yaw_rad: float, roll_rad: float, length: float) -> None:
    c, s, cr, sr = math.cos(yaw_rad / 2), math.sin(yaw_rad / 2), math.cos(roll_rad / 2), math.sin(roll_rad / 2)
    quaternion = (length * sr * c, length * sr * s, length * cr * s, length * cr * c)
    pose, why = implausible((1.0, 2.0, 0.3), quaternion)
    assert not why
    assert math.remainder(pose.yaw_rad - yaw_rad, 2 * math.pi) == pytest.approx(0.0, abs=1e-9)
