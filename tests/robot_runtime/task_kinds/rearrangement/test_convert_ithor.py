"""The sandbox that reads pickles: plain data comes out, and nothing else does anything."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from episode_documents import ithor_pickled, ithor_scenes
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.cli.main import run_command
from robot_runtime.datasets.files import load_episodes
from robot_runtime.datasets.io import read_json
from robot_runtime.datasets.pickle_sandbox import PlainDataCheck, Refused, unpickle
from robot_runtime.errors import EpisodeError
from robot_runtime.task_kinds.rearrangement.convert_ithor import convert, read_pickle


def pickled(path: Path, value: Any, protocol: int = 4) -> Path:
    path.write_bytes(gzip.compress(pickle.dumps(value, protocol)))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(EpisodeError) as caught:
        read_pickle(path)
    assert caught.value.message.startswith(f"{path}: ")
    assert caught.value.remedy
    return caught.value.message


class Runs:
    """Unpickling it would create a file."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch {self._marker}",)


def test_the_published_form_becomes_json_that_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = pickled(tmp_path / "val.pkl.gz", ithor_scenes())
    assert run_command(["episodes", "convert", str(source), "--out", str(tmp_path / "val.json.gz")]) == 0
    assert "3 episodes" in capsys.readouterr().out
    assert [episode.id for episode in load_episodes(tmp_path / "val.json.gz")] == [
        "FloorPlan24__val__0",
        "FloorPlan24__val__1",
        "FloorPlan2__val__0",
    ]
    assert ithor_pickled(read_json(tmp_path / "val.json.gz")) == ithor_scenes()
    convert(source, tmp_path / "x.json", "test")
    assert load_episodes(tmp_path / "x.json")[2].id == "FloorPlan2__test__0"


@pytest.mark.parametrize("protocol", range(6))
def test_plain_data_comes_out_as_it_is_from_every_protocol(tmp_path: Path, protocol: int) -> None:
    if protocol > pickle.HIGHEST_PROTOCOL:
        pytest.skip("this Python does not write it")
    value = {"a": [1, -2.5, None, True, "é"], "b": {"c": []}, "large": 2**62}
    assert read_pickle(pickled(tmp_path / "x.pkl.gz", value, protocol)) == value
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps(value, protocol))
    assert read_pickle(tmp_path / "plain.pkl") == value


def test_code_in_a_pickle_does_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    assert "posix.system" in refusal(pickled(tmp_path / "x.pkl.gz", {"FloorPlan1": [Runs(marker)]}))
    (tmp_path / "old.pkl").write_bytes(b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR.")
    assert "os.system" in refusal(tmp_path / "old.pkl")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (OrderedDict(a=1), "collections.OrderedDict"),
        (np.float64(1.5), "numpy"),
        (range(3), "range"),
        ({1: 2}, "key of type int"),
        (float("nan"), "not finite"),
        ([float("inf")], "not finite"),
        (2**63, "64 bits"),
        ({"a"}, "holds a set"),
        (b"bytes", "holds a bytes"),
        (1j, "complex"),
    ],
)
def test_what_is_not_plain_data_is_refused(tmp_path: Path, value: Any, said: str) -> None:
    assert said in refusal(pickled(tmp_path / "x.pkl.gz", value))


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def test_depth_cycles_and_bombs_are_refused(tmp_path: Path) -> None:
    assert "nested more than 16 deep" in refusal(pickled(tmp_path / "deep.pkl.gz", nested(40)))
    cycle: list[Any] = []
    cycle.append(cycle)
    assert "nested more than 16 deep" in refusal(pickled(tmp_path / "cycle.pkl.gz", cycle))
    # A string that claims to be 2^62 bytes long, and a memo index that asks for 64 GB.
    (tmp_path / "long.pkl").write_bytes(b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"x.")
    refusal(tmp_path / "long.pkl")
    (tmp_path / "memo.pkl").write_bytes(b"\x80\x02]r\xff\xff\xff\xff.")
    assert "memory" in refusal(tmp_path / "memo.pkl")


@pytest.mark.parametrize("value", [["x" * (1 << 20)] * 513, [{"x" * (1 << 20): 1}] * 513])
def test_a_text_in_many_places_is_refused(value: Any) -> None:
    with pytest.raises(Refused, match="characters"):
        PlainDataCheck().check(value, 0)


def test_a_bomb_of_shared_lists_is_refused() -> None:
    walk = PlainDataCheck()
    walk.values = 50_000_000 - 10
    with pytest.raises(Refused, match="more than 50000000 values"):
        walk.check([[]] * 20, 0)


@pytest.mark.parametrize("data", [b"", b"hello", b"\x80\x04", b"\x1f\x8b\x08", b"\x80\x63."])
def test_what_is_no_pickle_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.pkl").write_bytes(data)
    refusal(tmp_path / "x.pkl")


def test_files_that_are_no_episodes_or_cannot_be_read(tmp_path: Path) -> None:
    with raises_naming(EpisodeError, "nowhere.pkl.gz"):
        read_pickle(tmp_path / "nowhere.pkl.gz")
    with raises_naming(EpisodeError, tmp_path):
        read_pickle(tmp_path)
    with raises_naming(EpisodeError, "{scene: [episode, ...]}"):
        convert(pickled(tmp_path / "x.pkl.gz", [1, 2]), tmp_path / "x.json")
    with raises_naming(EpisodeError, ".json.gz"):
        convert(tmp_path / "x.pkl.gz", tmp_path / "x.pkl")
    scenes = ithor_scenes()
    scenes["FloorPlan2"][0] = {**scenes["FloorPlan2"][0], "agent_rotation": "east"}
    with raises_naming(EpisodeError, "'FloorPlan2__x__0'", "field 'agent_rotation'"):
        convert(pickled(tmp_path / "x.pkl.gz", scenes), tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(value=PLAIN, protocol=st.integers(0, 4))
def test_any_plain_data_passes(value: Any, protocol: int) -> None:
    found = unpickle(pickle.dumps(value, protocol))
    PlainDataCheck().check(found, 0)
    assert found == value


@settings(max_examples=200)
@given(data=st.data(), zipped=st.booleans())
def test_a_spoilt_pickle_is_plain_data_or_refused(data: st.DataObject, zipped: bool) -> None:
    content = bytearray(pickle.dumps(ithor_scenes(), data.draw(st.integers(0, 4))))
    for _ in range(data.draw(st.integers(1, 4))):
        # Only opcodes' neighbors are spoilt, not lengths: those are the sandbox's memory limit's to catch.
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(32, 126))
    cut = bytes(content[: data.draw(st.integers(0, len(content)))])
    refused: Refused | None = None
    try:
        PlainDataCheck().check(unpickle(gzip.compress(cut) if zipped else cut), 0)
    except Refused as error:
        refused = error
    assert refused is None or str(refused)


def test_the_old_spelling_of_the_command_is_an_error_that_names_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["episodes", "convert", "a", "b"]) == 2
    assert "--out" in capsys.readouterr().err
