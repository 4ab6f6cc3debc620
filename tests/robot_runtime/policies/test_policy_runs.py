"""Episodes of policy packages: reproducible logs and decisions, wheels at zero on NaN."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_package as tiny
from log_records import records
from open_room import Witness, fake_robot, make_episode, make_scene
from raising import raises_naming

from robot_runtime.cli.main import run_command
from robot_runtime.cli.run import TaskOptions
from robot_runtime.env import Env
from robot_runtime.errors import PolicyError, PolicyMismatch, PolicyOutputError
from robot_runtime.policies.baselines.blind import GoalFollower
from robot_runtime.policies.package.formats.network import Network
from robot_runtime.policies.package.policy import Package, PackagePolicy, load_package, load_package_policy
from robot_runtime.policies.remote.client import RemotePolicy
from robot_runtime.policies.stepping import check_policy
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import PHASES, EndReason
from robot_runtime.runtime import run_episode
from robot_runtime.scoring.policy_agreement import open_loop
from robot_runtime.servers.policy import PolicyServer
from robot_runtime.tasks.task import load_task

SAMPLED = ["--agent-arg", "selection=sample", "--agent-arg", "temperature=9"]
"""Else the random weights decide for the same action for ever."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_tiny(tmp_path_factory.mktemp("packages") / "tiny.zip")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same architecture with other weights."""
    path = tmp_path_factory.mktemp("packages") / "other"
    from robot_runtime.policies.package.writer import write_package

    write_package(path, replace(tiny.MANIFEST, name="other"), tiny.onnx_bytes(1), tiny.golden(seed=1))
    return path


