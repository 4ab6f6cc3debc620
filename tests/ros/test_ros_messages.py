"""The messages built here are, on the wire, those of the robots' own packages."""

from __future__ import annotations

import importlib

import pytest

# Computed by genmsg from the definitions that each project publishes: kobuki_msgs 0.7.0, ca_msgs 1.3.0,
# create_msgs 2.0.0, interbotix_xs_msgs (branch noetic).
PUBLISHED = {
    "kobuki_msgs/BumperEvent": "ffe360cd50f14f9251d9844083e72ac5",
    "kobuki_msgs/ButtonEvent": "49eca512765dbdec759a79083ffcec8d",
    "kobuki_msgs/CliffEvent": "c5b106efbb1427a94f517c5e05f06295",
    "kobuki_msgs/MotorPower": "8f77c0161e0f2021493136bb5f3f0e51",
    "kobuki_msgs/PowerSystemEvent": "f6464657d6c911b00c7bc7b43a154bf8",
    "kobuki_msgs/RobotStateEvent": "c6eccd4cb1f95df95635b56d6226ea32",
    "kobuki_msgs/SensorState": "430a4bfd78449c8740bfef32b26613a6",
    "kobuki_msgs/WheelDropEvent": "e102837d89384d67669a0df86b63f33b",
    "ca_msgs/Bumper": "18fe5b1d31e6a8db180b924157ac665e",
    "ca_msgs/ChargingState": "e4da1ef814a2def80691224a5e5883ea",
    "ca_msgs/Mode": "b4faf4b68b6555d4656417971bee31a0",
    "create_msgs/Bumper": "18fe5b1d31e6a8db180b924157ac665e",
    "create_msgs/ChargingState": "e4da1ef814a2def80691224a5e5883ea",
    "create_msgs/Mode": "b4faf4b68b6555d4656417971bee31a0",
    "interbotix_xs_msgs/JointGroupCommand": "fa54c229b7238fc905e59a51a526f379",
    "interbotix_xs_msgs/JointSingleCommand": "79b74399c9cdcc4c0be32d540424ed2e",
    "interbotix_xs_msgs/OperatingModes": "cb68bef3d517c840b0a5cc0f73d64e36",
    "interbotix_xs_msgs/Reboot": "229067e7bfb48bf403b702d5f7f1ee93",
    "interbotix_xs_msgs/RobotInfo": "873f2223b25122251d4d3641d8411cf6",
    "interbotix_xs_msgs/TorqueEnable": "023452ade9f3d4979c75bd4e0d60f0c9",
    # The distribution's own, which robots of other distributions must agree with.
    "geometry_msgs/Twist": "9f195f881246fdfa2798d1d3eebca84a",
    "nav_msgs/Odometry": "cd5e73d190d741a2f92e81eda573aca7",
    "sensor_msgs/CameraInfo": "c9a58c1b0b154e0e6da7578cb991d214",
    "sensor_msgs/Image": "060021388200f6f0f447d0fcd9c64743",
    "sensor_msgs/JointState": "3066dcd76a6cfaef579bd0f34173e9fd",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_md5_is_the_originals(name: str) -> None:
    package, kind = name.split("/")
    found = None
    for module in ("msg", "srv"):
        if importlib.util.find_spec(f"{package}.{module}") is not None:
            found = found or getattr(importlib.import_module(f"{package}.{module}"), kind, None)
    assert found is not None, f"{name} is not built"
    assert found._type == name
    assert found._md5sum == PUBLISHED[name]


def test_no_message_is_unchecked() -> None:
    for package in ("kobuki_msgs", "ca_msgs", "create_msgs", "interbotix_xs_msgs"):
        messages = importlib.import_module(f"{package}.msg")
        names = {f"{package}/{name}" for name in vars(messages) if hasattr(getattr(messages, name), "_md5sum")}
        assert names
        assert names <= PUBLISHED.keys()
