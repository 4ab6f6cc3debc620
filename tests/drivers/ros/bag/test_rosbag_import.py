"""Bags of somebody else's drive: recognised action by action, or refused with topic and time."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import bag_drive
import numpy as np
import pytest
import synthetic
from bag_drive import FORWARD, LEFT, REST, START, START_NS, UP, Move
from raising import raises_naming
from rosbags.rosbag1 import Writer

from drivers.ros.bag import reader as bag_reader
from drivers.ros.bag.definitions import typestore
from drivers.ros.bag.episode_header import ImportOptions
from drivers.ros.bag.errors import DamagedBag, MissingTopic, NoOverlap, NotAnAction, NotOneClock
from drivers.ros.bag.import_external import import_drive
from drivers.ros.bag.reader import BagReader
from drivers.ros.bag.topic_layout import layout
from drivers.ros.connection.errors import DepthUnit, WrongDefinition
from drivers.ros.options import CameraOptions, LocalizerOptions
from drivers.ros_locobot.options import RosOptions
from robot_runtime.actions.discrete import Action
from robot_runtime.cli.main import run_command
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, EpisodeError, RecordingError, RuntimeFault
from robot_runtime.hal import PoseStatus, Zone
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, Outcome, StepRecord
from robot_runtime.robots.loader import RobotFile

TASK = synthetic.pointnav_task()
DRIVE = [REST, FORWARD, REST, LEFT, REST, UP, REST]
SHORT = [REST, FORWARD, REST]
AMCL = LocalizerOptions("pose_with_covariance", topic="/amcl_pose")


def options(family: Any = "pyrobot-kobuki", **changes: Any) -> RosOptions:
    return RosOptions(family, CameraOptions("habitat"), **changes)


def imported(bag: Path, folder: Path, ros: RosOptions | None = None, **said: Any) -> LogReader:
    """The log of a bag."""
    recorder = Recorder(folder)
    file = RobotFile("robot", "drivers.ros_locobot.driver.make_robot")
    with BagReader(bag) as reader:
        try:
            import_drive(reader, ImportOptions(file, ros or options(), **said), recorder)
        finally:
            recorder.close()
    assert recorder.path is not None
    return LogReader(recorder.path)


def steps(bag: Path, folder: Path, ros: RosOptions | None = None, **said: Any) -> list[StepRecord]:
    with imported(bag, folder, ros, **said) as log:
        return list(log.steps())


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bag_drive.record(tmp_path_factory.mktemp("bag") / "drive.bag", DRIVE)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bag_drive.record(tmp_path_factory.mktemp("bag") / "short.bag", SHORT)


# --- what is understood -----------------------------------------------------------------------------------------------


def test_a_drive_of_actions_becomes_an_episode(bag: Path, tmp_path: Path) -> None:
    with imported(bag, tmp_path, task=TASK, scene=synthetic.scene(), episode=episode(), stop=True) as log:
        records, end = list(log.steps()), log.end
        states = list(log.base_states())
        header = log.header
    expected = [None, Action.MOVE_FORWARD, Action.TURN_LEFT, Action.LOOK_UP, Action.STOP]
    assert [record.action for record in records] == expected
    assert end is not None
    assert end.reason is EndReason.STOP
    assert header.task == TASK
    assert header.depth_unit_m == 0.001
    assert header.mount == (0.0, 0.0, 0.88)
    for record in records[1:4]:
        assert record.result is not None
        assert record.result.outcome is Outcome.REACHED
        assert record.times.action_start_ns < record.times.action_end_ns <= record.times.exposed_ns
    last = records[-1]
    assert last.referee.pose.distance_to(SE2(1.25, 1.9)) < 1e-6
    assert math.degrees(last.referee.pose.yaw_rad) == pytest.approx(30)
    assert math.degrees(last.head.tilt_rad) == pytest.approx(30)
    assert last.base.battery_v == pytest.approx(15.8)
    seen = bag_drive.picture(last.referee.pose, last.head.tilt_rad)
    np.testing.assert_array_equal(records[3].frame.rgb, seen.rgb)
    near = (seen.depth_m >= 0.28) & (seen.depth_m <= 10)
    np.testing.assert_array_equal(records[3].frame.depth_m, np.where(near, seen.depth_m, 0))
    assert records[1].observation["pointgoal_with_gps_compass"][0] == pytest.approx(2.75, abs=1e-5)
    assert [state.stamp_ns for state in states] == sorted(state.stamp_ns for state in states)


def episode(**changes: Any) -> Any:
    return synthetic.pointnav_episode(**changes)


def test_it_is_scored_like_any_other(bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imported(bag, tmp_path, task=TASK, scene=synthetic.scene(), episode=episode(), stop=True).close()
    assert run_command(["score", str(tmp_path)]) == 0
    assert "not scored" not in capsys.readouterr().out


def test_without_a_task_it_is_waypoints_without_actions(
    bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with imported(bag, tmp_path) as log:
        records, end = list(log.steps()), log.end
        assert log.header.task.name == "drive"
        assert log.header.scene.name == "drive"
        assert log.header.episode.goals == ()
    assert len(records) == 4
    assert all(record.action is None and record.result is None for record in records)
    assert end is not None
    assert end.reason is EndReason.INTERRUPTED
    assert records[-1].observation["gps"] == pytest.approx([0.25, 0.0], abs=1e-3)
    assert run_command(["score", str(tmp_path)]) == 1
    assert "not scored: 1 of 1" in capsys.readouterr().out
    assert run_command(["report", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 1
    assert (tmp_path / "page.html").is_file()


def test_a_task_without_an_episode_has_no_goal_and_says_so(short: Path, tmp_path: Path) -> None:
    with imported(short, tmp_path, task=TASK, stop=True) as log:
        assert log.header.task.name == "pointnav_test-goal"
        assert "pointgoal_with_gps_compass" not in log.header.task.sensors
        assert [record.action for record in log.steps(images=False)] == [None, Action.MOVE_FORWARD, Action.STOP]


@pytest.mark.parametrize("family", ["pyrobot-create", "interbotix"])
def test_every_family_is_read(tmp_path: Path, family: Any) -> None:
    path = bag_drive.record(tmp_path / "a.bag", SHORT, layout(family))
    records = steps(path, tmp_path / "logs", options(family), task=TASK)
    assert [record.action for record in records] == [None, Action.MOVE_FORWARD]


def test_a_bump_ends_a_forward_as_contact(tmp_path: Path) -> None:
    bumped = Move(forward_m=0.1, seconds=0.6, bumped=Zone.LEFT)
    records = steps(bag_drive.record(tmp_path / "a.bag", [REST, bumped, REST]), tmp_path / "logs", task=TASK)
    result = records[1].result
    assert records[1].action is Action.MOVE_FORWARD
    assert result is not None
    assert (result.outcome, result.contact) == (Outcome.CONTACT, Zone.LEFT)
    assert result.measured.forward_m == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("ros", "poses", "frame"),
    [
        (options(localizer=AMCL, referee=AMCL), "robot", "map"),
        (options(localizer=LocalizerOptions("odometry")), "robot", "odom"),
        (options(), "odometry", "map"),
    ],
)
def test_every_source_of_poses(short: Path, tmp_path: Path, ros: RosOptions, poses: str, frame: str) -> None:
    records = steps(short, tmp_path, ros, task=TASK, scene=synthetic.scene(), episode=episode(), poses=poses)
    assert {record.pose.frame for record in records} == {frame}
    assert records[0].referee.pose.distance_to(START) < 1e-6
    assert records[-1].referee.pose.distance_to(SE2(1.25, 1.9)) < 1e-6
    assert all(record.referee.status is PoseStatus.OK for record in records)
    assert records[-1].observation["pointgoal_with_gps_compass"][0] == pytest.approx(2.75, abs=1e-5)


def test_a_localizer_that_jumps_has_lost_the_robot(tmp_path: Path) -> None:
    def jump(topic: str, message: Any, at_ns: int) -> tuple[Any, int]:
        if topic == "/amcl_pose" and at_ns > START_NS + NS_PER_S:
            message.pose.pose.position.x += 1.0
        return message, at_ns

    path = bag_drive.record(tmp_path / "a.bag", SHORT, change=jump)
    records = steps(path, tmp_path / "logs", options(localizer=AMCL, referee=AMCL), task=TASK)
    assert [record.referee.status for record in records] == [PoseStatus.OK, PoseStatus.LOST]


def test_compressed_pictures(short: Path, tmp_path: Path) -> None:
    def pack(topic: str, message: Any, at_ns: int) -> tuple[Any, int]:
        if "image_raw" not in topic:
            return message, at_ns
        return (bag_drive.compressed_depth if "depth" in topic else bag_drive.compressed)(message), at_ns

    packed = bag_drive.record(tmp_path / "a.bag", SHORT, change=pack)
    plain, found = steps(short, tmp_path / "plain", task=TASK), steps(packed, tmp_path / "packed", task=TASK)
    for one, other in zip(plain, found, strict=True):
        np.testing.assert_array_equal(one.frame.rgb, other.frame.rgb)
        np.testing.assert_array_equal(one.frame.depth_m, other.frame.depth_m)


def test_depth_in_metres(tmp_path: Path) -> None:
    with imported(bag_drive.record(tmp_path / "a.bag", SHORT, depth="32FC1"), tmp_path / "logs", task=TASK) as log:
        assert log.header.depth_unit_m == 0
        assert next(log.steps()).frame.depth_m.max() > 1


def test_what_a_bag_lacks_can_be_left_out(tmp_path: Path) -> None:
    lacking = bag_drive.without(
        "/camera/aligned_depth_to_color/image_raw", "/joint_states", "/mobile_base/sensors/core", "/tf"
    )
    path = bag_drive.record(tmp_path / "a.bag", SHORT, change=lacking)
    with imported(path, tmp_path / "logs", task=TASK, poses="odometry", without=("depth", "head", "contact")) as log:
        records = list(log.steps())
        assert log.header.robot_config["bag"]["without"] == ["contact", "depth", "head"]
        assert log.header.senses_contact is False
    assert [record.action for record in records] == [None, Action.MOVE_FORWARD]
    assert not records[0].frame.depth_m.any()
    assert math.isnan(records[0].base.battery_v)


def test_another_camera_is_taken_only_if_told(short: Path, tmp_path: Path) -> None:
    other = synthetic.pointnav_task(width=80, height=60)
    with raises_naming(ConfigError, "64x48"):
        imported(short, tmp_path, task=other)
    with imported(short, tmp_path, task=other, any_camera=True) as log:
        assert log.header.task.name == "pointnav_test+camera-goal"
        assert next(log.steps()).observation["rgb"].shape == (48, 64, 3)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moves", "time", "what"),
    [
        ([REST, Move(forward_m=0.5), REST], "1700000000.6", "0.500 m forward"),
        ([REST, FORWARD, LEFT, REST], "1700000000.6", "0.250 m forward"),
        ([REST, FORWARD, REST, Move(forward_m=0.25, turn_deg=40), REST], "1700000002.2", "turned 40.0°"),
        ([REST, FORWARD, REST, Move(forward_m=-0.2), REST], "1700000002.2", "-0.200 m forward"),
    ],
)
def test_what_is_no_action_is_named_with_its_time(tmp_path: Path, moves: list[Move], time: str, what: str) -> None:
    path = bag_drive.record(tmp_path / "a.bag", moves)
    with raises_naming(NotAnAction, time, what):
        imported(path, tmp_path / "logs", task=TASK)


def test_a_drive_without_rest_is_refused(tmp_path: Path) -> None:
    path = bag_drive.record(tmp_path / "a.bag", [Move(forward_m=0.5, turn_deg=60, seconds=2.0)])
    with raises_naming(NotAnAction, "0.5 s"):
        imported(path, tmp_path / "logs", task=TASK, min_rest_s=0.5)


@pytest.mark.parametrize(
    ("topic", "remedy"),
    [
        ("/odom", "--robot"),
        ("/camera/color/image_raw", "--robot"),
        ("/camera/color/camera_info", "--robot"),
        ("/camera/aligned_depth_to_color/image_raw", "--without depth"),
        ("/joint_states", "--without head"),
        ("/mobile_base/sensors/core", "--without contact"),
        ("/tf", "--poses odometry"),
    ],
)
def test_a_missing_topic_is_named_with_its_remedy(tmp_path: Path, topic: str, remedy: str) -> None:
    path = bag_drive.record(tmp_path / "a.bag", [REST], change=bag_drive.without(topic))
    with raises_naming(MissingTopic, topic) as caught:
        imported(path, tmp_path / "logs", task=TASK)
    assert remedy in caught.value.remedy


def test_a_tf_that_does_not_reach_the_map_is_named(tmp_path: Path) -> None:
    def cut(topic: str, message: Any, at_ns: int) -> tuple[Any, int] | None:
        is_map = topic == "/tf" and message.transforms[0].header.frame_id == "map"
        return None if is_map else (message, at_ns)

    path = bag_drive.record(tmp_path / "a.bag", [REST], change=cut)
    with raises_naming(MissingTopic, "/tf", "base_footprint", "odom"):
        imported(path, tmp_path / "logs", task=TASK)


@pytest.mark.parametrize(
    ("shift_ns", "named"),
    [
        (lambda topic, _: 5 * NS_PER_S if "camera" in topic else 0, ("4.95", "/camera/color/image_raw")),
        (
            lambda topic, stamp_ns: -3 * NS_PER_S if topic == "/odom" and stamp_ns > START_NS + NS_PER_S else 0,
            ("/odom",),
        ),
    ],
)
def test_mixed_clocks_are_named(tmp_path: Path, shift_ns: Callable[[str, int], int], named: tuple[str, ...]) -> None:
    path = bag_drive.record(tmp_path / "a.bag", SHORT, change=bag_drive.restamped(shift_ns))
    with raises_naming(NotOneClock, *named):
        imported(path, tmp_path / "logs", task=TASK)


def test_one_clock_other_than_the_recorders_is_fine(tmp_path: Path) -> None:
    def change(topic: str, message: Any, at_ns: int) -> tuple[Any, int]:
        for item in getattr(message, "transforms", [message]):
            if hasattr(item, "header"):
                item.header.stamp.sec -= 1_600_000_000
        return message, at_ns

    path = bag_drive.record(tmp_path / "a.bag", SHORT, change=change)
    records = steps(path, tmp_path / "logs", task=TASK)
    assert [record.action for record in records] == [None, Action.MOVE_FORWARD]
    assert records[0].frame.stamp_ns < 100_000_100 * NS_PER_S


def test_streams_that_do_not_overlap_are_named(tmp_path: Path) -> None:
    middle_ns = START_NS + NS_PER_S

    def halves(topic: str, message: Any, at_ns: int) -> tuple[Any, int] | None:
        early = at_ns < middle_ns
        return (message, at_ns) if early == ("camera" in topic) else None

    path = bag_drive.record(tmp_path / "a.bag", SHORT, change=halves)
    with raises_naming(NoOverlap, "/odom"):
        imported(path, tmp_path / "logs", task=TASK)


def test_a_rest_without_a_picture_is_named(tmp_path: Path) -> None:
    gap = (START_NS + int(1.5 * NS_PER_S), START_NS + int(2.6 * NS_PER_S))

    def blind(topic: str, message: Any, at_ns: int) -> tuple[Any, int] | None:
        return None if "camera" in topic and gap[0] < at_ns < gap[1] else (message, at_ns)

    path = bag_drive.record(tmp_path / "a.bag", DRIVE, change=blind)
    with raises_naming(NoOverlap, "1700000001"):
        imported(path, tmp_path / "logs", task=TASK)


def test_colour_and_depth_of_different_stamps_are_no_pair(tmp_path: Path) -> None:
    path = bag_drive.record(
        tmp_path / "a.bag", SHORT, change=bag_drive.restamped(lambda topic, _: 20_000_000 if "depth" in topic else 0)
    )
    color, depth = "/camera/color/image_raw", "/camera/aligned_depth_to_color/image_raw"
    with raises_naming(NoOverlap, color, depth, "half a frame", "0.0200 s apart", "RealSense", "rate_hz"):
        imported(path, tmp_path / "logs", task=TASK)


def test_depth_in_another_unit_than_its_encodings(tmp_path: Path) -> None:
    path = bag_drive.record(tmp_path / "a.bag", SHORT, depth="metres as 16UC1")
    with raises_naming(DepthUnit, "16UC1"):
        imported(path, tmp_path / "logs", task=TASK)


def test_another_definition_of_a_message(short: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    path.write_bytes(short.read_bytes().replace(b"cd5e73d190d741a2f92e81eda573aca7", b"0" * 32))
    with raises_naming(WrongDefinition, "/odom", "0000"):
        imported(path, tmp_path / "logs", task=TASK)


def test_another_type_on_a_topic(tmp_path: Path) -> None:
    def retype(topic: str, message: Any, at_ns: int) -> tuple[Any, int]:
        return (message.pose, at_ns) if topic == "/odom" else (message, at_ns)

    path = bag_drive.record(tmp_path / "a.bag", [REST], change=retype)
    with raises_naming(WrongDefinition, "PoseWithCovariance", "nav_msgs/Odometry"):
        imported(path, tmp_path / "logs", task=TASK)


@pytest.mark.parametrize("share", [0.001, 0.3, 0.7, 0.999])
def test_a_truncated_bag_says_so(short: Path, tmp_path: Path, share: float) -> None:
    data = short.read_bytes()
    path = tmp_path / "a.bag"
    path.write_bytes(data[: int(len(data) * share)])
    with raises_naming(DamagedBag, "a.bag"):
        imported(path, tmp_path / "logs", task=TASK)


def test_a_bag_whose_recorder_was_killed_needs_reindexing(short: Path, tmp_path: Path) -> None:
    data = bytearray(short.read_bytes())
    place = data.index(b"index_pos=") + len(b"index_pos=")
    data[place : place + 8] = bytes(8)
    path = tmp_path / "a.bag.active"
    path.write_bytes(data)
    with pytest.raises(DamagedBag) as caught:
        imported(path, tmp_path / "logs", task=TASK)
    assert "rosbag reindex" in caught.value.remedy


@pytest.mark.parametrize("content", [b"", b"\xff\xd8\xff\xe0 no bag", b"#ROSBAG V1.2\n", b"#ROSBAG V2.0\n\x00"])
def test_what_is_no_bag(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.bag"
    path.write_bytes(content)
    with pytest.raises(DamagedBag):
        imported(path, tmp_path / "logs")


@pytest.mark.parametrize("seed", range(6))
def test_flipped_bytes_are_typed_errors_or_nothing(short: Path, tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    data = np.frombuffer(short.read_bytes(), np.uint8).copy()
    places = random.integers(0, len(data), 40 * (seed + 1))
    data[places] = random.integers(0, 256, len(places))
    path = tmp_path / "a.bag"
    path.write_bytes(data.tobytes())
    with suppress(RuntimeFault):
        imported(path, tmp_path / "logs", task=TASK).close()


def test_a_drive_from_elsewhere_is_not_of_the_episode(short: Path, tmp_path: Path) -> None:
    with raises_naming(EpisodeError, "1.00 m"):
        imported(short, tmp_path, task=TASK, scene=synthetic.scene(), episode=episode(start=SE2(2.0, 1.9)))


def test_what_belongs_to_a_task_needs_one(short: Path, tmp_path: Path) -> None:
    for said in ({"stop": True}, {"episode": episode(), "scene": synthetic.scene()}):
        with raises_naming(ConfigError, "--task"):
            imported(short, tmp_path, **said)
    with raises_naming(ConfigError, "--scene"):
        imported(short, tmp_path, task=TASK, episode=episode())


def test_no_such_file(tmp_path: Path) -> None:
    with raises_naming(RecordingError, ".bag"):
        imported(tmp_path / "a.bag", tmp_path)


@pytest.mark.parametrize("kind", ["BZ2", "LZ4"])
def test_a_chunk_that_unpacks_to_more_than_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = tmp_path / "bomb.bag"
    writer = Writer(path)
    writer.set_compression(Writer.CompressionFormat[kind])
    with writer as bag:
        connection = bag.add_connection("/text", "std_msgs/msg/String", typestore=typestore())
        bag.write(connection, START_NS, struct.pack("<I", 1 << 20) + bytes(1 << 20))
    with BagReader(path) as reader:
        assert [len(message.data) for message in reader.messages(("/text",))] == [(1 << 20) + 4]
    monkeypatch.setattr(bag_reader, "MAX_CHUNK_BYTES", 1 << 16)
    with BagReader(path) as reader, raises_naming(DamagedBag, "bomb.bag", 1 << 16):
        list(reader.messages(("/text",)))
