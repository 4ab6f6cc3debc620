"""Records between the steps of a log: events, and the raw poses of every source."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import synthetic
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from raising import raises_naming
from synthetic import FORWARD, STOP

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.hal import PoseEstimate, PoseStatus
from robot_runtime.hal.events import Event
from robot_runtime.recording import json_output
from robot_runtime.recording.pose_streams import poses_from_json, poses_to_columns, topic_of
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.recover import recover
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, SentCommand
from robot_runtime.scoring.report.pages import write_report
from robot_runtime.scoring.summary import score_log

POSITION_ONLY = np.diag((1e-4, 2e-4, math.inf))
EVENTS = (
    Event(2_000_000_000, "fused beacons", "jump_rejected", "a measurement lies 1.20 m off"),
    Event(3_000_000_000, "env", "paused", "<b>lost</b> & gone"),
)


def poses(count: int, frame: str = "map") -> tuple[PoseEstimate, ...]:
    """Of a source that knows positions only, one of them lost."""
    status = [PoseStatus.OK, PoseStatus.LOST]
    return tuple(
        PoseEstimate(i * 100, SE2(0.1 * i, -i / 3, 0.0), frame, POSITION_ONLY, status[i == 2]) for i in range(count)
    )


def record(folder: Path, reason: EndReason = EndReason.STOP) -> Path:
    recorder = Recorder(folder)
    header = synthetic.header(origin=PoseEstimate(5, SE2(1.0, 1.9, 0.1), "map", np.diag((1e-4, 1e-4, 1e-3))))
    records = synthetic.drive(header, [FORWARD, STOP])
    recorder.on_episode_start(header)
    for step in records:
        recorder.on_poses("fused beacons", poses(3))
        recorder.on_poses("wheel odometry", poses(5, "odom"))
        recorder.on_poses("silent", ())
        recorder.on_step(step)
    for event in EVENTS:
        recorder.on_event(event)
    recorder.on_episode_end(replace(synthetic.end_of(records, reason), detail="it was not found within 30 s"))
    assert recorder.path is not None
    return recorder.path


def same(a: PoseEstimate, b: PoseEstimate) -> bool:
    return replace(a, covariance=POSITION_ONLY) == replace(b, covariance=POSITION_ONLY) and np.array_equal(
        a.covariance, b.covariance
    )


def test_a_log_gives_events_poses_and_origin_back(tmp_path: Path) -> None:
    path = record(tmp_path)
    with LogReader(path) as log:
        assert tuple(log.events()) == EVENTS
        found = log.poses()
        assert list(found) == ["fused beacons", "wheel odometry"]
        assert all(same(a, b) for a, b in zip(found["fused beacons"], poses(3) * 3, strict=True))
        assert all(same(a, b) for a, b in zip(found["wheel odometry"], poses(5, "odom") * 3, strict=True))
        assert log.header.origin is not None
        assert log.header.origin.pose == SE2(1.0, 1.9, 0.1)
        assert log.complete


def test_a_log_gives_commands_back_also_those_after_the_last_step(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    header = synthetic.header()
    records = synthetic.drive(header, [FORWARD, STOP])
    sent = [SentCommand(100 * index, 0.1 * index, -0.2 * index) for index in range(7)]
    recorder.on_episode_start(header)
    for index, step in enumerate(records):
        for command in sent[2 * index : 2 * index + 2]:
            recorder.on_command(command)
        recorder.on_step(step)
    for command in sent[2 * len(records) :]:
        recorder.on_command(command)
    recorder.close()
    assert recorder.path is not None
    with LogReader(recorder.path) as log:
        assert list(log.commands()) == sent


def test_each_source_has_a_channel_that_other_tools_find(tmp_path: Path) -> None:
    with record(tmp_path).open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    topics = {channel.topic for channel in summary.channels.values()}
    assert {"/localizer/fused_beacons", "/localizer/wheel_odometry", "/events"} <= topics
    assert topic_of("marvelmind on /dev/ttyACM0") == "/localizer/marvelmind_on_dev_ttyacm0"
    assert topic_of("???") == "/localizer/unnamed"


def test_recovery_keeps_them(tmp_path: Path) -> None:
    torn = tmp_path / "torn.mcap"
    torn.write_bytes(record(tmp_path / "logs").read_bytes()[:-300])
    mended = tmp_path / "mended.mcap"
    recover(torn, mended)
    with LogReader(mended) as log:
        assert len(log.poses()["wheel odometry"]) == 15


def test_poses_that_make_no_sense_name_their_channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record(tmp_path)
    monkeypatch.setattr("robot_runtime.recording.reader.poses_from_json", lambda data: poses_from_json({}))
    with LogReader(path) as log, raises_naming(RecordingError, path, "/localizer/fused_beacons"):
        log.poses()


def test_a_log_from_before_has_none_of_it(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    header = synthetic.header()
    synthetic.play(recorder, header, synthetic.drive(header, [STOP]))
    assert recorder.path is not None
    with LogReader(recorder.path) as log:
        assert (list(log.events()), log.poses(), log.header.origin) == ([], {}, None)


def test_a_lost_robot_says_nothing_about_its_policy(tmp_path: Path) -> None:
    score = score_log(record(tmp_path, EndReason.LOCALIZATION_LOST))
    assert not score.scorable
    assert score.reason == "localization_lost: it was not found within 30 s"
    assert [reason for reason in EndReason if reason.aborted] == [
        EndReason.FAULT,
        EndReason.INTERRUPTED,
        EndReason.LOCALIZATION_LOST,
    ]


def test_a_report_tells_of_events(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_report([record(tmp_path / "logs")], page)
    text = page.read_text(encoding="utf-8")
    assert "2 events" in text
    assert "a measurement lies 1.20 m off" in text
    assert "&lt;b&gt;lost&lt;/b&gt; &amp; gone" in text


@settings(max_examples=30)
@given(
    st.lists(
        st.builds(
            PoseEstimate,
            st.integers(0, 2**62),
            st.builds(SE2, *[st.floats(-1e6, 1e6)] * 3),
            st.just("map"),
            st.sampled_from([POSITION_ONLY, np.eye(3), np.array([[2, 0.1, 0.2], [0.1, 3, 0.3], [0.2, 0.3, 4.0]])]),
            st.sampled_from(PoseStatus),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_poses_survive_any_way(estimates: list[PoseEstimate]) -> None:
    source, back = poses_from_json(json.loads(json_output.dumps(poses_to_columns("x", estimates))))
    assert source == "x"
    assert all(same(a, b) for a, b in zip(back, estimates, strict=True))
