"""Gymnasium interface of the environment, for training and evaluation code.

>>> env = gymnasium.make("robot_runtime.gym:robot_runtime/Navigation-v0", task="pointnav_habitat2019")

makes robot, scene and episodes by name; :class:`NavigationEnv` wraps an :class:`~robot_runtime.env.Env` that exists.

* Actions are ``Discrete``: positions in the task's list, the ids of its policies.
* ``terminated`` after the action stop, successful or not, and where a task ends by success. ``truncated`` at the step
  limit, and when the episode was interrupted. A device fault is raised: no reward would be meaningful.
* The reward is habitat-lab's (``NavRLEnv``): meters come nearer to the goal, geodesically, minus a slack per step, plus
  a bonus for success; or, by :class:`Reward`, the gain of another metric. An undefined one neither gains nor loses.
* ``info`` has ``episode_key``, and ``metrics`` without those that are not finite; ``episode`` is left to wrappers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.datasets.files import load_episodes
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.env import Env
from robot_runtime.errors import EpisodeError
from robot_runtime.metrics.settings import Metrics
from robot_runtime.policy import Observation
from robot_runtime.records import EndReason
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.kind import sensor_of
from robot_runtime.tasks.task import Task, load_task


@dataclass(frozen=True)
class Reward:
    """Weights of the reward; the defaults are habitat-lab's ``slack_reward`` and ``success_reward``.

    Attributes:
        metric: metric whose gain is rewarded, such as ``ndtw`` (Magalhaes et al. 2019, 3.2); the loss of a distance.
    """

    slack: float = -0.01
    success: float = 2.5
    metric: str = "distance_to_goal"


MAX_TEXT = 10_000
_CHARACTERS = frozenset(["\n", *map(chr, range(0x20, 0x2070))])
"""Of instructions and questions: all that RxR's English, Hindi and Telugu are written with."""


def observation_space(task: Task) -> spaces.Dict:
    """One ``Box`` per sensor of the task, with the exact shape, type and bounds of the sensor.

    Text has a ``Text`` space, whose samples are ``str``; that is what :class:`NavigationEnv` returns for it.
    """
    boxes: dict[str, spaces.Space[Any]] = {}
    for name in task.sensors:
        sensor = sensor_of(task, name)
        if sensor.dtype is np.str_:
            boxes[name] = spaces.Text(MAX_TEXT, min_length=0, charset=_CHARACTERS)
            continue
        shape = sensor.shape(task)
        low, high = (np.broadcast_to(np.asarray(bound, sensor.dtype), shape) for bound in sensor.bounds(task))
        boxes[name] = spaces.Box(low, high, shape, sensor.dtype)
    return spaces.Dict(boxes)


