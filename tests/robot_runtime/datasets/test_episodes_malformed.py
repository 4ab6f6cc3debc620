"""Damaged episode files: every one ends in an EpisodeError that says where, and none in anything else."""

from __future__ import annotations

import copy
import gzip
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from episode_documents import SITE_YAML, eqa_document, ithor_scenes, r2r_document, rearrange_document, rxr_document
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming
from test_episodes_formats import objectnav_document, pointnav_record, robothor_record

from robot_runtime.common import bounded
from robot_runtime.datasets.files import iter_episodes, load_episodes
from robot_runtime.errors import EpisodeError
from robot_runtime.task_kinds.rearrangement import format_ithor as ithor_rearrangement
from robot_runtime.tasks.episode import Episode

DOCUMENTS: dict[str, Any] = {
    "pointnav": {"episodes": [pointnav_record(), pointnav_record(episode_id="18")]},
    "objectnav": objectnav_document(),
    "robothor": [robothor_record(), robothor_record(id="second")],
    "r2r": r2r_document(),
    "rxr": rxr_document(),
    "eqa": eqa_document(),
    "rearrange": rearrange_document(),
    "ithor": ithor_rearrangement.from_pickled(ithor_scenes(), "val"),
}


def load_text(tmp_path: Path, text: str | bytes) -> list[Episode]:
    path = tmp_path / "episodes.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_episodes(path)


def complaint(tmp_path: Path, document: Any) -> EpisodeError:
    with pytest.raises(EpisodeError) as caught:
        load_text(tmp_path, json.dumps(document))
    assert caught.value.message.startswith(str(tmp_path / "episodes.json"))
    assert caught.value.remedy
    return caught.value


# --- the file -------------------------------------------------------------------------------------------------------


def test_a_missing_file(tmp_path: Path) -> None:
    with raises_naming(EpisodeError, "nowhere.json.gz") as caught:
        load_episodes(tmp_path / "nowhere.json.gz")
    assert "generate" in caught.value.remedy


@pytest.mark.parametrize("kept", [3, 12, 40, -1, -9])
def test_a_truncated_gzip_file(tmp_path: Path, kept: int) -> None:
    data = gzip.compress(json.dumps(DOCUMENTS["objectnav"]).encode(), mtime=0)
    with raises_naming(EpisodeError, "gzip") as caught:
        load_text(tmp_path, data[:kept])
    assert "again" in caught.value.remedy


def test_a_damaged_gzip_file(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(json.dumps(DOCUMENTS["objectnav"]).encode(), mtime=0))
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(EpisodeError, match=r"cannot be read|is truncated|is not JSON"):
        load_text(tmp_path, bytes(data))


@pytest.mark.parametrize("read", [load_episodes, lambda path: list(iter_episodes(path))])
def test_a_gzip_file_of_a_thousand_times_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], object]
) -> None:
    monkeypatch.setattr(bounded, "FREE_BYTES", 1 << 16)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"episodes": [' + b" " * (1 << 22) + b"]}"))
    with raises_naming(EpisodeError, "bomb.json.gz", "100 times its size"):
        read(path)


@pytest.mark.parametrize("text", ["", "{", '{"episodes": [}', "[1, 2", "\xff\xfe", "[" * 100_000, "9" * 5000])
def test_what_is_not_json(tmp_path: Path, text: str) -> None:
    with raises_naming(EpisodeError, "JSON"):
        load_text(tmp_path, text.encode("latin-1"))


# --- one field ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [
        ("episode_id", 17.5, "episode_id"),
        ("episode_id", True, "episode_id"),
        ("episode_id", None, "episode_id"),
        ("scene_id", ["x"], "scene_id"),
        ("start_position", [1.0, 2.0], "start_position"),
        ("start_position", [1.0, "2", 3.0], "start_position.1"),
        ("start_position", [1.0, float("nan"), 3.0], "start_position.1"),
        ("start_position", {"x": 1}, "start_position"),
        ("start_rotation", [0, 0, 0, 0], "start_rotation"),
        ("start_rotation", [0, 0, 0, float("inf")], "start_rotation.3"),
        ("start_rotation", [0, 0, 1], "start_rotation"),
        ("start_rotation", [1e200, 1e200, 0, 0], "start_rotation"),
        ("info", {"geodesic_distance": "far"}, "info.geodesic_distance"),
        ("info", 3, "info"),
        ("goals", [], "goals"),
        ("goals", [{"radius": 1}], "goals.0.position"),
        ("goals", None, "goals"),
        ("shortest_paths", [1, 2], "shortest_paths.0"),
    ],
)
def test_a_wrong_pointnav_field_is_named_with_its_episode(tmp_path: Path, field: str, value: Any, place: str) -> None:
    document = {"episodes": [pointnav_record(episode_id="fine"), pointnav_record(**{field: value})]}
    error = complaint(tmp_path, document)
    assert "episode 1" in error.message
    assert f"field {place!r}" in error.message
    if field != "episode_id":
        assert "(id '17')" in error.message


