"""Pause, end and take over, in episodes of the fake robot."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from console_page import eventually
from open_room import Witness, fake_robot, make_episode, make_scene, make_task
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.console.supervision import Supervised, Supervision
from robot_runtime.env import Env
from robot_runtime.errors import EpisodeAborted
from robot_runtime.hal import BaseState, Velocity
from robot_runtime.policies import load_policy
from robot_runtime.policies.human.inbox import ActionInbox, Choice
from robot_runtime.policy import Policy
from robot_runtime.records import EndReason, EpisodeEnd
from robot_runtime.runtime import run_episode

LEFT = Choice(Action.TURN_LEFT, "console")


@contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """Run something in another thread."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()
    assert failures == []


def run(supervision: Supervision, seen: Witness, policy: Policy | None = None) -> EpisodeEnd:
    task, policy = make_task(), policy or load_policy("goal-follower")
    with fake_robot(task) as robot, Env(robot, task, make_scene(), (seen, supervision)) as env:
        supervision.begin()
        end = run_episode(env, Supervised(policy, supervision), make_episode(), seed=0)
        assert robot.base.state(1.0).velocity == Velocity()
        return end


def test_a_supervised_policy_acts_as_without() -> None:
    alone, supervised = Witness(), Witness()
    task = make_task()
    with fake_robot(task) as robot, Env(robot, task, make_scene(), (alone,)) as env:
        run_episode(env, load_policy("goal-follower"), make_episode(), seed=0)
    run(Supervision(ActionInbox(), "all"), supervised)
    assert [(step.action, step.policy_info) for step in supervised.steps] == [
        (step.action, step.policy_info) for step in alone.steps
    ]


def test_a_paused_episode_goes_on_where_it_was_and_says_how_long_it_waited() -> None:
    supervision, seen = Supervision(ActionInbox(), "all"), Witness()
    supervision.paused = True

    def go_on() -> None:
        eventually(lambda: supervision.waits)
        supervision.paused = False

    with meanwhile(go_on):
        end = run(supervision, seen)
    assert end.reason is EndReason.STOP
    assert seen.steps[1].policy_info["operator"]["paused_s"] > 0
    assert "operator" not in seen.steps[2].policy_info


def test_a_taken_over_step_is_marked_with_person_proposal_and_pose_before() -> None:
    supervision, seen = Supervision(ActionInbox(), "all"), Witness()

    def drive() -> None:
        eventually(lambda: supervision.inbox.press(LEFT))
        eventually(lambda: supervision.inbox.press(Choice(Action.TURN_RIGHT, "console")))
        eventually(lambda: supervision.inbox.waits)
        supervision.hand_back()

    policy = load_policy("goal-follower")
    proposed = policy.reset

    def reset(*arguments: object) -> None:
        proposed(*arguments)  # type: ignore[arg-type]
        supervision.take_over("ada")

    policy.reset = reset  # type: ignore[method-assign]
    with meanwhile(drive):
        end = run(supervision, seen, policy)
    assert end.reason is EndReason.STOP
    assert supervision.interventions == [1, 2]
    first, second, third = (step.policy_info for step in seen.steps[1:4])
    assert [step.action for step in seen.steps[1:3]] == [Action.TURN_LEFT, Action.TURN_RIGHT]
    assert first["operator"] == first["operator"] | {
        "by": "ada",
        "device": "console",
        "intervention": True,
        "proposed": "move_forward",
    }
    pose = seen.steps[1].pose.pose
    assert second["operator"]["pose_before"] == [pose.x_m, pose.y_m, pose.yaw_rad]
    assert "operator" not in third


def test_an_episode_that_is_ended_in_mid_motion_stops_there() -> None:
    supervision, seen = Supervision(ActionInbox(), "all"), Witness()

    class EndsInMotion(Witness):
        def on_base_state(self, state: BaseState) -> None:
            if state.velocity.linear_m_s > 0.1:
                supervision.abort("ada ended the episode")

    task = make_task()
    ends = EndsInMotion()
    with fake_robot(task) as robot, Env(robot, task, make_scene(), (seen, ends, supervision)) as env:
        supervision.begin()
        with raises_naming(EpisodeAborted, "ada"):
            run_episode(env, Supervised(load_policy("forward-only"), supervision), make_episode(), seed=0)
        assert robot.base.state(1.0).odom.x_m < 0.2
        robot.clock.sleep(0.5)
        assert robot.base.state(1.0).velocity == Velocity()
    assert (seen.ends[0].reason, seen.ends[0].detail) == (EndReason.INTERRUPTED, "ada ended the episode")


def test_an_end_between_two_episodes_ends_neither() -> None:
    supervision, seen = Supervision(ActionInbox(), "all"), Witness()
    supervision.abort("too early")
    assert run(supervision, seen).reason is EndReason.STOP
    supervision.finish()
    supervision.abort("too late")
    assert run(supervision, Witness()).reason is EndReason.STOP
