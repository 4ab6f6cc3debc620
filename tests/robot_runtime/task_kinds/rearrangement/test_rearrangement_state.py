"""Logs of a rearrangement: what is where, what is carried, and the phase, under the names of earlier versions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from mcap.reader import make_reader
from raising import raises_naming
from rearranged import with_state
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.common import config
from robot_runtime.errors import RecordingError
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.objects import Grab, GrabOutcome, ObjectPose
from robot_runtime.tasks.task import Task
from tests.benchmarks.runtime.log_edits import LogEdit

MUG, BOX = ObjectPose((1.0, 2.0, 3.0)), ObjectPose((1.0, 2.0, 4.0), (0.0, 1.0, 0.0, 0.0), 0.5)
GRABBED = Grab(GrabOutcome.GRABBED, "mug")


@pytest.fixture(scope="module")
def header() -> EpisodeHeader:
    preset = config.load(config.find_preset("tasks", "rearrangement_experience"), Task)
    return synthetic.header(
        replace(preset, camera=synthetic.pointnav_task(16, 12).camera, sensors=("rgb",)), synthetic.pointnav_episode()
    )


@pytest.fixture(scope="module")
def steps(header: EpisodeHeader) -> list[StepRecord]:
    first, second, third, fourth, last = synthetic.drive(header, [FORWARD, LEFT, FORWARD, STOP])
    both = {"mug": MUG, "box": BOX}
    return [
        with_state(first, poses=both, phase="walkthrough"),
        with_state(second, poses=both, phase="unshuffle"),
        with_state(third, poses={"box": BOX}, held=("mug",), grab=GRABBED, phase="unshuffle"),
        with_state(fourth, held=("mug", "box"), grab=Grab(GrabOutcome.NOTHING, None, "full"), phase="unshuffle"),
        last,
    ]


@pytest.fixture
def log(header: EpisodeHeader, steps: list[StepRecord], tmp_path: Path) -> Path:
    recorder = Recorder(tmp_path)
    synthetic.play(recorder, header, steps)
    assert recorder.path is not None
    return recorder.path


def messages(log: Path, topic: str) -> list[dict[str, Any]]:
    with log.open("rb") as file:
        return [json.loads(message.data) for _, _, message in make_reader(file).iter_messages([topic])]


def test_states_survive(log: Path, steps: list[StepRecord]) -> None:
    with LogReader(log) as reader:
        assert [step.state for step in reader.steps(images=False, verify=True)] == [step.state for step in steps]


def test_states_have_the_names_of_earlier_versions(log: Path) -> None:
    grabbed = {"outcome": "grabbed", "object_id": "mug", "detail": ""}
    full = {"outcome": "nothing", "object_id": None, "detail": "full"}
    assert [step["objects"] for step in messages(log, "/step")] == [
        {"since": 0, "held": [], "grab": None, "phase": "walkthrough"},
        {"since": 0, "held": [], "grab": None, "phase": "unshuffle"},
        {"since": 2, "held": ["mug"], "grab": grabbed, "phase": "unshuffle"},
        {"since": 3, "held": ["mug", "box"], "grab": full, "phase": "unshuffle"},
        None,
    ]
    mug = {"position": [1.0, 2.0, 3.0], "quaternion": [1.0, 0.0, 0.0, 0.0], "openness": None}
    box = {"position": [1.0, 2.0, 4.0], "quaternion": [0.0, 1.0, 0.0, 0.0], "openness": 0.5}
    assert messages(log, "/objects") == [
        {"index": 0, "poses": {"mug": mug, "box": box}},
        {"index": 2, "poses": {"box": box}},
        {"index": 3, "poses": {}},
    ]


def test_changed_poses_of_objects_are_found(log: Path, tmp_path: Path) -> None:
    edit = LogEdit(log)
    edit.change("/objects", 0, lambda d: d["poses"]["mug"].update(position=[0.0, 0.0, 0.0]))
    altered = edit.write(tmp_path / "altered.mcap")
    with LogReader(altered) as reader, raises_naming(RecordingError, "step 0"):
        list(reader.steps(images=False, verify=True))


def test_steps_whose_poses_are_lost_are_refused(log: Path, tmp_path: Path) -> None:
    edit = LogEdit(log)
    edit.change("/step", 1, lambda d: d["objects"].update(since=7))
    with LogReader(edit.write(tmp_path / "altered.mcap")) as reader, raises_naming(RecordingError, "step 1", "lost"):
        list(reader.steps(images=False))


def test_the_walkthrough_does_not_count(steps: list[StepRecord]) -> None:
    assert [step.state.scored for step in steps] == [False, True, True, True, True]