@pytest.mark.parametrize("field", ["episode_id", "scene_id", "start_position", "start_rotation", "goals"])
def test_a_missing_pointnav_field_is_named(tmp_path: Path, field: str) -> None:
    record = pointnav_record()
    del record[field]
    error = complaint(tmp_path, {"episodes": [pointnav_record(), record]})
    assert f"field {field!r}: Field required" in error.message
    assert "episode 1" in error.message


@pytest.mark.parametrize("field", ["id", "scene", "object_type", "initial_position", "initial_orientation"])
def test_a_missing_or_wrong_robothor_field_is_named(tmp_path: Path, field: str) -> None:
    record = robothor_record(id="second")
    del record[field]
    error = complaint(tmp_path, [robothor_record(), record])
    assert "episode 1" in error.message
    assert f"field {field!r}" in error.message
    error = complaint(tmp_path, [robothor_record(), {**record, field: [None]}])
    assert f"field {field!r}" in error.message


def test_deep_robothor_fields_are_named(tmp_path: Path) -> None:
    record = robothor_record(initial_position={"x": 1, "y": 2, "z": "3"})
    error = complaint(tmp_path, [record])
    assert "episode 0 (id 'FloorPlan_Val9_9_Mug_0'): field 'initial_position.z'" in error.message
    assert "found '3'" in error.message
    record = robothor_record(shortest_path=[{"x": 1, "y": 2}])
    assert "field 'shortest_path.0.z'" in complaint(tmp_path, [record]).message


def test_objectnav_goals_are_named(tmp_path: Path) -> None:
    document = objectnav_document()
    document["goals_by_category"]["abc.glb_towel"][1]["view_points"][0]["agent_state"]["position"] = [1]
    place = "goals_by_category.abc.glb_towel.1.view_points.0.agent_state.position"
    assert f"field {place!r}" in complaint(tmp_path, document).message

    document = objectnav_document()
    document["goals_by_category"]["abc.glb_chair"][0]["view_points"][0]["agent_state"]["rotation"] = [0, 0, 0, 0]
    assert "'abc.glb_chair': goal 0: view point 0: field 'rotation'" in complaint(tmp_path, document).message

    document = objectnav_document()
    del document["goals_by_category"]["abc.glb_chair"]
    error = complaint(tmp_path, document)
    assert "episode 1 (id '2706'): field 'object_category'" in error.message
    assert "'abc.glb_chair'" in error.message


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ({"1": {"locations": [[1, 2]]}}, r"field '1\.locations\.0'"),
        ({"1": {"locations": [[1, 2, 3]], "actions": ["stop"]}}, r"field '1\.actions\.0'.*found 'stop'"),
        ({"1": {}}, r"field '1\.locations': Field required"),
        ([], "field 'document'"),
    ],
)
def test_wrong_ground_truth_is_named_rather_than_its_split(tmp_path: Path, truth: Any, message: str) -> None:
    (tmp_path / "val_gt.json").write_text(json.dumps(truth))
    (tmp_path / "val.json").write_text(json.dumps(r2r_document()))
    for read in (load_episodes, iter_episodes):
        with pytest.raises(EpisodeError, match=re.escape(f"{tmp_path / 'val_gt.json'}: ") + message):
            list(read(tmp_path / "val.json"))


