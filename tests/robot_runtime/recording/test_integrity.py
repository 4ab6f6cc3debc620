"""Logs that were altered after they were written: every reader that verifies names the record."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from foxglove_schemas_protobuf.PoseInFrame_pb2 import PoseInFrame
from raising import raises_naming
from synthetic import FORWARD, STOP

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from tests.benchmarks.runtime.log_edits import LogEdit

ACTIONS = [FORWARD] * 5 + [STOP]


def verify(path: Path) -> int:
    with LogReader(path) as log:
        return len(list(log.steps(images=False, verify=True)))


@pytest.fixture
def edit(record) -> LogEdit:
    return LogEdit(record(synthetic.header(), ACTIONS))


def test_a_log_as_it_was_written_chains(record, tmp_path: Path) -> None:
    path = record(synthetic.header(), ACTIONS)
    assert verify(path) == 7
    with LogReader(path) as log:
        assert log.chained
    assert verify(LogEdit(path).write(tmp_path / "copied.mcap")) == 7


def test_a_log_without_chain_is_read_as_one_of_version_0_1_0(edit: LogEdit, tmp_path: Path) -> None:
    edit.unchain()
    path = edit.write(tmp_path / "old.mcap")
    assert verify(path) == 7
    with LogReader(path) as log:
        assert not log.chained


def test_a_torn_log_chains_as_far_as_it_goes(record) -> None:
    path = record(synthetic.header(), ACTIONS)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert 0 < verify(path) < 7


def swap(entries: list[Any], a: int, b: int) -> None:
    entries[a], entries[b] = entries[b], entries[a]


ORDER: dict[str, tuple[Callable[[LogEdit], object], str]] = {
    "dropped": (lambda e: e.entries.pop(e.numbers("/step")[3]), "step 4 follows step 2"),
    "repeated": (lambda e: e.entries.insert(e.numbers("/step")[3], e.entries[e.numbers("/step")[3]]), "step 3 follows"),
    "moved": (lambda e: swap(e.entries, *e.numbers("/step")[2:4]), "step 3 follows step 1"),
    "first one dropped": (lambda e: e.entries.pop(e.numbers("/step")[0]), "step 1 follows the header"),
    "last one dropped": (lambda e: e.entries.pop(e.numbers("/step")[-1]), "names step 6 as the last"),
    "end moved": (lambda e: e.entries.insert(e.numbers("/step")[-1], e.entries.pop()), "end names step 6"),
}


@pytest.mark.parametrize("chained", [True, False])
@pytest.mark.parametrize("name", ORDER)
def test_steps_that_are_missing_repeated_or_moved(edit: LogEdit, tmp_path: Path, name: str, chained: bool) -> None:
    change, named = ORDER[name]
    change(edit)
    if not chained:
        edit.unchain()
    with raises_naming(RecordingError, named):
        verify(edit.write(tmp_path / "altered.mcap"))


CHANGES: dict[str, tuple[str, int, Callable[[dict[str, Any]], None], str]] = {
    "agent": ("/episode", 0, lambda d: d.update(agent="champion"), "its header"),
    "success radius": ("/episode", 0, lambda d: d["task"]["success"].update(distance_m=100.0), "its header"),
    "action": ("/step", 3, lambda d: d.update(action="stop"), "step 3"),
    "odometry": ("/step", 2, lambda d: d["base"]["odom"].update(x_m=9.0), "step 2"),
    "reason": ("/end", 0, lambda d: d.update(reason="max_steps"), "its end"),
    "chain of a step": ("/step", 4, lambda d: d.update(chain="0" * 64), "step 4"),
    "chain removed from a step": ("/step", 4, lambda d: d.pop("chain"), "step 4"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_record_is_named(edit: LogEdit, tmp_path: Path, name: str) -> None:
    topic, number, change, named = CHANGES[name]
    edit.change(topic, number, change)
    with raises_naming(RecordingError, named):
        verify(edit.write(tmp_path / "altered.mcap"))


def test_a_changed_map_is_found(edit: LogEdit, tmp_path: Path) -> None:
    edit.attachments["map.pgm"] = edit.attachments["map.pgm"].replace(b"\x00", b"\xfe")
    with raises_naming(RecordingError, "attached scene"):
        verify(edit.write(tmp_path / "altered.mcap"))


@pytest.mark.parametrize("chained", [True, False])
def test_a_last_pose_that_contradicts_its_message(edit: LogEdit, tmp_path: Path, chained: bool) -> None:
    edit.change("/step", -1, lambda d: d["referee"]["pose"].update(x_m=d["referee"]["pose"]["x_m"] + 4.5))
    edit.chain_again() if chained else edit.unchain()
    with raises_naming(RecordingError, "step 6", "4.50 m", "/referee/pose"):
        verify(edit.write(tmp_path / "altered.mcap"))


def test_a_damaged_pose_message(edit: LogEdit, tmp_path: Path) -> None:
    edit.put(edit.numbers("/pose")[2], b"\xff\xff")
    with raises_naming(RecordingError, "step 2", "/pose"):
        verify(edit.write(tmp_path / "altered.mcap"))


def test_a_turned_pose_contradicts_its_message(edit: LogEdit, tmp_path: Path) -> None:
    place = edit.numbers("/referee/pose")[1]
    message = PoseInFrame.FromString(edit.entries[place][1].data)
    message.pose.orientation.z, message.pose.orientation.w = math.sin(0.1), math.cos(0.1)
    edit.put(place, message.SerializeToString())
    with raises_naming(RecordingError, "step 1", "/referee/pose"):
        verify(edit.write(tmp_path / "altered.mcap"))


def test_a_pose_that_is_not_a_number_equals_itself(tmp_path: Path) -> None:
    header = synthetic.header()
    steps = synthetic.drive(header, ACTIONS)
    steps[3] = replace(steps[3], pose=replace(steps[3].pose, pose=SE2(math.nan, math.nan, math.nan)))
    recorder = Recorder(tmp_path / "logs")
    synthetic.play(recorder, header, steps)
    assert recorder.path is not None
    assert verify(recorder.path) == 7


def test_two_headers(edit: LogEdit, tmp_path: Path) -> None:
    edit.entries.insert(0, edit.entries[0])
    with raises_naming(RecordingError, "has 2 episode headers"):
        verify(edit.write(tmp_path / "altered.mcap"))
