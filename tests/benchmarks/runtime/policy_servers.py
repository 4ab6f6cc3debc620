"""Servers of published navigators: time that the runtime adds per decision, and episodes by one command.

The servers are the emulators of the tests; what they answer is made up. Rows of ``bench policy``.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from robot_runtime.common.clock import Stopwatch
from robot_runtime.common.config import find_preset
from tests.benchmarks.report import Row
from tests.benchmarks.runtime.policy_files import FILES

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))
from navigator_servers import STILL, STRAIGHT, TURN_LEFT_NAVDP, Emulator, emulated

_ANSWERING = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
points = [[0.1 * k, 0.0, 0.0] for k in range(24)]
batch = {"trajectory": [points], "all_trajectory": [[points] * 16], "all_values": [[0] * 16]}
answer = json.dumps({"algo": "navdp", **batch})
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer.encode())
    def log_message(self, *_):
        pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
"""Program of a server that answers NavDP's 24 points at once, in a process of its own."""

EPISODE = {
    "episode_id": "1",
    "trajectory_id": "1",
    "scene_id": "apartment",
    "start_position": [-1.065, 0.0, -4.42],
    "start_rotation": [0.0, -0.99656, 0.0, 0.08293],
    "info": {"geodesic_distance": 3.35},
    "goals": [{"position": [-1.95, 0.0, -1.48], "radius": 3.0}],
    "instruction": {"instruction_text": "Leave the kitchen and stop in the bedroom.", "instruction_tokens": [4, 8, 2]},
    "reference_path": [[-1.065, 0.0, -4.42], [-0.84, 0.0, -3.06], [-0.94, 0.0, -2.76], [-1.95, 0.0, -1.48]],
}
"""The example of docs/tasks/vln.md."""

Kind = Callable[[Path], AbstractContextManager[list[str]]]
"""From a folder for files to the arguments of `robot-runtime run` while a server is up."""


