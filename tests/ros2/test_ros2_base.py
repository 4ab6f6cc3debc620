"""The base over ROS 2 against emulated ones on the other vendor: contact, dead bases, reflexes, what is refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from raising import raises_naming
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Bool

from drivers.ros.base.dead_base import DeadBase
from drivers.ros.connection.clock import RosClock
from drivers.ros.connection.errors import SecondPublisher, WrongDefinition
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros2.create3 import Ros2Base
from drivers.ros2.options import Ros2Options
from drivers.ros2.session import Session
from robot_runtime.common import config
from robot_runtime.errors import ConfigError, DeviceFault, StaleData
from robot_runtime.hal import Velocity, Zone

FORWARD = Velocity(0.1, 0.0)
PERIOD_S = 0.05


def make_base(domain: int, family: str, bumper: str = "", wait_s: float = 4.0, **base: Any) -> Ros2Base:
    options = {"family": family, "camera": {"mount": "habitat"}, "base": base, "topics": {"bumper": bumper}}
    options["network"] = {"domain_id": domain, "connect_timeout_s": wait_s}
    chosen = config.parse(options, Ros2Options, "test")
    return Ros2Base("robot", Session(chosen.network, RosClock(0.5, 5.0)), chosen, MotionHistory())


@contextmanager
def connected(domain: int, family: str, bumper: str = "", **base: Any) -> Iterator[Ros2Base]:
    made = make_base(domain, family, bumper, **base)
    made.connect()
    try:
        yield made
    finally:
        made.close()


def drive(base: Ros2Base, until: Callable[[], object], limit_s: float = 10.0) -> float:
    """Command forward until something is reached; how long that took."""
    began_s = time.monotonic()
    while not until():
        assert time.monotonic() < began_s + limit_s
        base.command(FORWARD)
        time.sleep(PERIOD_S)
    return time.monotonic() - began_s


def test_a_create_3_drives_stops_at_a_contact_and_drives_on(emulator: Any, ros2_domain: int) -> None:
    create3 = emulator("create3")
    with connected(ros2_domain, "create3") as base:
        drive(base, lambda: base.state(1.0).odom.x_m > 0.05)
        state = create3.tell(bump=["bump_front_center"])
        drive(base, lambda: base.state(1.0).bumper is Zone.CENTER)
        assert base.command(FORWARD).linear_m_s == 0.0
        create3.wait(lambda now: now["zero_at_s"] is not None)
        state = create3.state
        assert state["zero_at_s"] - state["hazard_at_s"] < 0.25
        create3.tell(bump=[])
        before_m = base.state(1.0).odom.x_m
        drive(base, lambda: base.state(1.0).odom.x_m > before_m + 0.02)


def test_a_bumper_that_was_pressed_before_the_connection_is_known(emulator: Any, ros2_domain: int) -> None:
    create3 = emulator("create3")
    create3.tell(bump=["bump_front_center"])
    with connected(ros2_domain, "create3") as base:
        assert base.state(1.0).bumper is Zone.CENTER
        assert base.command(FORWARD).linear_m_s == 0.0
        create3.tell(bump=[])
        drive(base, lambda: base.state(1.0).odom.x_m > 0.02)


def test_a_base_that_tells_changes_only_must_tell_one(emulator: Any, ros2_domain: int) -> None:
    create3 = emulator("create3", "--fixed-hazards")
    with raises_naming(StaleData, "/hazard_detection") as caught:
        make_base(ros2_domain, "create3", wait_s=2.0).connect()
    assert "press and release the bumper" in caught.value.remedy
    base = make_base(ros2_domain, "create3")
    with ThreadPoolExecutor(1) as person:
        connecting = person.submit(base.connect)
        create3.touch(lambda _: connecting.done())
    try:
        drive(base, lambda: base.state(1.0).odom.x_m > 0.02)
    finally:
        base.close()


def test_a_bumper_whose_newest_message_is_kept_is_known_at_once(emulator: Any, ros2_domain: int, client: Any) -> None:
    emulator("turtlebot3")
    kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    bumper = client.node.create_publisher(Bool, "/bumped", kept)
    bumper.publish(Bool(data=True))
    with connected(ros2_domain, "differential", "/bumped") as base:
        assert base.state(1.0).bumper
        assert base.command(FORWARD).linear_m_s == 0.0
        bumper.publish(Bool())
        drive(base, lambda: base.state(1.0).odom.x_m > 0.02)


def test_a_base_that_obeys_nothing_is_named_within_a_second(emulator: Any, ros2_domain: int) -> None:
    create3 = emulator("create3")
    with connected(ros2_domain, "create3") as base:
        drive(base, lambda: base.state(1.0).odom.x_m > 0.02)
        create3.tell(dead=True)
        died_s = time.monotonic()
        with raises_naming(DeadBase, "does not move"):
            drive(base, lambda: base.state(1.0) is None, 3.0)
        assert time.monotonic() - died_s < 1.5, "0.9 s, one period of odometry and a busy computer"


def test_a_stock_turtlebot_4_is_refused_with_the_file_to_edit(emulator: Any, ros2_domain: int) -> None:
    emulator("create3", "--namespace", "/_do_not_use")
    stock = emulator("turtlebot4_republisher")
    with raises_naming(StaleData, "/hazard_detection") as caught:
        make_base(ros2_domain, "turtlebot4-jazzy").connect()
    assert "turtlebot4_bringup/config/republisher.yaml" in caught.value.remedy
    stock.close()
    emulator("turtlebot4_republisher", "--add", "hazard_detection")
    with connected(ros2_domain, "turtlebot4-jazzy") as base:
        drive(base, lambda: base.state(1.0).odom.x_m > 0.02)


def test_reflexes_that_cannot_be_read_back_are_refused(emulator: Any, ros2_domain: int) -> None:
    emulator("create3", "--no-services", "--hazards", "periodic")
    with raises_naming(DeviceFault, "/motion_control", "reflexes") as caught:
        make_base(ros2_domain, "create3").connect()
    assert "unchecked_reflexes" in caught.value.remedy
    with connected(ros2_domain, "create3", unchecked_reflexes=True) as base:
        drive(base, lambda: base.state(1.0).odom.x_m > 0.02)


def test_a_wrong_type_of_velocity_is_named(emulator: Any, ros2_domain: int) -> None:
    emulator("turtlebot3", "--stamped")
    with raises_naming(WrongDefinition, "/cmd_vel", "TwistStamped"):
        make_base(ros2_domain, "turtlebot3", without_contact=True).connect()
    with connected(ros2_domain, "turtlebot3", without_contact=True, stamped=True) as base:
        drive(base, lambda: base.state(1.0).odom.x_m > 0.02)


def test_a_base_states_whether_it_senses_contact(ros2_domain: int) -> None:
    for family, stated in (("turtlebot3", False), ("create3", True)):
        with raises_naming(ConfigError, "base.without_contact"):
            make_base(ros2_domain, family, without_contact=stated)
        assert make_base(ros2_domain, family, without_contact=not stated).info.senses_contact is stated


def test_a_second_publisher_ends_the_drive(emulator: Any, ros2_domain: int, client: Any) -> None:
    emulator("turtlebot3")
    with connected(ros2_domain, "turtlebot3", without_contact=True) as base:
        drive(base, lambda: base.state(1.0).odom.x_m > 0.02)
        client.commander("/cmd_vel")
        with pytest.raises(SecondPublisher):
            drive(base, lambda: base.state(1.0) is None)
