"""Registry of generators: each task gets its kind's, a kind without one says what to do."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import outside_packages
import pytest
from raising import raises_naming
from small_flat import flat, pointnav_task

from robot_runtime.datasets.formats import GENERATORS, generate_episodes
from robot_runtime.errors import EpisodeError, PluginError
from robot_runtime.tasks.task import load_task

GATES = """
def generate(scene, task, count, seed):
    return [(scene.name, count, seed)]
"""


def test_the_generator_is_that_of_the_kind() -> None:
    task = pointnav_task()
    assert generate_episodes(flat(), task, 3, seed=2) == GENERATORS.load(task.kind)(flat(), task, 3, 2)


def test_a_kind_without_generator_names_the_formats_of_its_files() -> None:
    task = load_task("vln_r2r_ce")
    assert task.kind not in GENERATORS
    with raises_naming(EpisodeError, "'vln_r2r_ce'") as caught:
        generate_episodes(flat(), task, 1, 0)
    assert "R2R-CE" in caught.value.remedy


def test_generators_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offers = {"gatenav": "gates_to_draw:generate", "lostnav": "gates_to_draw:lost"}
    outside_packages.install(tmp_path, "gates_to_draw", {GENERATORS.group: offers}, GATES)
    monkeypatch.syspath_prepend(str(tmp_path))
    task: Any = replace(pointnav_task())
    try:
        object.__setattr__(task, "kind", "gatenav")
        assert generate_episodes(flat(), task, 3, 2) == [(flat().name, 3, 2)]
        object.__setattr__(task, "kind", "lostnav")
        with pytest.raises(PluginError, match="gates_to_draw"):
            generate_episodes(flat(), task, 3, 2)
    finally:
        sys.modules.pop("gates_to_draw", None)
