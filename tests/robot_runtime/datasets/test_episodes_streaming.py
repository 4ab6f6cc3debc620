"""Large files: episodes one at a time are the episodes at once, in bounded memory."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from episode_documents import (
    SITE_YAML,
    eqa_document,
    habitat_record,
    ithor_scenes,
    r2r_document,
    r2r_truth,
    rearrange_document,
)
from raising import raises_naming
from test_episodes_formats import objectnav_document, pointnav_record, robothor_record

from robot_runtime.datasets.files import iter_episodes, iter_readable, load_episodes
from robot_runtime.datasets.io import write_json
from robot_runtime.datasets.streaming import outline
from robot_runtime.errors import EpisodeError
from robot_runtime.task_kinds.rearrangement import format_ithor as ithor_rearrangement
from robot_runtime.tasks.episode import Episode

DOCUMENTS: dict[str, Any] = {
    "pointnav": {"episodes": [pointnav_record(), pointnav_record(episode_id="18")], "content_scenes_path": "x"},
    "objectnav": objectnav_document(),
    "objectnav, goals first": dict(reversed(objectnav_document().items())),
    "r2r": r2r_document(),
    "eqa": eqa_document(),
    "rearrange": rearrange_document(),
    "ithor": ithor_rearrangement.from_pickled(ithor_scenes(), "val"),
    "robothor": [robothor_record(), robothor_record(id="second")],
    "robothor by scene": {"a": [robothor_record(), robothor_record(id="second")], "b": [robothor_record(id="third")]},
}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_one_at_a_time_gives_what_all_at_once_gives(tmp_path: Path, kind: str, zipped: bool) -> None:
    path = tmp_path / ("split.json.gz" if zipped else "split.json")
    write_json(path, DOCUMENTS[kind])
    if kind == "r2r":
        write_json(tmp_path / path.name.replace("split", "split_gt"), r2r_truth())
    assert list(iter_episodes(path)) == load_episodes(path)
    assert list(iter_episodes(tmp_path)) == load_episodes(path)


@pytest.mark.parametrize("zipped", [False, True])
def test_json_lines_are_a_list(tmp_path: Path, zipped: bool) -> None:
    lines = "\n".join(json.dumps(robothor_record(id=name)) for name in ("first", "second", "third")).encode()
    path = tmp_path / ("split.jsonl.gz" if zipped else "split.jsonl")
    path.write_bytes(gzip.compress(lines) if zipped else lines)
    write_json(tmp_path / "split.json", [robothor_record(id=name) for name in ("first", "second", "third")])
    assert list(iter_episodes(path)) == load_episodes(path) == load_episodes(tmp_path / "split.json")
    path.write_bytes(lines + b"\n{")
    for read in (load_episodes, lambda path: list(iter_episodes(path))):
        with raises_naming(EpisodeError, path, "is not JSON"):
            read(path)


def test_content_folders_and_yaml_are_read_too(tmp_path: Path) -> None:
    write_json(tmp_path / "val.json.gz", {"episodes": []})
    for name in "ba":
        write_json(tmp_path / "content" / f"{name}.json.gz", {"episodes": [pointnav_record(episode_id=name)]})
    (tmp_path / "x.yaml").write_text(SITE_YAML)
    assert [episode.id for episode in iter_episodes(tmp_path)][:2] == ["a", "b"]
    assert list(iter_episodes(tmp_path)) == load_episodes(tmp_path)


@pytest.mark.parametrize(
    "document",
    [
        {"a": [1, {"episodes": [1, 2]}], "episodes": [[1, [2]], {"x": 3}], "b": {"c": [], "d": None}},
        {"episodes": [[[1], [2]], [3]]},
        {"episodes": {"a": [1, 2]}},
        {"episodes": 3, "x": []},
        {"episodes": []},
        {"goals_by_category": {"a.glb_bed": [1, 2, 3]}, "episodes": [1, 2]},
        {},
    ],
)
def test_an_outline_has_everything_but_the_further_episodes(tmp_path: Path, document: dict[str, Any]) -> None:
    write_json(tmp_path / "x.json", document)
    episodes = document.get("episodes")
    expected = document if not isinstance(episodes, list) else {**document, "episodes": episodes[:1]}
    assert outline(tmp_path / "x.json") == expected


@pytest.mark.parametrize("document", [[], [1], [1, 2, [3]], [{"a": [1]}, 2], "text", 3, None, True, 2.5])
def test_an_outline_of_a_list_has_its_first_item(tmp_path: Path, document: Any) -> None:
    write_json(tmp_path / "x.json", document)
    assert outline(tmp_path / "x.json") == (document[:1] if isinstance(document, list) else document)


def test_what_is_before_the_damage_is_read(tmp_path: Path) -> None:
    whole = json.dumps([robothor_record(id=str(i)) for i in range(50)])
    (tmp_path / "x.json").write_text(whole[: len(whole) * 3 // 4])
    read: list[Episode] = []
    with pytest.raises(EpisodeError, match=re.escape(f"{tmp_path / 'x.json'}: is not JSON")):
        read.extend(iter_episodes(tmp_path / "x.json"))
    assert [episode.id for episode in islice(iter_episodes(tmp_path / "x.json"), 30)] == [str(i) for i in range(30)]


def test_a_truncated_gzip_file_says_so(tmp_path: Path) -> None:
    data = gzip.compress(json.dumps([robothor_record(id=str(i)) for i in range(50)]).encode())
    (tmp_path / "x.json.gz").write_bytes(data[: len(data) // 2])
    with raises_naming(EpisodeError, "gzip"):
        list(iter_episodes(tmp_path / "x.json.gz"))


def test_an_episode_that_cannot_be_read_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    records = [pointnav_record(episode_id=str(i)) for i in range(4)]
    records[2]["start_position"] = [1.0, "2", 3.0]
    write_json(tmp_path / "x.json", {"episodes": records})
    first, second, bad, last = iter_readable(tmp_path / "x.json")
    assert all(isinstance(episode, Episode) for episode in (first, second, last))
    assert isinstance(bad, EpisodeError)
    assert "x.json: episode 2 (id '2'): field 'start_position.1'" in bad.message
    with raises_naming(EpisodeError, "'2'"):
        list(iter_episodes(tmp_path / "x.json"))


def test_so_it_is_with_yaml(tmp_path: Path) -> None:
    start = "start: [0, 0, 0], objects: [{id: mug, start: {position: [%s, 0.0]}}]"
    lines = [f"- {{id: '{name}', {start % x}}}" for name, x in (("good", "1.0"), ("nan", ".nan"), ("word", "here"))]
    (tmp_path / "x.yaml").write_text("\n".join(["schema: 1", "scene: lab", "episodes:", *lines]), encoding="utf-8")
    good, nan, word = iter_readable(tmp_path / "x.yaml")
    assert isinstance(good, Episode)
    assert isinstance(nan, EpisodeError)
    assert isinstance(word, EpisodeError)
    assert "x.yaml: episode 1 (id 'nan'): field 'objects.0.start.position.0': Input should be a finite" in nan.message
    assert "x.yaml: episode 2 (id 'word'): field 'objects.0.start.position.0'" in word.message
    with raises_naming(EpisodeError, "'nan'"):
        list(iter_episodes(tmp_path / "x.yaml"))


MEASURE = """
import sys, tracemalloc
from pathlib import Path
from robot_runtime.datasets.files import iter_episodes
path = Path(sys.argv[1])
next(iter_episodes(path))  # what is made once, such as the schemas' validators, is not the reading's
tracemalloc.start()
count = sum(1 for _ in iter_episodes(path))
print(count, tracemalloc.get_traced_memory()[1])
"""


def habitat_chunks(count: int) -> Iterator[str]:
    yield '{"episodes":['
    for i in range(count):
        yield ("," if i else "") + json.dumps(habitat_record(episode_id=str(i)))
    yield "]}"


def robothor_chunks(count: int) -> Iterator[str]:
    yield "["
    for i in range(count):
        yield ("," if i else "") + json.dumps(robothor_record(id=str(i)))
    yield "]"


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [habitat_chunks, robothor_chunks])
def test_fifty_thousand_episodes_take_two_megabytes(tmp_path: Path, chunks: Any) -> None:
    path = tmp_path / "large.json.gz"
    with gzip.open(path, "wt", compresslevel=1) as stream:
        stream.writelines(chunks(50_000))
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    count, peak_bytes = map(int, done.stdout.split())
    assert count == 50_000
    assert peak_bytes < 2_000_000
