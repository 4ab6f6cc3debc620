"""Bags that the runtime writes, in the hands of ROS's own tool; bags that the tool recorded, in the runtime's."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import xmlrpc.client
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import kobuki_msgs
import numpy as np
import pytest
import rosbag
import rosgraph
import rospy
import synthetic
from ros_processes import LIMIT_S, Program, eventually
from sensor_msgs.msg import Image
from synthetic import FORWARD, LEFT, RIGHT, STOP, UP

from drivers.ros.bag.definitions import definitions, md5_of
from drivers.ros.bag.episode_header import ImportOptions
from drivers.ros.bag.errors import DamagedBag
from drivers.ros.bag.export import export_log
from drivers.ros.bag.import_external import import_drive
from drivers.ros.bag.reader import BagReader
from drivers.ros.bag.topic_layout import layout
from drivers.ros_locobot.options import RosOptions
from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeHeader
from robot_runtime.robots.loader import RobotFile

COLOR, DEPTH = "/camera/color/image_raw", "/camera/aligned_depth_to_color/image_raw"


def recorded(folder: Path, header: EpisodeHeader, actions: list[Action]) -> Path:
    recorder = Recorder(folder)
    synthetic.play(recorder, header, synthetic.drive(header, actions))
    assert recorder.path is not None
    return recorder.path


def exported(log: Path, bag: Path) -> Path:
    with LogReader(log) as reader:
        export_log(reader, bag, layout("pyrobot-kobuki"))
    return bag


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("log"), synthetic.header(), [FORWARD, LEFT, UP, STOP])


@pytest.fixture(scope="module")
def bag(log: Path) -> Path:
    return exported(log, log.with_name("log.bag"))


Tool = Callable[..., str]


@pytest.fixture
def tool(ros_environ: dict[str, str]) -> Tool:
    """``tool("info", path)`` runs ``rosbag info path`` and gives what it printed."""

    messages = str(Path(kobuki_msgs.__file__).parents[1])

    def run(*arguments: object) -> str:
        done = subprocess.run(
            ["rosbag", *map(str, arguments)],
            env=ros_environ | {"PYTHONPATH": messages},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


def node(name: str, *arguments: str, master: str | None = None) -> Program:
    """The tool's own node; `rosbag play` and `rosbag record` would start it as a child that outlives them."""
    environ = {**os.environ, "ROSCONSOLE_STDOUT_LINE_BUFFERED": "1"}
    return Program(["rosrun", "rosbag", name, *arguments], environ | ({"ROS_MASTER_URI": master} if master else {}))


@pytest.mark.parametrize("name", definitions(1))
@pytest.mark.slow
def test_definitions_are_those_of_the_messages(name: str) -> None:
    import roslib.message

    assert md5_of(name) == roslib.message.get_message_class(name)._md5sum


def test_info_and_check_understand_an_exported_bag(bag: Path, tool: Tool) -> None:
    told = tool("info", bag)
    for line in (
        "5 msgs    : sensor_msgs/Image",
        "kobuki_msgs/SensorState",
        "/robot_runtime/step",
        "compression: none",
    ):
        assert line in told
    # Definitions are compared with their comments, which ours lack; every rule is "the same md5".
    assert "All rules defined" in tool("check", bag)


def test_the_tools_reader_finds_what_the_log_says(log: Path, bag: Path) -> None:
    with LogReader(log) as reader:
        records = list(reader.steps())
    seen: dict[str, list[Any]] = {}
    with rosbag.Bag(str(bag)) as found:
        for topic, message, stamp in found.read_messages():
            seen.setdefault(topic, []).append((stamp.to_nsec(), message))
    assert len(seen[COLOR]) == len(records)
    for record, (at_ns, color), (_, depth) in zip(records, seen[COLOR], seen[DEPTH], strict=True):
        assert at_ns == color.header.stamp.to_nsec() == record.frame.stamp_ns
        rgb = np.frombuffer(color.data, np.uint8).reshape(color.height, color.width, 3)
        np.testing.assert_array_equal(rgb, record.frame.rgb)
        millimetres = np.frombuffer(depth.data, np.uint16).reshape(depth.height, depth.width)
        np.testing.assert_array_equal(millimetres * np.float32(0.001), record.frame.depth_m)
    assert [message.header.seq for _, message in seen["/odom"]] == list(range(len(seen["/odom"])))


