"""The classical agent in closed loop."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
from box_world import BoxWorld, Run, flat, make_task, observe, random_episode, run
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import PolicyError
from robot_runtime.policies.baselines.classical.agent import Classical
from robot_runtime.policies.baselines.classical.survey import pose_in_start_frame
from robot_runtime.tasks.episode import Episode, Goal

TASK = make_task(success_m=0.36)


def pointnav(seed: int) -> tuple[bool, float, Run]:
    """Success, SPL and run of a seeded episode in a seeded flat."""
    world = flat(seed)
    start, goal, shortest_m = random_episode(world, seed)
    result = run(world, Classical(), TASK, Episode("0", "boxes", start, (Goal(*goal),)))
    success = result.stopped and math.hypot(result.pose.x_m - goal[0], result.pose.y_m - goal[1]) < 0.36
    return success, success * shortest_m / max(shortest_m, result.path_m), result


@pytest.mark.slow
def test_it_reaches_point_goals_in_flats_it_has_never_seen() -> None:
    outcomes = [pointnav(seed) for seed in (0, 1, 2, 4, 8, 15)]
    assert all(success for success, _, _ in outcomes)
    assert statistics.mean(spl for _, spl, _ in outcomes) > 0.8
    assert sum(result.collisions for _, _, result in outcomes) <= 3


def test_it_looks_round_before_it_leaves() -> None:
    _, _, result = pointnav(1)
    assert set(result.actions[:12]) == {Action.TURN_LEFT}


def test_it_gets_round_what_it_cannot_see() -> None:
    # 6 cm below the camera's view at every distance it is approached from, but in the robot's way.
    world = BoxWorld((5.0, 4.0), [(2.0, 1.2, 0.0, 2.2, 2.8, 0.035)])
    result = run(world, Classical(), TASK, Episode("0", "b", SE2(1.0, 2.0), (Goal(4.0, 2.0),)))
    assert result.collisions > 0
    assert result.stopped
    assert math.hypot(result.pose.x_m - 4.0, result.pose.y_m - 2.0) < 0.36


def test_it_leaves_a_passage_that_hardly_admits_it() -> None:
    # A bed half a metre from the wall, and the robot between them: too near to see the bed's edge.
    world = BoxWorld((5.0, 4.0), [(0.5, 0.5, 0.0, 2.5, 3.0, 0.5)])
    result = run(world, Classical(), TASK, Episode("0", "b", SE2(0.25, 1.5, 1.2), (Goal(3.5, 1.5),)))
    assert result.stopped
    assert math.hypot(result.pose.x_m - 3.5, result.pose.y_m - 1.5) < 0.36


@pytest.mark.slow
def test_a_goal_that_cannot_be_reached_ends_in_a_stop() -> None:
    walls = [(2.0, 0.0, 0.0, 2.1, 3.0, 2.5)]
    world = BoxWorld((4.0, 3.0), walls)
    result = run(world, Classical(), replace(TASK, max_steps=300), Episode("0", "b", SE2(1, 1.5), (Goal(3.2, 1.5),)))
    assert result.pose.x_m < 2.0


def test_actuation_noise_does_not_keep_it_from_the_goal() -> None:
    random = np.random.default_rng(3)

    def disturb(pose: SE2) -> SE2:
        return pose @ SE2(random.normal(0, 0.005), random.normal(0, 0.005), random.normal(0, 0.02))

    world = flat(8)
    start, goal, _ = random_episode(world, 8)
    result = run(world, Classical(), TASK, Episode("0", "boxes", start, (Goal(*goal),)), disturb=disturb)
    assert result.stopped
    assert math.hypot(result.pose.x_m - goal[0], result.pose.y_m - goal[1]) < 0.36


def objectnav(semantic: bool) -> tuple[BoxWorld, Run]:
    world = flat(5)
    world.thing = len(world.boxes) - 1
    start, _, _ = random_episode(world, 5)
    x0, y0, z0, x1, y1, z1 = world.boxes[-1]
    goal = Goal((x0 + x1) / 2, (y0 + y1) / 2, (z0 + z1) / 2)
    task = make_task("objectnav")
    if semantic:
        task = replace(task, sensors=(*task.sensors, "semantic"))
    return world, run(world, Classical(), task, Episode("0", "b", start, (goal,), category="thing"), semantic=semantic)


def test_it_finds_an_object_goes_near_and_stops_with_it_in_view() -> None:
    world, result = objectnav(semantic=True)
    assert result.stopped
    x0, y0, _, x1, y1, _ = world.boxes[-1]
    away = math.hypot(
        max(x0 - result.pose.x_m, result.pose.x_m - x1, 0.0), max(y0 - result.pose.y_m, result.pose.y_m - y1, 0.0)
    )
    assert away < 0.9
    _, index = world.render(TASK.camera, result.pose, result.tilt_rad)
    assert (index == world.thing).any()


@pytest.mark.slow
def test_without_a_semantic_sensor_it_explores_every_room() -> None:
    world, result = objectnav(semantic=False)
    agent_rooms = set()
    pose = random_episode(world, 5)[0]
    for action in result.actions:
        d = TASK.magnitudes.displacement(action)
        pose = world.forward(pose, d.forward_m)[0] @ SE2(0, 0, d.turn_rad) if action is not Action.STOP else pose
        agent_rooms.add((int(pose.x_m // 3), int(pose.y_m // 3)))
    assert len(agent_rooms) >= 4


def test_the_same_episode_gives_the_same_actions() -> None:
    agent = Classical()
    world = flat(0)
    start, goal, _ = random_episode(world, 0)
    episode = Episode("0", "boxes", start, (Goal(*goal),))
    assert run(world, agent, TASK, episode).actions == run(world, agent, TASK, episode).actions


def test_its_info_is_json() -> None:
    for kind in ("pointnav", "objectnav"):
        task, agent = make_task(kind), Classical()
        agent.reset(task, 0)
        world = BoxWorld((3.0, 3.0), [])
        episode = Episode("0", "b", SE2(1.5, 1.5), (Goal(2.8, 1.5),), category="thing")
        agent.act(observe(world, task, episode, episode.start, 0.0))
        assert json.loads(json.dumps(agent.info(), allow_nan=False))


@pytest.mark.parametrize(("kind", "sensor"), [("pointnav", "pointgoal"), ("objectnav", "objectgoal")])
def test_a_task_without_a_goal_sensor_is_refused(kind: str, sensor: str) -> None:
    with raises_naming(PolicyError, repr(sensor)):
        Classical().reset(make_task(kind, sensors=("depth", "gps", "compass")), 0)
    assert Classical.needs == ("depth", "gps", "compass")


def test_gps_and_compass_are_a_pose_in_the_start_frame() -> None:
    observation = {"gps": np.array([3.0, -1.0], np.float32), "compass": np.array([0.5236], np.float32)}
    pose = pose_in_start_frame(observation)
    assert (pose.x_m, pose.y_m, pose.yaw_rad) == (3.0, 1.0, pytest.approx(0.5236))
