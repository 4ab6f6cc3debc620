from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from small_campaign import document, plan

from robot_runtime.campaign.opening import check_plan, check_same
from robot_runtime.campaign.plan import load_plan
from robot_runtime.common import config
from robot_runtime.errors import ConfigError, RuntimeFault

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
    "changes",
    [
        {"policies": {"a": {"spec": "goal-folower"}, "b": {"spec": "random"}}},
        {"robots": [{"robot": "no-such-robot"}]},
        {"scenes": {"*": "no-such-scene"}},
        {"episodes": "no-such-file.json.gz"},
        {"task": "no-such-task"},
        {"scenes": {"other": "arena"}},
    ],
)
def test_what_a_plan_names_must_exist(tmp_path: Path, changes: dict[str, object]) -> None:
    starts = tmp_path / "starts.yaml"
    starts.write_text("- {id: a, scene: arena, start: {x_m: 2.0, y_m: 2.0}, goals: [{x_m: 3.0, y_m: 2.0}]}\n")
    with pytest.raises(RuntimeFault):
        check_plan(config.parse(document(**{"episodes": str(starts), **changes}), type(plan()), "plan"))


def test_the_digest_is_of_every_field_and_of_no_order() -> None:
    one = plan()
    assert one.digest == plan().digest
    assert one.digest != plan(test={"largest": 30, "alpha": 0.04}).digest


def test_a_changed_plan_is_refused_by_the_name_of_its_change(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="test"):
        check_same(plan(test={"largest": 30, "metric": "spl"}), plan(), tmp_path)
