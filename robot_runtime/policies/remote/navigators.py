"""Policies behind other projects' HTTP servers: ``navdp://host:port``, ``internnav://host:port``."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common import config
from robot_runtime.common.bounded import TooLarge
from robot_runtime.common.clock import Stopwatch
from robot_runtime.common.geometry import point_goal
from robot_runtime.common.image_files import decode_image
from robot_runtime.common.quantities import GoalDistance
from robot_runtime.errors import ConfigError, PolicyMismatch
from robot_runtime.policies.isolation import Isolation
from robot_runtime.policies.openers import PolicyOpener
from robot_runtime.policies.remote.dialects import internnav, navdp
from robot_runtime.policies.remote.http_request import Request, address, json_object, post
from robot_runtime.policy import ChunkedPolicy, Observation, Policy, World
from robot_runtime.tasks.task import Task, load_task


@dataclass(frozen=True)
class NavigatorOptions(config.Strict):
    """Arguments of a navigator.

    Attributes:
        speed_m_s: speed along a trajectory, that of NavDP's evaluation by default; the task's limit holds, too.
        time_limit_s: time limit of a decision, transmission included.
        reset_limit_s: time limit of each request of a reset: the first loads a checkpoint.
    """

    speed_m_s: float = 0.5
    time_limit_s: float = 10.0
    reset_limit_s: float = 120.0

    def __post_init__(self) -> None:
        config.check_positive(self, "speed_m_s", "time_limit_s", "reset_limit_s")


@dataclass(frozen=True)
class NavDPOptions(NavigatorOptions):
    """Arguments of a navigator with one of NavDP's servers.

    Attributes:
        stop_threshold: value of the critic below which NavDP's own network turns.
        stop_within_m: distance of a point goal at which the robot stops, because no server says when it has arrived;
            None for the task's distance of success.
        goal_image: file of the image to go to, instead of the task's goal.
    """

    stop_threshold: float = navdp.STOP_THRESHOLD
    stop_within_m: GoalDistance | None = None
    goal_image: str | None = None


class Navigator(ChunkedPolicy):
    """A policy behind an HTTP server of another project, ``scheme://host[:port]``.

    Raises:
        ConfigError: the address has an invalid value, or an argument, which are fields of ``options_type``.
    """

    options_type: ClassVar[type[NavigatorOptions]] = NavigatorOptions
    port: ClassVar[int]
    preset: ClassVar[str]
    other_paths: ClassVar[str] = ""

    def __init__(self, url: str, arguments: dict[str, Any]) -> None:
        self.name = url  # type: ignore[misc]  # one class stands for every server
        scheme, _, place = url.partition(":")
        self._server = address(f"http:{place}")
        if self._server.path.strip("/"):
            remedy = f"write it like {scheme}://host:port{self.other_paths}"
            raise ConfigError(f"{url}: has a path, which this protocol does not", remedy)
        if self._server.port is None:
            self._server = self._server._replace(netloc=f"{self._server.netloc}:{self.port}")
        self._options = config.parse(arguments, self.options_type, f"{url}: arguments")
        self.task = load_task(self.preset)
        self._info: dict[str, Any] = {}

    @override
    def check(self, task: Task) -> None:
        super().check(task)
        if task.control is None or task.control.trajectory is None:
            raise PolicyMismatch(
                f"{self.name} answers trajectories, which task {task.name!r} does not have",
                f"use a task with 'control: trajectory', for instance {self.preset}",
            )

    @override
    def answered(self, observation: Observation) -> tuple[Decision, ...]:
        """The server's decisions.

        Raises:
            LinkLost: the server cannot be reached.
            PolicyError: no answer in time, a refusal, or an answer that is not a decision.
        """
        timer, self._info = Stopwatch(), {"server": self._server.geturl()}
        decisions = self._decide(observation)
        self._info["answer_s"] = round(timer.elapsed_s(), 4)
        return decisions

    def info(self) -> dict[str, Any]:
        """The server, the time that its answer took, and what it could not be told."""
        return self._info

    @abstractmethod
    def _decide(self, observation: Observation) -> tuple[Decision, ...]:
        """Ask the server."""

    def _begin(self, task: Task) -> None:
        trajectory = task.control and task.control.trajectory
        assert trajectory, "checked before"
        self._now, self.rest = task, ()
        self._speed_m_s = min(self._options.speed_m_s, trajectory.linear_m_s[1])

    def _ask(self, request: Request, limit_s: float) -> dict[str, Any]:
        return json_object(post(self._server, request, limit_s), self._server.geturl())


class NavDP(Navigator):
    """One of NavDP's servers: ``navdp://host[:port]``."""

    needs = ("rgb", "depth")
    options_type = NavDPOptions
    _options: NavDPOptions
    port, preset = navdp.PORT, "pointnav_trajectory"

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Start an episode. Raises ``LinkLost`` and ``PolicyError``."""
        self._begin(task)
        for request in navdp.resets(task, self._options.stop_threshold):
            self._algorithm = str(self._ask(request, self._options.reset_limit_s).get("algo"))[:40]
        self._goal_image = None if self._options.goal_image is None else _image(self._options.goal_image)
        shown = task.sensors if self._goal_image is None else (navdp.IMAGE_SENSOR,)
        self._goal = navdp.route(self._algorithm, shown, self.name)

    @override
    def _decide(self, observation: Observation) -> tuple[Decision, ...]:
        self._info |= {"algorithm": self._algorithm, "goal": self._goal}
        if self._goal_image is not None:
            observation = {**observation, navdp.IMAGE_SENSOR: self._goal_image}
        if self._goal == navdp.POINT:
            goal_m = point_goal(observation[navdp.POINT_SENSOR], self._now.pointgoal_format)
            within_m, away_m = self._options.stop_within_m, math.hypot(*goal_m)
            if away_m < (self._now.success.distance_m if within_m is None else within_m):
                self._info["stop"] = f"the goal is {away_m:.2f} m away, and the server does not say when it has arrived"
                return (Action.STOP,)
            if (taken_m := navdp.taken_goal(goal_m, self._algorithm)) is not None:
                self._info["goal_taken_m"] = taken_m
        answer = self._ask(navdp.step(observation, self._goal, self._now), self._options.time_limit_s)
        return (navdp.decision(answer, self._speed_m_s, self.name),)


def _image(file: str) -> NDArray[np.uint8]:
    """RGB of an image file. Raises ``ConfigError``."""
    try:
        image = decode_image(Path(file).read_bytes(), cv2.IMREAD_COLOR_RGB)
    except (OSError, TooLarge) as error:
        raise ConfigError(f"{file}: cannot be read: {error}", "name a PNG or JPEG with goal_image=") from error
    if image is None:
        raise ConfigError(f"{file}: is not an image", "name a PNG or JPEG with goal_image=")
    return image


class InternNav(Navigator):
    """InternNav's server for robots: ``internnav://host[:port]``."""

    needs = ("rgb", "depth", "instruction")
    port, preset = internnav.PORT, "vln_trajectory"
    other_paths = "; InternNav's /agent unpickles what anybody sends it: run its agent as habitat:file.py:Class"
    _index = 0

    @override
    def check(self, task: Task) -> None:
        super().check(task)
        internnav.check(task)

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Start an episode; the server learns of it with the first image."""
        self._begin(task)
        self._index = 0

    @override
    def _decide(self, observation: Observation) -> tuple[Decision, ...]:
        limit_s = self._options.time_limit_s if self._index else self._options.reset_limit_s
        answer = self._ask(internnav.step(observation, self._index, self._now), limit_s)
        self._index += 1
        if answer.get("instruction") != str(observation["instruction"]):
            self._info["instruction"] = "sent; the published server has its own in its source, which is unknown here"
        pixel = answer.get("pixel_goal")
        if isinstance(pixel, list) and len(pixel) == 2 and all(type(number) is int for number in pixel):
            self._info["pixel_goal"] = pixel
        return internnav.decisions(answer, self._speed_m_s, self.name)


class NavigatorOpener(PolicyOpener):
    """Opener of policies behind other projects' HTTP servers."""

    def __init__(self, navigator: type[Navigator]) -> None:
        self.navigator = navigator

    @override
    def open(self, spec: str, isolation: Isolation | None, arguments: dict[str, Any]) -> Policy:
        return self.navigator(spec, arguments)

    @override
    def check(self, spec: str, arguments: Mapping[str, Any]) -> None:
        self.navigator(spec, dict(arguments))


NAVDP = NavigatorOpener(NavDP)
INTERNNAV = NavigatorOpener(InternNav)