@pytest.fixture(scope="module", params=["fake", "sim"])
def logs(request: pytest.FixtureRequest, package: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs of two episodes with one seed."""
    folders = [tmp_path_factory.mktemp("logs") / name for name in ("first", "second")]
    for folder in folders:
        arguments = ["--policy", str(package), "--robot", request.param, "--count", "2", "--seed", "4"]
        assert run_command(["run", *arguments, *SAMPLED, "--out", str(folder)]) == 0
    return folders


def test_two_runs_leave_the_same_records_bit_for_bit(logs: list[Path]):
    first, second = (records(folder) for folder in logs)
    assert len(first) > 10
    assert first == second


def test_a_replayed_log_gives_the_same_actions(logs: list[Path], package: Path):
    policy = load_package_policy(package, selection="sample", temperature=9)
    steps = 0
    for path in sorted(logs[0].glob("*.mcap")):
        with LogReader(path) as log:
            again = open_loop(log, policy)
        assert again.differences == ()
        assert again.logit_difference == 0.0
        assert again.deterministic
        steps += len(again.steps)
    assert steps > 1


def test_the_log_holds_the_policys_source(logs: list[Path], package: Path):
    with LogReader(min(logs[0].glob("*.mcap"))) as log:
        assert log.header.agent == "tiny"
        assert log.header.task == tiny.TASK
        taken = [step for step in log.steps(images=False) if step.action is not None]
    assert taken[0].policy_info["selection"]["seed"] == [0, 4]
    assert taken[0].policy_info["package"]["name"] == "tiny"
    for step in taken:
        assert len(step.policy_info["logits"]) == len(tiny.TASK.actions)
        assert set(step.phase_s) == set(PHASES) - {"age", "stand"}


def test_diff_tells_other_weights_from_the_same(
    logs: list[Path], package: Path, other: Path, capsys: pytest.CaptureFixture[str]
):
    assert run_command(["policy", "diff", str(package), str(logs[0]), *SAMPLED]) == 0
    assert "100 %" in capsys.readouterr().out
    assert run_command(["policy", "diff", str(other), str(logs[0]), *SAMPLED]) == 1
    assert "logits differ by up to" in capsys.readouterr().out


def test_diff_selects_as_the_log_does(logs: list[Path], package: Path, capsys: pytest.CaptureFixture[str]):
    assert run_command(["policy", "diff", str(package), str(logs[0])]) == 0
    assert "100 %" in capsys.readouterr().out
    assert run_command(["policy", "diff", str(package), str(logs[0]), "--agent-arg", "selection=argmax"]) == 1


def test_diff_of_packages_names_what_differs(package: Path, other: Path, capsys: pytest.CaptureFixture[str]):
    assert run_command(["policy", "diff", str(package), str(package)]) == 0
    assert run_command(["policy", "diff", str(package), str(other)]) == 1
    said = capsys.readouterr().out
    assert "name: tiny | other" in said
    assert "model.sha256" in said


def test_inspect_prints_all_facts_without_running_the_network(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run_command(["policy", "inspect", str(package)]) == 0
    said = capsys.readouterr().out
    for word in ("32x24", "torch_area", "0 stop", "opset 17", "pointgoal_with_gps_compass", "argmax"):
        assert word in said
    out = tmp_path / "manifest.json"
    assert run_command(["policy", "inspect", str(package), "--json", str(out)]) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["name"] == "tiny"


@pytest.fixture
def server(package: Path) -> Iterator[str]:
    with closing(load_package_policy(package)) as policy:
        assert policy.task is not None
        with PolicyServer(policy, policy.task, ("127.0.0.1", 0)) as serving:
            yield f"ws://127.0.0.1:{serving.port}"


def test_a_server_declares_its_package(
    server: str, package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {}
    for policy in (str(package), server):
        out = tmp_path / "declared.json"
        assert run_command(["policy", "inspect", policy, "--json", str(out)]) == 0
        said[policy] = capsys.readouterr().out, json.loads(out.read_text(encoding="utf-8"))
    assert said[server] == said[str(package)]
    assert "torch_area" in said[server][0]


def test_a_robot_refuses_a_server_whose_package_was_trained_otherwise(server: str) -> None:
    with closing(RemotePolicy(server)) as remote, raises_naming(PolicyMismatch, "turns of (degrees)", "45"):
        assert remote.task is not None
        check_policy(remote, replace(remote.task, magnitudes=replace(remote.task.magnitudes, turn_deg=45.0)))


def test_inspect_of_an_agent_prints_what_it_declares(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "declared.json"
    assert run_command(["policy", "inspect", "goal-follower", "--json", str(out)]) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["needs"] == "pointgoal\ngps\ncompass"


def test_run_adds_what_a_policy_needs_and_the_task_can_show():
    class Needs(GoalFollower):
        needs = ("compass", "rgb", "gps")

    task = TaskOptions(task="pointnav_habitat2020", sensor=["exposure"]).load(Needs())
    assert task.name == "pointnav_habitat2020+gps+compass+exposure"
    Needs.needs = ("gps", "objectgoal")
    unchanged = TaskOptions(task="pointnav_habitat2020").load(Needs())
    assert unchanged == load_task("pointnav_habitat2020")
    with raises_naming(PolicyError, "gps, objectgoal", "an episode of pointnav has nothing"):
        check_policy(Needs(), unchanged)


def test_validate_and_bench_print_the_runtime(package: Path, capsys: pytest.CaptureFixture[str]):
    assert run_command(["policy", "validate", str(package)]) == 0
    assert "the same action at 6 of 6" in capsys.readouterr().out
    assert run_command(["policy", "bench", str(package), "--steps", "10"]) == 0
    assert "preprocess" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["policy", "validate", "{package}", "--task", "pointnav_gps_compass"], 9, "32x24"),
        (["run", "--policy", "{package}", "--robot", "fake", "--task", "pointnav_gps_compass"], 9, "640x480"),
        (["run", "--policy", "{package}", "--agent", "random"], 2, "two policies"),
        (["run", "--policy", "nowhere.zip"], 9, "no such file or folder"),
        (["policy", "diff", "{package}", "nowhere"], 8, "nowhere"),
        (["run", "--policy", "{package}", "--agent-arg", "threads=many"], 2, "threads='many' is not an integer"),
        (["run", "--policy", "{package}", "--agent-arg", "threads=1.5"], 2, "threads=1.5 is not an integer"),
    ],
)
def test_impossible_requests_are_refused_with_an_exit_code(
    package: Path, arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
):
    assert run_command([argument.format(package=package) for argument in arguments]) == code
    assert said in capsys.readouterr().err


class Failing(Network):
    """Computes well for some steps, then returns the given logits."""

    runtime = "failing"

    def __init__(self, network: Network, steps: int, then: Any) -> None:
        self._network, self._steps, self._then = network, steps, then

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        self._steps -= 1
        outputs = self._network.run(inputs)
        moving = np.array([[-5, 5, 0, 0]], np.float32)
        return {**outputs, "logits": moving if self._steps >= 0 else self._then}


@pytest.mark.parametrize(
    ("then", "things"),
    [
        (np.full((1, 4), np.nan, np.float32), ("'logits'", "4")),
        (np.zeros((1, 7), np.float32), ("'logits'", "[1, 7]")),
        (np.zeros((1, 4), np.float64), ("'logits'", "float64")),
    ],
)
def test_output_that_is_no_decision_stops_the_robot_and_keeps_the_steps(
    package: Path, then: Any, things: tuple[str, ...]
):
    loaded = load_package(package)
    failing = Package(loaded.path, loaded.manifest, Failing(loaded.network, 3, then), loaded.agreement)
    witness = Witness()
    with fake_robot(tiny.TASK) as robot:
        env = Env(robot, tiny.TASK, make_scene(), (witness,))
        with raises_naming(PolicyOutputError, *things):
            run_episode(env, PackagePolicy(failing), make_episode(), seed=0)
        before = robot.referee.latest(1.0).pose
        robot.clock.sleep(0.5)
        assert robot.referee.latest(1.0).pose == before
    assert env.end.reason is EndReason.FAULT
    assert len(witness.steps) == 4


def test_a_task_that_does_not_fit_is_refused_before_the_robot_moves(package: Path):
    task = replace(tiny.TASK, camera=replace(tiny.TASK.camera, depth_max_m=5.0))
    witness = Witness()
    with fake_robot(task) as robot:
        env = Env(robot, task, make_scene(), (witness,))
        with raises_naming(PolicyMismatch, "depth", "10.0", "5.0"):
            run_episode(env, load_package_policy(package), make_episode(), seed=0)
    assert witness.steps == []
