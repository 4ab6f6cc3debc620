"""Poses from tags' corners, on exact and on noisy projections; no image is drawn here."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.apriltag.pose import CameraInRoom, CameraOnRobot, FloorPrior, Geometry, Sighting, solve
from robot_runtime.common.geometry import SE2, optical_axes, wrap_angle
from robot_runtime.common.transforms import Matrix, rotation_rpy, transform
from robot_runtime.imaging.tag_detector import TagDetector
from robot_runtime.scenes.tag_map import Tag, poses_of_square, tag_image

FOCAL_PX = 400.0
SD_PX = 0.12
FLOOR = FloorPrior()
CAMERA = CameraOnRobot(transform((0.05, 0.0, 0.88), optical_axes(0.2, -0.3)))
WALLS = (
    Tag(0, 0.16, (3.0, 0.6, 1.1), (0.0, 0.0, 180.0)),
    Tag(1, 0.16, (3.0, -0.4, 1.4), (0.0, 0.0, 180.0)),
    Tag(2, 0.2, (1.5, 2.0, 1.0), (0.0, 0.0, -90.0)),
    Tag(3, 0.2, (1.6, 0.3, 0.0), (0.0, -90.0, 0.0)),
)
ROBOT_TAG = Tag(100, 0.16, (-0.05, 0.0, 0.95), (0.0, -90.0, 0.0))


def matrix(pose: SE2) -> Matrix:
    return transform((pose.x_m, pose.y_m, 0.0), rotation_rpy(0.0, 0.0, pose.yaw_rad))


def seen(geometry: Geometry, tags: tuple[Tag, ...], base: Matrix, noise: np.random.Generator | None = None) -> list:
    """Sightings of the tags in front of the camera."""
    found = []
    for tag in tags:
        points, _ = geometry.in_camera(base, tag.corners)
        if points[:, 2].min() > 0.2:
            rays = points[:, :2] / points[:, 2:]
            if noise is not None:
                rays = rays + noise.normal(0, SD_PX / FOCAL_PX, rays.shape)
            found.append(Sighting(tag, rays, SD_PX / FOCAL_PX))
    return found


@settings(max_examples=40)
@given(st.floats(-0.5, 0.8), st.floats(-0.8, 0.8), st.floats(-0.4, 0.6))
def test_exact_corners_give_the_exact_pose(x_m: float, y_m: float, yaw_rad: float) -> None:
    truth = SE2(x_m, y_m, yaw_rad)
    found = solve(seen(CAMERA, WALLS, matrix(truth)), CAMERA, FLOOR)
    assert found[0].pose.distance_to(truth) < 1e-6
    assert abs(wrap_angle(found[0].pose.yaw_rad - yaw_rad)) < 1e-6
    assert found[0].cost < 1e-6


@settings(max_examples=20)
@given(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0), st.floats(-3.1, 3.1))
def test_a_camera_under_the_ceiling_sees_where_the_robot_is(x_m: float, y_m: float, yaw_rad: float) -> None:
    down = CameraInRoom(transform((0.2, 0.1, 2.5), rotation_rpy(math.pi, 0.0, 0.3)))
    truth = SE2(x_m, y_m, yaw_rad)
    (found,) = solve(seen(down, (ROBOT_TAG,), matrix(truth)), down, FLOOR)
    assert found.pose.distance_to(truth) < 1e-6
    assert abs(wrap_angle(found.pose.yaw_rad - yaw_rad)) < 1e-6


@pytest.mark.parametrize("geometry", [CAMERA, CameraInRoom(transform((1.0, 0.5, 2.4), rotation_rpy(2.8, 0.1, 0.2)))])
def test_slopes_are_what_differences_say(geometry: Geometry) -> None:
    base = transform((0.1, -0.2, 0.02), rotation_rpy(0.01, -0.02, 0.4))
    points = np.array([(2.0, 0.3, 0.9), (1.0, -0.5, 0.1)])
    here, jacobian = geometry.in_camera(base, points)
    step = 1e-6
    for axis in range(3):
        shifted = base.copy()
        shifted[:3, 3] += base[:3, axis] * step
        np.testing.assert_allclose(
            (geometry.in_camera(shifted, points)[0] - here) / step, jacobian[..., axis], atol=1e-5
        )
        turned = base.copy()
        angles = [step if i == axis else 0.0 for i in range(3)]
        turned[:3, :3] = base[:3, :3] @ rotation_rpy(*angles)
        there = geometry.in_camera(turned, points)[0]
        np.testing.assert_allclose((there - here) / step, jacobian[..., 3 + axis], atol=1e-5)


def test_errors_are_as_large_as_the_covariance_says() -> None:
    random, truth = np.random.default_rng(0), SE2(0.2, 0.1, 0.1)
    squares = []
    for _ in range(60):
        found = solve(seen(CAMERA, WALLS, matrix(truth), random), CAMERA, FLOOR)[0]
        off = np.array([found.pose.x_m - 0.2, found.pose.y_m - 0.1, found.pose.yaw_rad - 0.1])
        squares.append(off @ np.linalg.solve(found.covariance, off))
    # A chi-square of 3 degrees of freedom has mean 3; that of 60 lies within 0.95 of it but once in a thousand times,
    # and is lower here, because the floor that the filter allows for is level.
    assert 1.5 < np.mean(squares) < 4.0


def test_a_tag_far_away_and_frontal_can_be_seen_so_from_two_places() -> None:
    source = CameraOnRobot(transform((0.0, 0.0, 1.1), optical_axes(0.0, 0.0)))
    truth = SE2(0.0, 0.0, 0.1)
    found = solve(seen(source, (Tag(0, 0.1, (3.0, 0.6, 1.1), (0.0, 0.0, 180.0)),), matrix(truth)), source, FLOOR)
    assert len(found) == 2
    assert min(solution.pose.distance_to(truth) for solution in found) < 1e-3
    assert max(solution.pose.distance_to(truth) for solution in found) > 0.5


def test_a_second_tag_decides() -> None:
    source = CameraOnRobot(transform((0.0, 0.0, 1.1), optical_axes(0.0, 0.0)))
    truth = SE2(0.0, 0.0, 0.1)
    tags = (Tag(0, 0.1, (3.0, 0.6, 1.1), (0.0, 0.0, 180.0)), Tag(1, 0.1, (3.0, -0.6, 1.1), (0.0, 0.0, 180.0)))
    (found,) = solve(seen(source, tags, matrix(truth)), source, FLOOR)
    assert found.pose.distance_to(truth) < 1e-6


def test_a_tag_that_was_moved_is_left_out() -> None:
    truth = SE2(0.1, 0.0, 0.1)
    sightings = seen(CAMERA, WALLS, matrix(truth))
    moved = Tag(1, 0.16, (3.0, -0.1, 1.4), (0.0, 0.0, 180.0))
    number = next(i for i, sighting in enumerate(sightings) if sighting.tag.id == 1)
    sightings[number] = Sighting(moved, sightings[number].rays, sightings[number].sd)
    found = solve(sightings, CAMERA, FLOOR)[0]
    assert number not in found.used
    assert found.fits[number] > 1000
    assert found.pose.distance_to(truth) < 1e-6


def test_two_tags_that_contradict_each_other_give_a_solution_each() -> None:
    truth = SE2(0.1, 0.0, 0.1)
    sightings = seen(CAMERA, WALLS[:2], matrix(truth))
    sightings[1] = Sighting(Tag(1, 0.16, (3.0, -0.1, 1.4), (0.0, 0.0, 180.0)), sightings[1].rays, sightings[1].sd)
    found = solve(sightings, CAMERA, FLOOR)
    assert {solution.used for solution in found} == {(0,), (1,)}


@pytest.mark.slow
@settings(max_examples=60)
@given(st.floats(-1.0, 1.0), st.floats(-0.5, 0.5), st.floats(0.5, 4.0), st.floats(-1.2, 1.2), st.floats(-0.5, 0.5))
def test_one_of_the_two_poses_by_a_single_tag_is_right(x: float, y: float, z: float, turn: float, lean: float) -> None:
    frontal = np.array([(0.0, 1.0, 0.0), (0.0, 0.0, -1.0), (-1.0, 0.0, 0.0)])
    pose = transform((x, y, z), rotation_rpy(lean, turn, 0.0) @ frontal)
    tag = Tag(5, 0.16, (0.0, 0.0, 0.0))
    corners = tag.corners @ pose[:3, :3].T + pose[:3, 3]
    found = poses_of_square(corners[:, :2] / corners[:, 2:], tag.size_m)
    assert len(found) == 2
    np.testing.assert_allclose(found[0], pose, atol=1e-6)
    for matrix_ in found:
        np.testing.assert_allclose(matrix_[:3, :3].T @ matrix_[:3, :3], np.eye(3), atol=1e-9)
        assert np.linalg.det(matrix_[:3, :3]) == pytest.approx(1.0)


def test_nothing_seen_is_no_pose() -> None:
    assert solve([], CAMERA, FLOOR) == []


def test_the_detector_agrees_with_tag_maps_about_corners() -> None:
    image = np.full((400, 500), 128, np.uint8)
    image[100:300, 150:350] = tag_image(42, 20)
    (found,) = TagDetector().detect(image)
    assert found.id == 42
    # The black square's edges lie between pixels: its first column is 170, its last 329.
    expected = [(169.5, 279.5), (329.5, 279.5), (329.5, 119.5), (169.5, 119.5)]
    np.testing.assert_allclose(found.corners_px, expected, atol=0.3)
    assert abs(found.edge_px - 160) < 0.3
    rays = (np.array(expected) - (249.5, 199.5)) / 400
    pose = poses_of_square(rays, 0.16)[0]
    # Frontal: its face towards the camera, its top up in the image.
    np.testing.assert_allclose(pose[:3, 0], (0, 0, -1), atol=1e-3)
    np.testing.assert_allclose(pose[:3, 2], (0, -1, 0), atol=1e-3)
    assert pose[2, 3] == pytest.approx(0.4, rel=1e-3)


def test_of_two_tags_with_one_id_neither_is_believed() -> None:
    image = np.full((300, 600), 128, np.uint8)
    image[50:250, 50:250] = tag_image(7, 20)
    image[50:250, 320:520] = tag_image(7, 20)
    assert TagDetector().detect(image) == ()
