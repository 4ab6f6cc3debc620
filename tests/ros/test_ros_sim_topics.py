"""The simulated robots publish and subscribe what their real ones do: topics, types, rates, frames, stamps, joints.

The tables below are written from the robots' own software, not from ours. Time is ``/clock``, so rates are exact.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ros_processes import Master, Program

pytestmark = pytest.mark.slow

PROBE = Path(__file__).with_name("sim_probe.py")
SECONDS = 1.5

CAMERA = "sensor_msgs/Image"
INFO = "sensor_msgs/CameraInfo"


def camera(root: str, frame: str) -> dict[str, tuple[str, float, str | None]]:
    return {
        f"{root}/color/image_raw": (CAMERA, 30, frame),
        f"{root}/color/camera_info": (INFO, 30, frame),
        f"{root}/aligned_depth_to_color/image_raw": (CAMERA, 30, frame),
        f"{root}/aligned_depth_to_color/camera_info": (INFO, 30, frame),
    }


def kobuki(root: str) -> dict[str, tuple[str, float, str | None]]:
    return {
        f"{root}/sensors/core": ("kobuki_msgs/SensorState", 50, ""),
        f"{root}/sensors/imu_data": ("sensor_msgs/Imu", 50, "gyro_link"),
        f"{root}/sensors/imu_data_raw": ("sensor_msgs/Imu", 100, "gyro_link"),
        f"{root}/events/bumper": ("kobuki_msgs/BumperEvent", 0, None),
        f"{root}/events/cliff": ("kobuki_msgs/CliffEvent", 0, None),
        f"{root}/events/wheel_drop": ("kobuki_msgs/WheelDropEvent", 0, None),
        f"{root}/events/power_system": ("kobuki_msgs/PowerSystemEvent", 0, None),
        f"{root}/events/robot_state": ("kobuki_msgs/RobotStateEvent", 0, None),
    }


COMMON: dict[str, tuple[str, float, str | None]] = {
    "/clock": ("rosgraph_msgs/Clock", 0, None),  # rospy's own subscription keeps the newest only: see check_clock
    "/diagnostics": ("diagnostic_msgs/DiagnosticArray", 1, ""),
    "/tf_static": ("tf2_msgs/TFMessage", 0, None),
    "/amcl_pose": ("geometry_msgs/PoseWithCovarianceStamped", 30, "map"),
    "/simulation/ground_truth": ("geometry_msgs/PoseStamped", 50, "map"),
}
BATTERY = ("voltage", "current", "charge", "capacity", "charge_ratio")

PUBLISHED: dict[str, dict[str, tuple[str, float, str | None]]] = {
    "pyrobot-kobuki": COMMON
    | kobuki("/mobile_base")
    | camera("/camera", "camera_color_optical_frame")
    | {
        "/tf": ("tf2_msgs/TFMessage", 80, None),
        "/odom": ("nav_msgs/Odometry", 50, "odom"),
        "/joint_states": ("sensor_msgs/JointState", 100, ""),
        "/pan/state": ("std_msgs/Float64", 50, None),
        "/tilt/state": ("std_msgs/Float64", 50, None),
    },
    "pyrobot-create": COMMON
    | camera("/camera", "camera_color_optical_frame")
    | {f"/battery/{name}": ("std_msgs/Float32", 10, None) for name in BATTERY}
    | {
        "/tf": ("tf2_msgs/TFMessage", 40, None),
        "/odom": ("nav_msgs/Odometry", 10, "odom"),
        "/joint_states": ("sensor_msgs/JointState", 60, ""),
        "/pan/state": ("std_msgs/Float64", 50, None),
        "/tilt/state": ("std_msgs/Float64", 50, None),
        "/bumper": ("ca_msgs/Bumper", 10, "base_footprint"),
        "/wheeldrop": ("std_msgs/Empty", 0, None),
        "/mode": ("ca_msgs/Mode", 10, "base_footprint"),
        "/battery/temperature": ("std_msgs/Int16", 10, None),
        "/battery/charging_state": ("ca_msgs/ChargingState", 10, "base_footprint"),
    },
    "interbotix": COMMON
    | kobuki("/rob/mobile_base")
    | camera("/rob/camera", "rob/camera_color_optical_frame")
    | {
        "/tf": ("tf2_msgs/TFMessage", 80, None),
        "/rob/mobile_base/odom": ("nav_msgs/Odometry", 50, "rob/odom"),
        "/rob/mobile_base/joint_states": ("sensor_msgs/JointState", 50, ""),
        "/rob/dynamixel/joint_states": ("sensor_msgs/JointState", 100, ""),
        "/rob/joint_states": ("sensor_msgs/JointState", 100, ""),
    },
}
SUBSCRIBED = {
    "pyrobot-kobuki": {
        "/mobile_base/commands/velocity",
        "/mobile_base/commands/motor_power",
        "/mobile_base/commands/reset_odometry",
        "/pan/command",
        "/tilt/command",
    },
    "pyrobot-create": {"/cmd_vel", "/pan/command", "/tilt/command"},
    "interbotix": {
        "/rob/mobile_base/commands/velocity",
        "/rob/mobile_base/commands/motor_power",
        "/rob/mobile_base/commands/reset_odometry",
        "/rob/commands/joint_group",
        "/rob/commands/joint_single",
    },
}
JOINTS = {
    "pyrobot-kobuki": {
        "/joint_states": {("wheel_left_joint", "wheel_right_joint"), ("head_pan_joint", "head_tilt_joint")}
    },
    "pyrobot-create": {
        "/joint_states": {("left_wheel_joint", "right_wheel_joint"), ("head_pan_joint", "head_tilt_joint")}
    },
    "interbotix": {
        "/rob/mobile_base/joint_states": {("wheel_left_joint", "wheel_right_joint")},
        "/rob/dynamixel/joint_states": {("pan", "tilt")},
        "/rob/joint_states": {("pan", "tilt", "wheel_left_joint", "wheel_right_joint")},
    },
}


@pytest.mark.parametrize("family", list(PUBLISHED))
def test_topics_of_a_family(family: str, make_master: Any, spawn: Any) -> None:
    master: Master = make_master()
    robot: Program = spawn("-m", "sim_bridge.ros", "--family", family, "--robot-name", "rob", master=master.uri)
    robot.wait_for_line("ready")
    probe: Program = spawn(str(PROBE), str(SECONDS), master=master.uri)
    assert probe.process.wait(90) == 0, probe.output
    found = json.loads(next(line for line in probe.lines if line.startswith("{")))

    table = PUBLISHED[family]
    assert set(found["published"]) - {"/rosout"} == set(table)
    assert set(found["subscribed"]) == SUBSCRIBED[family] | {"/simulation/heard"}
    for topic, (kind, rate_hz, frame) in table.items():
        messages = found["heard"].get(topic, [])
        assert found["types"][topic] == kind, topic
        if rate_hz:
            assert len(messages) == pytest.approx(rate_hz * SECONDS, abs=2 + 0.03 * rate_hz * SECONDS), topic
        if frame is not None:
            assert {message["frame"] for message in messages} == {frame}, topic
    for topic, joints in JOINTS[family].items():
        assert {tuple(message["name"]) for message in found["heard"][topic]} == joints

    prefix = "rob/" if family == "interbotix" else ""
    edges = {(parent, child) for message in found["heard"]["/tf"] for parent, child, _ in message["transforms"]}
    assert edges == {("map", f"{prefix}odom"), (f"{prefix}odom", f"{prefix}base_footprint")}
    [static] = found["heard"]["/tf_static"]
    assert [tuple(edge[:2]) for edge in static["transforms"]] == [
        (f"{prefix}camera_link", f"{prefix}camera_color_frame"),
        (f"{prefix}camera_color_frame", f"{prefix}camera_color_optical_frame"),
    ]
    odom = next(topic for topic in table if topic.endswith("odom"))
    assert {message["child_frame_id"] for message in found["heard"][odom]} == {f"{prefix}base_footprint"}
    check_camera(found["heard"], "/rob/camera" if prefix else "/camera")
    check_clock([message["stamp"] for message in found["heard"]["/clock"]])
    assert robot.stop() == 0
    assert "Traceback" not in robot.output


def check_camera(heard: dict[str, Any], root: str) -> None:
    color, depth = heard[f"{root}/color/image_raw"], heard[f"{root}/aligned_depth_to_color/image_raw"]
    info = heard[f"{root}/color/camera_info"]
    assert {(m["encoding"], m["width"], m["height"], m["step"]) for m in color} == {("rgb8", 640, 480, 1920)}
    assert {(m["encoding"], m["width"], m["height"], m["step"]) for m in depth} == {("16UC1", 640, 480, 1280)}
    unpaired = {m["stamp"] for m in color} ^ {m["stamp"] for m in depth} | {m["stamp"] for m in color} ^ {
        m["stamp"] for m in info
    }
    assert not unpaired
    assert np.median(np.diff([m["stamp"] for m in color])) == pytest.approx(1e9 / 30, rel=0.1)
    # Across 640 pixels, 79 degrees.
    assert info[0]["K"][0] == pytest.approx(388.19, abs=0.01)
    assert info[0]["K"][2] == 319.5


def check_clock(stamps: list[int]) -> None:
    steps = np.diff(stamps)
    assert len(steps) > 50
    assert steps.min() == 5_000_000, "one message per step, and time never stands still or goes back"
    assert not (steps % 5_000_000).any()


def test_without_a_master_it_says_so(spawn: Any, free_port: int) -> None:
    robot: Program = spawn("-m", "sim_bridge.ros", master=f"http://127.0.0.1:{free_port}")
    assert robot.process.wait(60) == 7
    assert "no ROS master answers" in robot.output
    assert "start `roscore`" in robot.output


def test_without_the_workspace_it_says_what_to_source(capsys: Any, monkeypatch: Any) -> None:
    from sim_bridge.ros.__main__ import main

    for name in [name for name in sys.modules if name.startswith("sim_bridge.ros.") and "__main__" not in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ca_msgs", None)
    monkeypatch.setitem(sys.modules, "ca_msgs.msg", None)
    assert main() == 2
    message = capsys.readouterr().err
    assert "'ca_msgs" in message
    assert "source ros_ws/devel/setup.bash" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--family", "turtlebot"), "use one of: pyrobot-kobuki"),
        (("--localizer", "gps"), "use one of: none, tf, amcl, tracker"),
        (("--rate", "0"), "rate 0.0 is not a positive number"),
        (("--clock", "real", "--rate", "2"), "rate 2.0 in real time"),
        (("--camera", "640*480"), "write e.g. 640x480@79"),
        (("--start", "1,2"), "is not X,Y,YAW"),
        (("--manner", "command_timeout=1"), "did you mean 'command_timeout_s'?"),
        (("--mount", "habitt"), "there is no mount preset"),
    ],
)
def test_bad_arguments_say_what_would_do(
    arguments: tuple[str, ...], message: str, capsys: Any, monkeypatch: Any
) -> None:
    from sim_bridge.ros.__main__ import main

    monkeypatch.setattr(sys, "argv", ["ros_robot", *arguments])
    assert main() == 2
    assert message in capsys.readouterr().err
