"""Masters that are gone, hang or come back; other definitions; nobody there: each named, and in time."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import rospy
from genpy.dynamic import generate_dynamic
from kobuki_msgs.msg import SensorState
from nav_msgs.msg import Odometry
from raising import raises_naming
from ros_processes import eventually, is_subscribed
from std_msgs.msg import Header, String

from drivers.ros.connection.clock import RosClock
from drivers.ros.connection.errors import MasterGone, WrongDefinition
from drivers.ros.protocol import ACKNOWLEDGE_TOPIC
from drivers.ros_locobot.connection.acknowledge import AcknowledgePublisher, header_of
from drivers.ros_locobot.connection.master import check_publishers, publisher_definition
from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.options import MasterOptions
from robot_runtime.errors import DeviceFault, StaleData

PROGRAM = str(Path(__file__).with_name("driver_program.py"))
TALKER = """
import rospy, sys
from std_msgs.msg import String
rospy.init_node("gone", disable_rostime=True)
out = rospy.Publisher(sys.argv[1], String, queue_size=1)
print("up", flush=True)
rospy.spin()
"""
SIMULATED = ("-m", "sim_bridge.ros", "--camera", "80x60@79")


@contextmanager
def session(**options: Any) -> Iterator[Session]:
    made = Session(MasterOptions(**{"connect_timeout_s": 2.0, **options}), RosClock(0.05, 1.0))
    user = object()
    made.open(user)
    try:
        yield made
    finally:
        made.close(user)


# --- masters --------------------------------------------------------------------------------------------------------


def test_no_master_is_told_at_once_with_its_address(free_port: int) -> None:
    uri = f"http://127.0.0.1:{free_port}"
    with raises_naming(MasterGone, uri) as caught, session(uri=uri):
        pass
    assert "ROS_MASTER_URI" in caught.value.remedy


def test_a_master_that_hangs_is_told_within_the_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        uri = f"http://127.0.0.1:{server.getsockname()[1]}"
        with raises_naming(MasterGone, uri, "0.3 s"), session(uri=uri, timeout_s=0.3):
            pass


def test_one_process_is_a_node_of_one_master(ros_node: str, make_master: Any) -> None:
    other = make_master()
    with raises_naming(DeviceFault, other.uri), session(uri=other.uri):
        pass


@pytest.mark.slow
def test_a_master_that_dies_stops_the_robot_and_one_that_comes_back_is_joined_again(
    spawn: Any, make_master: Any
) -> None:
    master = make_master()
    robot = spawn(*SIMULATED, master=master.uri)
    robot.wait_for_line("ready")
    options = {
        "family": "pyrobot-kobuki",
        "camera": {"mount": "habitat"},
        "master": {"monitor_period_s": 0.1, "connect_timeout_s": 3.0},
    }
    runtime = spawn(PROGRAM, json.dumps(options), master=master.uri)
    runtime.wait_for_line("outcome reached")
    master.kill()
    assert master.uri in runtime.wait_for_line("fault MasterGone")
    assert eventually(lambda: "outcome fault" in runtime.lines)
    known = len(runtime.lines)
    master.start()
    # The new master knows no robot: that is said, rather than waited for.
    assert eventually(lambda: [line for line in runtime.lines[known:] if "has no publisher" in line])
    robot.stop(signal.SIGKILL)
    spawn(*SIMULATED, master=master.uri).wait_for_line("ready")
    assert eventually(lambda: "outcome reached" in runtime.lines[known:]), runtime.output
    assert "registrations are now out of sync" not in runtime.output, "rospy says that for every topic"


# --- topics ---------------------------------------------------------------------------------------------------------


def test_another_definition_of_the_same_name_is_noticed_on_connecting(ros_node: str, ros_name: str) -> None:
    other = generate_dynamic("kobuki_msgs/SensorState", "uint8 bumper\n")["kobuki_msgs/SensorState"]
    publisher = rospy.Publisher(f"{ros_name}/core", other, queue_size=1)
    try:
        with session() as made, pytest.raises(WrongDefinition) as caught:
            made.subscribe(f"{ros_name}/core", "kobuki_msgs/SensorState", print)
    finally:
        publisher.unregister()
    for part in (f"{ros_name}/core", ros_node, other._md5sum, SensorState._md5sum):
        assert part in caught.value.message


def test_another_type_is_noticed_on_connecting(ros_node: str, ros_name: str) -> None:
    publisher = rospy.Publisher(f"{ros_name}/odom", String, queue_size=1)
    try:
        with session() as made, raises_naming(WrongDefinition, "std_msgs/String", f"{ros_name}/odom"):
            made.subscribe(f"{ros_name}/odom", "nav_msgs/Odometry", print)
    finally:
        publisher.unregister()


def test_a_topic_that_nobody_publishes_is_named_with_what_resembles_it(ros_node: str, ros_name: str) -> None:
    publisher = rospy.Publisher(f"{ros_name}/mobile_base/odom", Odometry, queue_size=1)
    try:
        with session() as made, raises_naming(StaleData, f"{ros_name}/odom") as caught:
            made.subscribe(f"{ros_name}/odom", "nav_msgs/Odometry", print)
    finally:
        publisher.unregister()
    assert f"{ros_name}/mobile_base/odom" in caught.value.remedy


def test_commands_that_nobody_hears_are_refused(ros_node: str, ros_name: str) -> None:
    with session() as made:
        publisher = made.advertise(f"{ros_name}/velocity", "geometry_msgs/Twist")
        with raises_naming(DeviceFault, f"{ros_name}/velocity"):
            made.require_subscriber(publisher)
        made.unsubscribe(publisher)


def test_a_robot_of_another_family_is_named(make_master: Any, spawn: Any) -> None:
    master = make_master()
    robot = spawn(*SIMULATED, "--family", "interbotix", master=master.uri)
    robot.wait_for_line("ready")
    options = {"family": "pyrobot-kobuki", "camera": {"mount": "habitat"}, "master": {"connect_timeout_s": 1.0}}
    runtime = spawn(PROGRAM, json.dumps(options), master=master.uri)
    told = runtime.wait_for_line("fault StaleData")
    assert "/mobile_base/sensors/core" in told
    assert "the network has the topics of the family 'interbotix': set options.family" in told


@pytest.mark.parametrize("taken_as", [("nav_msgs/Odometry",), ("nav_msgs/Odometry", "other_msgs/Odometry")])
def test_a_simulator_is_told_what_is_read_and_who_has_left(ros_node: str, ros_name: str, taken_as: Any) -> None:
    told: list[Any] = []
    ear = rospy.Subscriber(ACKNOWLEDGE_TOPIC, Header, told.append)
    topic = f"{ros_name}/odom"
    publisher = rospy.Publisher(topic, Odometry, queue_size=1)
    try:
        with session() as made:
            made._acknowledge = AcknowledgePublisher()  # as on a network whose time is simulated
            assert eventually(lambda: is_subscribed(made._acknowledge.publisher, ros_node))
            subscriber = made.subscribe(topic, taken_as, lambda _: None, acknowledged=True)
            assert eventually(lambda: is_subscribed(publisher, ros_node))
            publisher.publish(Odometry(header=Header(stamp=rospy.Time(7))))
            assert eventually(lambda: [(m.frame_id, m.stamp.secs) for m in told] == [(topic, 7)])
            made.unsubscribe(subscriber)
            assert eventually(lambda: [(m.frame_id, m.stamp.secs) for m in told] == [(topic, 7), (topic, 0)])
    finally:
        publisher.unregister()
        ear.unregister()


@pytest.mark.parametrize("told", [{}, {"message_definition": "# no more than a comment\nfloat32 data\n"}])
def test_a_message_that_does_not_say_how_it_begins_has_no_header(told: dict[str, str]) -> None:
    message = rospy.AnyMsg()
    message._connection_header, message._buff = told, bytes(16)
    assert header_of(message) is None


@pytest.mark.slow
def test_a_connection_is_open_once_the_simulator_hears_who_reads(ros_node: str, ros_master: str, spawn: Any) -> None:
    robot = spawn(*SIMULATED)
    robot.wait_for_line("ready")
    try:
        with session() as made:
            assert made._acknowledge is not None
            assert any(peer != made.node for _, peer, *_ in made._acknowledge.publisher.impl.get_stats_info())
    finally:
        robot.stop(signal.SIGKILL)
        rospy.delete_param("/use_sim_time")


@pytest.mark.slow
def test_a_publisher_that_died_is_nobody(ros_node: str, ros_name: str, spawn: Any) -> None:
    gone = spawn("-c", TALKER, f"{ros_name}/words")
    gone.wait_for_line("up")
    gone.stop(signal.SIGKILL)
    with session() as made, raises_naming(StaleData, "/gone", f"{ros_name}/words"):
        made.subscribe(f"{ros_name}/words", "std_msgs/String", print)


@pytest.mark.parametrize("leaves", ["the topic", "altogether"])
@pytest.mark.slow
def test_a_publisher_that_leaves_while_it_is_asked_is_nobody(
    ros_node: str, ros_name: str, spawn: Any, monkeypatch: pytest.MonkeyPatch, leaves: str
) -> None:
    topic = f"{ros_name}/words"
    program = spawn("-c", TALKER, topic) if leaves == "altogether" else None
    own = rospy.Publisher(topic, String, queue_size=1) if program is None else None
    if program is not None:
        program.wait_for_line("up")

    def late(*arguments: Any) -> tuple[str, str]:
        if program is not None:
            program.stop(signal.SIGKILL)
        if own is not None:
            own.unregister()
        return publisher_definition(*arguments)

    monkeypatch.setattr("drivers.ros_locobot.connection.master.publisher_definition", late)
    with session() as made:
        check_publishers(made.master, topic, String, 2.0)