def overhead_row(steps: int, seed: int) -> Row:
    """Row of a decision by a server that answers at once: encoding, transmission over the loopback, decoding."""
    from robot_runtime.datasets.formats import generate_episodes
    from robot_runtime.env import Env
    from robot_runtime.policies.remote.dialects import navdp
    from robot_runtime.policies.remote.navigators import NavDP
    from robot_runtime.robots.loader import RobotContext, load_robot
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    task, scene = load_task("pointnav_trajectory"), load_scene(find_scene("apartment"))
    (episode,) = generate_episodes(scene, task, 1, seed)
    with load_robot("fake", RobotContext(scene, task.camera, seed)) as robot:
        observation = Env(robot, task, scene).reset(episode)
    encoded = len(navdp.step(observation, navdp.POINT, task).body)
    with subprocess.Popen([sys.executable, "-c", _ANSWERING], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            policy = NavDP(f"navdp://127.0.0.1:{int(process.stdout.readline())}", {"stop_within_m": 0.001})
            policy.reset(task, seed)
            times = []
            for _ in range(steps):
                timer = Stopwatch()
                policy.act(observation)
                times.append(1000 * timer.elapsed_s())
        finally:
            process.kill()
    times.sort()
    return Row(
        "navdp_step_overhead_ms",
        "added per decision of a NavDP server: 640x480 color and depth encoded, sent, trajectory decoded",
        statistics.median(times),
        "ms",
        10,
        "<=",
        low=times[0],
        high=times[int(0.95 * len(times))],
        note=f"median, least and 95th percentile of {steps} decisions; {encoded / 1000:.0f} kB and a connection each, "
        "over the loopback; the server answers at once",
    )


@contextmanager
def _http(emulator: Emulator, scheme: str, folder: Path) -> Iterator[list[str]]:
    file = folder / "vln.json"
    file.write_text(json.dumps({"instruction_vocab": {"word_list": []}, "episodes": [EPISODE]}))
    with emulated(emulator) as place:
        yield ["--policy", f"{scheme}://{place}", *(["--episodes", str(file)] if scheme == "internnav" else [])]


@contextmanager
def _websocket(
    about: Mapping[str, Any], rows: Sequence[Sequence[float]], meaning: str, folder: Path
) -> Iterator[list[str]]:
    from websockets.sync.server import ServerConnection, serve

    from robot_runtime.policies.remote.protocol import pack, unpack

    def handle(connection: ServerConnection) -> None:
        connection.send(pack(about))
        for frame in connection:
            reset = unpack(frame).get("endpoint") == "reset"
            connection.send("reset successful" if reset else pack({"actions": np.array(rows, np.float32)}))

    with serve(handle, "127.0.0.1", 0, compression=None, max_size=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        place = f"openpi://127.0.0.1:{server.socket.getsockname()[1]}"
        task = folder / "short.yaml"  # velocities have no word for stop
        preset = find_preset("tasks", "pointnav_trajectory").read_text(encoding="utf-8")
        task.write_text(preset.replace("max_steps: 500", "max_steps: 20"))
        yield ["--policy", place, "--task", str(task), "--agent-arg", f"actions={meaning}"]
        server.shutdown()
        thread.join()


@contextmanager
def _served(folder: Path) -> Iterator[list[str]]:
    from robot_runtime.policies import load_policy
    from robot_runtime.servers.policy import PolicyServer
    from robot_runtime.tasks.task import load_task

    policy, task = load_policy("goal-follower"), load_task("pointnav_gps_compass")
    with PolicyServer(policy, task, ("127.0.0.1", 0)) as server:
        yield ["--policy", f"ws://127.0.0.1:{server.port}"]


def _to_the_goal() -> Emulator:
    """NavDP's network, as it were: straight to the goal, a turn where that is to the side."""

    def answer(step: int) -> Any:
        x_m, y_m = emulator.seen[step].goal or (0.0, 0.0)
        if x_m < abs(y_m):
            return [[0.0, math.copysign(1.0, y_m), 0.0]] * 24
        return [[x_m * k / 24, y_m * k / 24, 0.0] for k in range(1, 25)]

    emulator = Emulator(answer=answer)
    return emulator


def _forward_then_stop(step: int) -> Any:
    return {"trajectory": [row[:2] for row in STRAIGHT[:3]]} if step < 2 else {"discrete_action": [2, 1, 0]}


_ROBOARENA = {
    "image_resolution": [224, 224],
    "needs_wrist_camera": False,
    "n_external_cameras": 1,
    "needs_stereo_camera": False,
    "needs_session_id": True,
    "action_space": "joint_position",
}

SERVERS: dict[str, Kind] = {
    "NavDP, point goal": partial(_http, _to_the_goal(), "navdp"),
    "DD-PPO of NavDP": partial(
        _http, Emulator("ddppo", lambda step: (TURN_LEFT_NAVDP, STRAIGHT, STILL)[step]), "navdp"
    ),
    "ViNT of NavDP, exploring": partial(_http, Emulator("vint", lambda step: (STRAIGHT, STILL)[step // 4]), "navdp"),
    "InternNav": partial(_http, Emulator("internnav", _forward_then_stop), "internnav"),
    "openpi, velocities": partial(_websocket, {}, [[0.1, 0.0], [0.1, 0.2]], "velocities"),
    "RoboArena, ids": partial(_websocket, _ROBOARENA, [[2], [3], [0]], "ids"),
    "robot-runtime serve policy": _served,
}
"""Sorts of servers of the zoo, each for one command."""


def run_kinds(kinds: Mapping[str, Kind], limit_s: float = 120.0) -> dict[str, str]:
    """Run an episode of each kind on the robot without physics, by one command in a process of its own.

    Returns:
        Kind -> last line of what failed.
    """
    failed = {}
    for name, kind in kinds.items():
        with tempfile.TemporaryDirectory() as folder, kind(Path(folder)) as arguments:
            command = ["run", "--robot", "fake", "--count", "1", "--out", f"{folder}/logs", *arguments]
            program = "import sys; from robot_runtime.cli.main import run_command; sys.exit(run_command(sys.argv[1:]))"
            done = subprocess.run(
                [sys.executable, "-c", program, *command], capture_output=True, text=True, timeout=limit_s, check=False
            )
        if done.returncode != 0:
            failed[name] = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return failed


def zoo_row() -> Row:
    """Row of the kinds that run by one command."""
    timer, kinds = Stopwatch(), {**FILES, **SERVERS}
    failed = run_kinds(kinds)
    return Row(
        "zoo_one_command",
        "sorts of network files and policy servers that `run` takes by one command, an episode each",
        len(kinds) - len(failed),
        f"of {len(kinds)}",
        len(kinds),
        note="; ".join(f"{name}: {why}" for name, why in failed.items()) or f"all in {timer.elapsed_s():.0f} s",
    )
