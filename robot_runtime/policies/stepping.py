"""Checked calls of a policy: its fit to a task, its reset and its decisions, with typed errors.

A policy that exits (``sys.exit``) has failed like one that raises, and a directory that it changes to is its own:
neither ends the runtime nor moves its relative paths, those of logs among them.
"""

from typing import Any

from robot_runtime.actions.timed import Decision
from robot_runtime.common.own_directory import OwnDirectory
from robot_runtime.errors import ConfigError, PolicyError, RuntimeFault
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.records import ANSWER
from robot_runtime.tasks.kind import kind_of
from robot_runtime.tasks.task import Task, with_sensors


def check_policy(policy: Policy, task: Task) -> None:
    """Check that the policy can run in the task.

    Raises:
        PolicyError: the task lacks sensors, or does not fit the policy.
    """
    policy.check(task)
    missing = [name for name in policy.needs if name not in task.sensors]
    if missing:
        message = f"policy {policy.name!r} needs {', '.join(missing)}, which task {task.name!r} does not have"
        try:
            with_sensors(task, missing)
        except ConfigError as error:
            raise PolicyError(f"{message}; {error.message}", "choose another policy, or another task") from error
        raise PolicyError(message, f"add {', '.join(missing)} to 'sensors' in the task's file, or choose another task")


def reset_policy(policy: Policy, task: Task, seed: int, world: World | None = None) -> None:
    """Start an episode of a policy. Raises ``RuntimeFault``; other exceptions become ``PolicyError``."""
    try:
        with directory_of(policy):
            policy.reset(task, seed, world)
    except RuntimeFault:
        raise
    except (Exception, SystemExit) as error:
        raise _policy_error(policy, "reset", error) from error


def decide(policy: Policy, observation: Observation, step: int, task: Task) -> tuple[Decision, dict[str, Any]]:
    """Ask a policy for its action.

    Returns:
        The action and the policy's information for the log; at the last step of a question also the answer (Das et al.
        2018, section 4.2).

    Raises:
        RuntimeFault: of the policy; other exceptions become ``PolicyError``.
    """
    try:
        with directory_of(policy):
            action = policy.act(observation)
            if not kind_of(task).answer_due(task, action, step):
                return action, policy.info()
            answer = policy.answer(observation)
            return action, {**policy.info(), ANSWER: answer}
    except RuntimeFault:
        raise
    except (Exception, SystemExit) as error:
        raise _policy_error(policy, f"step {step}", error) from error


def directory_of(policy: Policy) -> OwnDirectory:
    """The context in which to call a policy's code."""
    if policy.directory is None:
        policy.directory = OwnDirectory()
    return policy.directory


def _policy_error(policy: Policy, when: str, error: Exception | SystemExit) -> PolicyError:
    return PolicyError(
        f"policy {policy.name!r} raised {type(error).__name__} at {when}: {error}",
        "correct the policy; --debug shows the traceback",
    )
