"""Prints where a simulated robot truly is, 50 times a second: x, y, yaw, and the host's monotonic time of hearing it.

Simulated time waits for it, so that what it heard after an instant was not published long before.
"""

from __future__ import annotations

import threading
import time

import rospy
from geometry_msgs.msg import PoseStamped

from drivers.ros.localizer.messages import planar_pose
from drivers.ros_locobot.connection.acknowledge import AcknowledgePublisher

TOPIC = "/simulation/ground_truth"


def print_pose(message: PoseStamped) -> None:
    pose, _ = planar_pose(message.pose)
    print("truth", pose.x_m, pose.y_m, pose.yaw_rad, time.monotonic(), flush=True)
    acknowledgements.acknowledge(TOPIC, message)


rospy.init_node("truth", disable_rostime=True, disable_signals=True)
acknowledgements = AcknowledgePublisher()
rospy.Subscriber(TOPIC, PoseStamped, print_pose, tcp_nodelay=True)
threading.Event().wait()  # until it is killed, whatever becomes of the master
