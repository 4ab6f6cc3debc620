"""The bag of a log: the robot's own topics with the log's values and stamps, for other software."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
from raising import raises_naming
from synthetic import FORWARD, LEFT, STOP, UP

from drivers.ros.bag.export import export_log
from drivers.ros.bag.reader import BagReader
from drivers.ros.bag.topic_layout import layout
from robot_runtime.cli.main import run_command
from robot_runtime.errors import RecordingError
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeHeader, StepRecord

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


def test_stamps_are_the_logs(log: Path, tmp_path: Path) -> None:
    bag = exported(log, tmp_path / "a.bag")
    with LogReader(log) as reader:
        expected = [record.frame.stamp_ns for record in reader.steps(images=False)]
    with BagReader(bag) as found:
        assert [m.stamp_ns for m in found.messages(("/camera/color/image_raw",))] == expected
        assert [m.at_ns for m in found.messages(("/camera/aligned_depth_to_color/image_raw",))] == expected


@pytest.mark.parametrize("family", VARIANTS)
def test_a_bag_is_for_other_software_and_has_no_second_copy_of_the_log(log: Path, tmp_path: Path, family: str) -> None:
    with BagReader(exported(log, tmp_path / "a.bag", family)) as found:
        ours = {topic: kind for topic, kind in found.kinds.items() if topic.startswith("/robot_runtime/")}
        steps = [json.loads(m.decoded().data) for m in found.messages(("/robot_runtime/step",))]
        ends = [json.loads(m.decoded().data) for m in found.messages(("/robot_runtime/end",))]
    pose = "geometry_msgs/PoseWithCovarianceStamped"
    text = "std_msgs/String"
    assert ours == {
        "/robot_runtime/pose": pose,
        "/robot_runtime/referee_pose": pose,
        "/robot_runtime/step": text,
        "/robot_runtime/end": text,
    }
    assert [step["action"] for step in steps] == [None, "move_forward", "turn_left", "look_up", "stop"]
    assert all(set(step) == {"index", "action", "command", "result"} for step in steps)
    assert steps[1]["result"]["outcome"] == "reached"
    assert [end["reason"] for end in ends] == ["stop"]


def test_a_torn_log_has_a_bag_without_an_end(tmp_path: Path) -> None:
    header = synthetic.header()
    recorder = Recorder(tmp_path / "torn")
    recorder.on_episode_start(header)
    for record in synthetic.drive(header, [FORWARD]):
        recorder.on_step(record)
    recorder.close()
    assert recorder.path is not None
    with BagReader(exported(recorder.path, tmp_path / "a.bag")) as found:
        assert "/robot_runtime/end" not in found.kinds
        assert len(list(found.messages(("/robot_runtime/step",)))) == 2


def test_depth_off_the_millimeter_lattice_and_object_ids_are_exact(tmp_path: Path) -> None:
    header = synthetic.header()
    start, moved = synthetic.drive(header, [FORWARD])
    depth_m = moved.frame.depth_m + np.float32(0.00037)
    depth_m[0, :3] = np.nan, np.inf, -1.0
    semantic = np.full(depth_m.shape, -1, np.int32)
    semantic[5:9] = 2
    moved = replace(
        moved,
        frame=replace(moved.frame, depth_m=depth_m, semantic=semantic),
        observation={name: value for name, value in moved.observation.items() if name not in ("rgb", "depth")},
        base=replace(moved.base, battery_v=float("nan")),
    )
    bag = exported(recorded(tmp_path / "log", header, [start, moved]), tmp_path / "a.bag")
    with BagReader(bag) as found:
        depth = [m.decoded() for m in found.messages(("/camera/aligned_depth_to_color/image_raw",))][-1]
        ids = [m.decoded() for m in found.messages(("/robot_runtime/semantic",))][-1]
        battery = [m.decoded().battery for m in found.messages(("/mobile_base/sensors/core",))][-1]
    assert depth.encoding == "32FC1"
    np.testing.assert_array_equal(depth.data.view("<f4").reshape(depth_m.shape), depth_m)
    np.testing.assert_array_equal(ids.data.view("<u2").reshape(depth_m.shape), semantic + 1)
    assert battery == 0, "unknown"


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


def test_the_command_writes_a_folder_of_bags(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["export", "bag", str(log), "--out", str(tmp_path / "bags"), "--family", "interbotix"]) == 0
    bag = tmp_path / "bags" / f"{log.stem}.bag"
    with BagReader(bag) as found:
        assert "/locobot/mobile_base/odom" in found.kinds
    assert f"{bag}: 5 steps" in capsys.readouterr().out


def test_one_bag_for_two_logs_is_refused(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs").mkdir()
    for name in ("0.mcap", "1.mcap"):
        (tmp_path / "logs" / name).write_bytes(log.read_bytes())
    assert run_command(["export", "bag", str(tmp_path / "logs"), "--out", str(tmp_path / "one.bag")]) == 2
    assert "name a folder" in capsys.readouterr().err


def test_a_damaged_log_costs_only_its_own_bag(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "0.mcap").write_bytes(b"no log")
    (tmp_path / "logs" / "1.mcap").write_bytes(log.read_bytes())
    assert run_command(["export", "bag", str(tmp_path / "logs"), "--out", str(tmp_path / "bags")]) == 0
    said = capsys.readouterr().out
    assert "not exported" in said
    assert "0.mcap" in said
    assert [bag.name for bag in (tmp_path / "bags").iterdir()] == ["1.bag"]
