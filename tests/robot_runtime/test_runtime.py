"""The loop: a policy drives the environment, and no way out of it leaves wheels turning or a log open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from open_room import Witness, fake_robot, make_episode, make_scene, make_task
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.errors import InvalidStart, PolicyError, UnknownAction
from robot_runtime.hal import Robot
from robot_runtime.policies.stepping import check_policy
from robot_runtime.policy import Answer, Observation, Policy, World
from robot_runtime.records import ANSWER, EndReason
from robot_runtime.runtime import run_episode, run_episodes
from robot_runtime.task_kinds.eqa.kind import Inquiry, Question
from robot_runtime.tasks.task import Category, Success, Task

TASK = make_task()


class Script(Policy):
    """Does what a list says, calling whatever in it is a function."""

    name = "script"

    def __init__(self, *actions: Action | Callable[[], Any]) -> None:
        self._actions = actions
        self.resets: list[tuple[int, World | None]] = []
        self.seen: list[Observation] = []

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self.resets.append((seed, world))
        self.seen.clear()

    def act(self, observation: Observation) -> Action:
        self.seen.append(observation)
        action = self._actions[len(self.seen) - 1]
        return action if isinstance(action, Action) else action()

    def info(self) -> dict[str, Any]:
        return {"decision": len(self.seen)}


class Oracle(Script):
    """The same, with a view of the world."""

    privileged: ClassVar[bool] = True


class Demanding(Script):
    """Needs what PointNav does not show."""

    needs: ClassVar[tuple[str, ...]] = ("rgb", "semantic", "objectgoal")


class Localized(Script):
    """Needs what can be added."""

    needs: ClassVar[tuple[str, ...]] = ("rgb", "gps", "compass")


def raising(error: BaseException) -> Callable[[], Action]:
    def act() -> Action:
        raise error

    return act


def make_env(robot: Robot, witness: Witness) -> Env:
    return Env(robot, TASK, make_scene(), (witness,))


def is_still(robot: Robot) -> bool:
    before = robot.referee.latest(1.0).pose
    robot.clock.sleep(0.5)
    return robot.referee.latest(1.0).pose == before


def test_a_policy_runs_an_episode():
    witness, policy = Witness(), Script(*[Action.MOVE_FORWARD] * 3, Action.STOP)
    with fake_robot(TASK) as robot:
        env = make_env(robot, witness)
        end = run_episode(env, policy, make_episode(), seed=5)
        assert env.get_metrics()["success"] is True
    assert (end.reason, end.steps) == (EndReason.STOP, 4)
    assert policy.resets == [(5, None)]
    assert (witness.headers[0].agent, witness.headers[0].seed) == ("script", 5)
    assert [record.policy_info for record in witness.steps] == [{}, *({"decision": i} for i in range(1, 5))]
    assert all(record.phase_s["infer"] > 0 for record in witness.steps[1:])
    assert len(policy.seen) == 4


def test_the_step_limit_ends_a_policy_that_does_not_stop():
    witness = Witness()
    with fake_robot(TASK) as robot:
        end = run_episode(make_env(robot, witness), Script(*[Action.TURN_LEFT] * 30), make_episode(), seed=0)
    assert (end.reason, end.steps) == (EndReason.MAX_STEPS, TASK.max_steps)


def test_a_privileged_policy_sees_where_the_robot_is():
    poses: list[SE2] = []
    policy = Oracle(Action.MOVE_FORWARD, lambda: poses.append(world_of(policy).pose()) or Action.STOP)  # type: ignore
    with fake_robot(TASK) as robot:
        run_episode(make_env(robot, Witness()), policy, make_episode(SE2(1.0, 0.0, 0.0), goal=(2.0, 0.0)), seed=0)
        world = world_of(policy)
        assert world.pose().distance_to(robot.referee.latest(1.0).pose) < 1e-9
        assert world.tilt_rad() == 0.0
    assert poses[0].x_m == pytest.approx(1.25, abs=0.003)
    assert world.episode.goals[0].x_m == 2.0


def world_of(policy: Script) -> World:
    world = policy.resets[-1][1]
    assert world is not None
    return world


def test_a_policy_that_lacks_a_sensor_is_refused_before_the_robot_moves():
    witness = Witness()
    with fake_robot(TASK) as robot:
        env, before_ns = make_env(robot, witness), robot.clock.now_ns()
        with raises_naming(PolicyError, "semantic, objectgoal") as caught:
            run_episode(env, Demanding(Action.STOP), make_episode(), seed=0)
        assert robot.clock.now_ns() == before_ns
    assert "pointnav" in caught.value.message
    assert "another task" in caught.value.remedy
    assert not witness.headers


def test_a_sensor_that_can_be_added_is_the_remedy():
    task = replace(TASK, sensors=("rgb", "compass", "pointgoal"))
    with pytest.raises(PolicyError) as caught:
        check_policy(Localized(), task)
    assert "add gps to 'sensors'" in caught.value.remedy
    check_policy(Localized(), replace(task, sensors=(*task.sensors, "gps")))


def test_a_policy_that_raises_is_named_with_its_step():
    witness = Witness()
    with fake_robot(TASK) as robot:
        policy = Script(Action.MOVE_FORWARD, Action.MOVE_FORWARD, raising(ValueError("shape (3,) expected")))
        with raises_naming(PolicyError, "'script'", "ValueError", "step 3", "shape") as caught:
            run_episode(make_env(robot, witness), policy, make_episode(), seed=0)
        assert isinstance(caught.value.__cause__, ValueError)
        assert is_still(robot)
    assert [(end.reason, end.steps, end.detail) for end in witness.ends] == [(EndReason.FAULT, 2, caught.value.message)]
    assert witness.ends[0].of_policy


def test_a_policy_that_cannot_reset_is_named():
    class Broken(Script):
        name = "broken"

        def reset(self, task: Task, seed: int, world: World | None = None) -> None:
            raise OSError("weights not found")

    witness = Witness()
    with fake_robot(TASK) as robot, raises_naming(PolicyError, "'broken'", "reset", "weights"):
        run_episode(make_env(robot, witness), Broken(), make_episode(), seed=0)
    assert [end.reason for end in witness.ends] == [EndReason.FAULT]


def test_a_policys_own_typed_error_is_not_wrapped():
    witness, error = Witness(), PolicyError("the server hung up", "start it again")
    with fake_robot(TASK) as robot:
        with pytest.raises(PolicyError) as caught:
            run_episode(make_env(robot, witness), Script(raising(error)), make_episode(), seed=0)
        assert caught.value is error
    assert witness.ends[0].detail == "the server hung up"


def test_a_policy_with_a_word_of_its_own_ends_as_unknown_action():
    witness = Witness()
    with fake_robot(TASK) as robot, raises_naming(UnknownAction, "jump"):
        run_episode(make_env(robot, witness), Script(lambda: "jump"), make_episode(), seed=0)
    assert [end.reason for end in witness.ends] == [EndReason.FAULT]


def test_ctrl_c_while_deciding_closes_the_log_and_passes_on():
    witness = Witness()
    with fake_robot(TASK) as robot:
        policy = Script(Action.MOVE_FORWARD, raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            run_episode(make_env(robot, witness), policy, make_episode(), seed=0)
        assert is_still(robot)
    assert [(end.reason, end.steps) for end in witness.ends] == [(EndReason.INTERRUPTED, 1)]


def test_many_episodes_come_one_by_one_each_with_its_own_seed():
    witness, policy = Witness(), Script(Action.MOVE_FORWARD, Action.STOP)
    episodes = [make_episode(id=str(i), goal=(0.25 * i, 0.0)) for i in range(1, 4)]
    with fake_robot(TASK) as robot:
        runs = run_episodes(make_env(robot, witness), policy, episodes, seed=10)
        first = next(runs)
        assert len(witness.headers) == 1
        rest = list(runs)
    assert [run.index for run in (first, *rest)] == [0, 1, 2]
    assert [run.episode.id for run in (first, *rest)] == ["1", "2", "3"]
    assert [run.metrics["success"] for run in (first, *rest)] == [True, True, False]
    assert [seed for seed, _ in policy.resets] == [10, 11, 12]


def test_the_first_error_ends_a_series():
    witness = Witness()
    with fake_robot(TASK) as robot:
        episodes = [make_episode(), make_episode(SE2(2.95, 0, 0)), make_episode()]
        runs = run_episodes(make_env(robot, witness), Script(Action.STOP), episodes, seed=0)
        next(runs)
        with pytest.raises(InvalidStart):
            next(runs)
    assert len(witness.headers) == len(witness.ends) == 1


class Answering(Script):
    """Answers with how many observations it has seen."""

    def answer(self, observation: Observation) -> Answer | None:
        assert observation is self.seen[-1]
        return str(len(self.seen))


ASKED = make_episode(details=Inquiry(question=Question("How many rooms?", "2", "room_count")))
EQA = make_task(
    "eqa",
    sensors=("rgb", "question"),
    categories={},
    success=Success("answer", target="view_points", when="end"),
    max_steps=3,
)


@pytest.mark.parametrize(
    ("actions", "answer", "right"),
    [
        pytest.param([Action.TURN_LEFT, Action.STOP], "2", True, id="with the stop"),
        pytest.param([Action.TURN_LEFT] * 3, "3", False, id="with the last step that is allowed"),
    ],
)
def test_a_question_is_answered_once_in_the_last_step(actions: list[Action], answer: str, right: bool):
    witness, policy = Witness(), Answering(*actions)
    with fake_robot(EQA) as robot:
        env = Env(robot, EQA, make_scene(), (witness,))
        run_episode(env, policy, ASKED, seed=5)
        assert env.get_metrics()["answer_accuracy"] is right
    said = [step.policy_info.get(ANSWER) for step in witness.steps]
    assert said == [*[None] * len(actions), answer]
    assert str(policy.seen[0]["question"]) == "How many rooms?"


def test_a_policy_that_does_not_answer_is_wrong_and_is_not_asked_without_a_question():
    with fake_robot(EQA) as robot:
        env = Env(robot, EQA, make_scene())
        run_episode(env, Script(Action.STOP), ASKED, seed=5)
        assert env.get_metrics()["answer_accuracy"] is False
        assert env.record.policy_info == {"decision": 1, ANSWER: None}
    with fake_robot(TASK) as robot:
        env = Env(robot, TASK, make_scene())
        run_episode(env, Answering(Action.STOP), make_episode(), seed=5)
        assert ANSWER not in env.record.policy_info


def test_a_success_that_ends_the_episode_needs_no_stop():
    """The hall is the whole room: the robot is in it from the start."""
    task = make_task(
        "areagoal",
        sensors=("rgb", "areagoal"),
        categories={"hall": Category(2, ("hall",))},
        success=Success("room", when="reached"),
    )
    with fake_robot(task) as robot:
        env = Env(robot, task, make_scene())
        policy = Script(Action.TURN_LEFT)
        end = run_episode(env, policy, make_episode(goals=(), category="hall"), seed=5)
        assert (end.reason, end.steps) == (EndReason.REACHED, 1)
        assert env.get_metrics()["success"] is True
        assert env.get_metrics()["stopped"] is False
        assert policy.seen[0]["areagoal"].tolist() == [2]
