"""Integration of depth images into the grid, compared with known geometry."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from box_world import Box, BoxWorld, make_task
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_runtime.common.geometry import SE2
from robot_runtime.policies.baselines.classical.grid import OCCUPIED_AT, Grid
from robot_runtime.policies.baselines.classical.mapping import Mapper
from robot_runtime.tasks.task import TrainingCamera

CAMERA = make_task().camera
CELL_M = 0.05


def mapped(
    boxes: list[Box],
    poses: list[SE2],
    tilt_rad: float = 0.0,
    camera: TrainingCamera = CAMERA,
    size: tuple[float, float] = (8.0, 6.0),
) -> tuple[BoxWorld, Grid]:
    """A grid, in the world's frame, after looking from each pose."""
    world = BoxWorld(size, boxes)
    grid = Grid(CELL_M, 10.0)
    mapper = Mapper(camera, grid)
    for pose in poses:
        mapper.integrate(pose, tilt_rad, depth_image(world, camera, pose, tilt_rad))
    return world, grid


def depth_image(world: BoxWorld, camera: TrainingCamera, pose: SE2, tilt_rad: float) -> np.ndarray:
    depth, _ = world.render(camera, pose, tilt_rad)
    depth = np.clip(depth, camera.depth_min_m, camera.depth_max_m)
    if camera.depth_normalized:
        depth = (depth - camera.depth_min_m) / (camera.depth_max_m - camera.depth_min_m)
    return depth.astype(np.float32)[..., None]


