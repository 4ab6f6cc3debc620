"""Recorder: no record dropped, no error lost, no file overwritten; errors name the file and never block."""

from __future__ import annotations

import errno
import json
import os
import threading
from array import array
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
from mcap.reader import make_reader
from mcap.records import Metadata
from mcap.stream_reader import StreamReader
from mcap_protobuf.decoder import DecoderFactory
from raising import raises_naming
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.errors import RecordingError
from robot_runtime.hal import BaseState, Halt, Zone
from robot_runtime.hal.streams import STREAMS
from robot_runtime.recording import log_writer, messages
from robot_runtime.recording.log_writer import LogWriter
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeHeader, StepRecord

ACTIONS = [FORWARD, FORWARD, LEFT, FORWARD, STOP]


def contents(path: Path) -> list[Any]:
    """Every record of the data section but the provenance and the host's times."""
    with path.open("rb") as file:
        records = list(StreamReader(file, validate_crcs=True).records)
    host = {r.id for r in records if getattr(r, "topic", None) == STREAMS["host"].topic}
    return [
        r
        for r in records
        if type(r).__name__ in ("Schema", "Channel", "Message", "Attachment")
        and getattr(r, "channel_id", None) not in host
    ]


class TestContent:
    def test_one_file_per_episode_with_a_readable_name(self, record) -> None:
        first = record(synthetic.header(), [STOP])
        second = record(synthetic.header(synthetic.objectnav_task()), [STOP])
        assert (first.name, second.name) == ("0000_two-rooms_7.mcap", "0001_two-rooms_m-1.mcap")

    @pytest.mark.parametrize(
        ("episode_id", "name"),
        [("../../etc/passwd", "etc-passwd"), ("", "unnamed"), ("a b\n\0c", "a-b-c"), ("x" * 500, "x" * 60)],
    )
    def test_a_hostile_episode_id_stays_in_the_folder(self, record, tmp_path: Path, episode_id: str, name: str) -> None:
        header = synthetic.header(episode=synthetic.pointnav_episode(id=episode_id))
        path = record(header, [STOP])
        assert path.name == f"0000_two-rooms_{name}.mcap"
        assert path.parent == tmp_path / "logs"
        with LogReader(path) as log:
            assert log.header.episode.id == episode_id

    def test_a_second_recorder_goes_on_counting_and_overwrites_nothing(self, tmp_path: Path) -> None:
        header = synthetic.header()
        paths = []
        for _ in range(2):
            recorder = Recorder(tmp_path)
            synthetic.play(recorder, header, synthetic.drive(header, [STOP]))
            paths.append(recorder.path)
        assert [path.name[:4] for path in paths if path] == ["0000", "0001"]

    def test_provenance_is_the_first_record(self, record) -> None:
        with record(synthetic.header(), [STOP]).open("rb") as file:
            records = StreamReader(file).records
            next(records)  # the format demands its own header before anything else
            first = next(records)
        assert isinstance(first, Metadata)
        assert first.name == "provenance"
        assert first.metadata["commit"] == "1234567"

    def test_two_runs_differ_in_provenance_and_host_times_only(self, tmp_path: Path) -> None:
        files = []
        for run in range(2):
            header = synthetic.header(provenance={"created": f"run {run}"})
            steps = [replace(r, phase_s={"infer": float(run)}) for r in synthetic.drive(header, ACTIONS)]
            recorder = Recorder(tmp_path / str(run))
            synthetic.play(recorder, header, steps)
            assert recorder.path is not None
            files.append(recorder.path)
        assert contents(files[0]) == contents(files[1])
        assert files[0].read_bytes() != files[1].read_bytes()

    def test_stock_reader_decodes_every_message(self, record) -> None:
        topics: dict[str, int] = {}
        with record(synthetic.header(), ACTIONS).open("rb") as file:
            reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
            for schema, channel, message in reader.iter_messages():
                topics[channel.topic] = topics.get(channel.topic, 0) + 1
                if channel.message_encoding == "json":
                    known = json.loads(schema.data)["properties"] if schema else {}
                    assert json.loads(message.data).keys() == known.keys()
            file.seek(0)
            decoded = {
                channel.topic: proto
                for _, channel, _, proto in make_reader(
                    file, decoder_factories=[DecoderFactory()]
                ).iter_decoded_messages(
                    topics=["/camera/rgb", "/tf", "/path", "/pose", "/scene", "/camera/camera_info"]
                )
            }
        steps = len(ACTIONS) + 1
        for topic in ("/step", "/step/host", "/camera/rgb", "/camera/depth", "/pose", "/referee/pose", "/tf"):
            assert topics[topic] == steps, topic
        assert topics["/episode"] == topics["/map"] == topics["/camera/camera_info"] == topics["/end"] == 1
        assert decoded["/camera/rgb"].format == "png"
        assert [t.child_frame_id for t in decoded["/tf"].transforms] == ["base_link", "camera"]
        assert len(decoded["/path"].data) == steps * 3 * 4

    def test_the_path_of_a_long_log_is_thinned_and_ends_at_the_robot(self) -> None:
        (record,) = synthetic.drive(synthetic.header(), [])
        for count in (1, 2, 499, 500, 501, 20_000):
            cloud = messages.path(array("f", (value for i in range(count) for value in (float(i), 0.0))), record)
            x_m = np.frombuffer(cloud.data, np.float32).reshape(-1, 3)[:, 0]
            assert (x_m[0], x_m[-1]) == (0, count - 1)
            assert len(x_m) == count if count < 500 else 250 <= len(x_m) <= 501

    def test_transform_of_odometry_is_where_its_origin_lies_in_the_map(self, record) -> None:
        header = synthetic.header()
        steps = synthetic.drive(header, [FORWARD])
        odom = replace(steps[1].pose, pose=replace(steps[1].pose.pose, x_m=0.25, y_m=0.0), frame="odom")
        recorder = Recorder(record(header, [STOP]).parent)
        synthetic.play(recorder, header, [steps[0], replace(steps[1], pose=odom)])
        assert recorder.path is not None
        with recorder.path.open("rb") as file:
            reader = make_reader(file, decoder_factories=[DecoderFactory()])
            messages = [proto for *_, proto in reader.iter_decoded_messages(topics=["/tf"])]
        (transform,) = (t for t in messages[-1].transforms if t.child_frame_id == "odom")
        assert transform.parent_frame_id == "map"
        assert (transform.translation.x, transform.translation.y) == pytest.approx((1.0, 1.9))

    def test_base_states_are_thinned_but_no_change_of_contact_is_lost(self, tmp_path: Path) -> None:
        header = synthetic.header()
        (still,) = synthetic.drive(header, [])
        recorder = Recorder(tmp_path)
        recorder.on_episode_start(header)
        for i in range(100):  # 2 s at 50 Hz; touched for a single sample
            touched = i == 51
            state = replace(
                still.base,
                stamp_ns=seconds_to_ns(1 + i / 50),
                bumper=Zone.LEFT if touched else Zone.NONE,
                halt=Halt.CONTACT if touched else Halt.NONE,
            )
            recorder.on_base_state(state)
        recorder.on_episode_end(synthetic.end_of([still]))
        assert recorder.path is not None
        with LogReader(recorder.path) as log:
            states = list(log.base_states())
        assert 30 <= len(states) <= 42  # every third sample: 20 Hz would be two and a half
        assert [s.bumper for s in states].count(Zone.LEFT) == 1


