"""The Gymnasium environment on the simulated LoCoBot: Gymnasium's own checker, and repetition bit for bit."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

ENV_ID = "robot_runtime.gym:robot_runtime/Navigation-v0"
FORWARD, LEFT = np.int64(1), np.int64(2)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["pointnav_gps_compass", "objectnav_robothor2021"])
def test_gymnasiums_checker_finds_nothing_to_say(task: str):
    env = gymnasium.make(ENV_ID, robot="sim", scene="apartment", task=task, count=2, render_mode="rgb_array")
    check_env(env.unwrapped)
    env.close()


def test_an_episode_repeats_bit_for_bit_whatever_came_before_it(room_folder: Path):
    env = gymnasium.make(ENV_ID, robot="sim", scene=str(room_folder), count=2)

    def run() -> list[dict[str, np.ndarray]]:
        first, _ = env.reset(options={"episode": 1})
        return [first, *(env.step(action)[0] for action in (LEFT, FORWARD, FORWARD))]

    runs = [run()]
    env.reset(options={"episode": 0})
    env.step(LEFT)
    runs.append(run())
    for before, after in zip(*runs, strict=True):
        for name, value in before.items():
            np.testing.assert_array_equal(after[name], value, err_msg=name)
    env.close()
