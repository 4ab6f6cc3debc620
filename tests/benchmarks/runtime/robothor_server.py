"""Overhead of the RoboTHOR protocol per action: a row of ``bench policy``."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys

from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.servers.robothor import RobothorServer
from robot_runtime.tasks.task import load_task
from tests.benchmarks.report import Row, StepTimer, cpu_s

TASK = "objectnav_robothor2021"
LIMIT_S = 300.0

_TOKEN = "bench"
_CLIENT = '''
import http.client, json, resource, sys
import msgpack, numpy as np
from tests.benchmarks.report import cpu_s
from robot_runtime.common.clock import Stopwatch
port, token, steps = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])

def step(action):
    """As ai2thor's client: a connection per request, images as arrays, depth as float32."""
    timer = Stopwatch()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"action": action, "sequenceId": 0, "agentId": 0})
    connection.request("POST", "/step", body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    answer = msgpack.unpackb(connection.getresponse().read(), raw=False)
    connection.close()
    agent = answer["metadata"]["agents"][0]
    assert agent["lastActionSuccess"], agent
    size = agent["screenHeight"], agent["screenWidth"]
    np.frombuffer(answer["image"][0], np.uint8).reshape(*size, 3)
    np.frombuffer(answer["image_depth"][0], np.float64).reshape(size).astype(np.float32)
    return timer.elapsed_s()

step("Initialize")
before_s = cpu_s(resource.RUSAGE_SELF)
spent = [step("RotateLeft") for _ in range(steps)]
print(cpu_s(resource.RUSAGE_SELF) - before_s, *spent)
step("Stop")
'''
"""Program of the client, which runs in a process of its own."""


def rows(steps: int, seed: int) -> list[Row]:
    """Row of one episode on the robot without physics, whose camera delivers 640x480."""
    task, scene = load_task(TASK), load_scene(find_scene("apartment"))
    steps = min(steps, task.max_steps - 1)
    episodes = generate_episodes(scene, task, 1, seed)
    with (
        load_robot("fake", RobotContext(scene, task.camera, seed)) as robot,
        RobothorServer(robot, task, scene, episodes, _TOKEN, ("127.0.0.1", 0)) as server,
    ):
        timed = StepTimer(server.env)
        client = subprocess.Popen(
            [sys.executable, "-c", _CLIENT, str(server.port), _TOKEN, str(steps)], stdout=subprocess.PIPE, text=True
        )
        before_s = cpu_s(resource.RUSAGE_SELF)
        try:
            server.serve()
            printed, _ = client.communicate(timeout=LIMIT_S)
        finally:
            client.kill()
            client.wait()
        served_s = cpu_s(resource.RUSAGE_SELF) - before_s - sum(timed.cpu_s)
    client_s, *asked = (float(value) for value in printed.split())
    added = sorted(1000 * (whole - own) for whole, own in zip(asked, timed.wall_s, strict=False))
    return [
        Row(
            "robothor_step_overhead_ms",
            "added by the RoboTHOR protocol to an action: request, answer, both images decoded by the client",
            statistics.median(added),
            "ms",
            10,
            "<=",
            low=added[0],
            high=added[int(0.95 * len(added))],
            note=f"median, minimum and 95th percentile of {len(added)} turns; 640x480, color and float64 depth, client "
            f"in a process of its own. Server and client compute {1000 * (served_s + client_s) / len(added):.2g} ms of "
            f"it. The action itself, on the robot `fake`, took {1000 * statistics.median(timed.wall_s):.3g} ms and "
            f"computed {1000 * sum(timed.cpu_s) / len(added):.3g}; load average {os.getloadavg()[0]:.1f}",
        )
    ]
