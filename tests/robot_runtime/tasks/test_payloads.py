"""Payloads of kinds of tasks in files: whose fields an episode has."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from raising import raises_naming

from robot_runtime.common import config
from robot_runtime.errors import PluginError
from robot_runtime.tasks import payloads
from robot_runtime.tasks.episode import Episode, EpisodeDetails
from robot_runtime.tasks.kind import TaskKind

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


def test_an_episode_has_the_details_of_the_kind_whose_fields_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, gates=Gates())
    assert config.parse(DOCUMENT, Episode, "here").details == Gate(0.8)


def test_a_field_of_two_kinds_is_refused_and_both_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, gates=Gates(), doors=Doors())
    with raises_naming(PluginError, "'width_m'", "gates", "doors"):
        config.parse(DOCUMENT, Episode, "here")
