"""The policy that ships: whole, small, repeatable, and the default where it was trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from robot_runtime.cli.run import default_agent
from robot_runtime.env import Env
from robot_runtime.episodes.generate import generate_episodes
from robot_runtime.errors import PolicyMismatch
from robot_runtime.policies import load_policy
from robot_runtime.policies.package.policy import PackagePolicy
from robot_runtime.policies.shipped import FOLDER
from robot_runtime.robots import RobotContext, load_robot
from robot_runtime.runtime import run_episode
from robot_runtime.scene import find_scene, load_scene
from robot_runtime.tasks.task import load_task

TASK = load_task("pointnav_gps_compass")


@pytest.fixture(scope="module")
def learned() -> PackagePolicy:
    policy = load_policy("pointnav-depth")
    assert isinstance(policy, PackagePolicy)
    return policy


def test_it_repeats_its_golden_rollout_and_its_proof_says_the_same_actions(learned: PackagePolicy) -> None:
    agreement, proof = learned.package.agreement, learned.manifest.proof
    assert agreement.same_actions == agreement.steps == learned.manifest.golden.steps
    assert proof.same_actions == proof.steps
    assert proof.max_logit_difference <= 1e-4


def test_it_is_small() -> None:
    assert sum(file.stat().st_size for file in (FOLDER / "pointnav_depth").iterdir()) <= 10e6


def test_it_tells_nothing_of_the_computer_that_made_it() -> None:
    (folder,) = (path.parent for path in FOLDER.glob("*/model.onnx"))
    assert all(b"stack_trace" not in path.read_bytes() for path in folder.iterdir())


def test_it_is_the_default_where_it_was_trained() -> None:
    assert [default_agent(task) for task in (TASK.name, "pointnav_habitat2019")] == ["pointnav-depth", "classical"]


def test_it_refuses_a_camera_that_it_does_not_know(learned: PackagePolicy) -> None:
    with pytest.raises(PolicyMismatch, match="pointnav_habitat2020"):
        learned.check(load_task("pointnav_habitat2020"))


def test_it_reaches_a_goal_and_twice_in_the_same_way(learned: PackagePolicy) -> None:
    scene = load_scene(find_scene("apartment"))
    episode = generate_episodes(scene, TASK, 1, 7)[0]
    runs = []
    for _ in range(2):
        with (
            load_robot("sim-noisy", RobotContext(scene, TASK.camera, 3)) as robot,
            Env(robot, TASK, scene, seed=3) as env,
        ):
            end = run_episode(env, learned, episode, 3)
            runs.append((end.steps, end.reason, env.record.referee.pose, env.record.policy_info["logits"]))
            assert env.get_metrics()["success"]
    assert runs[0] == runs[1]


def test_the_package_is_installed_with_the_runtime() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '"policies/shipped/*/*"' in text
