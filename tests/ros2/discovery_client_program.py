"""A super client that reads a parameter before and after its server dies: ``python ... DOMAIN SERVER_PID``.

A process of its own: Fast DDS keeps what it has read of the server until the process ends.
"""

from __future__ import annotations

import os
import signal
import sys

from rcl_interfaces.srv import GetParameters
from ros2_programs import Client

from drivers.ros2.node import write_profile

del os.environ["ROS_SUPER_CLIENT"], os.environ["FASTDDS_DEFAULT_PROFILES_FILE"]
write_profile(os.environ.pop("ROS_DISCOVERY_SERVER"))
client = Client(int(sys.argv[1]))
parameters = client.node.create_client(GetParameters, "/motion_control/get_parameters")
client.wait(parameters.service_is_ready)


def max_speed() -> float:
    future = parameters.call_async(GetParameters.Request(names=["max_speed"]))
    client.wait(future.done)
    return float(future.result().values[0].double_value)


before = max_speed()
client.wait(lambda: "motion_control" in client.node.get_node_names())  # only a super client sees all
os.kill(int(sys.argv[2]), signal.SIGKILL)
client.rest(0.5)
print(before, max_speed(), flush=True)
client.close()
