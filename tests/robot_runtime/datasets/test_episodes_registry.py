"""Registry of formats: a package adds one, and a broken one stops no other."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import outside_packages
import pytest
from small_flat import pointnav_task

from robot_runtime.datasets.files import load_episodes, save_episodes
from robot_runtime.datasets.formats import FORMATS, usable_formats
from robot_runtime.errors import EpisodeError

GATES = """
from robot_runtime.common.geometry import SE2
from robot_runtime.datasets.formats import EpisodeFormat
from robot_runtime.datasets.io import write_json
from robot_runtime.tasks.episode import Episode
def matches(document):
    return "gates" in document["episodes"][0]
def reader(document, path):
    return lambda index, item: Episode(str(index), "flat", SE2(), (), info={"gates": item["gates"]})
def save(path, episodes, task):
    write_json(path, {"episodes": [{"gates": episode.info["gates"]} for episode in episodes]})
def writes(episodes, task):
    return "gates" in episodes[0].info
def notes(path):
    return [path.with_name("notes.json")]
FORMAT = EpisodeFormat("Gates", "gatenav", matches, reader, save, writes, notes)
"""


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    offers = {"gates": "gates_on_file:FORMAT", "lost": "gates_on_file:LOST"}
    outside_packages.install(tmp_path / "site", "gates_on_file", {FORMATS.group: offers}, GATES)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield
    sys.modules.pop("gates_on_file", None)


def written(path: Path, document: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def test_a_format_from_outside_is_read_and_written(tmp_path: Path) -> None:
    path = written(tmp_path / "data/a.json", {"episodes": [{"gates": [1, 2]}, {"gates": []}]})
    written(tmp_path / "data/notes.json", ["by hand"])
    episodes = load_episodes(path.parent)
    assert [episode.info["gates"] for episode in episodes] == [[1, 2], []]
    save_episodes(tmp_path / "b.json", episodes, pointnav_task())
    assert load_episodes(tmp_path / "b.json") == episodes


def test_formats_that_cannot_be_used_are_named_where_none_matches(tmp_path: Path) -> None:
    with pytest.raises(EpisodeError) as caught:
        load_episodes(written(tmp_path / "a.json", ["a list, for which 'matches' fails"]))
    for observed in ("Gates", "TypeError", "LOST"):
        assert observed in caught.value.message
    assert "PointNav-v1" in caught.value.remedy


def test_the_general_formats_come_last() -> None:
    assert [item.title for item in usable_formats()][-3:] == ["Gates", "ObjectNav-v1", "PointNav-v1"]