def test_a_damaged_content_file_is_named_rather_than_its_split(tmp_path: Path) -> None:
    (tmp_path / "content").mkdir()
    (tmp_path / "val.json.gz").write_bytes(gzip.compress(b'{"episodes": []}'))
    (tmp_path / "content" / "a.json.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(EpisodeError, match=re.escape(str(tmp_path / "content" / "a.json.gz"))):
        load_episodes(tmp_path / "val.json.gz")


# --- anything -------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def places(node: Any, path: tuple[int | str, ...] = ()) -> list[tuple[int | str, ...]]:
    """Every place in a JSON document."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path] + [place for key, child in children for place in places(child, (*path, key))]


@st.composite
def spoilt(draw: st.DrawFn, *documents: Any) -> Any:
    """One of some good documents with one to three places removed, or replaced by anything."""
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places(document)))
        if not place:
            return draw(JSON)
        parent = document
        for key in place[:-1]:
            parent = parent[key]
        if draw(st.booleans()):
            del parent[place[-1]]
        else:
            parent[place[-1]] = draw(JSON)
    return document


def outcome(read: Callable[[Path], Iterable[Episode]], path: Path) -> list[Episode] | EpisodeError:
    try:
        return list(read(path))
    except EpisodeError as error:
        return error


def loads_or_complains(path: Path, data: bytes) -> None:
    """All at once and one at a time, and if both give episodes, the same."""
    path.write_bytes(data)
    outcomes = [outcome(read, path) for read in (load_episodes, iter_episodes)]
    for found in outcomes:
        if isinstance(found, EpisodeError):
            assert found.message.startswith(str(path))
            assert found.remedy
            assert len(found.message) < 1000
        else:
            assert all(isinstance(episode, Episode) for episode in found)
    whole, streamed = outcomes
    # repr, because NaN is not itself; ijson is the stricter of the two about what is JSON.
    assert isinstance(streamed, EpisodeError) or repr(streamed) == repr(whole)


@pytest.mark.slow
@settings(max_examples=500)
@given(document=spoilt(*DOCUMENTS.values()))
def test_a_spoilt_document_loads_or_complains(tmp_path_factory: pytest.TempPathFactory, document: Any) -> None:
    path = tmp_path_factory.mktemp("spoilt") / "episodes.json"
    loads_or_complains(path, json.dumps(document).encode())


@settings(max_examples=300)
@given(kind=st.sampled_from(sorted(DOCUMENTS)), zipped=st.booleans(), data=st.data())
def test_spoilt_bytes_load_or_complain(
    tmp_path_factory: pytest.TempPathFactory, kind: str, zipped: bool, data: st.DataObject
) -> None:
    good = json.dumps(DOCUMENTS[kind]).encode()
    content = bytearray(gzip.compress(good, mtime=0) if zipped else good)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("bytes") / "episodes.json"
    loads_or_complains(path, bytes(content[: data.draw(st.integers(0, len(content)))]))


@settings(max_examples=200)
@given(data=st.data())
def test_spoilt_yaml_loads_or_complains(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray(SITE_YAML.encode())
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("yaml") / "episodes.yaml"
    loads_or_complains(path, bytes(content[: data.draw(st.integers(0, len(content)))]))


@pytest.mark.slow
@settings(max_examples=150)
@given(document=spoilt(yaml.safe_load(SITE_YAML)))
def test_a_spoilt_yaml_document_loads_or_complains(tmp_path_factory: pytest.TempPathFactory, document: Any) -> None:
    path = tmp_path_factory.mktemp("yaml") / "episodes.yaml"
    loads_or_complains(path, yaml.safe_dump(document).encode())


@pytest.mark.parametrize(
    "text", ["[" * 3000, "&a [*a]", "schema: 1\nepisodes: &a [*a]", "- " * 3000, "a: !!python/name:os.system"]
)
def test_yaml_traps_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with raises_naming(EpisodeError, "x.yaml"):
        load_episodes(tmp_path / "x.yaml")
