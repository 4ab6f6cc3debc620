"""A robot that slides gets away from every corner, does not sink into it, and reports each shortened move."""

from __future__ import annotations

import math

import pytest

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.scene import SCENES, Scene, load_scene
from sim_bridge.physics.scene_model import build_model
from sim_bridge.physics.world import World, along_walls
from tests.benchmarks.sim.scenes import rows_of
from tests.benchmarks.sim.sliding_trials import missed_collisions, try_corners

DEEPEST_M = 0.004
EAST, NORTH = (1.0, 0.0), (0.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SCENES))
def test_from_random_corners_every_move_off_all_walls_succeeds(name: str) -> None:
    corners = try_corners(load_scene(name), 12, seed=3)
    assert corners.starts == 12
    assert corners.frozen == []
    assert corners.deepest_m < DEEPEST_M, "a contact that is reported too shallow lets the body sink into an edge"


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", sorted(SCENES))
def test_from_many_corners_every_move_off_all_walls_succeeds(name: str, seed: int) -> None:
    corners = try_corners(load_scene(name), 150, seed)
    assert corners.frozen == []
    assert corners.deepest_m < DEEPEST_M


def test_a_body_slides_around_the_corner_of_a_box_without_sinking_in(room: Scene) -> None:
    """Of several contacts, MuJoCo reports a face's normal and 3 mm where the body is 25 mm deep."""
    world = World(build_model(room))
    corner_x_m, corner_y_m = 1.5 + 0.25, 1.2 - 0.2
    body_m = world.scene_model.body.radius_m - world.scene_model.body.bumper_travel_m
    world.place_near(SE2(corner_x_m + 0.02, corner_y_m - body_m, 0.0))
    for _ in range(600):
        world.advance_along_walls(0.0, 0.0, 0.25)
        assert math.hypot(world.pose.x_m - corner_x_m, world.pose.y_m - corner_y_m) > body_m - DEEPEST_M
    assert world.pose.y_m > corner_y_m, "it has passed the corner"


@pytest.mark.slow
def test_shortened_moves_are_collisions_and_full_ones_are_not() -> None:
    shortened, missed, false = missed_collisions(load_scene("arena"), 16, seed=1)
    assert shortened >= 4
    assert (missed, false) == (0, 0)


@pytest.mark.parametrize(
    ("velocity", "walls", "expected"),
    [
        ((1.0, 0.5), [], (1.0, 0.5)),
        ((1.0, 0.5), [EAST], (0.0, 0.5)),
        ((-1.0, 0.5), [EAST], (-1.0, 0.5)),
        ((1.0, 0.5), [EAST, NORTH], (0.0, 0.0)),
        ((1.0, -0.5), [EAST, NORTH], (0.0, -0.5)),
        ((1.0, 0.0), [(0.6, 0.8), (0.6, -0.8)], (0.0, 0.0)),
        ((0.6, 1.0), [(0.6, 0.8), (0.8, 0.6)], (-0.096, 0.072)),
        ((1.0, 0.0), [EAST, EAST, (-1.0, 0.0)], (0.0, 0.0)),
        ((0.3, 1.0), [EAST, (-1.0, 0.0)], (0.0, 1.0)),
    ],
)
def test_what_is_left_of_a_velocity_leads_into_no_wall(
    velocity: tuple[float, float], walls: list[tuple[float, float]], expected: tuple[float, float]
) -> None:
    left = along_walls(*velocity, walls)
    assert all(left[0] * x + left[1] * y < 1e-3 for x, y in walls)
    assert left == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_the_benchmark_reaches_its_targets() -> None:
    assert {row.id: row.reached for row in rows_of(10, 16, seed=0)} == {
        "double_conventions": True,
        "sliding_frozen": True,
        "sliding_collisions_missed": True,
        "sliding_collisions_false": True,
        "collider_excess_mm": True,
    }
