"""The one table of frames, by worked numbers and by round trips."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.common import geometry as g
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Intrinsics

COORDINATE = st.floats(-1e3, 1e3)
ANGLE = st.floats(-50, 50)
POSES = st.builds(SE2, COORDINATE, COORDINATE, ANGLE)

# A worked example: the episode starts at (1, 2) facing +y; the robot now stands at (0, 5), facing 120 degrees.
START = SE2(1.0, 2.0, math.radians(90))
ROBOT = SE2(0.0, 5.0, math.radians(120))
GOAL = (-2.0, 6.0)


def same_angle(a_rad: float, b_rad: float) -> bool:
    return abs(g.wrap_angle(a_rad - b_rad)) < 1e-9


def test_worked_numbers_of_the_episode_frame() -> None:
    assert g.gps(START, ROBOT) == pytest.approx([3, -1])  # 3 m forward of the start, 1 m to its left
    assert g.compass(START, ROBOT) == pytest.approx(0.5236, abs=1e-4)
    assert g.polar_goal(ROBOT, *GOAL) == pytest.approx([2.2361, 0.5835], abs=1e-4)
    local = ROBOT.inverse() @ SE2(*GOAL)
    assert (local.x_m, local.y_m) == pytest.approx((1.866, 1.2321), abs=1e-4)


def test_worked_numbers_of_habitat() -> None:
    assert g.ros_to_habitat_position(ROBOT.x_m, ROBOT.y_m, 0.1) == pytest.approx((-5, 0.1, 0))
    assert g.yaw_to_habitat_quaternion(ROBOT.yaw_rad) == pytest.approx((0, 0.866, 0, 0.5), abs=1e-4)
    assert g.habitat_quaternion_to_yaw(0, 0.866, 0, 0.5) == pytest.approx(2.0944, abs=1e-4)


def test_worked_numbers_of_thor() -> None:
    assert g.ros_to_thor_position(ROBOT.x_m, ROBOT.y_m, 0.1) == pytest.approx((-5, 0.1, 0))
    assert g.yaw_to_thor_rotation_deg(ROBOT.yaw_rad) == pytest.approx(240)


@pytest.mark.parametrize(
    ("habitat", "ros"),
    [((0, 0, -1), (1, 0, 0)), ((-1, 0, 0), (0, 1, 0)), ((0, 1, 0), (0, 0, 1))],
    ids=["forward", "left", "up"],
)
def test_habitat_axes(habitat: tuple[float, ...], ros: tuple[float, ...]) -> None:
    assert g.habitat_to_ros_position(*habitat) == pytest.approx(ros)
    assert g.ros_to_habitat_position(*ros) == pytest.approx(habitat)


@pytest.mark.parametrize(
    ("thor", "ros"),
    [((0, 0, 1), (1, 0, 0)), ((-1, 0, 0), (0, 1, 0)), ((0, 1, 0), (0, 0, 1))],
    ids=["forward", "left", "up"],
)
def test_thor_axes(thor: tuple[float, ...], ros: tuple[float, ...]) -> None:
    assert g.thor_to_ros_position(*thor) == pytest.approx(ros)
    assert g.ros_to_thor_position(*ros) == pytest.approx(thor)


@pytest.mark.parametrize(("rotation_deg", "yaw_deg"), [(0, 0), (90, -90), (180, 180), (270, 90), (330, 30)])
def test_thor_turns_clockwise(rotation_deg: float, yaw_deg: float) -> None:
    assert math.degrees(g.thor_rotation_to_yaw(rotation_deg)) == pytest.approx(yaw_deg)


@pytest.mark.parametrize(("horizon_deg", "tilt_deg"), [(0, 0), (30, -30), (330, 30), (-30, 30)])
def test_thor_horizon_looks_down(horizon_deg: float, tilt_deg: float) -> None:
    assert math.degrees(g.thor_horizon_to_tilt(horizon_deg)) == pytest.approx(tilt_deg)


@given(COORDINATE, COORDINATE, COORDINATE)
def test_positions_come_back(x_m: float, y_m: float, z_m: float) -> None:
    assert g.habitat_to_ros_position(*g.ros_to_habitat_position(x_m, y_m, z_m)) == (x_m, y_m, z_m)
    assert g.thor_to_ros_position(*g.ros_to_thor_position(x_m, y_m, z_m)) == (x_m, y_m, z_m)


@given(ANGLE | st.sampled_from([1e-20, -1e-20]), st.floats(0.01, 100))
def test_headings_come_back(yaw_rad: float, scale: float) -> None:
    quaternion = [scale * q for q in g.yaw_to_habitat_quaternion(yaw_rad)]
    assert same_angle(g.habitat_quaternion_to_yaw(*quaternion), yaw_rad)
    assert same_angle(g.habitat_quaternion_to_yaw(*(-q for q in quaternion)), yaw_rad)
    rotation_deg = g.yaw_to_thor_rotation_deg(yaw_rad)
    assert 0 <= rotation_deg < 360
    assert same_angle(g.thor_rotation_to_yaw(rotation_deg), yaw_rad)
    assert same_angle(g.thor_horizon_to_tilt(g.tilt_to_thor_horizon_deg(yaw_rad)), yaw_rad)


@pytest.mark.parametrize("bad", [(0, 0, 0, 0), (math.nan, 0, 0, 1), (0, math.inf, 0, 1)])
def test_what_is_no_rotation_is_refused(bad: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="not a rotation"):
        g.habitat_quaternion_to_yaw(*bad)


@given(ANGLE | st.sampled_from([math.pi, -math.pi, 3 * math.pi, -3 * math.pi, 0.0]))
def test_wrapped_angles_are_the_same_in_half_open_range(angle_rad: float) -> None:
    wrapped = g.wrap_angle(angle_rad)
    assert -math.pi < wrapped <= math.pi
    assert math.cos(wrapped) == pytest.approx(math.cos(angle_rad), abs=1e-9)
    assert math.sin(wrapped) == pytest.approx(math.sin(angle_rad), abs=1e-9)
    assert g.wrap_angle(wrapped) == wrapped


def almost(a: SE2, b: SE2) -> bool:
    return a.distance_to(b) < 1e-8 and same_angle(a.yaw_rad, b.yaw_rad)


@given(POSES, POSES, POSES)
def test_poses_are_a_group(a: SE2, b: SE2, c: SE2) -> None:
    assert almost((a @ b) @ c, a @ (b @ c))
    assert almost(a @ a.inverse(), SE2())
    assert almost(a @ SE2(), a)
    assert almost(a @ b.relative_to(a), b)


@given(POSES, COORDINATE, COORDINATE)
def test_a_point_moves_with_its_frame(pose: SE2, x_m: float, y_m: float) -> None:
    moved = np.array(pose.apply(x_m, y_m)) - (pose.x_m, pose.y_m)
    c, s = math.cos(pose.yaw_rad), math.sin(pose.yaw_rad)
    assert moved == pytest.approx(np.array([[c, -s], [s, c]]) @ (x_m, y_m), abs=1e-9)


@given(POSES, POSES, st.floats(0, 1))
def test_interpolation_runs_from_end_to_end_the_shorter_way(a: SE2, b: SE2, fraction: float) -> None:
    assert almost(a.interpolate(b, 0), a)
    assert almost(a.interpolate(b, 1), b)
    between = a.interpolate(b, fraction)
    assert a.distance_to(between) + between.distance_to(b) == pytest.approx(a.distance_to(b), abs=1e-8)
    turned_rad = abs(g.wrap_angle(between.yaw_rad - a.yaw_rad))
    assert turned_rad == pytest.approx(fraction * abs(g.wrap_angle(b.yaw_rad - a.yaw_rad)), abs=1e-9)


def test_interpolation_crosses_the_seam_of_angles() -> None:
    between = SE2(yaw_rad=math.radians(170)).interpolate(SE2(yaw_rad=math.radians(-170)), 0.5)
    assert abs(between.yaw_rad) == pytest.approx(math.pi)


@given(POSES, POSES, POSES)
def test_the_episode_frame_does_not_depend_on_the_map(where: SE2, start: SE2, pose: SE2) -> None:
    assert g.gps(where @ start, where @ pose) == pytest.approx(g.gps(start, pose), abs=1e-8)
    assert same_angle(g.compass(where @ start, where @ pose), g.compass(start, pose))
    goal = where @ SE2(3.0, -4.0)
    seen = g.polar_goal(where @ pose, goal.x_m, goal.y_m)
    rho_m, azimuth_rad = g.polar_goal(pose, 3.0, -4.0)
    assert seen[0] == pytest.approx(rho_m, abs=1e-8)
    assert same_angle(seen[1], azimuth_rad) or rho_m < 1e-6


@given(POSES)
def test_the_start_is_the_origin(start: SE2) -> None:
    assert g.gps(start, start) == pytest.approx([0, 0], abs=1e-9)
    assert g.compass(start, start) == 0


@pytest.mark.parametrize(("goal", "azimuth_deg"), [((2, 0), 0), ((0, 2), 90), ((-2, 0), 180), ((0, -2), -90)], ids=str)
def test_azimuth_is_positive_to_the_left(goal: tuple[float, float], azimuth_deg: float) -> None:
    rho_m, azimuth_rad = g.polar_goal(SE2(), *goal)
    assert rho_m == 2
    assert math.degrees(azimuth_rad) == pytest.approx(azimuth_deg)


def test_at_the_goal_the_azimuth_is_zero() -> None:
    assert list(g.polar_goal(SE2(1, 1, 0), 1, 1)) == [0, 0]


@given(st.integers(1, 4000), st.integers(1, 4000), st.floats(1, 179))
def test_a_pinhole_keeps_its_field_of_view(width: int, height: int, hfov_deg: float) -> None:
    k = Intrinsics.from_hfov(width, height, hfov_deg)
    assert k.hfov_deg == pytest.approx(hfov_deg)
    assert k.fx == k.fy
    assert (k.cx, k.cy) == ((width - 1) / 2, (height - 1) / 2)


def test_worked_number_of_the_robothor_camera() -> None:
    assert Intrinsics.from_hfov(640, 480, 79).fx == pytest.approx(388.19, abs=0.01)


def test_the_camera_looks_along_its_z_axis_with_y_down() -> None:
    right, down, forward = g.optical_axes(0.0, 0.0).T
    assert right == pytest.approx([0, -1, 0])
    assert down == pytest.approx([0, 0, -1])
    assert forward == pytest.approx([1, 0, 0])
    assert g.optical_axes(math.radians(90), 0.0)[:, 2] == pytest.approx([0, 1, 0]), "pan is left positive"
    assert g.optical_axes(0.0, math.radians(30))[:, 2] == pytest.approx([math.sqrt(3) / 2, 0, 0.5]), (
        "tilt is up positive"
    )


@given(ANGLE, ANGLE)
def test_optical_axes_are_a_rotation(pan_rad: float, tilt_rad: float) -> None:
    axes = g.optical_axes(pan_rad, tilt_rad)
    assert axes @ axes.T == pytest.approx(np.eye(3), abs=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1)
