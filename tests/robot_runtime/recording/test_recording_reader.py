"""Reading of logs bit for bit, also from a part of the file."""

from __future__ import annotations

import json
import math
import struct
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
from foxglove_schemas_protobuf.RawImage_pb2 import RawImage
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.writer import Writer
from raising import raises_naming
from synthetic import DOWN, FORWARD, LEFT, RIGHT, STOP, UP

from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.errors import RecordingError
from robot_runtime.hal import PoseStatus, RgbdFrame, Zone
from robot_runtime.recording import images, json_output, json_records
from robot_runtime.recording.header import scene_files
from robot_runtime.recording.mcap_scan import LogFile
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.recover import recover
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import ActionResult, EndReason, EpisodeEnd, Outcome

ACTIONS = [FORWARD, LEFT, UP, DOWN, RIGHT, *[FORWARD] * 8, STOP]


def damage_a_chunk(path: Path) -> None:
    """Overwrite the end of a chunk in the middle of a log."""
    file = LogFile(path)
    span = file.chunks[len(file.chunks) // 2].span
    file.close()
    data = bytearray(path.read_bytes())
    end = span.offset + span.length
    data[end - 64 : end] = bytes(64)
    path.write_bytes(bytes(data))


def same(a: Any, b: Any) -> bool:
    """Deep equality that looks into arrays and takes NaN for NaN."""
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if is_dataclass(a) and not isinstance(a, (type, Enum)):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and (a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b)))


class TestRoundTrip:
    def test_every_field_of_every_step(self, record) -> None:
        header = synthetic.header(synthetic.pointnav_task())
        expected = synthetic.drive(header, ACTIONS)
        with LogReader(record(header, ACTIONS)) as log:
            found = list(log.steps())
            assert log.complete
            assert log.end == synthetic.end_of(expected)
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert same(a, b), a.index

    @pytest.mark.parametrize("task", [synthetic.pointnav_task(), synthetic.objectnav_task()], ids=["point", "object"])
    def test_header_with_its_scene(self, record, task) -> None:
        header = synthetic.header(task)
        with LogReader(record(header, [STOP])) as log:
            found = log.header
        assert found.episode == header.episode
        assert found.episode.key == header.episode.key
        assert found.task == header.task
        assert found.scene.file == header.scene.file
        assert same(found.scene.map, header.scene.map)
        assert found.scene.view_points == header.scene.view_points
        assert (found.scene.digest, found.scene.folder) == (header.scene.digest, header.scene.folder)
        for name in ("robot", "robot_config", "agent", "seed", "intrinsics", "depth_unit_m", "mount", "start_ns"):
            assert getattr(found, name) == getattr(header, name), name
        assert found.provenance == {**header.provenance, "scene_folder": "flat"}

    def test_without_images_everything_else_is_there_and_images_can_be_had_later(self, record) -> None:
        header = synthetic.header()
        expected = synthetic.drive(header, ACTIONS)
        with LogReader(record(header, ACTIONS)) as log:
            light = list(log.steps(images=False))
            assert all(r.frame.rgb.shape == (0, 0, 3) and not r.frame.depth_m.size for r in light)
            assert list(light[3].observation) == ["gps", "compass", "pointgoal_with_gps_compass"]
            assert same(log.with_images(light[3]), expected[3])
            assert same(log.frame(light[5]), expected[5].frame)

    def test_odd_numbers_and_states(self, record, tmp_path: Path) -> None:
        header = synthetic.header()
        steps = synthetic.drive(header, [STOP])
        lost = replace(steps[0].pose, covariance=np.diag([math.inf, math.nan, -math.inf]), status=PoseStatus.LOST)
        info = {"value": math.nan, "logits": [1.0, -math.inf], "nested": {"n": None, "b": True}, "text": "NaN"}
        steps[0] = replace(steps[0], pose=lost, policy_info=info)
        recorder = Recorder(tmp_path)
        synthetic.play(recorder, header, steps)
        assert recorder.path is not None
        with LogReader(recorder.path) as log:
            found = next(log.steps())
        assert same(found.pose, lost)
        assert found.policy_info == {**info, "value": "NaN", "logits": [1.0, "-Infinity"]}

    def test_object_ids_of_the_camera(self, tmp_path: Path) -> None:
        header = synthetic.header()
        steps = synthetic.drive(header, [STOP])
        semantic = np.full(steps[0].frame.depth_m.shape, -1, np.int32)
        semantic[3:9] = 65533
        steps[0] = replace(steps[0], frame=replace(steps[0].frame, semantic=semantic))
        recorder = Recorder(tmp_path)
        synthetic.play(recorder, header, steps)
        assert recorder.path is not None
        with LogReader(recorder.path) as log:
            first, second = (r.frame.semantic for r in log.steps())
        assert same(first, semantic)
        assert second is None

    def test_an_observation_that_is_not_the_frames_is_found_out(self, tmp_path: Path) -> None:
        header = synthetic.header()
        (step,) = synthetic.drive(header, [])
        other = {**step.observation, "depth": step.observation["depth"] + np.float32(0.001)}
        recorder = Recorder(tmp_path)
        synthetic.play(recorder, header, [replace(step, observation=other)])
        assert recorder.path is not None
        with LogReader(recorder.path) as log:
            (light,) = log.steps(images=False)
            assert same(log.frame(light), step.frame)
            with raises_naming(RecordingError, "observation 'depth'"):
                log.with_images(light)


