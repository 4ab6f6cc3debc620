"""A person as agent: the inbox, the agent, and its episodes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from console_page import eventually
from open_room import Witness, fake_robot, make_episode, make_scene, make_task
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Control, TimedAction, VelocityControl
from robot_runtime.common.threads import background
from robot_runtime.env import Env
from robot_runtime.errors import EpisodeAborted, PolicyError
from robot_runtime.policies import load_policy
from robot_runtime.policies.human import human as human_module
from robot_runtime.policies.human.human import Human
from robot_runtime.policies.human.inbox import ActionInbox, Choice
from robot_runtime.policies.stepping import check_policy
from robot_runtime.records import EndReason
from robot_runtime.runtime import run_episode

FORWARD = Choice(Action.MOVE_FORWARD, "keyboard")
DONE = Choice(Action.STOP, "keyboard")


@contextmanager
def person(inbox: ActionInbox, *choices: Choice) -> Iterator[None]:
    """A person who presses one key after the other, each when the robot waits for it."""

    def press(ended: threading.Event) -> None:
        for choice in choices:
            while not inbox.press(choice):
                if ended.wait(0.002):
                    return

    with background(press, "person"):
        yield


def test_nothing_is_queued_while_the_robot_moves() -> None:
    inbox = ActionInbox()
    assert not inbox.press(FORWARD)
    assert inbox.take(0.0) is None


def test_a_held_action_is_repeated_until_it_is_released() -> None:
    inbox = ActionInbox()
    inbox.hold(FORWARD)
    assert [inbox.take(0.0), inbox.take(0.0)] == [FORWARD, FORWARD]
    inbox.release()
    assert inbox.take(0.0) is None


def test_an_aborted_wait_ends_until_the_inbox_is_cleared() -> None:
    inbox = ActionInbox()
    inbox.abort("ada ended it")
    with raises_naming(EpisodeAborted, "ada ended it"):
        inbox.take(10.0)
    inbox.clear()
    assert inbox.take(0.0) is None


def test_an_episode_by_a_person_says_who_decided_how_fast_and_with_which_view() -> None:
    task, seen = make_task(), Witness()
    agent = load_policy("human", operator="p7", view="camera")
    assert isinstance(agent, Human)
    with (
        fake_robot(task) as robot,
        Env(robot, task, make_scene(), (seen,)) as env,
        person(agent.inbox, FORWARD, Choice(Action.GRAB_RELEASE, "keyboard"), FORWARD, DONE),
    ):
        end = run_episode(env, agent, make_episode(), seed=0)
    assert (end.reason, end.steps) == (EndReason.STOP, 3)  # without the action that the task does not have
    assert [step.action for step in seen.steps[1:]] == [Action.MOVE_FORWARD, Action.MOVE_FORWARD, Action.STOP]
    records = [step.policy_info["operator"] for step in seen.steps[1:]]
    assert {(one["by"], one["device"], one["view"], one["mode"]) for one in records} == {
        ("p7", "keyboard", "camera", "discrete")
    }
    assert all(one["reaction_s"] >= 0 for one in records)


def test_a_person_who_ends_the_episode_leaves_an_interrupted_log_and_resting_wheels() -> None:
    task, seen, agent = make_task(), Witness(), Human()
    with fake_robot(task) as robot, Env(robot, task, make_scene(), (seen,)) as env:

        def end() -> None:
            eventually(lambda: agent.inbox.waits)
            agent.inbox.abort("p7 ended the episode")

        thread = threading.Thread(target=end)
        thread.start()
        with raises_naming(EpisodeAborted, "p7"):
            run_episode(env, agent, make_episode(), seed=0)
        thread.join()
        assert env.end.reason is EndReason.INTERRUPTED
    assert seen.ends[0].detail == "p7 ended the episode"


def test_a_person_who_never_decides_ends_the_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(human_module, "PATIENCE_S", 0.0)
    with raises_naming(EpisodeAborted, "no action"):
        human_module.await_choice(ActionInbox(), lambda _: True)


def test_continuous_driving_needs_a_task_with_velocities() -> None:
    velocity = VelocityControl((0.0, 0.3), (-0.45, 0.45), (-0.4, 0.4), 0.1)
    with raises_naming(PolicyError, "pointnav_test"):
        check_policy(Human(continuous=True), make_task())
    task = make_task(control=Control((-1.5, 0.5), velocity=velocity))
    agent = Human(continuous=True)
    check_policy(agent, task)
    agent.reset(task, 0)
    agent.inbox.hold(Choice(Action.VELOCITY_CONTROL, "gamepad", (-0.5, 0.5)))
    command = agent.act({})
    assert isinstance(command, TimedAction)
    (point,) = command.points
    assert (point.linear_m_s, point.angular_rad_s) == (0.0, 0.225)  # this task drives no way back
    assert point.after_s == human_module.PERIOD_S
    assert agent.info()["operator"]["mode"] == "continuous"


def test_an_unknown_view_is_an_error() -> None:
    with raises_naming(PolicyError, "sideways", "in-sight"):
        load_policy("human", view="sideways")
