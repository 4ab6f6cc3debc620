"""The loop: an environment, a policy, and whoever subscribed to the environment.

Every way out of :func:`run_episode` leaves the wheels at zero and the log closed: :class:`~robot_runtime.env.Env`
sees to it for its own errors, this module for the policy's and for Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from robot_runtime.actions import Action
from robot_runtime.clock import Stopwatch
from robot_runtime.commands import Decision
from robot_runtime.env import Env
from robot_runtime.episodes.episode import Episode
from robot_runtime.errors import ConfigError, PolicyError, RuntimeFault
from robot_runtime.policies.policy import Observation, Policy, World
from robot_runtime.records import ANSWER, EndReason, EpisodeEnd
from robot_runtime.scoring.rules import Metrics
from robot_runtime.tasks.task import Task, with_sensors


@dataclass(frozen=True, slots=True)
class EpisodeRun:
    """One finished episode: its place in the list, how it ended, and its final metrics."""

    index: int
    episode: Episode
    end: EpisodeEnd
    metrics: Metrics


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


def run_episode(env: Env, policy: Policy, episode: Episode, seed: int, name: str | None = None) -> EpisodeEnd:
    """Run one episode to its end.

    Args:
        seed: of the policy; written to the log. name: what the log calls the policy; None for its own.

    Raises:
        PolicyError: the policy lacks a sensor (before the robot moves), or raised; the episode ended as ``FAULT``.
        KeyboardInterrupt: after the episode ended as ``INTERRUPTED``.
        RuntimeFault: whatever :class:`Env` raises.
    """
    check_policy(policy, env.task)
    try:
        observation = env.reset(episode, policy.name if name is None else name, seed, policy.source)
        reset_policy(policy, env.task, seed, _world(env) if policy.privileged else None)
        while not env.episode_over:
            watch = Stopwatch()
            action, info = decide(policy, observation, env.record.index + 1, env.task)
            observation = env.step(action, info, watch.elapsed_s())
    except KeyboardInterrupt:
        env.interrupt(EndReason.INTERRUPTED, "interrupted from the keyboard")
        raise
    except BaseException as error:
        env.interrupt(EndReason.FAULT, error.message if isinstance(error, RuntimeFault) else repr(error))
        raise
    return env.end


def run_episodes(env: Env, policy: Policy, episodes: Iterable[Episode], seed: int) -> Iterator[EpisodeRun]:
    """Run episodes one after the other, yielding each as it ends; episode ``i`` runs with seed ``seed + i``.

    The first error ends the iteration. For progress within an episode, subscribe to the environment.
    """
    for index, episode in enumerate(episodes):
        end = run_episode(env, policy, episode, seed + index)
        yield EpisodeRun(index, env.episode, end, env.get_metrics())


def _world(env: Env) -> World:
    # The robot stands still whenever a policy decides, so the last step's pose is the present one.
    return World(
        env.scene,
        env.episode,
        pose=lambda: env.record.referee.pose,
        tilt_rad=lambda: env.record.head.tilt_rad,
        objects=lambda: env.record.objects,
        held=lambda: env.record.held,
        phase=lambda: env.record.phase,
    )


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
        if task.kind == "eqa" and (action is Action.STOP or step >= task.max_steps):
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
