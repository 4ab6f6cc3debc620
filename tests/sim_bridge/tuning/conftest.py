"""Logs of a simulated robot whose settings are hidden from the sweep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import yaml

from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.env import Env
from robot_runtime.policies import load_source
from robot_runtime.policy import PolicySource
from robot_runtime.recording.writer import Recorder
from robot_runtime.robots.loader import RobotContext, build_robot, read_robot_file
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.task import Task, load_task

HIDDEN = {
    "contact": {"behaviour": "stop"},
    "action_noise": {
        "model": "gaussian",
        "forward_m": 0.25,
        "turn_deg": 30.0,
        "actions": {
            name: {"mean": mean, "covariance": [[4e-5, 0.0, 0.0], [0.0, 4e-5, 0.0], [0.0, 0.0, 2e-4]]}
            for name, mean in (
                ("move_forward", [-0.02, 0.0, 0.01]),
                ("turn_left", [0.0, 0.0, -0.04]),
                ("turn_right", [0.0, 0.0, 0.04]),
            )
        },
    },
    "camera": {"latency_s": 0.1, "mount_error": {"tilt_deg": 2.0, "height_m": 0.02}},
}
"""Options of the simulated robot that stands for the real one."""

AGENTS = {"goal-follower": {}, "near": {"stop_distance_m": "0.1"}, "forward-only": {}}
"""By the name in the logs; ``near`` is a variant of the goal follower."""

EPISODES, MAX_STEPS = 2, 14


@pytest.fixture(scope="session")
def robot_file(once: Callable[..., Path]) -> Path:
    """The hidden robot's YAML file."""

    def write(folder: Path) -> None:
        document = {"name": "hidden", "driver": "sim_bridge.robot.driver.make_robot", "options": HIDDEN}
        folder.mkdir()
        (folder / "hidden.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")

    return once("hidden_robot", write) / "hidden.yaml"


@pytest.fixture(scope="session")
def short_task() -> Task:
    """A task with few steps, few pixels, and a camera that sees the floor."""
    task = load_task("pointnav_gps_compass")
    camera = replace(task.camera, width=64, height=48, tilt_deg=-25.0)
    return replace(task, camera=camera, max_steps=MAX_STEPS)


@pytest.fixture(scope="session")
def real_logs(room: Scene, robot_file: Path, short_task: Task, once: Callable[..., Path]) -> list[Path]:
    """Logs of three agents on the same episodes."""
    folder = once("real_logs", lambda folder: _log(folder, room, robot_file, short_task))
    return sorted(folder.glob("*.mcap"))


def _log(folder: Path, room: Scene, robot_file: Path, short_task: Task) -> None:
    path, file = read_robot_file(str(robot_file))
    episodes = generate_episodes(room, short_task, EPISODES, seed=4)
    context = RobotContext.of(short_task, room, episodes, seed=0)
    recorder = Recorder(folder)
    with (
        build_robot(file, str(path), context) as robot,
        Env(robot, short_task, room, (recorder,), robot_config=asdict(file)) as env,
    ):
        for name, arguments in AGENTS.items():
            policy = load_source(PolicySource("goal-follower" if name == "near" else name, arguments))
            for seed, episode in enumerate(episodes):
                run_episode(env, policy, episode, seed, name)
    recorder.close()
