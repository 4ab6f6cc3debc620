"""A ROS 2 program whose Fast DDS propagates types: what of a domain's ``/odom`` and ``/cmd_vel`` it gets, as JSON."""

from __future__ import annotations

import json
import os
import sys

os.environ.pop("FASTDDS_DEFAULT_PROFILES_FILE")

from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from ros2_programs import Client

client = Client(int(sys.argv[1]))
odometry, twists = client.listen("/odom", Odometry), client.listen("/cmd_vel", Twist)
client.wait(lambda: len(twists) > 20)
known = {topic: len(client.node.get_publishers_info_by_topic(topic)) for topic in ("/odom", "/cmd_vel")}
client.close()
print(json.dumps({"odometry": len(odometry), "twists": len(twists), "publishers": known}))
