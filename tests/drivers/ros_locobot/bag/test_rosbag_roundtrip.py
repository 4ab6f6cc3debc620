"""A log, exported as a bag and imported again, is the same log; the bag's bytes depend on the log alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
from mcap.reader import make_reader
from raising import raises_naming
from rosbags.rosbag1 import Reader, Writer
from synthetic import FORWARD, LEFT, STOP, UP

from drivers.ros_locobot.bag.errors import DamagedBag, MissingTopic
from drivers.ros_locobot.bag.export import export_log
from drivers.ros_locobot.bag.import_own import is_exported, restore
from drivers.ros_locobot.bag.reader import BagReader
from drivers.ros_locobot.bag.topic_layout import layout
from robot_runtime.cli.main import run_command
from robot_runtime.errors import RecordingError
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.objects import Grab, GrabOutcome, ObjectPose

VARIANTS = ("pyrobot-kobuki", "pyrobot-create", "interbotix")


def recorded(folder: Path, header: EpisodeHeader, records: list[StepRecord]) -> Path:
    recorder = Recorder(folder)
    synthetic.play(recorder, header, records)
    assert recorder.path is not None
    return recorder.path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    header = synthetic.header()
    return recorded(tmp_path_factory.mktemp("log"), header, synthetic.drive(header, [FORWARD, LEFT, UP, STOP]))


def exported(log: Path, bag: Path, family: Any = "pyrobot-kobuki") -> Path:
    with LogReader(log) as reader:
        export_log(reader, bag, layout(family))
    return bag


def restored(bag: Path, folder: Path) -> Path:
    recorder = Recorder(folder)
    with BagReader(bag) as reader:
        assert is_exported(reader)
        restore(reader, recorder)
    recorder.close()
    assert recorder.path is not None
    return recorder.path


def messages(log: Path) -> dict[str, list[tuple[int, int, bytes]]]:
    """All messages of a log by topic: stamp, sequence, content."""
    found: dict[str, list[tuple[int, int, bytes]]] = {}
    with log.open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages(log_time_order=False):
            found.setdefault(channel.topic, []).append((message.log_time, message.sequence, message.data))
    return found


def metadata(log: Path) -> list[Any]:
    with log.open("rb") as file:
        return [record.metadata for record in make_reader(file).iter_metadata()]


@pytest.mark.parametrize("family", VARIANTS)
def test_a_log_comes_back_message_for_message(log: Path, tmp_path: Path, family: str) -> None:
    back = restored(exported(log, tmp_path / "a.bag", family), tmp_path / "back")
    assert messages(back) == messages(log)
    assert metadata(back) == metadata(log)


def test_the_same_log_gives_the_same_bytes(log: Path, tmp_path: Path) -> None:
    first, second = exported(log, tmp_path / "a.bag"), exported(log, tmp_path / "b.bag")
    assert first.read_bytes() == second.read_bytes()


def test_stamps_are_the_logs(log: Path, tmp_path: Path) -> None:
    bag = exported(log, tmp_path / "a.bag")
    with LogReader(log) as reader:
        expected = [record.frame.stamp_ns for record in reader.steps(images=False)]
    with BagReader(bag) as found:
        assert [m.stamp_ns for m in found.messages(("/camera/color/image_raw",))] == expected
        assert [m.at_ns for m in found.messages(("/camera/aligned_depth_to_color/image_raw",))] == expected


def test_a_torn_log_comes_back_torn(tmp_path: Path) -> None:
    header = synthetic.header()
    recorder = Recorder(tmp_path / "torn")
    recorder.on_episode_start(header)
    for record in synthetic.drive(header, [FORWARD]):
        recorder.on_step(record)
    recorder.close()
    assert recorder.path is not None
    back = restored(exported(recorder.path, tmp_path / "a.bag"), tmp_path / "back")
    with LogReader(back) as reader:
        assert reader.end is None
        assert len(list(reader.steps())) == 2


def test_what_only_some_logs_have_comes_back(tmp_path: Path) -> None:
    """Depth off the millimetre lattice with holes and infinities, object ids, moved objects, unknown batteries."""
    header = synthetic.header()
    start, moved = synthetic.drive(header, [FORWARD])
    depth_m = moved.frame.depth_m + np.float32(0.00037)
    depth_m[0, :3] = np.nan, np.inf, -1.0
    semantic = np.full(depth_m.shape, -1, np.int32)
    semantic[5:9] = 2
    pose = ObjectPose.upright((1.0, 2.0, 0.3), 0.4)
    moved = replace(
        moved,
        frame=replace(moved.frame, depth_m=depth_m, semantic=semantic),
        observation={name: value for name, value in moved.observation.items() if name not in ("rgb", "depth")},
        base=replace(moved.base, battery_v=float("nan")),
        objects={"mug_1": pose},
        held=("sofa_1",),
        grab=Grab(GrabOutcome.GRABBED, "sofa_1", "at the crosshair"),
        phase="unshuffle",
    )
    log = recorded(tmp_path / "log", header, [start, moved])
    back = restored(exported(log, tmp_path / "a.bag"), tmp_path / "back")
    assert messages(back) == messages(log)
    with LogReader(back) as reader:
        found = list(reader.steps())[1]
    np.testing.assert_array_equal(found.frame.depth_m, depth_m)
    np.testing.assert_array_equal(found.frame.semantic, semantic)
    assert found.objects == {"mug_1": pose}


def test_the_robots_own_topics_hold_what_the_log_says(log: Path, tmp_path: Path) -> None:
    bag = exported(log, tmp_path / "a.bag")
    with LogReader(log) as reader:
        records = list(reader.steps())
    last = records[-1]
    with BagReader(bag) as found:
        odometry = [m.decoded() for m in found.messages(("/odom",))]
        core = [m.decoded() for m in found.messages(("/mobile_base/sensors/core",))]
        joints = [m.decoded() for m in found.messages(("/joint_states",))]
        depth = [m.decoded() for m in found.messages(("/camera/aligned_depth_to_color/image_raw",))]
        grid = next(found.messages(("/map",))).decoded()
        tf = [t for m in found.messages(("/tf",)) for t in m.decoded().transforms]
    assert odometry[-1].pose.pose.position.x == last.base.odom.x_m
    assert core[-1].battery == 162
    assert joints[-1].name == ["head_pan_joint", "head_tilt_joint"]
    assert joints[-1].position[1] == -last.head.tilt_rad
    assert depth[-1].encoding == "16UC1"
    np.testing.assert_array_equal(
        depth[-1].data.view("<u2").reshape(48, 64), np.rint(last.frame.depth_m * 1000).astype(np.uint16)
    )
    assert (grid.info.width, grid.info.height) == (128, 88)
    assert set(np.unique(grid.data)) == {-1, 0, 100}
    links = {(t.header.frame_id, t.child_frame_id) for t in tf}
    assert links == {("odom", "base_footprint"), ("map", "odom"), ("base_footprint", "camera_link")}


def test_a_bag_is_not_written_over(log: Path, tmp_path: Path) -> None:
    bag = exported(log, tmp_path / "a.bag")
    with raises_naming(RecordingError, ".bag"):
        exported(log, bag)


def test_a_damaged_log_leaves_no_bag(log: Path, tmp_path: Path) -> None:
    data = bytearray(log.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 40] = bytes(40)
    damaged = tmp_path / "damaged.mcap"
    damaged.write_bytes(data)
    with pytest.raises(RecordingError):
        exported(damaged, tmp_path / "a.bag")
    assert not list(tmp_path.glob("a.bag*"))


def filtered(bag: Path, out: Path, keep: Callable[[str, bytes], bytes | None]) -> Path:
    """The bag with messages changed, or left out."""
    with Reader(bag) as reader, Writer(out) as writer:
        connections = {
            c.id: writer.add_connection(c.topic, c.msgtype, msgdef=c.msgdef.data, md5sum=c.digest)
            for c in reader.connections
        }
        for connection, stamp_ns, data in reader.messages():
            kept = keep(connection.topic, data)
            if kept is not None:
                writer.write(connections[connection.id], stamp_ns, kept)
    return out


@pytest.mark.parametrize("topic", ["/camera/color/image_raw", "/robot_runtime/scene_file", "/robot_runtime/provenance"])
def test_an_exported_bag_that_lost_a_topic_says_which(log: Path, tmp_path: Path, topic: str) -> None:
    bag = filtered(
        exported(log, tmp_path / "a.bag"), tmp_path / "b.bag", lambda name, data: None if name == topic else data
    )
    with raises_naming(MissingTopic, topic.rsplit("/", 1)[-1]):
        restored(bag, tmp_path / "back")


def test_a_changed_picture_is_not_taken_for_what_the_policy_saw(log: Path, tmp_path: Path) -> None:
    def paint(topic: str, data: bytes) -> bytes:
        return data[:-9] + bytes(9) if topic == "/camera/color/image_raw" else data

    bag = filtered(exported(log, tmp_path / "a.bag"), tmp_path / "b.bag", paint)
    with raises_naming(RecordingError, "step 0", "'rgb'"):
        restored(bag, tmp_path / "back")


def test_json_that_is_none_names_its_topic(log: Path, tmp_path: Path) -> None:
    def spoil(topic: str, data: bytes) -> bytes:
        return data.replace(b'"step"', b'"pest"') if topic == "/robot_runtime/step" else data

    bag = filtered(exported(log, tmp_path / "a.bag"), tmp_path / "b.bag", spoil)
    with raises_naming(DamagedBag, "/robot_runtime/step"):
        restored(bag, tmp_path / "back")


def test_the_commands_write_and_read_folders(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["export", str(log), "--rosbag", str(tmp_path / "bags"), "--family", "interbotix"]) == 0
    bag = tmp_path / "bags" / f"{log.stem}.bag"
    assert run_command(["import", "--rosbag", str(bag), "--out", str(tmp_path / "back")]) == 0
    back = next((tmp_path / "back").glob("*.mcap"))
    assert back.name == log.name
    assert messages(back) == messages(log)
    assert str(back) in capsys.readouterr().out


def test_one_bag_for_two_logs_is_refused(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs").mkdir()
    for name in ("0.mcap", "1.mcap"):
        (tmp_path / "logs" / name).write_bytes(log.read_bytes())
    assert run_command(["export", str(tmp_path / "logs"), "--rosbag", str(tmp_path / "one.bag")]) == 2
    assert "name a folder" in capsys.readouterr().err
