"""Poses over ROS 2: motion capture, AMCL and tf are heard whatever their publishers' quality, and missed by name."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from raising import raises_naming
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from test_ros2_base import connected

from drivers.ros.localizer.sources import make_localizer
from drivers.ros.options import LocalizerOptions
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import StaleData
from robot_runtime.hal import PoseStatus
from tests.ros2.emulators import dds

PLACE = SE2(1.0, 2.0, 0.5)
KEPT = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def fill(header: Any, position: Any, orientation: Any, stamp: Any) -> None:
    header.frame_id, header.stamp = "map", stamp
    position.x, position.y = PLACE.x_m, PLACE.y_m
    orientation.z, orientation.w = math.sin(PLACE.yaw_rad / 2), math.cos(PLACE.yaw_rad / 2)


@contextmanager
def repeated(publish: Callable[[], object]) -> Iterator[None]:
    """Publish at 30 Hz meanwhile."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(1 / 30):
            publish()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def check(domain: int, options: LocalizerOptions, publish: Callable[[], object], topic: str) -> None:
    """The pose is known while it is published, and missed by the topic's name afterwards."""
    with connected(domain, "create3") as base:
        localizer = make_localizer("localizer", base.site[0], options, base.site[1], "create3")
        with repeated(publish):
            localizer.connect()
            end_s = time.monotonic() + 10.0
            while not localizer.arrivals().estimates and time.monotonic() < end_s:
                time.sleep(0.02)
            found = localizer.latest(1.0)
        try:
            assert found.status is PoseStatus.OK
            assert found.pose.distance_to(PLACE) < 1e-6
            assert found.pose.yaw_rad == pytest.approx(PLACE.yaw_rad)
            time.sleep(0.4)
            with raises_naming(StaleData, topic):
                localizer.latest(0.2)
        finally:
            localizer.close()


@pytest.mark.parametrize("quality", [qos_profile_sensor_data, KEPT], ids=["best effort", "kept"])
@pytest.mark.parametrize("covariance", [False, True], ids=["motion capture", "AMCL"])
def test_poses_of_a_topic(emulator: Any, ros2_domain: int, client: Any, covariance: bool, quality: QoSProfile) -> None:
    emulator("create3")
    kind = PoseWithCovarianceStamped if covariance else PoseStamped
    publisher = client.node.create_publisher(kind, "/where", quality)

    def publish() -> None:
        message: Any = kind()
        pose = message.pose.pose if covariance else message.pose
        fill(message.header, pose.position, pose.orientation, client.node.get_clock().now().to_msg())
        publisher.publish(message)

    source = "pose_with_covariance" if covariance else "pose"
    check(ros2_domain, LocalizerOptions(source, "/where"), publish, "/where")


def test_transforms(emulator: Any, ros2_domain: int) -> None:
    emulator("create3")
    other_vendor = dds.Network(ros2_domain)
    writer = other_vendor.writer("tf", "tf2_msgs/msg/TFMessage")

    def publish() -> None:
        turn = dds.Quaternion(0.0, 0.0, math.sin(PLACE.yaw_rad / 2), math.cos(PLACE.yaw_rad / 2))
        transform = dds.Transform(dds.Vector3(PLACE.x_m, PLACE.y_m, 0.0), turn)
        writer.write(dds.TFMessage([dds.TransformStamped(dds.Header(dds.stamp(0.0), "map"), "odom", transform)]))

    try:
        check(ros2_domain, LocalizerOptions("tf"), publish, "/tf")
    finally:
        other_vendor.close()