def feed(recorder: Recorder, steps: Iterable[StepRecord]) -> None:
    for step in steps:
        recorder.on_step(step)


def feed_base_states(recorder: Recorder, states: Iterable[BaseState]) -> None:
    for state in states:
        recorder.on_base_state(state)


class FailingDisk(LogWriter):
    """Takes ``steps_left`` steps, then fails as a full disk does; afterwards every write fails."""

    steps_left = 2
    error: Exception = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write_step(self, record) -> None:
        if self.steps_left == 0:
            raise self.error
        self.steps_left -= 1
        super().write_step(record)


class TestErrors:
    def test_full_disk_is_raised_by_a_later_call_and_by_the_end(self, tmp_path: Path) -> None:
        header = synthetic.header()
        steps = synthetic.drive(header, ACTIONS)
        recorder = Recorder(tmp_path, open_log=FailingDisk)
        recorder.on_episode_start(header)
        with raises_naming(RecordingError, "0000_two-rooms_7.mcap", "No space left"):
            feed(recorder, steps * 1000)
        with raises_naming(RecordingError, "No space left"):
            recorder.on_base_state(steps[0].base)
        with raises_naming(RecordingError, "No space left"):
            recorder.on_episode_end(synthetic.end_of(steps))
        assert recorder.path is not None
        with LogReader(recorder.path) as log:
            assert not log.complete
            assert [r.index for r in log.steps()] == [0, 1]

    def test_full_disk_at_the_last_moment_is_raised_by_the_end(self, tmp_path: Path) -> None:
        class FullAtEnd(LogWriter):
            def write_end(self, end) -> None:
                raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

        header = synthetic.header()
        with raises_naming(RecordingError, "quota"):
            synthetic.play(Recorder(tmp_path, open_log=FullAtEnd), header, synthetic.drive(header, [STOP]))

    def test_the_next_episode_is_recorded_again(self, tmp_path: Path) -> None:
        header = synthetic.header()
        steps = synthetic.drive(header, ACTIONS)
        recorder = Recorder(
            tmp_path, open_log=lambda path, h: (FailingDisk if "0000" in path.name else LogWriter)(path, h)
        )
        with pytest.raises(RecordingError):
            synthetic.play(recorder, header, steps)
        recorder.close()
        synthetic.play(recorder, header, steps)
        assert recorder.path is not None
        with LogReader(recorder.path) as log:
            assert log.complete

    def test_what_has_no_place_in_a_log_is_named(self, tmp_path: Path) -> None:
        header = synthetic.header()
        steps = [replace(r, policy_info={"model": object()}) for r in synthetic.drive(header, [STOP])]
        with raises_naming(RecordingError, "object", "policy_info"):
            synthetic.play(Recorder(tmp_path), header, steps)

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    def test_a_thread_that_dies_of_a_bug_is_noticed(self, tmp_path: Path) -> None:
        class Buggy(LogWriter):
            def write_step(self, record) -> None:
                raise ZeroDivisionError

        header = synthetic.header()
        with raises_naming(RecordingError, "thread"):
            synthetic.play(Recorder(tmp_path, open_log=Buggy), header, synthetic.drive(header, [STOP]))

    def test_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "logs").write_text("a file")
        with raises_naming(RecordingError, "logs"):
            Recorder(tmp_path / "logs").on_episode_start(synthetic.header())

    @pytest.mark.slow
    def test_a_disk_that_takes_nothing_is_given_up_after_the_timeout(self, tmp_path: Path) -> None:
        release = threading.Event()

        class Stuck(LogWriter):
            def write_step(self, record) -> None:
                assert release.wait(30)

        header = synthetic.header()
        (step,) = synthetic.drive(header, [])
        recorder = Recorder(tmp_path, timeout_s=0.3, open_log=Stuck)
        recorder.on_episode_start(header)
        try:
            with raises_naming(RecordingError, "disk", "--out"):
                feed(recorder, [step] * 100)
            with raises_naming(RecordingError, "disk", "--out"):
                recorder.on_episode_end(synthetic.end_of([step]))
        finally:
            release.set()

    def test_base_states_too_wait_for_a_disk_that_takes_nothing(self, tmp_path: Path) -> None:
        release = threading.Event()

        class Stuck(LogWriter):
            def write_base_state(self, state) -> None:
                assert release.wait(30)

        header = synthetic.header()
        (step,) = synthetic.drive(header, [])
        recorder = Recorder(tmp_path, timeout_s=0.2, open_log=Stuck)
        recorder.on_episode_start(header)
        states = (replace(step.base, stamp_ns=seconds_to_ns(1 + i / 10)) for i in range(100_000))
        try:
            with raises_naming(RecordingError, "disk", "--out"):
                feed_base_states(recorder, states)
        finally:
            release.set()

    def test_a_slow_disk_makes_the_loop_wait_and_loses_nothing(self, tmp_path: Path) -> None:
        gate = threading.Semaphore(0)

        class Slow(LogWriter):
            def write_step(self, record) -> None:
                assert gate.acquire(timeout=30)
                super().write_step(record)

        header = synthetic.header()
        steps = synthetic.drive(header, [LEFT] * 30)
        recorder = Recorder(tmp_path, open_log=Slow)
        feeder = threading.Thread(target=synthetic.play, args=(recorder, header, steps))
        feeder.start()
        assert feeder.is_alive()
        for _ in steps:
            gate.release()
        feeder.join(30)
        assert recorder.path is not None
        with LogReader(recorder.path) as log:
            assert [r.index for r in log.steps(images=False)] == list(range(31))

    def test_steps_without_an_episode_are_refused(self, tmp_path: Path) -> None:
        (step,) = synthetic.drive(synthetic.header(), [])
        with raises_naming(RecordingError, "episode", "on_episode_start"):
            Recorder(tmp_path).on_step(step)

    def test_close_leaves_a_log_without_end(self, tmp_path: Path) -> None:
        header = synthetic.header()
        recorder = Recorder(tmp_path)
        recorder.on_episode_start(header)
        recorder.on_step(synthetic.drive(header, [])[0])
        recorder.close()
        recorder.close()
        assert recorder.path is not None
        with LogReader(recorder.path) as log:
            assert log.end is None
            assert not log.complete
            assert len(list(log.steps())) == 1