def test_a_torn_bag_opens_after_the_reindexing_that_the_error_asks_for(bag: Path, tool: Tool, tmp_path: Path) -> None:
    torn = tmp_path / "torn.bag"
    with rosbag.Bag(str(bag)) as whole, rosbag.Bag(str(torn), "w", chunk_threshold=20_000) as copy:
        for topic, message, stamp in whole.read_messages(raw=True):
            copy.write(topic, message, stamp, raw=True)
    torn.write_bytes(torn.read_bytes()[: torn.stat().st_size * 6 // 10])
    with pytest.raises(DamagedBag) as caught:
        BagReader(torn)
    assert f"rosbag reindex {torn}" in caught.value.remedy
    tool("reindex", torn)
    with BagReader(torn) as found:
        assert 1 <= len([message.decoded() for message in found.messages((COLOR,))]) < 5


def test_play_publishes_it(ros_node: str, bag: Path) -> None:
    heard: list[Any] = []
    subscriber = rospy.Subscriber(COLOR, Image, heard.append, queue_size=20, buff_size=2**24)
    arguments = ("--rate", "4", "--wait-for-subscribers", "--topics", COLOR, "--bags", str(bag))
    player = node("play", *arguments)
    try:
        assert eventually(lambda: len(heard) == 5, alive=None), player.output
    finally:
        player.stop(signal.SIGKILL)
        subscriber.unregister()
    assert {(message.width, message.height, message.encoding) for message in heard} == {(64, 48, "rgb8")}


def is_subscribed(master: str, listener: str, topics: set[str]) -> bool:
    """Whether a node is connected to all of the simulated robot's topics."""
    address = rosgraph.Master("/tests", master).lookupNode("/simulated_robot")
    with xmlrpc.client.ServerProxy(address) as node:
        _, _, connections = node.getBusInfo("/tests")  # type: ignore[misc]
    return topics <= {
        topic for _, peer, direction, _, topic, *_ in connections if listener in peer and direction == "o"
    }


OPTIONS = {
    "family": "pyrobot-kobuki",
    "camera": {"mount": "habitat"},
    "referee": {"source": "pose", "topic": "/simulation/ground_truth"},
    "clock": {"stall_s": 20.0},
}
PROGRAM = str(Path(__file__).with_name("bag_program.py"))


@pytest.mark.slow
def test_what_the_tool_recorded_of_a_drive_is_its_episode(make_master: Any, spawn: Any, tmp_path: Path) -> None:
    """In simulated time, which a busy machine slows down and does not break."""
    task = synthetic.pointnav_task(width=80, height=60)
    master = make_master()
    simulated = spawn("-m", "sim_bridge.ros", "--camera", "80x60@79", "--start", "1.2,1.36,0", master=master.uri)
    simulated.wait_for_line("ready")
    path = tmp_path / "drive.bag"
    topics = (COLOR, DEPTH, "/camera/color/camera_info", "/odom", "/mobile_base/sensors/core", "/joint_states")
    poses = ("/tf", "/tf_static", "/simulation/ground_truth")
    recorder = node("record", "--output-name", str(path), *topics, *poses, master=master.uri)
    driven = [FORWARD, LEFT, UP, FORWARD, RIGHT]
    displacements = [astuple(task.magnitudes.displacement(action)) for action in driven]
    try:
        assert eventually(lambda: is_subscribed(master.uri, "record", {*topics, *poses}), alive=recorder), (
            recorder.output
        )
        program = spawn(PROGRAM, json.dumps(OPTIONS), json.dumps(displacements), master=master.uri)
        program.wait_for_line("done", 2 * LIMIT_S)
        recorder.stop(signal.SIGINT)
    finally:
        recorder.stop(signal.SIGKILL)
    assert program.output.count("reached") == len(driven), program.output
    truth = [SE2(*json.loads(line[3:])) for line in program.lines if line.startswith("at ")]
    log = Recorder(tmp_path / "logs")
    said = ImportOptions(
        RobotFile("robot", "driver"), config.parse(OPTIONS, RosOptions, "options"), task=task, stop=True
    )
    with BagReader(path) as reader:
        import_drive(reader, said, log)
    assert log.path is not None
    with LogReader(log.path) as found:
        records = list(found.steps())
    assert [record.action for record in records] == [None, *driven, STOP]
    for record, pose in zip(records[1:], truth, strict=False):
        assert record.referee.pose.distance_to(pose) < 0.005
        assert abs(math.degrees(record.referee.pose.yaw_rad - pose.yaw_rad)) < 0.5
        assert record.frame.depth_m.max() > 0.5
    assert math.degrees(records[-1].head.tilt_rad) == pytest.approx(30, abs=1)
