"""Prints where a simulated robot truly is, 50 times a second: x, y, yaw."""

from __future__ import annotations

import threading

import rospy
from geometry_msgs.msg import PoseStamped

from drivers.ros_locobot.planar import planar_pose


def tell(message: PoseStamped) -> None:
    pose = planar_pose(message.pose, "ground truth")
    print("truth", pose.x_m, pose.y_m, pose.yaw_rad, flush=True)


rospy.init_node("truth", disable_rostime=True, disable_signals=True)
rospy.Subscriber("/simulation/ground_truth", PoseStamped, tell, tcp_nodelay=True)
threading.Event().wait()  # until it is killed, whatever becomes of the master
