"""`robot-runtime preflight` on emulated bases: what keeps one from being driven is a refused row with what to edit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile

from robot_runtime.cli.main import run_command
from robot_runtime.errors import DeviceFault
from robot_runtime.robots.loader import read_robot_file

NAMESPACE = ("--namespace", "/_do_not_use")
WEB_PAGE = "ros-params"
Refusal = Callable[..., None]


@pytest.fixture
def refuses(ros2_domain: int, tmp_path: Path) -> Refusal:
    """Expect that preflight refuses the robot of a preset, in a row that names things; ``limit_s`` is of its wait."""

    def run(preset: str, *things: str, limit_s: float = 4.0) -> None:
        path, _ = read_robot_file(preset)
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        content["options"] |= {"network": {"domain_id": ros2_domain, "connect_timeout_s": limit_s}}
        robot, rows = tmp_path / "robot.yaml", tmp_path / "rows.json"
        robot.write_text(yaml.safe_dump(content), encoding="utf-8")
        asked = ("--policy", "oracle", "--task", "pointnav_gps_compass", "--robot", str(robot), "--json", str(rows))
        assert run_command(["preflight", *asked]) == DeviceFault.exit_code
        [row] = json.loads(rows.read_text(encoding="utf-8"))["findings"]
        assert row["status"] == "refused"
        said = f"{row['found']}\n{row['remedy']}"
        assert not [thing for thing in things if thing not in said], said

    return run


def test_a_stock_turtlebot_4(emulator: Any, refuses: Refusal) -> None:
    emulator("create3", "--no-services", *NAMESPACE)
    emulator("turtlebot4_republisher")
    file = "turtlebot4_bringup/config/republisher.yaml"
    refuses("turtlebot4-jazzy", "/hazard_detection", file, "remove the #", limit_s=1.0)


def test_hazards_that_are_switched_off(emulator: Any, refuses: Refusal) -> None:
    emulator("create3", "--no-services", "--hazards", "off")
    refuses("create3", "/hazard_detection", "publish_hazard_msgs", WEB_PAGE, limit_s=1.0)


def test_another_type_of_velocity(emulator: Any, refuses: Refusal) -> None:
    emulator("turtlebot3", "--stamped")
    refuses("turtlebot3", "/cmd_vel", "TwistStamped", "base.stamped")


def test_a_reader_of_another_quality(client: Any, refuses: Refusal) -> None:
    client.node.create_publisher(Odometry, "/odom", 1)
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    client.node.create_subscription(Twist, "/cmd_vel", lambda message: None, latched)
    refuses("turtlebot3", "/cmd_vel", "somebody", "transient_local", "volatile")


def test_a_create_3_whose_faults_are_mended_one_by_one(emulator: Any, client: Any, refuses: Refusal) -> None:
    base = emulator("create3", "--safety-override", "full")
    refuses("create3", "safety_override is full", "safety_override: none", WEB_PAGE)
    parameters = [Parameter("safety_override", value="none").to_parameter_msg()]
    client.call(SetParameters, "/motion_control/set_parameters", SetParameters.Request(parameters=parameters))
    for offset_s in (3.0, -3.0):
        base.tell(stamp_offset_s=offset_s)
        refuses("create3", "/odom", "stamp", "chrony")
    base.tell(stamp_offset_s=0.0)
    client.commander()
    refuses("create3", "/cmd_vel", "/somebody", "base.silent_publishers")
