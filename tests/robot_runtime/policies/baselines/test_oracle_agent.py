"""The shortest-path oracle in closed loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from box_world import BoxWorld, flat, make_task, random_episode, run
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import PolicyError
from robot_runtime.policies.baselines.oracle import Oracle
from robot_runtime.scenes.scene import SceneObject
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Success


def pointnav(start: SE2, goal: tuple[float, float]) -> Episode:
    return Episode("0", "boxes", start, (Goal(*goal),))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("success_m", "turn_deg"), [(0.36, 30.0), (0.1, 30.0), (0.2, 10.0)])
def test_it_stops_inside_the_goal_without_touching_anything(seed: int, success_m: float, turn_deg: float) -> None:
    world = flat(seed)
    start, goal, shortest_m = random_episode(world, seed)
    task = make_task(success_m=success_m, turn_deg=turn_deg)
    result = run(world, Oracle(), task, pointnav(start, goal), world.scene(), blind=True)
    assert result.stopped
    assert math.hypot(result.pose.x_m - goal[0], result.pose.y_m - goal[1]) < success_m
    assert result.collisions == 0
    assert result.path_m <= 1.12 * shortest_m + 0.25


def test_actuation_noise_does_not_keep_it_from_the_goal() -> None:
    random = np.random.default_rng(5)
    world = flat(3)
    start, goal, _ = random_episode(world, 3)

    def disturb(pose: SE2) -> SE2:
        return pose @ SE2(0.0, 0.0, random.normal(0.0, 0.03))

    result = run(world, Oracle(), make_task(), pointnav(start, goal), world.scene(), blind=True, disturb=disturb)
    assert result.stopped
    assert math.hypot(result.pose.x_m - goal[0], result.pose.y_m - goal[1]) < 0.2


def test_it_gets_round_an_obstacle_that_the_map_does_not_show() -> None:
    world = BoxWorld((4.0, 3.0), [(1.8, 1.3, 0.0, 2.0, 1.7, 0.5)])
    episode = pointnav(SE2(0.5, 1.5), (3.5, 1.5))
    result = run(world, Oracle(), make_task(), episode, BoxWorld((4.0, 3.0), []).scene(), blind=True)
    assert 0 < result.collisions < 10
    assert result.stopped
    assert math.hypot(result.pose.x_m - 3.5, result.pose.y_m - 1.5) < 0.2


def objectnav_world(z_m: float) -> tuple[BoxWorld, Episode, SceneObject]:
    """A thing on a pillar in the middle of a room; one view point south of it."""
    thing = SceneObject("thing_0", "thing", (3.0, 2.0, z_m), (0.2, 0.2, 0.2))
    world = BoxWorld((6.0, 4.0), [(2.9, 1.9, z_m - 0.1, 3.1, 2.1, z_m + 0.1), (2.9, 1.9, 0.0, 3.1, 2.1, z_m - 0.1)])
    views = (SE2(3.03, 1.3, math.pi / 2),)
    goal = Goal(3.0, 2.0, z_m, object_id="thing_0", view_points=views)
    return world, Episode("0", "boxes", SE2(0.6, 3.3, 1.0), (goal,), category="thing"), thing


@pytest.mark.parametrize(("z_m", "look"), [(0.2, Action.LOOK_DOWN), (0.9, None), (1.4, Action.LOOK_UP)])
@pytest.mark.parametrize(
    "success", [Success("distance", 0.1, "view_points"), Success("visible", 1.0, "goal", min_visible_pixels=1)]
)
def test_at_an_object_it_faces_it_and_looks_up_or_down_at_it(z_m: float, look: Action | None, success: Success) -> None:
    world, episode, thing = objectnav_world(z_m)
    task = make_task("objectnav", success=success)
    result = run(world, Oracle(), task, episode, world.scene(objects=(thing,)), blind=True)
    assert result.stopped
    assert math.hypot(result.pose.x_m - 3.03, result.pose.y_m - 1.3) < 0.1
    bearing = math.atan2(2.0 - result.pose.y_m, 3.0 - result.pose.x_m)
    assert abs(wrap_angle(bearing - result.pose.yaw_rad)) <= math.radians(15.01)
    assert [a for a in result.actions if a in (Action.LOOK_UP, Action.LOOK_DOWN)] == ([look] if look else [])
    _, index = world.render(task.camera, result.pose, result.tilt_rad)
    assert (index == 0).any()


def test_it_needs_a_world_and_view_points() -> None:
    task = make_task("objectnav")
    with raises_naming(PolicyError, "'oracle'"):
        Oracle().reset(task, 0)
    world, episode, _ = objectnav_world(0.5)
    bare = Episode("7", "boxes", episode.start, (Goal(3.0, 2.0),), category="thing")
    with raises_naming(PolicyError, "'7'", "scene view-points"):
        run(world, Oracle(), make_task("objectnav", success=Success("visible", 1.0)), bare, world.scene())


def test_it_is_privileged_and_needs_no_sensor() -> None:
    assert Oracle.privileged
    assert Oracle.needs == ()


@pytest.mark.slow
@pytest.mark.parametrize(("short_m", "every", "arrives"), [(0.0, 1000, True), (0.02, 1, True), (0.02, 1000, False)])
def test_between_pose_updates_it_uses_dead_reckoning(short_m: float, every: int, arrives: bool) -> None:
    world = BoxWorld((9.0, 3.0), [])

    def disturb(pose: SE2) -> SE2:
        return pose @ SE2(-short_m, 0.0, 0.0)

    episode = pointnav(SE2(1.0, 1.5), (8.0, 1.5))
    agent = Oracle(looks_every=every)
    result = run(world, agent, make_task(), episode, world.scene(), blind=True, disturb=disturb)
    assert result.stopped
    assert (math.hypot(result.pose.x_m - 8.0, result.pose.y_m - 1.5) < 0.2) == arrives


@pytest.mark.parametrize("every", [0, -1, 1.5])
def test_looks_every_must_be_a_positive_integer(every: float) -> None:
    with raises_naming(PolicyError, "looks_every", every):
        Oracle(looks_every=every)  # type: ignore[arg-type]
