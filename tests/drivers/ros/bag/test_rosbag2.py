"""Bags of ROS 2: written with the types in the file, read back, imported as any other; each fault named."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bag_drive
import pytest
import synthetic
from bag_drive import FORWARD, LEFT, REST, Move
from raising import raises_naming
from rosbags import rosbag2
from rosbags.highlevel import AnyReader
from synthetic import STOP

from drivers.ros.bag.definitions import typestore
from drivers.ros.bag.errors import DamagedBag, MissingTopic
from drivers.ros.bag.export import export_log
from drivers.ros.bag.reader import BagReader
from drivers.ros.bag.topic_layout import layout
from drivers.ros.connection.errors import WrongDefinition
from robot_runtime.cli.main import run_command
from robot_runtime.errors import RecordingError
from robot_runtime.hal import Zone
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder

STORAGES = ("mcap", "sqlite3")
HAZARDS = "/hazard_detection"


def recorded_log(folder: Path) -> Path:
    header = synthetic.header()
    recorder = Recorder(folder)
    synthetic.play(recorder, header, synthetic.drive(header, [synthetic.FORWARD, STOP]))
    assert recorder.path is not None
    return recorder.path


@pytest.mark.parametrize("storage", STORAGES)
def test_a_log_becomes_a_bag_that_other_software_reads_by_the_types_in_it(tmp_path: Path, storage: Any) -> None:
    log = recorded_log(tmp_path / "log")
    with LogReader(log) as reader:
        export_log(reader, tmp_path / "bag", layout("create3"), storage=storage)
        steps = list(reader.steps())
    assert {path.name for path in (tmp_path / "bag").iterdir()} == {
        "metadata.yaml",
        f"bag.{storage.replace('sqlite3', 'db3')}",
    }
    # AnyReader knows no type by itself: it takes all from the bag.
    with AnyReader([tmp_path / "bag"]) as bag:
        found = {connection.topic: connection.msgtype for connection in bag.connections}
        colors = [bag.deserialize(data, c.msgtype) for c, _, data in bag.messages() if c.topic.endswith("image_raw")]
    assert found[HAZARDS] == "irobot_create_msgs/msg/HazardDetectionVector"
    assert found["/tf_static"] == "tf2_msgs/msg/TFMessage"
    assert "/joint_states" not in found
    rgb = [image for image in colors if image.encoding == "rgb8"]
    assert [image.data.tobytes() for image in rgb] == [step.frame.rgb.tobytes() for step in steps]


@pytest.mark.parametrize("storage", STORAGES)
def test_a_drive_is_imported_with_its_contacts(tmp_path: Path, storage: Any) -> None:
    bumped = Move(forward_m=0.1, bumped=Zone.LEFT)
    where = layout("turtlebot4-jazzy")
    bag = bag_drive.record(
        tmp_path / "drive", [REST, bumped, REST, LEFT, FORWARD, FORWARD, REST], where, storage=storage
    )
    assert run_command(["logs", "import", "--rosbag", str(bag), "--out", str(tmp_path / "log")]) == 0
    (log,) = (tmp_path / "log").iterdir()
    with LogReader(log) as reader:
        records, states = list(reader.steps()), list(reader.base_states())
        assert reader.header.robot == "turtlebot4-jazzy"
    assert math.degrees(records[-1].pose.pose.yaw_rad) == pytest.approx(30, abs=0.5)
    touched = [state for state in states if state.bumper is Zone.LEFT]
    touched_s = [(stamp_ns - bag_drive.START_NS) / 1e9 for stamp_ns in (touched[0].stamp_ns, touched[-1].stamp_ns)]
    assert touched_s == pytest.approx([0.62, 1.6], abs=0.07)
    assert states[-1].bumper is Zone.NONE


def test_hazards_that_never_changed_are_no_contact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    silent = bag_drive.record(tmp_path / "silent", [REST, FORWARD, REST], layout("create3"))
    command = ["logs", "import", "--out", str(tmp_path / "log"), "--rosbag"]
    assert run_command([*command, str(silent)]) != 0
    assert HAZARDS in capsys.readouterr().err
    assert run_command([*command, str(silent), "--without", "contact"]) == 0
    # Recorded, but without a message: as a stock Create 3 on a drive without contact.
    subscribed = tmp_path / "subscribed"
    copied(silent, subscribed, lambda w: w.add_connection(HAZARDS, HAZARD_KIND, typestore=typestore(2)))
    assert run_command([*command, str(subscribed)]) == 0


def test_a_drive_that_sensed_no_contact_is_of_no_task_that_needs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bag = bag_drive.record(tmp_path / "drive", [REST, FORWARD, REST], layout("turtlebot3"))
    command = ["logs", "import", "--rosbag", str(bag), "--out", str(tmp_path / "log"), "--robot", "turtlebot3"]
    command += ["--poses", "odometry", "--without", "contact"]
    assert run_command([*command, "--task", "pointnav_gps_compass"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "'turtlebot3' senses no contact" in said
    assert "needs_contact_sensing: false" in said
    assert run_command(command) == 0


HAZARD_KIND = "irobot_create_msgs/msg/HazardDetectionVector"


def copied(bag: Path, to: Path, add: Callable[[Any], object], leave: str = "") -> Path:
    with rosbag2.Reader(bag) as reader, rosbag2.Writer(to, version=9) as writer:
        add(writer)
        made = {
            c.topic: writer.add_connection(c.topic, c.msgtype, typestore=typestore(2))
            for c in reader.connections
            if c.topic != leave
        }
        for c, at_ns, data in reader.messages(reader.connections):
            if c.topic in made:
                writer.write(made[c.topic], at_ns, data)
    return to


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bag_drive.record(tmp_path_factory.mktemp("bag") / "short", [Move(seconds=0.2)], layout("create3"))


def test_the_span_of_a_topic_is_found_though_it_ends_early(short: Path, tmp_path: Path) -> None:
    late = 3600 * 10**9

    def add(writer: Any) -> None:
        connection = writer.add_connection("/late", "std_msgs/msg/String", typestore=typestore(2))
        text = bag_drive.MESSAGES[2].text("late")
        data = typestore(2).serialize_cdr(text, text.__msgtype__)
        writer.write(connection, bag_drive.START_NS + late, data)

    with BagReader(copied(short, tmp_path / "late", add)) as bag, BagReader(short) as before:
        assert bag.span_ns("/odom") == before.span_ns("/odom")
        assert bag.span_ns("/odom")[1] < bag.span_ns("/late")[0]


def test_each_fault_is_named_with_its_remedy(short: Path, tmp_path: Path) -> None:
    def copy(name: str) -> Path:
        return Path(shutil.copytree(short, tmp_path / name))

    (killed := copy("killed")).joinpath("metadata.yaml").unlink()
    with raises_naming(DamagedBag, str(killed), "ros2 bag reindex"):
        BagReader(killed)
    torn = copy("torn") / "short.mcap"
    torn.write_bytes(torn.read_bytes()[:-5000])
    for path in (torn, torn.parent):
        with raises_naming(DamagedBag, str(path), "killed", "ros2 bag reindex"):
            BagReader(path)
    (noise := tmp_path / "noise.db3").write_bytes(b"noise" * 1000)
    with raises_naming(DamagedBag, "noise.db3", "not a bag of ROS 2"):
        BagReader(noise)
    with raises_naming(DamagedBag, "not a bag of ROS 2"):
        BagReader(recorded_log(tmp_path / "log"))
    with raises_naming(RecordingError, "missing", "does not exist"):
        BagReader(tmp_path / "missing")


def test_another_definition_of_a_message_is_refused(short: Path, tmp_path: Path) -> None:
    def add(writer: Any) -> None:
        text = "std_msgs/Header header\nfloat64 speed\n" + "=" * 80 + "\nMSG: std_msgs/Header\nint32 a\n"
        connection = writer.add_connection("/odom", "nav_msgs/msg/Odometry", msgdef=text, rihs01="RIHS01_00")
        writer.write(connection, bag_drive.START_NS, b"\0\1\0\0" + bytes(80))

    bag = copied(short, tmp_path / "other", add, leave="/odom")
    with BagReader(bag) as reader, raises_naming(WrongDefinition, "/odom", "nav_msgs/msg/Odometry", "record it"):
        reader.require("/odom", ("nav_msgs/Odometry",), "odometry", "")
    with BagReader(bag) as reader, raises_naming(DamagedBag, "/odom"):
        next(reader.messages(("/odom",))).decoded()
    with BagReader(short) as reader, raises_naming(MissingTopic, "/hazard_detection"):
        reader.require(HAZARDS, ("irobot_create_msgs/HazardDetectionVector",), "contact", "record it")
