"""InternNav's server for robots: what it is sent, and its two sorts of answers. Against the emulator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from navigator_servers import STRAIGHT, Emulator, emulated
from open_room import Witness, fake_robot, make_episode, make_scene, make_task
from raising import raises_naming

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.actions.timed import TimedAction
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, PolicyError, PolicyMismatch
from robot_runtime.policies import load_policy
from robot_runtime.policies.remote.dialects import internnav
from robot_runtime.policies.remote.navigators import InternNav
from robot_runtime.policy import Observation
from robot_runtime.records import EndReason
from robot_runtime.runtime import run_episode
from robot_runtime.task_kinds.vln.kind import Instruction, Route
from robot_runtime.tasks.task import load_task

TASK = load_task("vln_trajectory")
TEXT = "Walk past the sofa."
EPISODE = make_episode(details=Route(Instruction(TEXT)))


def seen() -> Observation:
    size = (TASK.camera.height, TASK.camera.width)
    rgb = np.zeros((*size, 3), np.uint8)
    rgb[:] = (200, 90, 20)
    return {"rgb": rgb, "depth": np.full((*size, 1), 0.3, np.float32), "instruction": np.array(TEXT)}


@contextmanager
def client(emulator: Emulator) -> Iterator[InternNav]:
    emulator.algorithm = "internnav"
    with emulated(emulator) as place:
        policy = load_policy(f"internnav://{place}")
        assert isinstance(policy, InternNav)
        policy.check(TASK)
        policy.reset(TASK, 0)
        yield policy


def test_each_request_has_image_depth_and_number_and_the_first_resets() -> None:
    emulator = Emulator(answer=lambda _: {"discrete_action": [1]})
    with client(emulator) as policy:
        policy.act(seen())
        policy.act(seen())
        policy.reset(TASK, 1)
        policy.act(seen())
    assert [(step.form or {})["reset"] for step in emulator.seen] == [True, False, True]
    assert [(step.form or {})["idx"] for step in emulator.seen] == [0, 1, 0]
    first = emulator.seen[0]
    np.testing.assert_allclose(first.rgb[50, 50], (200, 90, 20), atol=6)
    assert first.depth_m[50, 50] == pytest.approx(0.3, abs=1e-4)
    assert (first.form or {})["instruction"] == TEXT


def test_the_log_says_that_the_published_server_does_not_read_the_instruction() -> None:
    with client(Emulator(answer=lambda _: {"discrete_action": [1]})) as policy:
        policy.act(seen())
        assert "unknown" in policy.info()["instruction"]
        json.dumps(policy.info())
    with client(Emulator(answer=lambda _: {"discrete_action": [1], "instruction": TEXT})) as policy:
        policy.act(seen())
        assert "instruction" not in policy.info()


def test_a_list_of_actions_is_carried_out_one_after_another_without_asking_again() -> None:
    emulator = Emulator(answer=lambda step: {"discrete_action": [[1, 2, 3], [2, 5, 0]][step]})
    with client(emulator) as policy:
        done = [policy.act(seen()) for _ in range(5)]
    assert done == [Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT, Action.TURN_LEFT, Action.STOP]
    assert len(emulator.seen) == 2


@pytest.mark.parametrize("actions", [[5], [9], []])
def test_an_answer_without_motion_makes_the_robot_stand_and_ask_again(actions: list[int]) -> None:
    emulator = Emulator(answer=lambda step: {"discrete_action": [actions, [1]][step]})
    with client(emulator) as policy:
        waiting = policy.act(seen())
        assert isinstance(waiting, TimedAction)
        assert (waiting.settle, waiting.points[0].linear_m_s, waiting.points[0].angular_rad_s) == (False, 0.0, 0.0)
        assert policy.act(seen()) is Action.MOVE_FORWARD


def test_a_trajectory_is_placed_at_the_image() -> None:
    answer = {"trajectory": [[x, y] for x, y, _ in STRAIGHT], "pixel_goal": [240, 320]}
    with client(Emulator(answer=lambda _: answer)) as policy:
        action = policy.act(seen())
        assert policy.info()["pixel_goal"] == [240, 320]
    assert isinstance(action, TimedAction)
    assert not action.settle
    assert action.exposure_ns is None
    last = action.points[-1].pose
    assert last is not None
    assert (last.x_m, last.y_m) == pytest.approx((2.4, 0.0))


def test_an_episode_mixes_waiting_actions_and_trajectories() -> None:
    """On a robot that moves: a request to look down, two actions, a trajectory, stop."""
    answers = [{"discrete_action": [5]}, {"discrete_action": [2, 3]}, {"trajectory": [[0.1, 0], [0.2, 0]]}]
    emulator = Emulator("internnav", lambda step: [*answers, {"discrete_action": [0]}][step])
    small = make_task("vln", sensors=TASK.sensors, control=TASK.control, magnitudes=TASK.magnitudes)
    witness = Witness()
    with emulated(emulator) as place, fake_robot(small) as robot:
        policy = load_policy(f"internnav://{place}")
        end = run_episode(Env(robot, small, make_scene(), [witness]), policy, EPISODE, seed=7)
        assert robot.base.state(1.0).velocity.linear_m_s == 0.0
    assert end.reason is EndReason.STOP
    actions = ["velocity_control", "turn_left", "turn_right", "trajectory_control", "stop"]
    assert [str(step.action) for step in witness.steps[1:]] == actions


def test_a_pixel_goal_that_is_none_is_not_logged() -> None:
    answer = {"trajectory": [[0.1, 0]], "pixel_goal": "x" * 10_000}
    with client(Emulator(answer=lambda _: answer)) as policy:
        policy.act(seen())
        assert "pixel_goal" not in policy.info()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"discrete_action": "1"},
        {"discrete_action": [7]},
        {"discrete_action": [True]},
        {"discrete_action": [[1]]},
        {"trajectory": []},
        {"trajectory": [[1, 2, 3, 4]]},
        {"trajectory": [[float("nan"), 0]]},
    ],
)
def test_what_is_neither_actions_nor_a_trajectory_is_refused(answer: dict[str, Any]) -> None:
    with raises_naming(PolicyError, "server"):
        internnav.decisions(answer, 0.5, "server")


def test_a_task_with_other_steps_is_refused() -> None:
    with raises_naming(PolicyMismatch, "15", "30", "vln_trajectory"):
        internnav.check(replace(TASK, magnitudes=Magnitudes(0.25, 30, 30)))


def test_the_route_that_takes_pickles_is_refused_and_the_address_without_it_works() -> None:
    with raises_naming(ConfigError, "internnav://there:8087/agent", "habitat:file.py:Class"):
        load_policy("internnav://there:8087/agent")
    assert load_policy("internnav://there:8087").name == "internnav://there:8087"