def occupied_points(grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    return grid.centers(*np.nonzero(grid.occupied()))


def layer_at(grid: Grid, layer: np.ndarray, x_m: float, y_m: float) -> int:
    return int(layer.ravel()[grid.flat(np.array([x_m]), np.array([y_m]))[0]])


@settings(max_examples=25)
@given(st.floats(1.0, 4.0), st.floats(1.5, 4.5), st.floats(-0.6, 0.6), st.sampled_from([0.0, -0.5236]))
def test_every_obstacle_lies_on_a_surface_and_a_wall_ahead_is_found(
    x: float, y: float, yaw: float, tilt: float
) -> None:
    world, grid = mapped([(5.0, 2.0, 0.0, 6.0, 4.0, 1.2)], [SE2(x, y, yaw)], tilt)
    px, py = occupied_points(grid)
    assert px.size
    for at in zip(px, py, strict=True):
        assert world.clearance_m(*at)[0] <= CELL_M
    sight = SE2(x, y, yaw)
    hit_m = next(r for r in np.arange(0, 12, 0.01) if world.clearance_m(*sight.apply(r, 0.0))[0] == 0)
    hit_x, hit_y = sight.apply(hit_m, 0.0)
    # Pixels are 0.014 rad apart, so on a wall seen at 0.2 rad from 7 m their points are half a metre apart.
    assert np.hypot(px - hit_x, py - hit_y).min() <= 3 * CELL_M + 0.04 * hit_m


@pytest.mark.parametrize("tilt_deg", [-30.0, 0.0, 30.0])
@pytest.mark.parametrize("normalized", [False, True])
def test_a_flat_wall_is_a_straight_line_of_cells(tilt_deg: float, normalized: bool) -> None:
    camera = replace(CAMERA, depth_normalized=normalized)
    _, grid = mapped([(4.0, 0.0, 0.0, 4.1, 6.0, 2.5)], [SE2(1.0, 3.0, 0.0)], math.radians(tilt_deg), camera)
    px, _ = occupied_points(grid)
    assert px.size > 20
    assert px.min() >= 4.0 - CELL_M
    assert px.max() <= 4.0 + CELL_M


@pytest.mark.parametrize(
    ("bottom_m", "top_m", "is_obstacle"),
    [(0.0, 0.02, False), (0.0, 0.2, True), (0.5, 0.8, True), (0.0, 2.5, True), (1.0, 2.5, False)],
)
def test_only_what_the_robots_body_would_meet_is_an_obstacle(bottom_m: float, top_m: float, is_obstacle: bool) -> None:
    _, grid = mapped([(3.0, 2.5, bottom_m, 3.6, 3.5, top_m)], [SE2(1.0, 3.0, 0.0)])
    px, py = occupied_points(grid)
    there = (px > 2.9) & (px < 3.7) & (py > 2.4) & (py < 3.6)
    assert there.any() == is_obstacle


def test_visible_cells_are_known_and_hidden_ones_are_not() -> None:
    _, grid = mapped([(4.0, 2.0, 0.0, 4.4, 4.0, 1.5)], [SE2(1.0, 3.0, 0.0)])
    for x, y, known in ((2.0, 3.0, True), (3.5, 3.0, True), (5.5, 3.0, False), (0.5, 3.0, False), (6.0, 1.0, True)):
        assert layer_at(grid, grid.known, x, y) == known, (x, y)


def test_holes_at_maximum_depth_clear_nothing() -> None:
    pose = SE2(1.0, 3.0, 0.0)
    for holes, known in (("zero", True), ("max", False)):
        camera = replace(CAMERA, depth_max_m=5.0, depth_holes=holes)
        image = depth_image(BoxWorld((20.0, 6.0), []), camera, pose, 0.0)
        image[image > 2.5] = camera.depth_max_m
        grid = Grid(CELL_M, 10.0)
        Mapper(camera, grid).integrate(pose, 0.0, image)
        assert layer_at(grid, grid.known, 3.0, 3.0)
        assert layer_at(grid, grid.known, 5.0, 3.0) == known


def test_depth_at_the_near_end_of_the_range_is_no_obstacle() -> None:
    grid = Grid(CELL_M, 10.0)
    image = np.full((CAMERA.height, CAMERA.width, 1), CAMERA.depth_min_m, np.float32)
    Mapper(CAMERA, grid).integrate(SE2(), 0.0, image)
    assert not grid.occupied().any()


def test_an_obstacle_that_has_gone_fades_and_one_that_stays_does_not() -> None:
    pose = SE2(1.0, 3.0, 0.0)
    _, grid = mapped([(4.0, 2.8, 0.0, 4.2, 3.2, 1.0), (6.0, 1.0, 0.0, 6.2, 5.0, 1.0)], [pose] * 3)
    mapper = Mapper(CAMERA, grid)
    emptied = BoxWorld((8.0, 6.0), [(6.0, 1.0, 0.0, 6.2, 5.0, 1.0)])
    assert layer_at(grid, grid.evidence, 4.02, 3.0) >= OCCUPIED_AT
    for _ in range(10):
        mapper.integrate(pose, 0.0, depth_image(emptied, CAMERA, pose, 0.0))
    assert layer_at(grid, grid.evidence, 4.02, 3.0) < OCCUPIED_AT
    assert layer_at(grid, grid.evidence, 6.02, 3.0) >= OCCUPIED_AT


def test_the_floor_below_a_near_obstacle_is_suspect_until_observed_or_driven_over() -> None:
    boxes: list[Box] = [(2.0, 2.0, 0.0, 3.0, 4.0, 0.5)]
    _, grid = mapped(boxes, [SE2(1.3, 3.0, 0.0)])
    assert layer_at(grid, grid.suspect, 1.7, 3.0)
    assert not layer_at(grid, grid.known, 1.7, 3.0)
    _, from_afar = mapped(boxes, [SE2(0.2, 3.0, 0.0), SE2(1.3, 3.0, 0.0)])
    assert not layer_at(from_afar, from_afar.suspect, 1.75, 3.0)
    assert layer_at(from_afar, from_afar.known, 1.75, 3.0)
    grid.sweep(SE2(1.3, 3.0), SE2(1.7, 3.0), 0.18)
    assert not layer_at(grid, grid.suspect, 1.7, 3.0)


def test_cells_below_the_least_depth_are_suspect() -> None:
    camera = replace(CAMERA, depth_min_m=0.5)
    _, grid = mapped([(1.3, 1.0, 0.0, 1.4, 5.0, 2.5)], [SE2(1.0, 3.0, 0.0)], camera=camera)
    assert not grid.occupied().any()
    assert layer_at(grid, grid.suspect, 1.3, 3.0)
    assert not layer_at(grid, grid.known, 1.3, 3.0)


def test_the_robots_path_is_free() -> None:
    grid = Grid(CELL_M, 5.0)
    grid.evidence[:] = 12
    grid.sweep(SE2(0.0, 0.0), SE2(1.0, 0.5), 0.18)
    for fraction in np.linspace(0, 1, 9):
        assert layer_at(grid, grid.evidence, fraction, fraction / 2) == 0
    assert layer_at(grid, grid.evidence, 0.5, 0.25 + 0.25) == 12


def test_a_contact_is_marked_along_the_front_of_the_rim() -> None:
    grid = Grid(CELL_M, 5.0)
    for _ in range(2):
        grid.touch(SE2(1.0, 1.0, math.pi / 2), 0.18)
    assert layer_at(grid, grid.touched, 1.0, 1.2) == 2
    assert layer_at(grid, grid.touched, 1.2, 1.0) == 2
    assert layer_at(grid, grid.touched, 1.0, 0.8) == 0


@given(st.floats(-30, 30), st.floats(-30, 30))
def test_growth_keeps_the_content(x: float, y: float) -> None:
    grid = Grid(CELL_M, 2.0)
    grid.known.ravel()[grid.flat(np.array([0.52]), np.array([-1.03]))] = True
    grid.include(x, y, 1.0)
    column, row = grid.in_cells(x, y)
    assert 19.9 <= row <= grid.shape[0] - 19.9
    assert 19.9 <= column <= grid.shape[1] - 19.9
    assert layer_at(grid, grid.known, 0.52, -1.03)
    assert grid.known.sum() == 1


def test_the_goal_object_is_counted_at_its_place() -> None:
    world = BoxWorld((8.0, 6.0), [(4.0, 2.8, 0.4, 4.3, 3.2, 0.7)])
    grid = Grid(CELL_M, 10.0)
    pose = SE2(1.0, 3.0, 0.1)
    _, index = world.render(CAMERA, pose, 0.0)
    Mapper(CAMERA, grid).integrate(pose, 0.0, depth_image(world, CAMERA, pose, 0.0), index == 0)
    px, py = grid.centers(*np.nonzero(grid.goal_counts))
    assert px.size
    assert px.min() >= 4.0 - CELL_M
    assert px.max() <= 4.3 + CELL_M
    assert py.min() >= 2.8 - CELL_M
    assert py.max() <= 3.2 + CELL_M
