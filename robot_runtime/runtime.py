"""Loop of an episode: an environment, a policy, and the environment's subscribers.

Every way out of :func:`run_episode` leaves the wheels at zero and the log closed: :class:`~robot_runtime.env.Env`
ensures it for its own errors, this module for the policy's and for Ctrl-C, which the command line also
makes of SIGTERM and of a closed terminal.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from robot_runtime.common.clock import Stopwatch
from robot_runtime.env import Env
from robot_runtime.errors import LinkLost, RuntimeFault, interruption
from robot_runtime.metrics.settings import Metrics
from robot_runtime.policies.stepping import check_policy, decide, reset_policy
from robot_runtime.policy import Policy, World
from robot_runtime.records import EndReason, EpisodeEnd
from robot_runtime.tasks.episode import Episode


@dataclass(frozen=True, slots=True)
class EpisodeRun:
    """One finished episode: its place in the list, how it ended, and its final metrics."""

    index: int
    episode: Episode
    end: EpisodeEnd
    metrics: Metrics


def run_episode(env: Env, policy: Policy, episode: Episode, seed: int, name: str | None = None) -> EpisodeEnd:
    """Run one episode to its end.

    Args:
        env: environment on a connected robot.
        policy: decides each action.
        episode: the episode to run.
        seed: seed of the policy; written to the log.
        name: the policy's name in the log; None for its own.

    Raises:
        PolicyError: the policy lacks a sensor (before the robot moves), or raised; the episode ended as ``FAULT``.
        KeyboardInterrupt, EpisodeAborted: after the episode, if it had begun, ended as ``INTERRUPTED``.
        RuntimeFault: whatever :class:`Env` raises.
    """
    check_policy(policy, env.task)
    try:
        observation = env.reset(episode, policy.name if name is None else name, seed, policy.source)
        reset_policy(policy, env.task, seed, _world(env) if policy.privileged else None)
        while not env.episode_over:
            timer = Stopwatch()
            action, info = decide(policy, observation, env.record.index + 1, env.task)
            observation = env.step(action, info, timer.elapsed_s())
    except BaseException as error:
        if (interrupted := interruption(error)) is not None:
            env.interrupt(EndReason.INTERRUPTED, interrupted)
        else:
            message = error.message if isinstance(error, RuntimeFault) else repr(error)
            env.interrupt(EndReason.FAULT, message, of_policy=not isinstance(error, LinkLost))
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
        state=lambda: env.record.state,
    )
