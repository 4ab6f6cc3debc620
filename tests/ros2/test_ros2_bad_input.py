"""What a base over ROS 2 may send that it should not: the wheels stop, and the topic is named."""

from __future__ import annotations

from typing import Any

import pytest
from nav_msgs.msg import Odometry
from raising import raises_naming
from test_ros2_base import FORWARD, connected, drive, make_base

from drivers.ros.connection.errors import TwoSources
from drivers.ros2.create3 import Ros2Base
from robot_runtime.errors import RuntimeFault, StaleData


def faults(base: Ros2Base, create3: Any, *things: str) -> RuntimeFault:
    """Drive until a fault ends it that names things, and wait until the wheels were told to stop."""
    with raises_naming(RuntimeFault, *things) as caught:
        drive(base, lambda: base.state(0.3) is None, 5.0)
    create3.wait(lambda now: now["commanded"] == [0.0, 0.0])
    return caught.value


@pytest.mark.parametrize(
    "command",
    [{"mute": ["odom"]}, {"odom_fault": "nan"}, {"odom_fault": "tilted"}, {"stamp_offset_s": 30.0}],
    ids=["silent", "not finite", "tilted", "another clock"],
)
def test_odometry_that_goes_wrong_stops_the_wheels(emulator: Any, ros2_domain: int, command: dict[str, Any]) -> None:
    create3 = emulator("create3")
    with connected(ros2_domain, "create3") as base:
        drive(base, lambda: base.state(1.0).odom.x_m > 0.02)
        create3.tell(**command)
        faults(base, create3, "/odom")


def test_a_base_in_another_namespace_is_not_there(emulator: Any, ros2_domain: int) -> None:
    emulator("create3", "--namespace", "/robot7")
    with raises_naming(StaleData, "/hazard_detection") as caught:
        make_base(ros2_domain, "create3", wait_s=2.0).connect()
    assert "there is /robot7/hazard_detection" in caught.value.remedy


def test_a_base_that_reboots_is_missed_and_its_contacts_are_learned_again(emulator: Any, ros2_domain: int) -> None:
    create3 = emulator("create3")
    with connected(ros2_domain, "create3") as base:
        drive(base, lambda: base.state(1.0).odom.x_m > 0.02)
        create3.tell(power_cycle=3.0)
        with raises_naming(StaleData, "/odom"):
            drive(base, lambda: base.state(0.3) is None, 5.0)
        assert base.command(FORWARD).linear_m_s == 0.0


def test_messages_that_come_twice_change_nothing(emulator: Any, ros2_domain: int) -> None:
    create3 = emulator("create3")
    with connected(ros2_domain, "create3") as base:
        create3.tell(twice=["odom", "hazard_detection"])
        drive(base, lambda: base.state(1.0).odom.x_m > 0.05)
        create3.tell(bump=["bump_left"])
        drive(base, lambda: base.state(1.0).bumper)
        create3.tell(bump=[])
        drive(base, lambda: not base.state(1.0).bumper)


def test_a_second_source_of_odometry_is_named(emulator: Any, ros2_domain: int, client: Any) -> None:
    create3 = emulator("create3")
    with connected(ros2_domain, "create3") as base:
        drive(base, lambda: base.state(1.0).odom.x_m > 0.02)
        publisher = client.node.create_publisher(Odometry, "/odom", 1)

        def mixed() -> bool:
            message = Odometry()
            message.header.stamp = client.node.get_clock().now().to_msg()
            message.pose.pose.orientation.w = 1.0
            publisher.publish(message)
            return base.state(0.3) is None

        with raises_naming(TwoSources, "/odom"):
            drive(base, mixed, 5.0)
        create3.wait(lambda now: now["commanded"] == [0.0, 0.0])
