"""The emulated Create 3, as a foreign ROS 2 program on another DDS vendor sees it."""

from __future__ import annotations

from typing import Any

import pytest
from geometry_msgs.msg import Pose
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.parameter import Parameter

from tests.ros2.emulators.create3_base import BUMP, CLIFF
from tests.ros2.emulators.renamed_services import create3_services

HAZARDS = "irobot_create_msgs/HazardDetectionVector"
WALL_AHEAD = ("--wall", 0.4, -2, 0.4, 2)


def kinds(message: Any) -> list[tuple[int, str]]:
    return [(found.type, found.header.frame_id) for found in message.detections if found.type]


def test_it_stops_half_a_second_after_the_last_command(emulator, client) -> None:
    base = emulator("create3", "--no-services")
    odometry = client.listen("/odom", Odometry)
    command = client.commander()
    client.drive(command, 0.2, 0.0, lambda: odometry and odometry[-1].pose.pose.position.x > 0.05)
    moving = base.state
    stopped = base.wait(lambda state: state["stopped_at_s"])
    assert moving["velocity"][0] == pytest.approx(0.2, abs=0.02)
    assert 0.5 < stopped["stopped_at_s"] - stopped["command_at_s"] < 1.0
    assert stopped["commanded"] == [0.2, 0.0]


def test_a_wall_presses_the_bumper_once_and_only_changes_are_published(emulator, client) -> None:
    base = emulator("create3", "--no-services", "--reflexes-off", *WALL_AHEAD)
    hazards = client.listen("/hazard_detection", HAZARDS)
    command = client.commander()
    client.drive(command, 0.2, 0.0, lambda: any(map(kinds, hazards)))
    client.rest(0.3)
    assert [kinds(message) for message in hazards if kinds(message)] == [[(BUMP, "bump_front_center")]]
    command()
    state = base.wait(lambda state: state["zero_at_s"])
    assert state["pose"][0] == pytest.approx(0.4 - 0.171, abs=0.005)
    assert state["hazard_to_zero_s"] == pytest.approx(state["zero_at_s"] - state["hazard_at_s"])


@pytest.mark.parametrize(
    ("yaw_rad", "frame"),
    [(0.4, "bump_front_right"), (-0.4, "bump_front_left"), (1.2, "bump_right"), (-1.2, "bump_left")],
)
def test_the_bumper_frame_follows_the_bearing(yaw_rad, frame) -> None:
    from tests.ros2.emulators.create3_base import Create3
    from tests.ros2.emulators.world import Pose as WorldPose

    base = Create3.made([(0.172, -1.0, 0.172, 1.0)], WorldPose(yaw_rad=yaw_rad), {})
    assert (BUMP, frame) in base.hazards()


def test_periodic_hazards_are_a_level(emulator, client) -> None:
    emulator("create3", "--no-services", "--hazards", "periodic").tell(cliff=["cliff_front_left"])
    hazards = client.listen("/hazard_detection", HAZARDS)
    client.wait(lambda: hazards)
    count = len(hazards)
    client.rest(0.5)
    assert 20 < len(hazards) - count < 40
    assert kinds(hazards[-1]) == [(CLIFF, "cliff_front_left")]


def test_the_reflex_backs_off_by_itself_unless_it_is_off(emulator, client) -> None:
    base = emulator("create3", *WALL_AHEAD)
    command = client.commander()
    client.drive(command, 0.2, 0.0, lambda: base.state["reflex"])
    away = base.wait(lambda state: not state["reflex"])
    assert away["pose"][0] < 0.4 - 0.171 - 0.04
    set_parameters(client, reflexes_enabled=False)
    client.drive(command, 0.2, 0.0, lambda: base.state["hazards"] == [[BUMP, "bump_front_center"]])
    assert not base.state["reflex"]


