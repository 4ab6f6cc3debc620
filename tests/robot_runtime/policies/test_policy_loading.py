"""Agents by name, by module and by file; and agents with Habitat's interface."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from box_world import make_task
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.errors import PolicyError, UnknownAction
from robot_runtime.policies import AGENTS, load_policy
from robot_runtime.policies.baselines.blind import GoalFollower
from robot_runtime.policies.python_agent import HabitatAgent
from robot_runtime.policy import Policy
from robot_runtime.tasks.task import load_task


class Answering:
    """A Habitat-style agent with a given answer."""

    def __init__(self, answer: Any = 1) -> None:
        self.answer = answer
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1

    def act(self, observations: dict[str, Any]) -> Any:
        return self.answer


class Failing(Answering):
    def act(self, observations: dict[str, Any]) -> Any:
        raise ZeroDivisionError("no luck")


class FailsToReset(Answering):
    def reset(self) -> None:
        raise RuntimeError("not ready")


class FailsToStart:
    def __init__(self) -> None:
        raise OSError("no weights")


class NotAnAgent:
    pass


def adapted(answer: Any, kind: str = "pointnav") -> Policy:
    policy = HabitatAgent(Answering(answer), "mine")
    policy.reset(make_task(kind), 0)
    return policy


@pytest.mark.parametrize("name", AGENTS.names())
def test_every_agent_loads_under_its_own_name(name: str) -> None:
    policy = load_policy(name)
    assert policy.name == name
    policy.close()


def test_arguments_reach_the_constructor() -> None:
    policy = load_policy("goal-follower", stop_distance_m=0.3)
    assert isinstance(policy, GoalFollower)
    assert policy.stop_distance_m == 0.3


def test_unknown_arguments_list_the_known_ones() -> None:
    with raises_naming(PolicyError, "speed", "stop_distance_m"):
        load_policy("random", speed=3)


def test_a_misspelled_name_suggests_the_nearest() -> None:
    with raises_naming(PolicyError, "'goal-folower'", "'goal-follower'"):
        load_policy("goal-folower")


def test_a_module_and_class_name_loads_policies_and_habitat_agents() -> None:
    assert isinstance(load_policy("robot_runtime.policies.baselines.blind:Random"), Policy)
    policy = load_policy(f"{__name__}:Answering", answer="turn_left")
    policy.reset(make_task(), 0)
    assert policy.act({}) is Action.TURN_LEFT
    assert policy.name == f"{__name__}:Answering"


def test_a_file_loads_once_and_may_hold_dataclasses(tmp_path: Path) -> None:
    path = tmp_path / "my_agent.py"
    path.write_text(
        textwrap.dedent("""
            from __future__ import annotations
            from dataclasses import dataclass

            @dataclass
            class Mine:
                action: int = 3
                needs = ("rgb",)
                def reset(self): pass
                def act(self, observations): return {"action": self.action}
        """)
    )
    policy = load_policy(f"{path}:Mine", action=2)
    policy.reset(make_task(), 0)
    assert policy.act({}) is Action.TURN_LEFT
    assert policy.needs == ("rgb",)
    assert type(load_policy(f"{path}:Mine")) is type(policy)


@pytest.mark.parametrize(
    ("name", "message", "remedy"),
    [
        ("no_such_package.agents:Mine", "'no_such_package'", "PYTHONPATH"),
        ("robot_runtime.policies.baselines.blind:Missing", "'Missing'", "colon"),
        ("robot_runtime.policies.baselines.blind:", "module:Class", "package.module:Class"),
        (f"{__name__}:NotAnAgent", "NotAnAgent", "robot_runtime.policy.Policy"),
        (f"{__name__}:FailsToStart", "OSError: no weights", "--debug"),
        ("absent.py:Mine", "absent.py", "path"),
    ],
)
def test_a_loading_failure_is_named_with_a_remedy(name: str, message: str, remedy: str) -> None:
    with raises_naming(PolicyError, message, remedy):
        load_policy(name)


@pytest.mark.parametrize(
    ("source", "message", "remedy"),
    [
        ("import package_that_is_absent", "package_that_is_absent", "install"),
        ("1 / 0", "ZeroDivisionError", "--debug"),
        ("def broken(", "SyntaxError", "--debug"),
    ],
)
def test_a_file_that_fails_on_import_says_why(tmp_path: Path, source: str, message: str, remedy: str) -> None:
    path = tmp_path / "broken_agent.py"
    path.write_text(source)
    for _ in range(2):  # a failed import must leave nothing half made behind
        with raises_naming(PolicyError, message, remedy):
            load_policy(f"{path}:Mine")


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        (0, Action.STOP),
        (1, Action.MOVE_FORWARD),
        (np.int64(2), Action.TURN_LEFT),
        (np.array([3]), Action.TURN_RIGHT),
        ([[1]], Action.MOVE_FORWARD),
        (np.array([[1]]), Action.MOVE_FORWARD),
        ("turn_right", Action.TURN_RIGHT),
        (np.str_("stop"), Action.STOP),
        ({"action": 1}, Action.MOVE_FORWARD),
        ({"action": "turn_left", "action_args": None}, Action.TURN_LEFT),
    ],
)
def test_habitat_answers_are_decoded(answer: Any, action: Action) -> None:
    assert adapted(answer).act({}) is action


def test_ids_are_habitat_labs_also_for_looks() -> None:
    assert adapted(4, "objectnav").act({}) is Action.LOOK_UP
    assert adapted(5, "objectnav").act({}) is Action.LOOK_DOWN


@pytest.mark.parametrize("answer", [7, -1, "fly", 4])
def test_actions_that_habitat_or_the_task_lack_are_refused(answer: Any) -> None:
    with pytest.raises(UnknownAction):
        adapted(answer).act({})


@pytest.mark.parametrize(
    "answer", [None, 1.0, True, np.array([1, 2]), [[1, 2]], {}, {"action": ("velocity_control", "velocity_stop")}]
)
def test_answers_that_are_no_discrete_action_are_refused(answer: Any) -> None:
    with raises_naming(PolicyError, "'mine'"):
        adapted(answer).act({})


def test_an_agents_own_errors_are_reported_as_its_own() -> None:
    policy = HabitatAgent(Failing(), "unlucky")
    policy.reset(make_task(), 0)
    with raises_naming(PolicyError, "'unlucky'", "act()", "ZeroDivisionError: no luck"):
        policy.act({})
    with raises_naming(PolicyError, "'unready'", "reset()", "RuntimeError: not ready"):
        HabitatAgent(FailsToReset(), "unready").reset(make_task(), 0)


def test_each_episode_resets_the_agent() -> None:
    agent = Answering()
    policy = HabitatAgent(agent, "mine")
    for _ in range(3):
        policy.reset(make_task(), 0)
    assert agent.resets == 3


def test_an_agent_may_write_into_what_it_is_given() -> None:
    class Painter:
        def reset(self) -> None: ...

        def act(self, observations: dict[str, np.ndarray]) -> str:
            observations["rgb"][:] = 0
            return "stop"

    rgb = np.full((2, 2, 3), 9, np.uint8)
    rgb.flags.writeable = False
    agent = HabitatAgent(Painter(), "painter")
    agent.reset(make_task(), 0)
    assert agent.act({"rgb": rgb}) is Action.STOP
    assert (rgb == 9).all()


def asked(returned: Any) -> Policy:
    policy = HabitatAgent(Answering(returned), "mine")
    policy.reset(load_task("eqa_habitat"), 0)
    return policy


def test_an_answer_by_habitats_action_stops_the_episode() -> None:
    policy = asked({"action": "answer", "action_args": {"answer_id": np.int64(17)}})
    assert policy.act({}) is Action.STOP
    assert policy.answer({}) == 17
    assert asked("stop").answer({}) is None


@pytest.mark.parametrize("returned", ["answer", {"action": "answer"}, {"action": "answer", "action_args": {"id": 1}}])
def test_an_answer_without_its_id_is_refused_with_the_format(returned: Any) -> None:
    with raises_naming(PolicyError, "'mine'", "answer_id"):
        asked(returned).act({})


def test_an_answer_in_a_task_without_question_is_refused() -> None:
    with pytest.raises(UnknownAction):
        adapted("answer").act({})


def test_the_classical_agent_says_which_tasks_it_solves() -> None:
    with raises_naming(PolicyError, "'classical'", "areagoal"):
        load_policy("classical").reset(load_task("areagoal_stop"), 0)
