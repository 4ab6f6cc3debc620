"""A super client that reads a parameter before and after its server dies: ``python ... DOMAIN ADDRESS SERVER_PID``.

A process of its own: Fast DDS keeps what it has read of the server until the process ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from drivers.ros2.node import Node, write_profile

READ = 100
"""Times before the server's death: of new clients for each, through a server, one in ten to forty got no answer."""

LIMIT_S = 15.0

del os.environ["ROS_SUPER_CLIENT"], os.environ["ROS_DISCOVERY_SERVER"], os.environ["FASTDDS_DEFAULT_PROFILES_FILE"]
write_profile(sys.argv[2])
node = Node("reader", int(sys.argv[1]))


def max_speed() -> float:
    client = node.client("rcl_interfaces/GetParameters", "/motion_control/get_parameters")
    assert client.wait_for_service(LIMIT_S)
    answered, future = threading.Event(), client.call_async(client.srv_type.Request(names=["max_speed"]))
    future.add_done_callback(lambda _: answered.set())
    assert answered.wait(LIMIT_S)
    return float(future.result().values[0].double_value)


before = {max_speed() for _ in range(READ)}
began_s = time.monotonic()
while "/motion_control" not in node.nodes():  # only a super client sees all
    assert time.monotonic() < began_s + LIMIT_S
    time.sleep(0.05)
os.kill(int(sys.argv[3]), signal.SIGKILL)
time.sleep(0.5)
print(*before, max_speed(), flush=True)
node.close()
