"""Files that stand beside another: what is missing, empty, renamed or exchanged is said, or changes nothing.

The ground truth beside a split is tested in task_kinds/vln/test_vln_companions.py, the folder content/ in part here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from episode_documents import eqa_document
from kind_episodes import recorded
from open_room import make_scene
from raising import raises_naming
from synthetic import FORWARD, STOP, header
from test_episodes_formats import objectnav_document, pointnav_record

from robot_runtime.common.yaml_text import dump_yaml
from robot_runtime.datasets.files import iter_episodes, iter_readable, load_episodes
from robot_runtime.datasets.io import write_json
from robot_runtime.datasets.validate import Report, validate
from robot_runtime.errors import ConfigError, EpisodeError, SceneError
from robot_runtime.recording.verdict_files import add_verdict, verdicts_path
from robot_runtime.scenes.scene import load_scene
from robot_runtime.scenes.scene_notes import scene_notes
from robot_runtime.scenes.tag_map import find_tag_map, load_tag_map
from robot_runtime.scoring.report.terminal_table import reference_lines, verdict_lines
from robot_runtime.scoring.summary import EpisodeScore, score_log
from sim_bridge.noise.redwood import TABLE_DEPTHS, TABLE_SIDE, read_table

# --- content/ ---------------------------------------------------------------------------------------------------------


def split(folder: Path) -> Path:
    """A split whose two episodes are in content/."""
    write_json(folder / "val.json.gz", {"episodes": []})
    for name in "ab":
        record = pointnav_record(episode_id=name, scene_id=f"{name}.glb")
        write_json(folder / "content" / f"{name}.json.gz", {"episodes": [record]})
    return folder / "val.json.gz"


def _remove(content: Path) -> None:
    for file in content.iterdir():
        file.unlink()
    content.rmdir()


def _empty(content: Path) -> None:
    for file in content.iterdir():
        file.unlink()


@pytest.mark.parametrize("harm", [_remove, _empty, lambda content: content.rename(content.with_name("contents"))])
def test_a_split_without_its_content_is_refused(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    path = split(tmp_path)
    harm(tmp_path / "content")
    with raises_naming(EpisodeError, path, "no episodes", tmp_path / "content", "download"):
        list(iter_episodes(path))


def test_content_files_of_exchanged_names_are_the_same_episodes(tmp_path: Path) -> None:
    path = split(tmp_path)
    before = load_episodes(path)
    one, other = sorted((tmp_path / "content").iterdir())
    spare = one.rename(tmp_path / "spare")
    other.rename(one)
    spare.rename(other)
    assert sorted(load_episodes(path), key=lambda episode: episode.id) == before


# --- vocabularies and view points within a split ----------------------------------------------------------------------


def findings(folder: Path, document: Any) -> dict[str, int]:
    write_json(folder / "val.json", document)
    report: Report = validate(iter_readable(folder / "val.json"))
    return {finding.check: finding.count for finding in report.findings}


@pytest.mark.parametrize(
    ("vocabulary", "finding"),
    [
        (None, "no answer vocabulary"),
        ({}, "no answer vocabulary"),
        ({"word_list": []}, "no answer vocabulary"),
        ({"word_list": ["oak", "pine"]}, "answer not in vocabulary"),
        ({"word_list": ["brown", "red"]}, "answer token of another word"),
    ],
)
def test_a_vocabulary_that_does_not_fit_is_said(tmp_path: Path, vocabulary: Any, finding: str) -> None:
    assert not [name for name in findings(tmp_path, eqa_document()) if "answer" in name]
    document = {name: value for name, value in eqa_document().items() if name != "answer_vocab"}
    changed = document if vocabulary is None else {**document, "answer_vocab": vocabulary}
    assert findings(tmp_path, changed)[finding] == 2


def test_tables_name_the_vocabulary_that_answers_were_compared_with() -> None:
    scores = [EpisodeScore(Path(f"{count}.mcap"), choices={"answer_vocabulary": count}) for count in (70, 70)]
    assert reference_lines(scores) == ["answer vocabulary: 70 (2 of 2 episodes)"]


def test_view_points_on_another_floor_are_left_out_and_said(tmp_path: Path) -> None:
    document = objectnav_document()
    assert "view points on another floor" not in findings(tmp_path, document)
    before = sum(len(goal.view_points) for goal in load_episodes(tmp_path / "val.json")[0].goals)
    for goals in document["goals_by_category"].values():
        goals[0]["view_points"][0]["agent_state"]["position"][1] += 3.2
    assert findings(tmp_path, document)["view points on another floor"] >= 1
    assert sum(len(goal.view_points) for goal in load_episodes(tmp_path / "val.json")[0].goals) < before


# --- files of a scene -------------------------------------------------------------------------------------------------


def site(folder: Path, views: Any = None, tags: Any = None) -> Path:
    """A room of 6 x 6 m with a chair at (1, 1), and these files beside it."""
    make_scene().map.save(folder / "map.yaml")
    item = {"id": "chair_1", "category": "chair", "center": [1, 1, 0.4], "size": [0.5, 0.5, 0.8]}
    document = {"schema": 1, "name": "s", "rooms": [], "objects": [item]}
    (folder / "scene.yaml").write_text(dump_yaml(document), encoding="utf-8")
    if views is not None:
        (folder / "view_points.json").write_text(json.dumps(views), encoding="utf-8")
    if tags is not None:
        (folder / "tags.yaml").write_text(dump_yaml(tags), encoding="utf-8")
    return folder


def tag_map(*places: tuple[float, float, float]) -> dict[str, Any]:
    tags = [{"id": number, "size_m": 0.16, "xyz_m": list(place)} for number, place in enumerate(places)]
    return {"schema": 1, "family": "tag36h11", "tags": tags}


def test_complete_files_of_a_scene_are_nothing_to_say(tmp_path: Path) -> None:
    scene = load_scene(site(tmp_path, {"chair_1": [[1.0, 0.2, 1.57]]}, tag_map((2.9, 0.0, 1.1))))
    assert list(scene_notes(scene)) == []


def test_view_points_of_another_scene_are_said(tmp_path: Path) -> None:
    (note,) = scene_notes(load_scene(site(tmp_path, {"chair_1": [[40.0, 0.2, 1.57], [42.0, 1.0, 0.0]]})))
    assert "view_points.json" in note
    assert "'chair_1' is 38." in note


@pytest.mark.parametrize(("views", "names"), [([], "is not"), ({"sofa_1": []}, "sofa_1"), ("", "is not")])
def test_view_points_that_are_none_are_refused(tmp_path: Path, views: Any, names: str) -> None:
    with raises_naming(SceneError, "view_points.json", names, "scene view-points"):
        load_scene(site(tmp_path, views))


@pytest.mark.parametrize("place", [(40.0, 0.0, 1.1), (0.0, 0.0, 4.3), (0.0, 0.0, -2.1)])
def test_tags_of_another_site_or_floor_are_said(tmp_path: Path, place: tuple[float, float, float]) -> None:
    (note,) = scene_notes(load_scene(site(tmp_path, tags=tag_map((1.0, 0.0, 1.1), place))))
    assert note.startswith("tags.yaml: tag 1 is outside the map's rooms")


def test_tags_that_are_missing_or_empty_are_refused(tmp_path: Path) -> None:
    scene = load_scene(site(tmp_path))
    with raises_naming(ConfigError, tmp_path / "tags.yaml", "tags survey"):
        find_tag_map("scene", scene, "robot.yaml: tags")
    for tags, names in (({}, "Field required"), (tag_map(), "at least one tag")):
        with raises_naming(ConfigError, "tags.yaml", names):
            load_tag_map(site(tmp_path, tags=tags) / "tags.yaml")


# --- distortion tables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "factor", "names"),
    [
        (None, 1.0, "not found"),
        (0, 1.0, "0.0 blocks"),
        (TABLE_SIDE**2 - 80, 1.0, "not 80 x 80"),
        (TABLE_SIDE * 100, 1.0, "not 80 x 80"),
        (TABLE_SIDE**2, 0.001, "not near 1"),
    ],
)
def test_a_table_that_is_none_of_the_sensor_is_refused(
    tmp_path: Path, blocks: int | None, factor: float, names: str
) -> None:
    path = tmp_path / "dist-model.txt"
    if blocks is not None:
        block = " ".join(["0"] * 3 + [str(factor)] * TABLE_DEPTHS * 4)
        path.write_text("% head\n" * 5 + f"{block}\n" * blocks)
    with raises_naming(ConfigError, path, names, "dist-model.txt"):
        read_table(path)


# --- verdicts ---------------------------------------------------------------------------------------------------------


def test_verdicts_without_their_log_or_of_another_are_said(tmp_path: Path) -> None:
    paths = [recorded(tmp_path / str(seed), header(seed=seed), [FORWARD, STOP]) for seed in (1, 2)]
    add_verdict(paths[0], "Ada", note="seen")
    assert verdict_lines([score_log(path) for path in paths]) == []
    verdicts_path(paths[0]).rename(verdicts_path(paths[1]))
    assert "belongs to another run" in score_log(paths[1]).reason
    verdicts_path(paths[1]).write_text("")
    assert verdicts_path(paths[1]).name in score_log(paths[1]).reason
    renamed = verdicts_path(paths[1]).rename(tmp_path / "1" / "other.evidence.yaml")
    assert verdict_lines([score_log(path) for path in paths]) == [f"verdicts without a log, not counted: {renamed}"]
