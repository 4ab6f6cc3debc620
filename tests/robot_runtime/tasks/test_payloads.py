"""Payloads of kinds of tasks in files: whose fields an episode has."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, PluginError
from robot_runtime.tasks import payloads
from robot_runtime.tasks.episode import KIND, Episode, EpisodeDetails
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.task import load_task, with_sensors

DOCUMENT = {"id": "1", "scene": "flat", "start": {"x_m": 0.0, "y_m": 0.0, "yaw_rad": 0.0}, "goals": [], "width_m": 0.8}


@dataclass(frozen=True)
class Gate(EpisodeDetails):
    width_m: float = 0.0


@dataclass(frozen=True)
class Door(EpisodeDetails):
    width_m: float = 0.0
    closed: bool = False


class Gates(TaskKind):
    details_type = Gate


class Doors(TaskKind):
    details_type = Door


def offer(monkeypatch: pytest.MonkeyPatch, **kinds: TaskKind) -> None:
    monkeypatch.setattr(payloads.KINDS, "usable", lambda: kinds)
    monkeypatch.setattr(payloads.KINDS, "load", kinds.__getitem__)


def test_an_episode_has_the_details_of_the_kind_whose_fields_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, gates=Gates())
    assert config.parse(DOCUMENT, Episode, "here").details == Gate(0.8)


def test_a_field_of_two_kinds_is_refused_and_both_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, gates=Gates(), doors=Doors())
    with raises_naming(PluginError, "'width_m'", "gates", "doors"):
        config.parse(DOCUMENT, Episode, "here")


def test_the_kind_of_the_task_comes_before_other_kinds_with_the_same_field(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: dict[str, TaskKind] = {"gates": Gates(), "doors": Doors()}
    offer(monkeypatch, **kinds)
    monkeypatch.setattr(payloads.KINDS, "find", kinds.get)
    assert config.parse({**DOCUMENT, KIND: "doors"}, Episode, "here").details == Door(0.8)


@pytest.mark.parametrize("more", [{"height_m": 2.0}, {"height_m": 2.0, "width_m": 0.8}])
def test_a_field_of_no_kind_is_an_error(monkeypatch: pytest.MonkeyPatch, more: dict[str, float]) -> None:
    offer(monkeypatch, gates=Gates())
    common = {name: value for name, value in DOCUMENT.items() if name != "width_m"}
    with raises_naming(ConfigError, "height_m"):
        config.parse({**common, **more}, Episode, "here")


def test_the_name_of_the_payload_itself_is_not_a_field_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, gates=Gates())
    with raises_naming(ConfigError, "'details'"):
        config.parse({**DOCUMENT, "details": {"width_m": 1.0}}, Episode, "here")


def test_slots_and_cached_properties_do_not_change_what_is_written() -> None:
    @dataclass(frozen=True, slots=True)
    class Slotted(EpisodeDetails):
        width_m: float = 0.0

    episode = Episode("1", "flat", SE2(), (), details=Slotted(0.8))
    assert episode.document()["width_m"] == 0.8
    assert episode.key


def test_sensors_are_added_in_one_order() -> None:
    task = load_task("pointnav_quick")
    bare = replace(task, sensors=("depth",))
    assert with_sensors(bare, ["compass", "gps"]) == with_sensors(bare, ["gps", "compass"])


def test_a_kind_may_ask_for_any_action() -> None:
    class Looking(TaskKind):
        actions = frozenset({Action.LOOK_UP})

    task = load_task("pointnav_quick")
    with pytest.raises(ValueError, match="look_up"):
        Looking().check_task(task)
    Looking().check_task(replace(task, actions=(*task.actions, Action.LOOK_UP)))