class TestImagesThatAreNotThere:
    """A log of steps whose images another program lost or spoilt."""

    def log(self, path: Path, monkeypatch: pytest.MonkeyPatch, rgb: bytes | None) -> LogReader:
        monkeypatch.setattr("robot_runtime.recording.log_writer.encode_rgb", lambda _: [rgb or b""])
        header = synthetic.header()
        recorder = Recorder(path)
        synthetic.play(recorder, header, synthetic.drive(header, [STOP]))
        assert recorder.path is not None
        return LogReader(recorder.path)

    @pytest.mark.parametrize("rgb", [b"\xff\xff\xff", b"", b"\x1a\x03abc"], ids=["no message", "no image", "no PNG"])
    def test_an_image_that_cannot_be_decoded(self, tmp_path, monkeypatch, rgb: bytes) -> None:
        with self.log(tmp_path, monkeypatch, rgb) as log:
            assert len(list(log.steps(images=False))) == 2
            with raises_naming(RecordingError, "step 0", "image"):
                list(log.steps())

    def test_a_step_that_was_never_read(self, record) -> None:
        header = synthetic.header()
        path = record(header, [STOP])
        (other,) = synthetic.drive(header, [])
        with LogReader(path) as log, raises_naming(RecordingError, path, "step 0", "images"):
            log.frame(other)


class TestDepth:
    @given(st.lists(st.integers(0, 65534), min_size=1, max_size=50))
    def test_millimetres_are_exact_and_16_bit(self, values: list[int]) -> None:
        depth_m = np.array([values], np.uint16) * np.float32(0.001)
        message = images.encode_depth(self.frame(depth_m), 0.001)
        assert message.encoding == "16UC1"
        assert same(images.decode_depth(message.to_bytes()), depth_m)

    @given(st.lists(st.floats(0, 100, width=32), min_size=1, max_size=50))
    def test_any_depth_is_exact(self, values: list[float]) -> None:
        depth_m = np.array([values], np.float32)
        for unit_m in (0.0, 0.001):
            message = images.encode_depth(self.frame(depth_m), unit_m)
            assert images.decode_depth(message.to_bytes()).tobytes() in (
                depth_m.tobytes(),
                (depth_m + np.float32(0)).tobytes(),  # -0 m is 0 m
            )

    @pytest.mark.parametrize("value", [70.0, math.inf, math.nan, 1e-5])
    def test_what_is_no_millimetre_stays_float(self, value: float) -> None:
        depth_m = np.array([[1.5, value]], np.float32)
        assert images.encode_depth(self.frame(depth_m), 0.001).encoding == "32FC1"

    @pytest.mark.parametrize("dtype", [np.uint16, np.float32])
    def test_depth_of_the_first_logs_is_read(self, dtype: type[np.generic]) -> None:
        pixels = np.array([[1, 2, 3], [4, 5, 6]], dtype)
        encoding, unit_m = ("16UC1", np.float32(0.001)) if dtype is np.uint16 else ("32FC1", np.float32(1))
        step = pixels.strides[0]
        old = RawImage(width=3, height=2, encoding=encoding, step=step, data=pixels.tobytes())
        assert same(images.decode_depth(old.SerializeToString()), pixels * unit_m)

    @pytest.mark.parametrize("cut", [10, 30, -1])
    def test_a_torn_message_is_refused(self, cut: int) -> None:
        with pytest.raises(ValueError, match="message"):
            images.decode_depth(images.encode_depth(self.frame(np.ones((2, 3), np.float32)), 0.001).to_bytes()[:cut])

    @staticmethod
    def frame(depth_m: np.ndarray) -> RgbdFrame:
        return RgbdFrame(0, np.zeros((*depth_m.shape, 3), np.uint8), depth_m)


