"""The driver's receivers with messages that cannot be true: the same verdicts as the import of a bag."""

from __future__ import annotations

import math
from typing import Any

import pytest
import rospy
from geometry_msgs.msg import PoseStamped, TransformStamped
from nav_msgs.msg import Odometry
from raising import raises_naming
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage

from drivers.ros.base.driver import RosBase
from drivers.ros.connection.clock import RosClock
from drivers.ros.connection.errors import TwoSources
from drivers.ros.head import RosHead
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros.localizer.sources import make_localizer
from drivers.ros.options import LocalizerOptions
from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.options import RosOptions
from drivers.ros_locobot.reading import received
from robot_runtime.common import config
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.errors import StaleData
from robot_runtime.hal import PoseStatus
from robot_runtime.robots.checked_localizer import CheckedLocalizer

MS = 1_000_000
MOCAP = LocalizerOptions("pose", "/mocap/pose", rate_hz=50.0)


class Site:
    """A session without a network; messages are handed to the devices' callbacks."""

    def __init__(self) -> None:
        options = {"family": "pyrobot-kobuki", "camera": {"mount": "habitat"}}
        self.options = config.parse(options, RosOptions, "test")
        self.session = Session(self.options.master, RosClock(0.05, 1.0))
        self.session.clock.start_simulated(10 * NS_PER_S)
        self.now_ms = 0

    def localizer(self, options: LocalizerOptions) -> Any:
        made = make_localizer("localizer", self.session, options, self.options, "robot")
        made._connected = True
        return made

    def stamped(self, message: Any, frame: str = "map", node: str = "/mocap", on_ms: int = 20) -> Any:
        self.now_ms += on_ms
        self.session.clock.advance(10 * NS_PER_S + self.now_ms * MS)
        seconds, milliseconds = divmod(self.now_ms, 1000)
        message.header.stamp, message.header.frame_id = rospy.Time(10 + seconds, milliseconds * MS), frame
        message._connection_header = {"callerid": node}
        return message

    def pose(self, x_m: float = 0.0, w: float = 1.0, node: str = "/mocap", on_ms: int = 20) -> Any:
        message = self.stamped(PoseStamped(), node=node, on_ms=on_ms)
        message.pose.position.x, message.pose.orientation.w = x_m, w
        return received(message)

    def odometry(self, x_m: float, on_ms: int = 0, node: str = "/kobuki") -> Any:
        message = self.stamped(Odometry(), "odom", node, on_ms)
        message.pose.pose.position.x, message.pose.pose.orientation.w = x_m, 1.0
        return received(message)

    def joints(self, pan_rad: float, node: str = "/servos") -> Any:
        message = self.stamped(JointState(), node=node)
        message.name, message.position = ["head_pan_joint", "head_tilt_joint"], [pan_rad, 0.0]
        return received(message)


def test_a_zero_quaternion_is_lost_and_ends_with_the_next_pose() -> None:
    site = Site()
    mocap = site.localizer(MOCAP)
    mocap._on_message(site.pose(1.0))
    mocap._on_message(site.pose(0.0, w=0.0))
    lost = mocap.latest(0.5)
    assert (lost.status, lost.pose.x_m) == (PoseStatus.LOST, 1.0)
    mocap._on_message(site.pose(1.0))
    assert mocap.latest(0.5).status is PoseStatus.OK
    events = mocap.arrivals().events
    assert [event.kind for event in events] == ["no_fix", "fix"]
    assert "zero" in events[0].detail


def test_a_frozen_tracker_is_lost_whatever_fuses_it() -> None:
    site = Site()
    mocap, odometry = site.localizer(MOCAP), site.localizer(LocalizerOptions("odometry"))
    checked = CheckedLocalizer(mocap, odometry, None)
    for step in range(60):
        odometry._on_message(site.odometry(0.005 * step, on_ms=20))
        mocap._on_message(site.pose(0.005 * min(step, 20), on_ms=0))
    assert checked.latest(0.5).status is PoseStatus.LOST
    assert checked.at(checked.latest(0.5).stamp_ns - 10 * MS, 0.1).status is PoseStatus.LOST
    assert "frozen" in [event.kind for event in checked.arrivals().events]


def test_two_trackers_on_one_topic_are_named() -> None:
    site = Site()
    mocap = site.localizer(MOCAP)
    mocap._on_message(site.pose(node="/vrpn"))
    mocap._on_message(site.pose(node="/bridge"))
    with raises_naming(TwoSources, "/mocap/pose", "/vrpn", "/bridge"):
        mocap._on_message(site.pose(node="/vrpn"))


def test_a_frame_with_two_parents_is_named() -> None:
    site = Site()
    tf = site.localizer(LocalizerOptions("tf"))

    def publish(parent: str, child: str, node: str) -> None:
        transform = site.stamped(TransformStamped(), parent)
        transform.child_frame_id, transform.transform.rotation.w = child, 1.0
        message = TFMessage([transform])
        message._connection_header = {"callerid": node}
        tf._on_transforms(received(message))

    publish("odom", "base_footprint", "/kobuki")
    publish("map", "odom", "/amcl")
    publish("odom", "base_footprint", "/kobuki")
    assert tf.latest(0.5).status is PoseStatus.OK
    with raises_naming(TwoSources, "base_footprint", "odom (by /kobuki)", "world (by /mocap)"):
        publish("world", "base_footprint", "/mocap")


@pytest.mark.parametrize("pan_rad", [math.nan, math.inf, 40.0])
def test_a_glitch_of_the_head_ends_nothing_and_silence_after_it_says_why(pan_rad: float) -> None:
    site = Site()
    head = RosHead(site.session, site.options, MotionHistory())
    head._connected = True
    head._on_joints(site.joints(0.1))
    head._on_joints(site.joints(pan_rad))
    assert head.state(0.2).pan_rad == pytest.approx(0.1)
    for _ in range(20):
        head._on_joints(site.joints(pan_rad))
    with raises_naming(StaleData, "/joint_states", "unusable"):
        head.state(0.2)
    head._on_joints(site.joints(0.2))
    assert head.state(0.2).pan_rad == pytest.approx(0.2)


def test_a_glitch_of_odometry_ends_nothing() -> None:
    site = Site()
    motion = MotionHistory()
    base = RosBase("robot", site.session, site.options, motion)
    odometry = site.localizer(LocalizerOptions("odometry"))
    for receive in (base._on_odom, odometry._on_message):
        receive(site.odometry(1.0, on_ms=20))
        receive(site.odometry(math.nan, on_ms=20))
    assert odometry.latest(0.5).pose.x_m == pytest.approx(1.0)
    assert odometry.latest(0.5).status is PoseStatus.OK
    with raises_naming(TwoSources, "/odom", "/kobuki", "/simulator"):
        for node in ("/simulator", "/kobuki"):
            base._on_odom(site.odometry(1.0, on_ms=20, node=node))
