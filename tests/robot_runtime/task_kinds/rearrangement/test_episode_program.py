"""Evaluation programs as data: read, written, and what is wrong with them said in place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.datasets import native_yaml
from robot_runtime.datasets.files import load_episodes
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.tasks.episode import Episode, RearrangedObject
from robot_runtime.tasks.goal_program import Combined, Harm, Related, Selection, read_program, selections, subjects

DOCUMENT: dict[str, Any] = {
    "targets": [
        {"subject": "mug_1", "on": "table_1", "gap_m": 0.05},
        {"subject": {"every": "Apple"}, "inside": {"some": "Bowl"}},
        {"subject": {"at_least": 2, "of": "Mug"}, "next_to": "sink_1", "within_m": 0.3},
        {"subject": "book_1", "at": {"position": [4, 1, 0.9], "yaw_deg": 90}, "within_m": 0.1, "within_deg": 15},
        {"subject": "book_1", "at": {"position": [4, 1, 0.9], "quaternion": [0, 0, 0, 1]}, "min_iou": 0.5},
        {"subject": "ball_1", "at": {"center": [1, 2, 0.5], "size": [1, 1, 1], "yaw_deg": 30}, "min_fraction": 0.9},
        {"subject": "ball_2", "at": {"region": [[0, 0], [1, 0], [1, 2]]}},
        {"subject": {"every": "Mug"}, "at": {"room": "kitchen"}},
        {"not": {"subject": "laptop_1", "on": "bed_1"}},
        {"any": [{"subject": "a", "on": "b"}, {"all": [{"subject": "a", "on": "c"}, {"subject": "c", "on": "d"}]}]},
        {"count": [{"subject": "a", "on": "b"}, {"subject": "c", "on": "b"}], "at_least": 1, "at_most": 1},
    ],
    "do_no_harm": {"min_iou": 0.5, "ignore": ["cat_1"]},
}
MUG = RearrangedObject("mug_1", ObjectPose((1.0, 2.0, 0.5)), category="Mug")
EPISODE = Episode(
    "tidy", "flat", SE2(1.0, 1.0, 0.5), (), details=Layout(objects=(MUG,), program=read_program(DOCUMENT, "here"))
)


def test_a_program_says_what_it_means() -> None:
    program = read_program(DOCUMENT, "here")
    expressions = program.expressions()
    mug = Selection(id="mug_1")
    assert expressions[0] == Related("on", mug, Selection(id="table_1"), {"gap_m": 0.05})
    assert expressions[1] == Related("inside", Selection(category="Apple"), Selection(category="Bowl", at_least=1))
    assert isinstance(expressions[8], Combined)
    assert (expressions[8].at_least, expressions[8].at_most) == (0, 0)
    assert (expressions[10].at_least, expressions[10].at_most) == (1, 1)  # type: ignore[union-attr]
    assert program.harm() == Harm(0.5, frozenset({"cat_1"}))
    assert [found.id for found in subjects(expressions[9:10])] == ["a", "a", "c"]
    assert [found.id for found in selections(expressions[9:10])] == ["a", "b", "a", "c", "c", "d"]


def test_programs_come_back_from_a_file_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "tidy.yaml"
    native_yaml.save(path, [EPISODE, replace(EPISODE, id="bare", details=replace(Layout.of(EPISODE), program=None))])
    assert load_episodes(path) == [
        EPISODE,
        replace(EPISODE, id="bare", details=replace(Layout.of(EPISODE), program=None)),
    ]


def test_on_needs_no_quotes(tmp_path: Path) -> None:
    """PyYAML reads YAML 1.1, in which a bare ``on`` is true."""
    native_yaml.save(tmp_path / "quoted.yaml", [EPISODE])
    bare = (tmp_path / "quoted.yaml").read_text().replace("'on':", "on:")
    assert "on: table_1" in bare
    (tmp_path / "bare.yaml").write_text(bare)
    assert load_episodes(tmp_path / "bare.yaml") == [EPISODE]


def test_programs_come_back_from_a_logs_header() -> None:
    from robot_runtime.recording.json_output import plain

    assert config.parse(plain(EPISODE), Episode, "header") == EPISODE


ON = {"subject": "a", "on": "b"}


@pytest.mark.parametrize(
    ("targets", "part"),
    [
        ([], "has no targets"),
        (["mug on table"], "targets.0: is not a mapping"),
        ([ON, {"subject": "a", "under": "b"}], "targets.1: has no known predicate, but ['under']"),
        ([{"subject": "a", "on": "b", "inside": "c"}], "has the predicates ['on', 'inside']"),
        ([{"on": "b"}], "has no 'subject'"),
        ([{"subject": "a", "on": "b", "within_m": 1}], "there is no 'within_m' here"),
        ([{"subject": "a", "on": "b", "gap_m": "1"}], "gap_m: is not a finite number"),
        ([{"subject": "a", "on": "b", "gap_m": float("nan")}], "gap_m: is not a finite number"),
        ([{"subject": "a", "on": "b", "gap_m": -1}], "gap_m: must lie between 0 and inf"),
        ([{"subject": "a", "inside": "b", "min_fraction": 2}], "min_fraction: must lie between 0 and 1"),
        ([{"subject": 3, "on": "b"}], "targets.0.subject: names no object"),
        ([{"subject": " ", "on": "b"}], "targets.0.subject: is not a name"),
        ([{"subject": {"each": "Mug"}, "on": "b"}], "names no objects"),
        ([{"subject": {"of": "Mug"}, "on": "b"}], "does not say how many"),
        ([{"subject": {"of": "Mug", "at_least": -1}, "on": "b"}], "does not say how many"),
        ([{"subject": "a", "at": {"room": "x", "region": []}}], "is not a place"),
        ([{"subject": "a", "at": "kitchen"}], "is not a place"),
        ([{"subject": "a", "at": {"room": 3}}], "at.room: is not a name"),
        ([{"subject": "a", "at": {"region": [[0, 0], [1, 1]]}}], "is not a list of 3 corners"),
        ([{"subject": "a", "at": {"region": [[0, 0], [1, 1], [2]]}}], "is not a list of 2 numbers"),
        ([{"subject": "a", "at": {"center": [0, 0, 0]}}], "at.size: is not a list of 3 numbers"),
        ([{"subject": "a", "at": {"center": [0, 0, 0], "size": [1, 0, 1]}}], "is not positive"),
        ([{"subject": "a", "at": {"position": [0, 0, 0]}}], "says nothing about how near"),
        ([{"subject": "a", "at": {"position": [0, 0, 0], "quaternion": [1, 1, 0, 0]}, "within_m": 1}], "length 1"),
        (
            [{"subject": "a", "at": {"position": [0, 0, 0], "quaternion": [1, 0, 0, 0], "yaw_deg": 1}, "within_m": 1}],
            "has both",
        ),
        ([{"all": []}], "is not a list of at least one part"),
        ([{"count": [ON]}], "does not say how many"),
        ([{"all": [ON], "at_least": 1}], "there is no 'at_least' here"),
        ([{"not": [ON]}], "not.0: is not a mapping"),
    ],
)
def test_what_is_wrong_is_said_in_place(targets: list[Any], part: str) -> None:
    with pytest.raises(EpisodeError) as caught:
        read_program({"targets": targets}, "tidy.yaml: program")
    assert part in caught.value.message
    assert caught.value.message.startswith("tidy.yaml: program")
    assert caught.value.remedy


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"targets": {}},
        {"targets": [ON], "do_no_harm": 0.5},
        {"targets": [ON], "do_no_harm": {}},
        {"targets": [ON], "do_no_harm": {"min_iou": 2}},
        {"targets": [ON], "do_no_harm": {"min_iou": 0.5, "ignore": "cat"}},
        {"targets": [ON], "do_no_harm": {"min_iou": 0.5, "ignore": [3]}},
        {"targets": [ON], "harm": {}},
    ],
)
def test_what_is_wrong_around_the_targets(document: Any) -> None:
    with pytest.raises(EpisodeError):
        read_program(document, "here")


def test_nesting_without_end_is_refused() -> None:
    target: Any = ON
    for _ in range(30):
        target = {"not": target}
    with pytest.raises(EpisodeError, match="deep"):
        read_program({"targets": [target]}, "here")


def test_a_wrong_program_in_a_file_names_file_and_episode(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    native_yaml.save(path, [EPISODE])
    path.write_text(path.read_text().replace("'on': table_1", "onto: table_1"))
    with pytest.raises(EpisodeError) as caught:
        load_episodes(path)
    assert all(part in caught.value.message for part in ("bad.yaml", "'tidy'", "targets.0", "onto"))
    assert "'on'" in caught.value.remedy
