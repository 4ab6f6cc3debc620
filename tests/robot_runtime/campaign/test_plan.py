from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from small_campaign import plan, write_plan

from robot_runtime.campaign.opening import check_plan, check_same
from robot_runtime.campaign.plan import Battery, load_plan
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.datasets import native_yaml
from robot_runtime.datasets.files import load_episodes
from robot_runtime.errors import ConfigError, EpisodeError, OtherFloor, RuntimeFault

CAMPAIGNS_PAGE = Path(__file__).parents[3] / "docs/how-to/campaigns.md"
PRESETS = dict(config.presets("campaigns"))
REST = {
    "name": "mine",
    "task": "objectnav_robothor2021",
    "scenes": {"*": "arena"},
    "episodes": "e.json.gz",
    "robots": [{"robot": "sim"}],
    "order": {"seed": 1},
}
SEALED = {name: {"commitment": "0" * 64, "server": f"ws://127.0.0.1:{8000 + n}"} for n, name in enumerate(("P1", "P2"))}


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_plan_on_every_preset_is_complete(tmp_path: Path, preset: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump({"preset": preset, **REST, "policies": SEALED}))
    read = load_plan(path)
    assert f"| `{preset}` |" in CAMPAIGNS_PAGE.read_text(encoding="utf-8")
    assert read.order.seed == 1
    assert read.task == "objectnav_robothor2021"  # the plan goes before its preset


def test_what_a_plan_states_goes_before_its_preset(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump({"preset": "iros2025-onsite", **REST, "policies": SEALED, "limits": {"minutes": 5}}))
    limits = load_plan(path).limits
    assert (limits.minutes, limits.contacts) == (5, 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"polices": {}}, "no such field"),
        ({"name": "../other"}, "other characters"),
        ({"policies": {}}, "a policy"),
        ({"blind": True}, "sealed"),
        ({"test": {"largest": 3, "least": 4}}, "least"),
        ({"order": {"seed": 1, "policies_per_start": 3}}, "fewer policies"),
        ({"policies": {"a": {"spec": "ws://there:1", "arguments": {"token": "x"}}}}, "public"),
        ({"policies": {"a--b": {"spec": "random"}}}, "single -"),
        ({"help": {"hook": "file:///etc/passwd"}}, "http"),
        ({"test": {"largest": 3, "alpha": 0.7}}, "alpha"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        plan(**changes)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"policies": {"a": {"spec": "goal-folower"}, "b": {"spec": "random"}}}, "goal-folower"),
        ({"policies": {"a": {"spec": "random", "arguments": {"sped": 2}}}}, "sped"),
        ({"policies": {"a": {"spec": "habitat:no_such_agent.py:Agent"}}}, "no_such_agent"),
        ({"policies": {"a": {"spec": "packages/no-such-policy"}}}, "no-such-policy"),
        ({"robots": [{"robot": "no-such-robot"}]}, "no-such-robot"),
        ({"scenes": {"*": "no-such-scene"}}, "no-such-scene"),
        ({"episodes": "no-such-file.json.gz"}, "no-such-file"),
        ({"task": "no-such-task"}, "no-such-task"),
        ({"scenes": {"other": "arena"}}, "arena"),
    ],
)
def test_what_a_plan_names_must_exist(tmp_path: Path, changes: dict[str, object], named: str) -> None:
    path = write_plan(tmp_path, 1)
    assert len(check_plan(load_plan(path))) == 1
    path.write_text(yaml.safe_dump(config.read_yaml(path) | changes))
    with pytest.raises(RuntimeFault, match=named):
        check_plan(load_plan(path))


@pytest.mark.parametrize("name", ["start", "goal"])
def test_a_start_or_goal_off_the_map_is_refused_before_anything_moves(tmp_path: Path, name: str) -> None:
    read = load_plan(write_plan(tmp_path, 1))
    starts = tmp_path / "starts.yaml"
    (episode,) = load_episodes(starts)
    far = {"start": SE2(90.0, 2.0, 0.0)} if name == "start" else {"goals": (replace(episode.goals[0], x_m=90.0),)}
    native_yaml.save(starts, [replace(episode, **far)])
    with pytest.raises(EpisodeError, match="arena"):
        check_plan(read)


def test_every_episode_of_another_floor_is_named_before_anything_moves(tmp_path: Path) -> None:
    read = load_plan(write_plan(tmp_path, 3))
    first, second, third = load_episodes(tmp_path / "starts.yaml")
    upstairs = tuple(replace(goal, z_m=3.2) for goal in second.goals)
    mixed = [replace(first, start_z_m=3.2), replace(second, goals=upstairs), third]
    native_yaml.save(tmp_path / "starts.yaml", mixed)
    with pytest.raises(OtherFloor) as raised:
        check_plan(read)
    assert f"{first.id!r}: the start is" in raised.value.message
    assert f"{second.id!r}: the goal is 3.20 m above" in raised.value.message
    assert f"leave them out of {tmp_path / 'starts.yaml'}" in raised.value.remedy
    native_yaml.save(tmp_path / "starts.yaml", mixed[2:])
    assert len(check_plan(read)) == 1


def test_the_digest_is_of_every_field_and_of_no_order() -> None:
    one = plan()
    assert one.digest == plan().digest
    assert one.digest != plan(test={"largest": 30, "alpha": 0.04}).digest


def test_a_changed_plan_is_refused_by_the_name_of_its_change(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="test"):
        check_same(plan(test={"largest": 30, "metric": "spl"}), plan(), tmp_path)


def test_a_policy_is_found_with_the_arguments_that_it_needs_and_not_made(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text("class Agent:\n    def __init__(self, weights):\n        raise OSError('made')\n")
    path = write_plan(tmp_path, 1)
    spec = {"spec": f"{agent}:Agent", "arguments": {"weights": "w.pt"}}
    path.write_text(yaml.safe_dump(config.read_yaml(path) | {"policies": {"a": spec}}))
    assert len(check_plan(load_plan(path))) == 1


def test_a_misspelled_policy_is_named_with_the_right_one(tmp_path: Path) -> None:
    path = write_plan(tmp_path, 1)
    path.write_text(yaml.safe_dump(config.read_yaml(path) | {"policies": {"a": {"spec": "goal-folower"}}}))
    with pytest.raises(RuntimeFault, match="goal-folower") as raised:
        check_plan(load_plan(path))
    assert "goal-follower" in raised.value.remedy


BATTERY = Battery(least=0.2, resume=0.8, first_run=0.1)


def test_a_robot_begins_if_its_charge_lasts_for_all_runs_of_the_start() -> None:
    assert not BATTERY.must_charge(0.41, 2, [])
    assert BATTERY.must_charge(0.39, 2, [])
    assert not BATTERY.must_charge(0.39, 1, [])
    assert not BATTERY.must_charge(0.8, 9, [0.5])  # it was charged, and would ask for ever


def test_the_expectation_follows_what_runs_took() -> None:
    assert BATTERY.expected([0.05, 0.05, 0.05]) == pytest.approx(0.05)
    assert BATTERY.expected([0.05, 0.15]) > 0.15


def test_a_robot_that_does_not_know_its_charge_is_never_paused() -> None:
    assert not BATTERY.must_charge(None, 2, [0.5])
    assert BATTERY.is_charged(None)


def test_a_paused_robot_goes_on_at_its_charge() -> None:
    assert not BATTERY.is_charged(0.79)
    assert BATTERY.is_charged(0.8)
