"""Timed work of ``bench replay``: recording logs, and replaying them in one process and by workers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common.clock import Stopwatch
from robot_runtime.common.console import progress_bar
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.env import Env
from robot_runtime.parallel.map import Workers
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.runtime import run_episodes
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.task import Task, load_task
from sim_bridge.replay.batch import Job, replay_logs
from sim_bridge.replay.log_replay import ReplayCache, replay_log
from sim_bridge.replay.options import ReplayOptions

TASK = "pointnav_gps_compass"
STEPS = 100

REPEATS = 5
"""Replays of every log in the comparison of workers, so that starting them takes little of the time."""


class Wanderer(Policy):
    """A policy that drives straight ahead, and turns at random when it is blocked and once in a while."""

    name = "wanderer"

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._random = np.random.default_rng(seed)
        self._turns: list[Action] = []
        self._before: tuple[float, ...] | None = None

    @override
    def act(self, observation: Observation) -> Decision:
        here = tuple(observation["gps"].tolist())
        if not self._turns and (here == self._before or self._random.random() < 0.1):
            way = Action.TURN_LEFT if self._random.random() < 0.5 else Action.TURN_RIGHT
            self._turns = [way] * int(self._random.integers(1, 12))
        self._before = here
        return self._turns.pop() if self._turns else Action.MOVE_FORWARD


def record(folder: Path, count: int, seed: int, images: bool) -> list[Path]:
    """Record logs of episodes of :data:`STEPS` actions in the bundled apartment, by an exact robot.

    Args:
        folder: folder of the logs.
        count: number of episodes.
        seed: random seed of episodes and actions.
        images: whether the camera renders.
    """
    scene = load_scene(find_scene("apartment"))
    task = replace(load_task(TASK), max_steps=STEPS, sensors=("gps",))
    episodes = generate_episodes(scene, task, count, seed)
    recorder = Recorder(folder)
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bar())
        bar = progress.add_task("record" + (" with images" if images else ""), total=count, note="")
        context = replace(RobotContext.of(task, scene, episodes, seed), images=images)
        robot = stack.enter_context(load_robot("sim", context))
        stack.callback(recorder.close)
        env = stack.enter_context(Env(robot, task, scene, (recorder,), seed=seed))
        for _ in run_episodes(env, Wanderer(), episodes, seed):
            progress.advance(bar)
    return sorted(folder.glob("*.mcap"))


def time_replays(logs: Sequence[Path], images: bool) -> tuple[list[float], float]:
    """Seconds per log with a simulator that is built, and seconds to build it."""
    options = ReplayOptions(parts=("action",), images=images)
    took_s = []
    with ReplayCache(options) as cache:
        timer = Stopwatch()
        with LogReader(logs[0]) as log:
            simulator = cache.simulator(log.header, cache.scene(log.header), images)
            simulator.begin(log.header, log.header.episode.start, 0.0)
        build_s = timer.elapsed_s()
        for log_path in logs:
            timer.restart()
            replay_log(log_path, options, cache, log_path.stem)
            took_s.append(timer.elapsed_s())
    return took_s, build_s


def time_workers(logs: Sequence[Path], rounds: int, out: Path) -> list[tuple[float, float]]:
    """Seconds of one worker and of two for the same replays, by round."""
    jobs = [Job(path, f"{path.stem}-{number}") for number in range(REPEATS) for path in logs]
    options = ReplayOptions(parts=("action",), out=out)
    found = []
    with progress_bar() as progress:
        bar = progress.add_task("one worker, two workers", total=2 * rounds * len(jobs), note="")
        for _ in range(rounds):
            took_s = []
            for count in (1, 2):
                timer = Stopwatch()
                replay_logs(
                    jobs, options, Workers(count), pages=False, overwrite=True, on_done=lambda _: progress.advance(bar)
                )
                took_s.append(timer.elapsed_s())
            found.append((took_s[0], took_s[1]))
    return found
