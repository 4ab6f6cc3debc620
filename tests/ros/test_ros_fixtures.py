"""The fixtures keep what they promise: masters that come back, programs that die, logging that survives."""

from __future__ import annotations

import logging
import os
import signal
from typing import Any

import rosgraph
import rospy
from ros_processes import eventually
from std_msgs.msg import Int16

TALKER = """
import rospy, sys
from std_msgs.msg import Int16
rospy.init_node("talker")
out = rospy.Publisher(sys.argv[1], Int16, queue_size=1)
while not rospy.is_shutdown():
    out.publish(7)
    rospy.rostime.wallsleep(0.02)
"""


def test_messages_cross_processes(ros_node: str, ros_name: str, spawn: Any) -> None:
    got: list[int] = []
    subscriber = rospy.Subscriber(f"{ros_name}/number", Int16, lambda message: got.append(message.data))
    talker = spawn("-c", TALKER, f"{ros_name}/number")
    try:
        subscriber_got_one = eventually(lambda: got)
    finally:
        subscriber.unregister()
    assert subscriber_got_one, talker.output
    assert talker.stop(signal.SIGTERM) == 0
    assert set(got) == {7}


def test_a_master_comes_back_at_its_address_and_knows_nobody(make_master: Any) -> None:
    master = make_master()
    before = master.uri
    rosgraph.Master("/somebody", before).setParam("/x", 1)
    master.kill()
    assert not rosgraph.is_master_online(before)
    master.start()
    assert master.uri == before
    assert not rosgraph.Master("/somebody", before).hasParam("/x")


def test_programs_log_where_no_other_does(ros_node: str) -> None:
    assert os.environ["ROS_LOG_DIR"].startswith(os.environ["ROS_HOME"])
    assert os.environ["ROS_MASTER_URI"].startswith("http://127.0.0.1:")


def test_the_projects_own_logger_is_heard_after_init_node(ros_node: str, caplog: Any) -> None:
    with caplog.at_level(logging.WARNING):
        logging.getLogger("robot_runtime.test").warning("still here")
    assert "still here" in caplog.text
