"""TurtleBot 3 and the republisher of TurtleBot 4, as a foreign ROS 2 program sees them."""

from __future__ import annotations

import pytest
from nav_msgs.msg import Odometry
from std_msgs.msg import Bool

NAMESPACE = ("--namespace", "/_do_not_use", "--no-services")


@pytest.mark.parametrize("options", [(), ("--stamped",)])
def test_a_turtlebot3_keeps_its_last_velocity_for_ever(emulator, client, options) -> None:
    base = emulator("turtlebot3", *options)
    odometry = client.listen("/odom", Odometry)
    command = client.commander(stamped=bool(options))
    client.drive(command, 0.157, 0.0, lambda: odometry and odometry[-1].pose.pose.position.x > 0.05)
    last = base.state["command_at_s"]
    state = base.wait(lambda state: state["now_s"] - last > 1.0)
    assert state["velocity"][0] == pytest.approx(0.15)  # whole cm/s
    command()
    base.wait(lambda state: state["stopped_at_s"])


def test_a_wall_presses_a_bumper_that_somebody_added(emulator, client) -> None:
    base = emulator("turtlebot3", "--bumper", "/bumper", "--wall", 0.2, -1, 0.2, 1)
    pressed = client.listen("/bumper", Bool)
    client.drive(client.commander(), 0.2, 0.0, lambda: pressed and pressed[-1].data)
    assert base.state["hazard_at_s"]


def test_the_stock_republisher_of_a_turtlebot4_has_no_hazards(emulator, client) -> None:
    base = emulator("create3", *NAMESPACE, "--wall", 0.3, -1, 0.3, 1)
    emulator("turtlebot4_republisher")
    odometry = client.listen("/odom", Odometry)
    client.drive(client.commander("/cmd_vel", stamped=True), 0.2, 0.0, lambda: base.state["hazard_at_s"])
    assert odometry
    topics = dict(client.node.get_topic_names_and_types())
    assert "/_do_not_use/hazard_detection" in topics
    assert "/hazard_detection" not in topics


def test_the_edited_republisher_has_them_and_both_commands(emulator, client) -> None:
    base = emulator("create3", *NAMESPACE)
    emulator("turtlebot4_republisher", "--add", "hazard_detection")
    hazards = client.listen("/hazard_detection", "irobot_create_msgs/HazardDetectionVector")
    client.drive(client.commander("/cmd_vel_unstamped"), 0.1, 0.0, lambda: base.state["velocity"][0] > 0.05)

    def is_told() -> bool:  # a change that was published before the readers met is lost
        base.tell(bump=[])
        client.rest(0.05)
        base.tell(bump=["bump_left"])
        client.rest(0.05)
        return any(found.header.frame_id == "bump_left" for sent in hazards for found in sent.detections)

    client.wait(is_told)