class NavigationEnv(gymnasium.Env[dict[str, Any], np.int64]):
    """Episodes of an :class:`Env`, drawn at random or chosen.

    Args:
        env: environment on a connected robot; the caller closes it.
        episodes: episodes to draw from, with equal chance; ``reset(options={"episode": i})`` takes the ``i``-th.
        reward: weights of the reward; None for the defaults.
        render_mode: ``rgb_array`` or None: :meth:`render` returns the camera's last color image.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 1}  # noqa: RUF012 (gymnasium's type)

    def __init__(
        self, env: Env, episodes: Sequence[Episode], render_mode: str | None = None, reward: Reward | None = None
    ) -> None:
        if not episodes:
            raise EpisodeError("there are no episodes to draw from", "give at least one")
        self.render_mode = render_mode
        self.observation_space = observation_space(env.task)
        self.action_space = spaces.Discrete(len(env.task.actions))
        self._env = env
        self._episodes = tuple(episodes)
        self._reward = reward or Reward()
        self._value: float | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode.

        Raises:
            EpisodeError: if ``options["episode"]`` is not a position in the list, or the episode cannot be run.
        """
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(len(self._episodes)))
        index = (options or {}).get("episode", drawn)
        if index not in range(len(self._episodes)):
            raise EpisodeError(
                f"options: episode {index!r} does not exist", f"choose one from 0 to {len(self._episodes) - 1}"
            )
        observation = self._env.reset(self._episodes[index], seed=self.np_random_seed)
        known = self._env.get_metrics()
        if self._reward.metric not in known:
            raise EpisodeError(
                f"reward: the task has no metric {self._reward.metric!r}", f"choose one of {', '.join(sorted(known))}"
            )
        metrics = _finite(known)
        self._value = metrics.get(self._reward.metric)
        return _own(observation), {"episode_key": self._env.episode.key, "metrics": metrics}

    def step(self, action: np.int64) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Carry out the task's action at that position. Raises what ``Env.step`` raises."""
        names = self._env.task.actions
        known = self.action_space.contains(action)
        observation = self._env.step(names[int(action)] if known else repr(action))
        metrics = _finite(self._env.get_metrics())
        before, value = self._value, metrics.get(self._reward.metric)
        reward = self._reward.slack
        if value is not None:
            gain = 0.0 if before is None else float(value) - float(before)
            reward += -gain if self._reward.metric == Reward.metric else gain
            self._value = value
        over = self._env.episode_over
        terminated = over and self._env.end.reason in (EndReason.STOP, EndReason.REACHED)
        if terminated and metrics.get("success"):
            reward += self._reward.success
        result = self._env.record.result
        info = {
            "episode_key": self._env.episode.key,
            "metrics": metrics,
            "outcome": result.outcome.value if result is not None else None,
            "end": self._env.end.reason.value if over else None,
        }
        return _own(observation), reward, terminated, over and not terminated, info

    def render(self) -> NDArray[np.uint8] | None:
        """The last frame, uint8 (H, W, 3); None without ``render_mode``."""
        return self._env.record.frame.rgb.copy() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """End the running episode."""
        self._env.close()


class NamedNavigationEnv(NavigationEnv):
    """:class:`NavigationEnv` with everything given by name, as ``robot-runtime run`` does; owns its robot.

    Args:
        robot: preset or YAML file.
        scene: folder, or name of a bundled one.
        task: preset or YAML file.
        episodes: file in any known format; None generates ``count``.
        count: number of generated episodes.
        seed: seed of generated episodes and simulated noise.
        render_mode: render mode of :class:`NavigationEnv`.

    Raises:
        RuntimeFault: naming the argument that is wrong.
    """

    def __init__(
        self,
        robot: str = "sim",
        scene: str = "apartment",
        task: str = "pointnav_gps_compass",
        episodes: str | None = None,
        count: int = 10,
        seed: int = 0,
        render_mode: str | None = None,
    ) -> None:
        chosen_task, chosen_scene = load_task(task), load_scene(find_scene(scene))
        chosen = (
            load_episodes(Path(episodes)) if episodes else generate_episodes(chosen_scene, chosen_task, count, seed)
        )
        self._robot = load_robot(robot, RobotContext.of(chosen_task, chosen_scene, chosen, seed))
        self._robot.connect()
        try:
            super().__init__(Env(self._robot, chosen_task, chosen_scene, seed=seed), chosen, render_mode)
        except BaseException:
            self._robot.close()
            raise

    @override
    def close(self) -> None:
        super().close()
        self._robot.close()


def _own(observation: Observation) -> dict[str, Any]:
    """Writable copies, as Gymnasium's wrappers expect; text as ``str``, as its ``Text`` space does."""
    return {name: str(array) if array.dtype.kind == "U" else array.copy() for name, array in observation.items()}


def _finite(metrics: Metrics) -> Metrics:
    """The metrics that have a value, a finite one."""
    return {
        name: value
        for name, value in metrics.items()
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    }


gymnasium.register(id="robot_runtime/Navigation-v0", entry_point="robot_runtime.gym:NamedNavigationEnv")
