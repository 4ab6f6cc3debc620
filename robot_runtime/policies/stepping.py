"""Calls of a policy with checks: whether it fits a task, its reset and its decisions, with typed errors."""

from __future__ import annotations

from typing import Any

from robot_runtime.actions.continuous import Decision
from robot_runtime.errors import ConfigError, PolicyError, RuntimeFault
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.records import ANSWER
from robot_runtime.tasks import eqa
from robot_runtime.tasks.task import Task, with_sensors


def check_policy(policy: Policy, task: Task) -> None:
    """Whether the policy can run in the task, which shows it what it needs.

    Raises:
        PolicyError: naming the sensors that are missing, or what else does not fit.
    """
    policy.check(task)
    missing = [name for name in policy.needs if name not in task.sensors]
    if missing:
        message = f"policy {policy.name!r} needs {', '.join(missing)}, which task {task.name!r} does not have"
        try:
            with_sensors(task, missing)
        except ConfigError as error:
            raise PolicyError(f"{message}; {error.message}", "choose another policy, or another task") from error
        raise PolicyError(message, f"add `{' '.join(f'--sensor {name}' for name in missing)}`, or choose another task")


def reset_policy(policy: Policy, task: Task, seed: int, world: World | None = None) -> None:
    """Start an episode of a policy. Raises ``RuntimeFault``; whatever else it raises becomes ``PolicyError``."""
    try:
        policy.reset(task, seed, world)
    except RuntimeFault:
        raise
    except Exception as error:
        raise _policy_error(policy, "reset", error) from error


def decide(policy: Policy, observation: Observation, step: int, task: Task) -> tuple[Decision, dict[str, Any]]:
    """The action, and what to log with it; of a question's last step also the answer (Das et al. 2018, section 4.2).

    Args:
        step: index of the step that the action leads to.

    Raises:
        RuntimeFault: whatever else the policy raises becomes ``PolicyError``.
    """
    try:
        action, info = policy.act(observation), policy.info()
        if eqa.answer_due(task, action, step):
            info = {**info, ANSWER: policy.answer(observation)}
        return action, info
    except RuntimeFault:
        raise
    except Exception as error:
        raise _policy_error(policy, f"step {step}", error) from error


def _policy_error(policy: Policy, when: str, error: Exception) -> PolicyError:
    return PolicyError(
        f"policy {policy.name!r} raised {type(error).__name__} at {when}: {error}",
        "mend the policy; --debug shows where it happened",
    )
