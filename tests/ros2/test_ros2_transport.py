"""What passes between the two DDS vendors: types that rclpy's wheels lack, qualities, types with fixed arrays."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile, qos_profile_sensor_data

from drivers.ros.bag.definitions import stored_name, typestore
from drivers.ros2 import forged
from tests.ros2.emulators import dds

HAZARDS = "irobot_create_msgs/HazardDetectionVector"
TRANSFORMS = "tf2_msgs/TFMessage"


@pytest.fixture
def other_vendor(ros2_domain: int) -> Iterator[dds.Network]:
    network = dds.Network(ros2_domain)
    yield network
    network.close()


def header(frame: str) -> object:
    return forged.make(
        "std_msgs/Header", stamp=forged.make("builtin_interfaces/Time", sec=1, nanosec=2), frame_id=frame
    )


def hazards(*frames: str) -> object:
    found = [forged.make("irobot_create_msgs/HazardDetection", header=header(frame), type=1) for frame in frames]
    return forged.make(HAZARDS, header=header("base_link"), detections=found)


@pytest.mark.parametrize("frames", [(), ("bump_left",), ("bump_left", "bump_front_center", "bump_right")])
def test_hazards_pass_in_both_directions(client, other_vendor, frames) -> None:
    reader = other_vendor.reader("hazards_out", "irobot_create_msgs/msg/HazardDetectionVector")
    publisher = client.node.create_publisher(forged.stand_in(HAZARDS), "/hazards_out", 10)
    received = client.listen("/hazards_in", HAZARDS)
    writer = other_vendor.writer("hazards_in", "irobot_create_msgs/msg/HazardDetectionVector")

    def is_answered() -> bool:
        forged.Publisher(publisher).publish(hazards(*frames))
        for sent in dds.taken(reader):
            writer.write(sent)
        client.rest(0.02)
        return bool(received)

    client.wait(is_answered)
    assert received[0] == hazards(*frames)


def test_transforms_pass_with_their_doubles(client, other_vendor) -> None:
    received = client.listen("/tf", TRANSFORMS)
    writer = other_vendor.writer("tf", "tf2_msgs/msg/TFMessage")
    transform = dds.Transform(dds.Vector3(1 / 3, 2.0, -3.0), dds.Quaternion(0.0, 0.0, 0.6, 0.8))
    sent = dds.TFMessage([dds.TransformStamped(dds.Header(dds.Time(7, 8), "odom"), "base_link", transform)] * 2)

    def has_come() -> bool:
        writer.write(sent)
        client.rest(0.02)
        return bool(received)

    client.wait(has_come)
    read = received[0].transforms[1]
    assert (read.header.stamp.sec, read.header.frame_id, read.child_frame_id) == (7, "odom", "base_link")
    assert (read.transform.translation.x, read.transform.rotation.w) == (1 / 3, 0.8)


def test_the_graph_shows_the_type_and_its_hash(client) -> None:
    client.node.create_publisher(forged.stand_in(HAZARDS), "/hazards", 10)
    client.wait(lambda: client.node.get_publishers_info_by_topic("/hazards"))
    [info] = client.node.get_publishers_info_by_topic("/hazards")
    assert info.topic_type == "irobot_create_msgs/msg/HazardDetectionVector"
    assert str(info.topic_type_hash).endswith(typestore(2).hash_rihs01(stored_name(HAZARDS))[-64:])


def test_a_reliable_reader_gets_nothing_from_a_writer_that_does_not_repeat(emulator, client) -> None:
    emulator("create3", "--no-services", "--best-effort")
    reliable, best_effort = client.listen("/odom", Odometry, QoSProfile(depth=5)), client.listen("/odom", Odometry)
    client.wait(lambda: len(best_effort) > 10)
    assert not reliable
    [offer] = client.node.get_publishers_info_by_topic("/odom")
    assert offer.qos_profile.reliability == qos_profile_sensor_data.reliability


def test_types_with_a_fixed_array_are_lost_without_the_profile(emulator, client, ros2_domain) -> None:
    base = emulator("create3", "--no-services")
    command = client.commander()
    program = [sys.executable, str(Path(__file__).with_name("lossy_program.py")), str(ros2_domain)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as other:
        client.drive(command, 0.1, 0.0, lambda: other.poll() is not None, limit_s=40.0)
        assert other.stdout
        found = json.loads(other.stdout.read())
    assert found["publishers"] == {"/odom": 1, "/cmd_vel": 1}
    assert found["twists"] > 20
    assert found["odometry"] == 0
    assert base.state["velocity"][0] > 0.05  # it obeys: velocities have no fixed array


def test_a_base_that_starts_slowly_is_silent_and_takes_commands_afterwards(emulator, client) -> None:
    base = emulator("create3", "--no-services", "--start-up-s", 1.0)
    odometry = client.listen("/odom", Odometry)
    assert not base.state["up"]
    began_s = time.monotonic()
    client.wait(lambda: odometry)
    assert time.monotonic() - began_s > 0.5
    client.drive(client.commander(), 0.1, 0.0, lambda: base.state["velocity"][0] > 0.05)


def test_a_robot_with_all_types_needs_no_rosbags() -> None:
    code = "import sys; sys.modules['rosbags'] = None; import drivers.ros2.driver, drivers.ros2.guard.node"
    subprocess.run([sys.executable, "-c", code], check=True)
