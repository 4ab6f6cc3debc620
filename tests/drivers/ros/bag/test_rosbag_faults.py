"""Bags with data that cannot be true: lost samples, mixed sources, images in other formats. None is silent."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bag_drive
import cv2
import numpy as np
import pytest
import synthetic
from bag_drive import FORWARD, LEFT, REST, START_NS, messages
from raising import raises_naming
from rosbags.rosbag1 import Reader, Writer

from drivers.ros.bag.definitions import typestore
from drivers.ros.bag.episode_header import ImportOptions
from drivers.ros.bag.errors import MissingTopic
from drivers.ros.bag.import_external import import_drive
from drivers.ros.bag.reader import BagReader
from drivers.ros.connection.errors import DepthUnit, TwoSources
from drivers.ros.options import CameraOptions, LocalizerOptions
from drivers.ros_locobot.options import RosOptions
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import PoseStatus
from robot_runtime.hal.events import Event
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import StepRecord
from robot_runtime.robots.loader import RobotFile

TASK = synthetic.pointnav_task()
SHORT = [REST, FORWARD, REST]
DRIVE = [REST, FORWARD, REST, LEFT, REST, FORWARD, REST]
AMCL = LocalizerOptions("pose_with_covariance", topic="/amcl_pose")
DEPTH = "/camera/aligned_depth_to_color/image_raw"
LATER_NS = START_NS + NS_PER_S


def imported(
    bag: Path, folder: Path, localizer: LocalizerOptions = AMCL, **options: Any
) -> tuple[list[StepRecord], list[str], list[Event]]:
    """Steps, notes and events of an import."""
    ros = RosOptions("pyrobot-kobuki", CameraOptions("habitat"), localizer=localizer, referee=localizer)
    file = RobotFile("robot", "drivers.ros_locobot.driver.make_robot")
    notes: list[str] = []
    recorder = Recorder(folder)
    with BagReader(bag) as reader:
        try:
            import_drive(reader, ImportOptions(file, ros, **options), recorder, on_note=notes.append)
        finally:
            recorder.close()
    assert recorder.path is not None
    with LogReader(recorder.path) as log:
        return list(log.steps()), notes, list(log.events())


def changed(of: str, change: Callable[[Any, int], None]) -> bag_drive.Change:
    """A recorder on whose way messages of a topic are changed."""

    def apply(topic: str, message: Any, at_ns: int) -> tuple[Any, int]:
        if topic == of:
            change(message, at_ns)
        return message, at_ns

    return apply


def by_nodes(source: Path, target: Path, node_of: Callable[[str, int], str]) -> Path:
    """A copy of a bag whose messages were published by ``node_of(topic, number of the message)``."""
    with Reader(source) as reader, Writer(target) as writer:
        connections: dict[tuple[str, str], Any] = {}
        numbers: dict[str, int] = {}
        for connection, at_ns, data in reader.messages():
            topic = connection.topic
            numbers[topic] = numbers.get(topic, 0) + 1
            key = topic, node_of(topic, numbers[topic])
            if key not in connections:
                connections[key] = writer.add_connection(
                    topic, connection.msgtype, typestore=typestore(), callerid=key[1]
                )
            writer.write(connections[key], at_ns, data)
    return target


# --- poses ------------------------------------------------------------------------------------------------------------


def test_a_frozen_pose_is_lost_from_its_first_repetition(tmp_path: Path) -> None:
    last: list[Any] = []

    def freeze(message: Any, at_ns: int) -> None:
        if at_ns < LATER_NS:
            last[:] = [message.pose]
        message.pose = last[0]

    bag = bag_drive.record(tmp_path / "a.bag", DRIVE, change=changed("/amcl_pose", freeze))
    steps, notes, events = imported(bag, tmp_path / "logs", task=TASK)
    assert [step.referee.status for step in steps] == [PoseStatus.OK] + [PoseStatus.LOST] * 3
    assert any("/amcl_pose" in note and "stays at" in note for note in notes)
    assert "frozen" in [event.kind for event in events]


def lose_body(message: Any, at_ns: int) -> None:
    if at_ns > LATER_NS:
        message.pose.pose.orientation = messages.make("geometry_msgs/Quaternion", x=0.0, y=0.0, z=0.0, w=0.0)


def lose_position(message: Any, at_ns: int) -> None:
    if at_ns > LATER_NS:
        message.pose.pose.position.x = math.nan


def tip_over(message: Any, at_ns: int) -> None:
    if at_ns > LATER_NS:
        turned = math.sqrt(0.5)
        message.pose.pose.orientation = messages.make("geometry_msgs/Quaternion", x=turned, y=0.0, z=0.0, w=turned)


@pytest.mark.parametrize(
    ("change", "says"), [(lose_body, "zero"), (lose_position, "not finite"), (tip_over, "another axis up")]
)
def test_lost_is_lost_and_the_rest_is_kept(tmp_path: Path, change: Any, says: str) -> None:
    bag = bag_drive.record(tmp_path / "a.bag", SHORT, change=changed("/amcl_pose", change))
    steps, notes, events = imported(bag, tmp_path / "logs", task=TASK)
    assert [step.referee.status for step in steps] == [PoseStatus.OK, PoseStatus.LOST]
    assert any(says in note for note in notes)
    assert [event.kind for event in events if says in event.detail] == ["no_fix"]


def test_millimeters_are_named_and_no_pose_is_believed(tmp_path: Path) -> None:
    def scale(message: Any, _: int) -> None:
        message.pose.pose.position.x *= 1000
        message.pose.pose.position.y *= 1000

    bag = bag_drive.record(tmp_path / "a.bag", SHORT, change=changed("/amcl_pose", scale))
    steps, notes, _ = imported(bag, tmp_path / "logs", task=TASK)
    assert {step.referee.status for step in steps} == {PoseStatus.LOST}
    assert any("millimeters are taken for meters" in note for note in notes)


def test_poses_of_another_frame_are_refused_as_by_the_driver(tmp_path: Path) -> None:
    def rename(message: Any, _: int) -> None:
        message.header.frame_id = "world"

    bag = bag_drive.record(tmp_path / "a.bag", SHORT, change=changed("/amcl_pose", rename))
    with raises_naming(DeviceFault, "/amcl_pose", "world"):
        imported(bag, tmp_path / "logs", task=TASK)


# --- two sources ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "topic", ["/odom", "/amcl_pose", "/mobile_base/sensors/core", "/camera/color/image_raw", DEPTH]
)
def test_two_nodes_on_one_topic_are_named(tmp_path: Path, topic: str) -> None:
    plain = bag_drive.record(tmp_path / "a.bag", SHORT)
    bag = by_nodes(plain, tmp_path / "b.bag", lambda name, i: f"/node{i % 2}" if name == topic else "/node0")
    with raises_naming(TwoSources, topic, "/node0", "/node1"):
        imported(bag, tmp_path / "logs", task=TASK)


def test_wheels_and_head_may_come_from_two_nodes(tmp_path: Path) -> None:
    plain = bag_drive.record(tmp_path / "a.bag", SHORT)
    bag = by_nodes(plain, tmp_path / "b.bag", lambda name, i: f"/{i % 2}" if name == "/joint_states" else "/0")
    steps, notes, _ = imported(bag, tmp_path / "logs", task=TASK)
    assert len(steps) == 2
    assert not notes


def test_a_frame_with_two_parents_is_named(tmp_path: Path) -> None:
    def bridge(topic: str, message: Any, at_ns: int) -> tuple[Any, int]:
        if topic == "/tf" and message.transforms[0].child_frame_id == "base_footprint" and at_ns % 3 == 0:
            message.transforms[0].header.frame_id = "world"
        return message, at_ns

    bag = bag_drive.record(tmp_path / "a.bag", SHORT, change=bridge)
    with raises_naming(TwoSources, "base_footprint", "odom", "world"):
        imported(bag, tmp_path / "logs", LocalizerOptions("tf"), task=TASK)


# --- samples ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle_rad", [math.nan, -math.inf, 40.0])
def test_a_glitch_of_the_head_is_lost_samples(tmp_path: Path, angle_rad: float) -> None:
    def glitch(message: Any, at_ns: int) -> None:
        if LATER_NS < at_ns < LATER_NS + NS_PER_S // 4:
            message.position[0] = angle_rad

    bag = bag_drive.record(tmp_path / "a.bag", SHORT, change=changed("/joint_states", glitch))
    steps, notes, _ = imported(bag, tmp_path / "logs", task=TASK)
    assert [step.head.pan_rad for step in steps] == [0.0, 0.0]
    assert any("/joint_states" in note and "lost" in note for note in notes)


def test_a_head_without_any_usable_angle_is_named(tmp_path: Path) -> None:
    def break_head(message: Any, _: int) -> None:
        message.position[0] = math.nan

    bag = bag_drive.record(tmp_path / "a.bag", SHORT, change=changed("/joint_states", break_head))
    with raises_naming(MissingTopic, "/joint_states", "nan"):
        imported(bag, tmp_path / "logs", task=TASK)


@pytest.mark.parametrize("what", ["pose", "twist"])
def test_a_glitch_of_odometry_is_lost_samples(tmp_path: Path, what: str) -> None:
    def glitch(message: Any, at_ns: int) -> None:
        if LATER_NS < at_ns < LATER_NS + NS_PER_S // 20:
            vector = message.pose.pose.position if what == "pose" else message.twist.twist.linear
            vector.x = math.nan

    bag = bag_drive.record(tmp_path / "a.bag", SHORT, change=changed("/odom", glitch))
    steps, notes, _ = imported(bag, tmp_path / "logs", task=TASK)
    assert len(steps) == 2
    assert any("/odom" in note for note in notes)


# --- images -----------------------------------------------------------------------------------------------------------


def test_images_of_one_capture_with_their_own_stamps_are_a_pair_and_the_skew_is_told(tmp_path: Path) -> None:
    late = bag_drive.restamped(lambda topic, _: 9_000_000 if topic == DEPTH else 0)
    plain, skewed = (
        bag_drive.record(tmp_path / "a.bag", SHORT),
        bag_drive.record(tmp_path / "b.bag", SHORT, change=late),
    )
    exact, _, _ = imported(plain, tmp_path / "plain", task=TASK)
    steps, notes, events = imported(skewed, tmp_path / "logs", task=TASK)
    for one, other in zip(exact, steps, strict=True):
        np.testing.assert_array_equal(one.frame.depth_m, other.frame.depth_m)
    assert any("+0.0090 s" in note for note in notes)
    assert "images" in [event.kind for event in events]


def packed(message: Any, data: Any, form: str) -> Any:
    return messages.make(
        "sensor_msgs/CompressedImage", header=message.header, format=form, data=np.frombuffer(bytes(data), np.uint8)
    )


def png(pixels: Any) -> bytes:
    return bytes(cv2.imencode(".png", pixels)[1])


def png16(message: Any) -> Any:
    pixels = message.data.view("<u2").reshape(message.height, message.width)
    return packed(message, png(pixels), "16UC1; png compressed ")


def quantized(message: Any) -> Any:
    """As compressed_depth_image_transport: inverse depths in 16 bits, with the two parameters in the header."""
    depth_m = message.data.view("<f4").reshape(message.height, message.width)
    a, b = np.float32(100.0 * 101.0), np.float32(1 - 100.0 * 101.0 / 10.0)
    inverse = np.zeros(depth_m.shape, np.uint16)
    inverse[depth_m > 0] = (a / depth_m[depth_m > 0] + b).astype(np.uint16)
    header = np.array([0], "<i4").tobytes() + np.array([a, b], "<f4").tobytes()
    return packed(message, header + png(inverse), "32FC1; compressedDepth png")


@pytest.mark.parametrize(
    ("pack", "encoding", "suffix", "within_m"),
    [(png16, "16UC1", "/compressed", 0.0), (quantized, "32FC1", "/compressedDepth", 0.02)],
)
def test_depth_of_every_image_transport_is_read(
    tmp_path: Path, pack: Any, encoding: str, suffix: str, within_m: float
) -> None:
    plain = bag_drive.record(tmp_path / "a.bag", SHORT, depth=encoding)
    bag = tmp_path / "b.bag"
    with Reader(plain) as reader, Writer(bag) as writer:
        made: dict[str, Any] = {}
        for connection, at_ns, data in reader.messages():
            topic, kind = connection.topic, connection.msgtype
            if topic == DEPTH:
                message = pack(typestore().deserialize_ros1(data, kind))
                topic, kind = DEPTH + suffix, message.__msgtype__
                data = typestore().serialize_ros1(message, kind)
            if topic not in made:
                made[topic] = writer.add_connection(topic, kind, typestore=typestore())
            writer.write(made[topic], at_ns, data)
    exact, _, _ = imported(plain, tmp_path / "plain", task=TASK)
    steps, _, _ = imported(bag, tmp_path / "logs", task=TASK)
    for one, other in zip(exact, steps, strict=True):
        np.testing.assert_allclose(one.frame.depth_m, other.frame.depth_m, atol=within_m)


def test_depth_as_jpeg_is_refused(tmp_path: Path) -> None:
    def pack(topic: str, message: Any, at_ns: int) -> tuple[Any, int]:
        if topic != DEPTH:
            return message, at_ns
        pixels = (message.data.view("<u2").reshape(message.height, message.width) // 64).astype(np.uint8)
        return packed(message, bytes(cv2.imencode(".jpg", pixels)[1]), "16UC1; jpeg compressed "), at_ns

    with raises_naming(DeviceFault, DEPTH, "jpeg"):
        imported(bag_drive.record(tmp_path / "a.bag", SHORT, change=pack), tmp_path / "logs", task=TASK)


@pytest.mark.parametrize(("factor", "median"), [(10.0, "m"), (0.001, "meters"), (0.05, "m")])
def test_depth_in_any_other_unit_says_its_median(tmp_path: Path, factor: float, median: str) -> None:
    def scale(message: Any, _: int) -> None:
        scaled = np.clip(message.data.view("<u2") * factor, 0, 65535).astype("<u2")
        message.data = scaled.view(np.uint8)

    bag = bag_drive.record(tmp_path / "a.bag", SHORT, change=changed(DEPTH, scale))
    with raises_naming(DepthUnit, DEPTH, "median", median):
        imported(bag, tmp_path / "logs", task=TASK)


@pytest.mark.parametrize(
    ("model", "says"), [("equidistant", "shifts"), ("omni_ucm", "not one of"), ("ftheta", "ftheta")]
)
@pytest.mark.parametrize("coefficients", [(), (0.0,) * 4, (0.1, 0.0, 0.0, 0.0)])
def test_other_lenses_are_named(tmp_path: Path, model: str, says: str, coefficients: tuple[float, ...]) -> None:
    def bend(message: Any, _: int) -> None:
        message.distortion_model, message.D = model, np.array(coefficients, float)

    bag = bag_drive.record(tmp_path / "a.bag", SHORT, change=changed("/camera/color/camera_info", bend))
    with raises_naming(DeviceFault, "/camera/color/camera_info", model, says):
        imported(bag, tmp_path / "logs", task=TASK)


# --- inputs made after public bug reports -----------------------------------------------------------------------------

CASES = Path(__file__).resolve().parents[5] / "shared" / "cases"

MOCAP = LocalizerOptions("pose", topic="/vrpn_client_node/locobot/pose", map_frame="world", rate_hz=50.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "localizer", "error", "says"),
    [
        ("b05_head_nan", LocalizerOptions("tf"), None, "nan"),
        ("b08_tf_two_parents", LocalizerOptions("tf"), TwoSources, "two parents"),
        ("b11_kinect_stamp_skew", LocalizerOptions("tf"), None, "0.0002 s"),
        ("b13_cd32", LocalizerOptions("tf"), None, ""),
        ("b15_png16", LocalizerOptions("tf"), None, ""),
        ("b16_depth_unit_100um", LocalizerOptions("tf"), DepthUnit, "median is 15 m"),
        ("b17_fisheye", LocalizerOptions("tf"), DeviceFault, "equidistant"),
        ("m02_mocap_frozen", MOCAP, None, "stays at"),
        ("m04_mocap_zeroquat", MOCAP, None, "zero"),
        ("m05_mocap_mm", MOCAP, None, "millimeters"),
    ],
)
def test_inputs_after_public_reports_are_never_silent(
    tmp_path: Path, case: str, localizer: LocalizerOptions, error: type[DeviceFault] | None, says: str
) -> None:
    if not CASES.is_dir():
        pytest.skip(f"the cases are not at {CASES}")
    bag = CASES / case / "drive.bag"
    if error is not None:
        with raises_naming(error, says):
            imported(bag, tmp_path, localizer, without=("contact",))
        return
    steps, notes, _ = imported(bag, tmp_path, localizer, without=("contact",))
    assert says in " ".join(notes)
    assert any(step.frame.depth_m.any() for step in steps)