def test_log_of_a_large_image_stays_small(tmp_path: Path) -> None:
    """Half a megabyte per 640x480 step of a textured room, where a 500-step log may take 500 MB."""
    header = synthetic.header(synthetic.pointnav_task(640, 480))
    (step,) = synthetic.drive(header, [])
    noise = np.random.default_rng(0).normal(0, 3, step.frame.rgb.shape)
    rgb = np.clip(step.frame.rgb + noise, 0, 255).astype(np.uint8)
    frame = replace(step.frame, rgb=rgb)
    log = LogWriter(tmp_path / "log.mcap", header)
    log.write_header()
    before = (tmp_path / "log.mcap").stat().st_size
    log.write_step(replace(step, frame=frame))
    log.close()
    assert (tmp_path / "log.mcap").stat().st_size - before < 1_000_000


def test_header_is_synced_before_the_first_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []

    def sync(self: log_writer.DurableFile) -> None:
        if self._path.parent == tmp_path:  # an earlier test's thread may still write to another file
            synced.append(self.tell())

    monkeypatch.setattr(log_writer.DurableFile, "sync", sync)
    header: EpisodeHeader = synthetic.header()
    log = LogWriter(tmp_path / "log.mcap", header)
    log.write_header()
    log.close()
    assert synced == [(tmp_path / "log.mcap").stat().st_size]
