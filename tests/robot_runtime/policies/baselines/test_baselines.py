"""Each rule of the Habitat paper's baselines (Savva et al. 2019, section 4)."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from box_world import BoxWorld, make_task, run
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2, compass, gps, polar_goal
from robot_runtime.errors import PolicyError
from robot_runtime.policies.baselines.blind import (
    ForwardOnly,
    GoalFollower,
    GoalSeeker,
    Random,
    RandomActions,
    offset_to_goal,
)
from robot_runtime.policy import Observation
from robot_runtime.tasks.episode import Episode, Goal

ORIGIN = SE2()
AGENTS = (Random, ForwardOnly, GoalFollower)


def seen(pose: SE2, goal: tuple[float, float], start: SE2 = ORIGIN) -> Observation:
    """Values of gps, compass and pointgoal at a pose."""
    return {
        "gps": gps(start, pose).astype(np.float32),
        "compass": np.array([compass(start, pose)], np.float32),
        "pointgoal": polar_goal(start, *goal).astype(np.float32),
    }


def started(agent: GoalSeeker, turn_deg: float = 30.0, seed: int = 1) -> GoalSeeker:
    agent.reset(make_task(turn_deg=turn_deg), seed)
    return agent


@pytest.mark.parametrize("agent", AGENTS)
def test_stops_within_the_papers_20_cm_of_the_goal_and_not_before(agent: type[GoalSeeker]) -> None:
    policy = started(agent())
    assert policy.act(seen(SE2(1.79, 2.0), (2.0, 2.0))) is not Action.STOP
    assert policy.act(seen(SE2(1.81, 2.0), (2.0, 2.0))) is Action.STOP
    assert policy.act(seen(SE2(2.0, 2.19, 2.0), (2.0, 2.0))) is Action.STOP
    assert policy.info()["distance_m"] == pytest.approx(0.19, abs=1e-5)


@pytest.mark.parametrize("agent", AGENTS)
def test_the_stop_distance_can_be_chosen_and_is_the_agents_own(agent: type[GoalSeeker]) -> None:
    near = seen(SE2(1.7, 0.0), (2.0, 0.0))
    assert started(agent(stop_distance_m=0.35)).act(near) is Action.STOP
    loose = agent()
    loose.reset(make_task(success_m=0.36), 0)
    assert loose.act(near) is not Action.STOP


@pytest.mark.parametrize("distance_m", [0.0, -1.0, math.nan, math.inf])
def test_an_invalid_stop_distance_is_refused(distance_m: float) -> None:
    with raises_naming(PolicyError, "stop_distance_m", distance_m):
        ForwardOnly(stop_distance_m=distance_m)


def test_each_agent_declares_its_sensors() -> None:
    assert Random.needs == ForwardOnly.needs == ("pointgoal", "gps")
    assert GoalFollower.needs == ("pointgoal", "gps", "compass")
    assert not any(agent.privileged for agent in AGENTS)


def test_random_draws_its_three_actions_uniformly_and_never_stops_away_from_the_goal() -> None:
    policy = started(Random())
    counts = Counter(policy.act(seen(SE2(), (5.0, 0.0))) for _ in range(3000))
    assert set(counts) == {Action.TURN_LEFT, Action.TURN_RIGHT, Action.MOVE_FORWARD}
    assert all(count == pytest.approx(1000, abs=120) for count in counts.values())


def test_random_repeats_itself_for_a_seed() -> None:
    far = seen(SE2(), (5.0, 0.0))
    policy = Random()
    series = []
    for seed in (3, 3, 4):
        started(policy, seed=seed)
        series.append([policy.act(far) for _ in range(40)])
    assert series[0] == series[1] != series[2]


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(-3, 3))
def test_forward_only_moves_forward_whatever_it_sees(x: float, y: float, yaw: float) -> None:
    assert started(ForwardOnly()).act(seen(SE2(x, y, yaw), (9.0, 9.0))) is Action.MOVE_FORWARD


@pytest.mark.parametrize(
    ("off_axis_deg", "expected"),
    [
        (0.0, Action.MOVE_FORWARD),
        (14.5, Action.MOVE_FORWARD),
        (-14.5, Action.MOVE_FORWARD),
        (15.5, Action.TURN_LEFT),
        (-15.5, Action.TURN_RIGHT),
        (170.0, Action.TURN_LEFT),
        (-170.0, Action.TURN_RIGHT),
    ],
)
@pytest.mark.parametrize("start", [SE2(), SE2(3.0, -2.0, 2.2)])
def test_goal_follower_turns_beyond_15_degrees_off_axis(off_axis_deg: float, expected: Action, start: SE2) -> None:
    pose = start @ SE2(1.0, 0.5, 0.7)
    goal = pose.apply(4 * math.cos(math.radians(off_axis_deg)), 4 * math.sin(math.radians(off_axis_deg)))
    assert started(GoalFollower()).act(seen(pose, goal, start)) is expected


def test_goal_follower_widens_its_tolerance_where_turns_are_coarser_than_twice_of_it() -> None:
    goal = (math.cos(math.radians(20.0)) * 3, math.sin(math.radians(20.0)) * 3)
    assert started(GoalFollower(), turn_deg=45.0).act(seen(SE2(), goal)) is Action.MOVE_FORWARD
    assert started(GoalFollower(), turn_deg=10.0).act(seen(SE2(), goal)) is Action.TURN_LEFT


@pytest.mark.slow
@given(st.floats(-math.pi, math.pi), st.floats(1.0, 4.5), st.floats(-math.pi, math.pi))
def test_goal_follower_reaches_every_goal_in_the_open(yaw: float, distance: float, direction: float) -> None:
    world = BoxWorld((10.0, 10.0), [])
    goal = Goal(5 + distance * math.cos(direction), 5 + distance * math.sin(direction))
    result = run(
        world, GoalFollower(), make_task(turn_deg=10.0), Episode("0", "s", SE2(5, 5, yaw), (goal,)), blind=True
    )
    assert result.stopped
    assert math.hypot(result.pose.x_m - goal.x_m, result.pose.y_m - goal.y_m) <= 0.2 + 1e-5


@given(st.floats(-4, 4), st.floats(-4, 4), st.floats(-3, 3), st.floats(-4, 4), st.floats(-4, 4))
def test_the_offset_to_the_goal_is_in_the_start_frame(x: float, y: float, yaw: float, gx: float, gy: float) -> None:
    start = SE2(1.0, 2.0, 0.6)
    forward_m, left_m = offset_to_goal(seen(start @ SE2(x, y, yaw), start.apply(gx, gy), start))
    assert (forward_m, left_m) == (pytest.approx(gx - x, abs=1e-5), pytest.approx(gy - y, abs=1e-5))


def test_random_actions_stop_after_one_of_the_lengths() -> None:
    """The random baseline of VLN: Magalhaes et al. 2019, table 2."""
    task, taken = make_task(), []
    policy = RandomActions(lengths="2, 5")
    for seed in range(20):
        policy.reset(task, seed)
        actions = [policy.act({}) for _ in range(6)]
        taken.append(actions.index(Action.STOP))
    assert set(taken) == {2, 5}
    with raises_naming(PolicyError, "lengths"):
        RandomActions(lengths="-1")
