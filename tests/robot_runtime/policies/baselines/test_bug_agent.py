"""Bug2: boundary following by touch, on the chosen side."""

from __future__ import annotations

import math

import numpy as np
import pytest
from box_world import BoxWorld, Run, make_task, run
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import PolicyError
from robot_runtime.policies import load_policy
from robot_runtime.policies.baselines.blind import GoalFollower
from robot_runtime.policies.baselines.bug2 import Bug
from robot_runtime.policy import Policy
from robot_runtime.tasks.episode import Episode, Goal

TALL = 2.0
BOX = BoxWorld((8.0, 6.0), [(3.5, 2.0, 0, 4.5, 4.0, TALL)])
TRAP = BoxWorld(  # open towards the start: a robot that goes straight ends in it
    (8.0, 6.0), [(4.4, 2.0, 0, 4.6, 4.0, TALL), (3.2, 1.8, 0, 4.6, 2.0, TALL), (3.2, 4.0, 0, 4.6, 4.2, TALL)]
)
START, GOAL = SE2(1.5, 3.0, 0.4), Goal(6.5, 3.1)


def go(world: BoxWorld, agent: Policy, start: SE2 = START, goal: Goal = GOAL, noise_m: float = 0.0) -> Run:
    random = np.random.default_rng(3)

    def disturb(pose: SE2) -> SE2:
        return pose @ SE2(*random.normal(0, noise_m, 2), random.normal(0, noise_m))

    task = make_task(success_m=0.36)
    return run(world, agent, task, Episode("0", "s", start, (goal,)), blind=True, disturb=disturb)


def reached(result: Run, goal: Goal = GOAL) -> bool:
    return result.stopped and math.hypot(result.pose.x_m - goal.x_m, result.pose.y_m - goal.y_m) <= 0.36


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("world", [BOX, TRAP], ids=["box", "trap"])
def test_it_leaves_traps_of_the_goal_follower(world: BoxWorld, side: str) -> None:
    assert reached(go(world, Bug(side, stop_distance_m=0.3)))
    assert not go(world, GoalFollower(stop_distance_m=0.3)).stopped


@pytest.mark.parametrize(("side", "sign"), [("left", -1), ("right", 1)])
def test_the_boundary_stays_on_the_chosen_side(side: str, sign: int) -> None:
    heights = []

    class Watched(Bug):
        def info(self) -> dict[str, object]:
            heights.append(self._pose.y_m)
            return super().info()

    agent = Watched(side, stop_distance_m=0.3)
    start = SE2(1.5, 3.0, 0.0)
    act = agent.act
    follows = set()

    def watched(observation: dict[str, np.ndarray]) -> object:
        action = act(observation)
        follows.add(agent.info()["follows"])
        return action

    agent.act = watched  # type: ignore[method-assign, assignment]
    assert reached(go(BOX, agent, start))
    assert follows == {"", side}
    assert max(heights, key=abs) * sign > 1.0, "not round the end of the box that lies on that side"


@pytest.mark.parametrize("seed", range(3))
def test_actuation_errors_are_corrected(seed: int) -> None:
    assert reached(go(TRAP, Bug("left" if seed % 2 else "right", 0.3), SE2(1.5, 2.8 + 0.1 * seed), noise_m=0.01))


@settings(max_examples=15, deadline=None)
@given(st.floats(-math.pi, math.pi), st.floats(1.0, 2.5), st.floats(-math.pi, math.pi))
def test_in_the_open_it_is_the_goal_follower(yaw: float, distance_m: float, direction: float) -> None:
    goal = Goal(3 + distance_m * math.cos(direction), 3 + distance_m * math.sin(direction))
    open_room = BoxWorld((6.0, 6.0), [])
    runs = [go(open_room, agent(stop_distance_m=0.3), SE2(3, 3, yaw), goal) for agent in (Bug, GoalFollower)]
    assert runs[0].actions == runs[1].actions


def test_without_a_path_it_tries_the_other_side_until_the_last_step() -> None:
    walls = (3.0, 2.0, 5.0, 2.2), (3.0, 3.8, 5.0, 4.0), (3.0, 2.0, 3.2, 4.0), (4.8, 2.0, 5.0, 4.0)
    walled = BoxWorld((8.0, 6.0), [(x0, y0, 0, x1, y1, TALL) for x0, y0, x1, y1 in walls])
    sides = set()
    agent = Bug(stop_distance_m=0.3)
    info = agent.info
    act = agent.act
    agent.act = lambda observation: (act(observation), sides.add(info()["follows"]))[0]  # type: ignore[method-assign, func-returns-value]
    result = go(walled, agent, goal=Goal(4.0, 3.0))
    assert not result.stopped
    assert result.steps == 500
    assert {"left", "right"} <= sides


def test_ships_under_its_name() -> None:
    assert isinstance(load_policy("bug", side="right"), Bug)


def test_an_invalid_side_is_refused() -> None:
    with raises_naming(PolicyError, "side", "'up'"):
        Bug("up")
