"""JSON as other programs write it: encodings, NaN, files without episodes, ids and starts of other tools."""

from __future__ import annotations

import gzip
import json
import math
from io import BytesIO
from pathlib import Path
from typing import Any

import ijson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming
from test_episodes_formats import objectnav_document, pointnav_record, robothor_record

from robot_runtime.cli.main import run_command
from robot_runtime.datasets.files import iter_readable, load_episodes, save_episodes
from robot_runtime.datasets.streaming import JsonStream
from robot_runtime.errors import EpisodeError
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import load_task

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text('NaInfity-\\", é', max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('NaN\\"', max_size=4), inner, max_size=4),
    max_leaves=12,
)


def named(value: Any) -> Any:
    """The value with names in place of numbers that are not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, list):
        return [named(item) for item in value]
    return {key: named(item) for key, item in value.items()} if isinstance(value, dict) else value


@given(
    VALUES, st.integers(1, 40), st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"]), st.booleans()
)
def test_what_json_does_not_have_becomes_a_text_wherever_the_stream_is_cut(
    value: Any, size: int, encoding: str, ascii_only: bool
) -> None:
    text = json.dumps([value], ensure_ascii=ascii_only)
    stream = JsonStream(BytesIO(text.encode(encoding)))
    assert stream.read(0) == b""
    data = b"".join(iter(lambda: stream.read(size), b""))
    assert json.loads(data) == named([value])


def test_an_incremental_parser_reads_it() -> None:
    data = json.dumps({"episodes": [{"a": math.inf, "b": "NaN \\"}]}).encode()
    assert list(ijson.items(JsonStream(BytesIO(data)), "episodes.item")) == [{"a": "Infinity", "b": "NaN \\"}]


def first(path: Path) -> Episode | EpisodeError:
    return next(iter(iter_readable(path)))


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("field", ["start_position", "info"])
def test_a_value_that_is_not_finite_costs_its_episode_and_is_named(tmp_path: Path, number: float, field: str) -> None:
    bad: Any = {"geodesic_distance": number} if field == "info" else [number, 0.0, 1.0]
    path = tmp_path / "val.json.gz"
    records = [pointnav_record(**{field: bad}), pointnav_record(episode_id="other")]
    path.write_bytes(gzip.compress(json.dumps({"episodes": records}).encode()))
    refused, read = iter_readable(path)
    assert isinstance(refused, EpisodeError)
    assert field in refused.message
    assert json.dumps(number) in refused.message
    assert isinstance(read, Episode)
    with raises_naming(EpisodeError, field, json.dumps(number)):
        load_episodes(path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_every_encoding_of_unicode_is_read(tmp_path: Path, encoding: str) -> None:
    document = {"episodes": [pointnav_record(scene_id="Küche")]}
    (tmp_path / "val.json").write_bytes(json.dumps(document, ensure_ascii=False).encode(encoding))
    (episode,) = load_episodes(tmp_path / "val.json")
    assert episode.scene == "Küche"
    assert first(tmp_path / "val.json") == episode


def test_another_encoding_is_named(tmp_path: Path) -> None:
    document = {"episodes": [pointnav_record(scene_id="Küche")]}
    (tmp_path / "val.json").write_bytes(json.dumps(document, ensure_ascii=False).encode("latin-1"))
    for read in (load_episodes, first):
        with raises_naming(EpisodeError, "val.json", "UTF-8"):
            read(tmp_path / "val.json")


@pytest.mark.parametrize("data", [b"", gzip.compress(b"", mtime=0)])
def test_a_file_without_a_byte_says_so(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "val.json.gz").write_bytes(data)
    for read in (load_episodes, first):
        with raises_naming(EpisodeError, "val.json.gz", "is empty"):
            read(tmp_path / "val.json.gz")


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("val.json", '{"episodes": []}', "content"),
        ("val.json", "[]", "no episodes"),
        ("val.yaml", "schema: 1\nepisodes: []\n", "'episodes'"),
    ],
)
def test_a_file_without_episodes_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, named: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    for read in (load_episodes, lambda path: list(iter_readable(path))):
        with pytest.raises(EpisodeError) as raised:
            read(path)
        assert named in f"{raised.value.message} {raised.value.remedy}"
    for arguments in (["episodes", "validate"], ["episodes", "info"]):
        assert run_command([*arguments, str(path)]) == EpisodeError.exit_code
    run = ["run", "--robot", "fake", "--agent", "goal-follower", "--out", str(tmp_path / "logs"), "--episodes"]
    assert run_command([*run, str(path)]) == EpisodeError.exit_code
    assert name in capsys.readouterr().err


def test_a_folder_content_without_episodes_is_named(tmp_path: Path) -> None:
    (tmp_path / "content").mkdir()
    (tmp_path / "val.json").write_text('{"episodes": []}')
    with raises_naming(EpisodeError, str(tmp_path / "content")):
        load_episodes(tmp_path / "val.json")


@pytest.mark.parametrize(
    "rotation",
    [
        [math.cos(0.4), 0.0, math.sin(0.4), 0.0],  # w, x, y, z
        [0.0, 0.0, math.sin(0.4), math.cos(0.4)],  # z up
        [math.sin(0.4), 0.0, 0.0, math.cos(0.4)],
        [math.sin(0.02), math.sin(0.4), 0.0, math.cos(0.4)],
    ],
)
def test_a_start_that_does_not_stand_upright_is_refused(tmp_path: Path, rotation: list[float]) -> None:
    path = tmp_path / "val.json"
    for document in (
        {"episodes": [pointnav_record(start_rotation=rotation)]},
        {**objectnav_document(), "episodes": [{**objectnav_document()["episodes"][0], "start_rotation": rotation}]},
    ):
        path.write_text(json.dumps(document))
        with raises_naming(EpisodeError, "start_rotation", "vertical", "w, x, y, z"):
            load_episodes(path)


@given(yaw_rad=st.floats(-3.1, 3.1), scale=st.floats(0.1, 10), sign=st.sampled_from([1, -1]))
def test_every_heading_is_upright(
    tmp_path_factory: pytest.TempPathFactory, yaw_rad: float, scale: float, sign: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "upright.json"
    rotation = [sign * scale * value for value in (0.0, math.sin(yaw_rad / 2), 0.0, math.cos(yaw_rad / 2))]
    path.write_text(json.dumps({"episodes": [pointnav_record(start_rotation=rotation)]}))
    assert load_episodes(path)[0].start.yaw_rad == pytest.approx(yaw_rad, abs=1e-9)


def test_a_number_as_id_reads_and_is_written_alike_in_all_formats(tmp_path: Path) -> None:
    document = objectnav_document()
    document["episodes"][0]["episode_id"] = 17
    files = {
        "pointnav.json": {"episodes": [pointnav_record(episode_id=17)]},
        "objectnav.json": {**document, "episodes": document["episodes"][:1]},
        "robothor.json": [robothor_record(id=17)],
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "native.yaml").write_text(
        "schema: 1\nscene: lab\nepisodes:\n- {id: 17, start: [0, 0, 0], goals: [{position: [1, 0]}]}\n"
    )
    for path in tmp_path.iterdir():
        (episode,) = load_episodes(path)
        assert episode.id == "17", path
    save_episodes(tmp_path / "again.json", load_episodes(tmp_path / "pointnav.json"), load_task("pointnav_gps_compass"))
    assert json.loads((tmp_path / "again.json").read_text())["episodes"][0]["episode_id"] == 17