class TestTornAndForeign:
    def test_cut_anywhere_it_gives_whole_steps_or_says_what_is_missing(self, record) -> None:
        path = record(synthetic.header(synthetic.pointnav_task(16, 12)), ACTIONS)
        whole = path.read_bytes()
        torn = path.with_suffix(".torn")

        @settings(max_examples=60)
        @given(st.integers(0, len(whole) - 1))
        def check(cut: int) -> None:
            torn.write_bytes(whole[:cut])
            with suppress(RecordingError), LogReader(torn) as log:
                assert [r.index for r in log.steps()] == list(range(len(list(log.steps(images=False)))))
                assert not log.complete

        check()

    @given(st.binary(max_size=300))
    def test_no_bytes_crash_the_reader(self, tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
        path = tmp_path_factory.getbasetemp() / "noise.mcap"
        for prefix in (b"", b"\x89MCAP0\r\n"):
            path.write_bytes(prefix + data)
            with raises_naming(RecordingError, "noise.mcap"):
                LogReader(path)

    @pytest.mark.slow
    @given(st.lists(st.tuples(st.integers(0, 16), st.binary(max_size=60)), max_size=6))
    def test_no_records_crash_reader_or_recover(
        self, tmp_path_factory: pytest.TempPathFactory, records: list[tuple[int, bytes]]
    ) -> None:
        source, destination = (tmp_path_factory.getbasetemp() / name for name in ("odd.mcap", "mended.mcap"))
        body = b"".join(struct.pack("<BQ", opcode, len(content)) + content for opcode, content in records)
        source.write_bytes(b"\x89MCAP0\r\n" + body)
        with raises_naming(RecordingError, "odd.mcap"):
            LogReader(source)
        destination.unlink(missing_ok=True)
        with suppress(RecordingError):
            recover(source, destination)

    def test_steps_of_a_torn_log_grow_with_its_length(self, record) -> None:
        path = record(synthetic.header(synthetic.pointnav_task(16, 12)), ACTIONS)
        whole = path.read_bytes()
        torn = path.with_suffix(".torn")
        counts = []
        for cut in range(len(whole) // 2, len(whole), 997):
            torn.write_bytes(whole[:cut])
            with LogReader(torn) as log:
                counts.append(len(list(log.steps())))
        assert counts == sorted(counts)
        assert counts[-1] == len(ACTIONS) + 1

    def test_zeros_after_power_loss_are_a_torn_tail(self, record) -> None:
        path = record(synthetic.header(), ACTIONS)
        half = path.read_bytes()[: path.stat().st_size // 2]
        path.write_bytes(half + bytes(100_000))
        with LogReader(path) as log:
            assert list(log.steps())
            assert log.end is None

    def test_damage_in_the_middle_of_a_whole_log_is_an_error(self, record) -> None:
        path = record(synthetic.header(synthetic.pointnav_task(160, 120)), ACTIONS)
        damage_a_chunk(path)
        with LogReader(path) as log, raises_naming(RecordingError, path, "damaged"):
            list(log.steps())

    @pytest.mark.parametrize(
        ("content", "thing"), [(b"", "log"), (b"\x89MCAP0\r\n", "episode header"), (None, "No such file")]
    )
    def test_no_log_at_all(self, tmp_path: Path, content: bytes | None, thing: str) -> None:
        path = tmp_path / "x.mcap"
        if content is not None:
            path.write_bytes(content)
        with raises_naming(RecordingError, path, thing):
            LogReader(path)

    def test_another_programs_mcap(self, tmp_path: Path) -> None:
        path = tmp_path / "foreign.mcap"
        with path.open("wb") as file:
            writer = Writer(file)
            writer.start()
            channel = writer.register_channel("/chatter", "json", 0)
            writer.add_message(channel, 1, b"{}", 1)
            writer.finish()
        with raises_naming(RecordingError, "episode header"):
            LogReader(path)

    @pytest.mark.parametrize(
        ("attached", "thing"),
        [
            ([], "map and rooms"),  # other tools leave attachments out
            (["scene.yaml"], "KeyError('map.yaml')"),
        ],
    )
    def test_a_malformed_header(
        self, attached: list[str], thing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        header = synthetic.header()
        files = [file for file in scene_files(header) if file[0] in attached]
        monkeypatch.setattr("robot_runtime.recording.log_writer.scene_files", lambda _: files)
        recorder = Recorder(tmp_path)
        synthetic.play(recorder, header, synthetic.drive(header, [STOP]))
        assert recorder.path is not None
        with raises_naming(RecordingError, recorder.path, thing):
            LogReader(recorder.path)

    def test_a_later_format_is_refused(self, record, monkeypatch: pytest.MonkeyPatch) -> None:
        path = record(synthetic.header(), [STOP])
        monkeypatch.setattr("robot_runtime.recording.reader.LOG_FORMAT", 0)
        with raises_naming(RecordingError, "log format 1", "0"):
            LogReader(path)


class TestRecover:
    def test_everything_intact_in_a_file_that_stock_readers_open(self, record, tmp_path: Path) -> None:
        header = synthetic.header()
        whole = record(header, ACTIONS)
        torn, mended = tmp_path / "torn.mcap", tmp_path / "mended.mcap"
        torn.write_bytes(whole.read_bytes()[: whole.stat().st_size * 3 // 4])
        with LogReader(torn) as log:
            expected = list(log.steps())
        count = recover(torn, mended)
        with mended.open("rb") as file:
            reader = make_reader(file, validate_crcs=True)
            assert len(list(reader.iter_messages())) == count
            assert {a.name for a in reader.iter_attachments()} == {
                "scene.yaml",
                "map.yaml",
                "map.pgm",
                "view_points.json",
            }
            assert [m.name for m in reader.iter_metadata()] == ["provenance"]
        with LogReader(mended) as log:
            assert log.header.provenance["commit"] == "1234567"
            for a, b in zip(log.steps(), expected, strict=True):
                assert same(a, b)

    def test_a_whole_log_loses_nothing(self, record, tmp_path: Path) -> None:
        path = record(synthetic.header(), ACTIONS)
        recover(path, tmp_path / "copy.mcap")
        with LogReader(path) as a, LogReader(tmp_path / "copy.mcap") as b:
            assert b.complete
            assert all(same(x, y) for x, y in zip(a.steps(), b.steps(), strict=True))
            assert list(a.base_states()) == list(b.base_states())
            assert a.end == b.end

    def test_a_damaged_chunk_is_left_out(self, record, tmp_path: Path) -> None:
        path = record(synthetic.header(synthetic.pointnav_task(160, 120)), ACTIONS)
        damage_a_chunk(path)
        recover(path, tmp_path / "mended.mcap")
        with LogReader(tmp_path / "mended.mcap") as log:
            assert len(list(log.steps(images=False))) >= len(ACTIONS)
            assert log.end is not None

    def test_it_overwrites_nothing(self, record, tmp_path: Path) -> None:
        path = record(synthetic.header(), [STOP])
        with raises_naming(RecordingError, "File exists"):
            recover(path, path)

    def test_it_wants_a_log(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_text("hello")
        with raises_naming(RecordingError, "log"):
            recover(tmp_path / "x", tmp_path / "y")
        assert not (tmp_path / "y").exists()


def test_the_action_that_a_fault_cut_short_is_kept_with_the_end() -> None:
    still = Displacement()
    result = ActionResult(Outcome.FAULT, Displacement(forward_m=0.25), still, Zone.NONE, 0.7, "base: silent")
    end = EpisodeEnd(EndReason.FAULT, 3, 9, "base: silent", Action.MOVE_FORWARD, result, of_policy=True)
    written = json.loads(json_output.dumps(end))
    assert json_records.END.decode(written) == end
    older = {key: written[key] for key in ("reason", "steps", "stamp_ns", "detail")}
    assert json_records.END.decode(older) == EpisodeEnd(EndReason.FAULT, 3, 9, "base: silent")


def test_enum_members_are_written_by_name_and_unknown_objects_refused() -> None:
    assert json_output.plain(EndReason.FAULT) == "fault"
    assert json_output.plain(np.float32(0.5)) == 0.5
    assert json_output.plain(Path("a/b")) == "a/b"
    with pytest.raises(TypeError, match="set"):
        json_output.plain({"x": {1}})
