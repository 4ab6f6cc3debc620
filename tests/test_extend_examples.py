"""The examples of the page "Extend it" besides the package of ``tests/plugin_task``, installed as a reader would."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import outside_packages
import pytest
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.cli.main import build_app
from robot_runtime.common import host_checks
from robot_runtime.errors import PolicyError
from robot_runtime.policies import check_source, load_policy
from robot_runtime.policy import PolicySource
from robot_runtime.scenes.scene import find_scene
from robot_runtime.tasks.kind import sensor_of
from robot_runtime.tasks.task import load_task

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples" / "extend"
OFFERS = {
    "robot_runtime.sensors": {"clearance": "extend_examples.clearance:CLEARANCE"},
    "robot_runtime.agents": {"gate-follower": "extend_examples.gate_agent:GateFollower"},
    "robot_runtime.policy_openers": {"gates": "extend_examples.gate_opener:OPENER"},
    "robot_runtime.commands": {"gates": "extend_examples.gate_cli:register"},
    "robot_runtime.scenes": {"gate-hall": "extend_examples.gate_scenes:gate_hall"},
    "robot_runtime.doctor": {"pebble": "extend_examples.device_check:check"},
}


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside_packages.install(tmp_path, "extend_examples", OFFERS, "")
    (tmp_path / "extend_examples.py").unlink()
    shutil.copytree(EXAMPLES, tmp_path / "extend_examples")
    (tmp_path / "extend_examples" / "gate_hall").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize(("measured_m", "shown_m"), [(0.0, None), (2.0, 2.0), (100.0, None)])
def test_a_sensor_stays_within_its_bounds(measured_m: float, shown_m: float | None) -> None:
    task = load_task("pointnav_gps_compass")
    sensor = sensor_of(task, "clearance")
    frame = SimpleNamespace(depth_m=np.full((12, 12), measured_m, np.float32))
    value = sensor.value(SimpleNamespace(task=task, frame=frame))
    low, high = sensor.bounds(task)
    assert (value.dtype, value.shape) == (sensor.dtype, sensor.shape(task))
    assert low <= value[0] <= high
    assert value[0] == (task.camera.depth_max_m if shown_m is None else shown_m)


@pytest.mark.parametrize(
    ("gate", "action"),
    [((3.0, 0.0), Action.MOVE_FORWARD), ((3.0, 1.0), Action.TURN_LEFT), ((3.0, -1.0), Action.TURN_RIGHT),
     ((0.1, 1.0), Action.STOP)],
)  # fmt: skip
def test_an_agent_turns_to_the_gate_and_stops_there(gate: tuple[float, float], action: Action) -> None:
    agent = load_policy("gate-follower", near_m=0.15)
    agent.reset(load_task("pointnav_gps_compass"), seed=0)
    assert agent.act({"gate": np.array(gate, np.float32)}) is action


def test_an_opener_takes_its_scheme() -> None:
    agent = load_policy("gates:0.3")
    agent.reset(load_task("pointnav_gps_compass"), seed=0)
    assert agent.act({"gate": np.array((0.25, 0.0), np.float32)}) is Action.STOP
    with raises_naming(PolicyError, "gates:near"):
        check_source(PolicySource("gates:near"))


def test_a_command_stands_among_the_others() -> None:
    assert "gates" in build_app().commands


def test_a_scene_is_found_by_its_name(tmp_path: Path) -> None:
    assert find_scene("gate-hall") == tmp_path / "extend_examples" / "gate_hall"


def test_a_missing_device_is_a_finding() -> None:
    (findings,) = host_checks.examine(["pebble"]).values()
    assert all(finding.what == "port" for finding in findings)
