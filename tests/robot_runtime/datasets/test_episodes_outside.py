"""Episodes of a kind of task from outside: fields in the runtime's own YAML, and findings."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import outside_packages
import pytest
import yaml

from robot_runtime.datasets import native_yaml
from robot_runtime.datasets.files import load_episodes
from robot_runtime.datasets.findings import FINDINGS
from robot_runtime.datasets.validate import all_checks, validate
from robot_runtime.errors import EpisodeError
from robot_runtime.tasks import payloads

GATES = """
from dataclasses import dataclass
from robot_runtime.common import config
from robot_runtime.datasets.findings import Findings
from robot_runtime.tasks.episode import EpisodeDetails
from robot_runtime.tasks.kind import TaskKind
@dataclass(frozen=True)
class Gate(config.Strict):
    x_m: float
    y_m: float
    color: str = "red"
@dataclass(frozen=True)
class Course(EpisodeDetails):
    gates: tuple[Gate, ...] = ()
    laps: int = 1
class GateNav(TaskKind):
    details_type = Course
class GateFindings(Findings):
    checks = {"no gate": "has a course without gates"}
    def of_episode(self, episode):
        if isinstance(episode.details, Course) and not episode.details.gates:
            yield "no gate", "0 gates"
KIND = GateNav()
"""
EPISODE = {"id": "a", "scene": "flat", "start": [0, 0, 0]}


@pytest.fixture(scope="module", autouse=True)
def _package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    site = tmp_path_factory.mktemp("site")
    offers = {
        payloads.TASK_KINDS: {"gatenav": "gates_and_courses:KIND"},
        FINDINGS.group: {"gatenav": "gates_and_courses:GateFindings", "lostnav": "gates_and_courses:Lost"},
    }
    outside_packages.install(site, "gates_and_courses", offers, GATES)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        yield
    sys.modules.pop("gates_and_courses", None)


def written(path: Path, **fields: object) -> Path:
    path.write_text(yaml.safe_dump({"schema": 1, "episodes": [{**EPISODE, **fields}]}))
    return path


def test_fields_of_the_kind_are_read_and_written(tmp_path: Path) -> None:
    gates = [{"x_m": 1.5, "y_m": 2}, {"x_m": 0, "y_m": 1.0, "color": "blue"}]
    episodes = load_episodes(written(tmp_path / "a.yaml", gates=gates))
    assert [gate.color for gate in episodes[0].details.gates] == ["red", "blue"]  # type: ignore[union-attr]
    native_yaml.save(tmp_path / "b.yaml", episodes)
    assert load_episodes(tmp_path / "b.yaml") == episodes
    assert "laps" not in (tmp_path / "b.yaml").read_text()


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"gates": [{"x_m": 1.5, "y_m": "north"}]}, "gates.0.y_m"),
        ({"gates": [{"x_m": 1.5, "y_m": 2, "colour": "red"}]}, "colour"),
        ({"gates": [], "question": {"text": "?", "answer": "2", "type": "count"}}, "question"),
        ({"hoops": 3}, "hoops"),
    ],
)
def test_fields_that_are_wrong_are_named(fields: dict[str, object], named: str, tmp_path: Path) -> None:
    with pytest.raises(EpisodeError) as caught:
        load_episodes(written(tmp_path / "a.yaml", **fields))
    for observed in ("a.yaml", "episode 0", "'a'", named):
        assert observed in caught.value.message


def test_findings_of_the_kind_are_reported(tmp_path: Path) -> None:
    report = validate(load_episodes(written(tmp_path / "a.yaml", laps=2)))
    assert report.count("no gate") == 1
    assert {item.check: item.meaning for item in report.findings}["no gate"] == "has a course without gates"
    assert list(all_checks()).index("no gate") < list(all_checks()).index("other scene")