def set_parameters(client, **values: Any) -> list[Any]:
    request = SetParameters.Request(
        parameters=[Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
    )
    return list(client.call(SetParameters, "/motion_control/set_parameters", request).results)


def test_parameters_and_services_act_on_the_base(emulator, client) -> None:
    base, kind = emulator("create3"), create3_services()
    assert not set_parameters(client, max_speed=1.0)[0].successful
    assert set_parameters(client, safety_override="full")[0].successful
    read = client.call(
        GetParameters, "/motion_control/get_parameters", GetParameters.Request(names=["safety_override", "max_speed"])
    )
    assert [read.values[0].string_value, read.values[1].double_value] == ["full", 0.46]
    assert base.wait(lambda state: state["parameters"]["safety_override"] == "full")
    assert client.call(kind["e_stop"], "/e_stop", kind["e_stop"].Request(data=True)).success
    assert base.wait(lambda state: state["e_stop"])
    pose = Pose()
    pose.position.x = 2.0
    client.call(kind["reset_pose"], "/reset_pose", pose)
    assert base.wait(lambda state: state["odometry"] == [2.0, 0.0, 0.0])


def test_a_dead_base_takes_commands_and_moves_again_after_a_power_cycle(emulator, client) -> None:
    base = emulator("create3", "--no-services")
    odometry = client.listen("/odom", Odometry)
    command = client.commander()
    base.tell(dead=True)
    client.drive(command, 0.2, 0.0, lambda: base.state["commands"] > 5)
    assert base.state["odometry"] == [0.0, 0.0, 0.0]
    assert not base.tell(power_cycle=0.5)["up"]
    count = len(odometry)
    client.drive(command, 0.2, 0.0, lambda: base.state["odometry"][0] > 0.02)
    client.wait(lambda: len(odometry) > count)


def test_commands_are_ignored_during_a_goal(emulator, client) -> None:
    base = emulator("create3", "--no-services")
    command = client.commander()
    base.tell(goal=[0.0, 0.5])
    client.drive(command, 0.2, 0.0, lambda: base.state["commands"] > 10)
    assert base.state["velocity"] == [pytest.approx(0.0, abs=0.01), pytest.approx(0.5, abs=0.05)]
    base.tell(goal=None)
    client.drive(command, 0.2, 0.0, lambda: base.state["velocity"][0] > 0.1)


def test_it_does_not_go_back_before_it_went_forward(emulator, client) -> None:
    base = emulator("create3", "--no-services")
    command = client.commander()
    client.drive(command, -0.1, 0.0, lambda: base.state["commands"] > 10)
    assert base.state["pose"][0] == 0.0
    client.drive(command, 0.2, 0.0, lambda: base.state["pose"][0] > 0.06)
    client.drive(command, -0.1, 0.0, lambda: base.state["velocity"][0] < -0.05)


def test_topics_fail_as_a_test_says(emulator, client) -> None:
    base = emulator("create3", "--no-services", "--namespace", "/_do_not_use")
    odometry = client.listen("/_do_not_use/odom", Odometry)
    client.wait(lambda: odometry)
    base.tell(odom_fault="nan")
    client.wait(lambda: odometry[-1].pose.pose.position.x != odometry[-1].pose.pose.position.x)
    base.tell(odom_fault="tilted", stamp_offset_s=100.0)
    client.wait(lambda: odometry[-1].pose.pose.orientation.x > 0.2)
    assert odometry[-1].header.stamp.sec - odometry[0].header.stamp.sec > 90
    base.tell(mute=["odom"])
    client.rest(0.2)
    count = len(odometry)
    client.rest(0.3)
    assert len(odometry) == count
    base.tell(mute=[], twice=["odom"], odom_fault=None)
    client.wait(lambda: len(odometry) > count + 3)
    assert (
        len({(sent.header.stamp.sec, sent.header.stamp.nanosec) for sent in odometry[count:]}) < len(odometry) - count
    )


def test_a_killed_base_is_missed_after_its_lease(emulator, client) -> None:
    base = emulator("turtlebot3")
    client.wait(lambda: client.node.get_publishers_info_by_topic("/odom"))
    base.process.kill()
    client.wait(lambda: not client.node.get_publishers_info_by_topic("/odom"))
