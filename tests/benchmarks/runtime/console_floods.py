"""Rows of ``bench console`` under attack, with a Kobuki's motors, and of the memory of a long session."""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import socket
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from robot_runtime.common.clock import Stopwatch, SystemClock
from tests.benchmarks.report import Row
from tests.benchmarks.runtime import console_pages as pages
from tests.benchmarks.runtime.console_rows import (
    LOST,
    Loop,
    bench_console,
    bench_robot,
    p99,
    process,
    until_rest_ms,
    while_driving,
)

OPERATORS, HTTP_STOPS = 20, 100
OPERATOR_S = 5.0
TRIES = 5
"""Tries of a STOP over HTTP, as of the page."""

FLOODS = {"silent": 400, "handshakes": 70, "idle": 1600, "half requests": 300}
"""Connections of each kind that one address without the token keeps open, opened again as soon as they are closed."""

FLOOD_S = 3.0
REST_S = 1.0
"""Time that wheels with a Kobuki's motors have to come to rest before the next press."""

WARM_SHARE, WARM_MIN = 0.25, 2.5
"""Share of the session, and minutes of a short one, until histories and caches are filled."""

STEPS = 5
"""Steps of an episode in that session: many ends, at each of which as much is in use as at the one before."""

EPISODES = 8
"""Episodes of which the shortest is repeated in the session whose memory is measured."""

MEBIBYTE = 2**20


def flood_rows() -> list[Row]:
    """Rows of operators and of STOP over HTTP while strangers open connections on both ports."""
    with bench_robot() as robot, bench_console(robot) as (_, address), ExitStack() as stack:
        flooding = stack.enter_context(process(flood, address))
        assert flooding.recv() == "flooding"
        admitted, stops_ms = while_driving(Loop(robot), operate_in_flood, address)
    many = ", ".join(f"{count} {kind}" for kind, count in FLOODS.items())
    return [
        Row(
            "admitted_under_flood",
            f"share of {OPERATORS} operators that were admitted at their first try",
            sum(admitted) / OPERATORS,
            "",
            1.0,
            note=f"beside connections without a token from the same address: {many}",
        ),
        Row(
            "stop_http_flood_p99_ms",
            f"press to answer of {HTTP_STOPS} STOPs over HTTP beside the same",
            p99(stops_ms),
            "ms",
            500,
            "<=",
            note=f"median {np.median(stops_ms):.0f} ms, slowest {max(stops_ms):.0f} ms",
        ),
    ]


def flood(address: pages.Address, ended: Connection) -> None:
    """Keep ``FLOODS`` open until the other end of a pipe is closed; the target of a process."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    page = (address.page.removeprefix("http://").rsplit(":", 1)[0], int(address.page.rsplit(":", 1)[1]))
    upgrade = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    sent = {
        "silent": (("127.0.0.1", address.control_port), b""),
        "handshakes": (
            ("127.0.0.1", address.control_port),
            f"{upgrade}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode(),
        ),
        "idle": (page, b""),
        "half requests": (page, b"POST /stop HTTP/1.1\r\nHost: x\r\n"),
    }
    held: dict[str, list[socket.socket]] = {kind: [] for kind in FLOODS}
    since, told = Stopwatch(), False
    while not ended.poll(0.05):
        for kind, count in FLOODS.items():
            held[kind] = [one for one in held[kind] if not _is_closed(one)]
            for _ in range(count - len(held[kind])):
                with suppress(OSError):
                    connection = socket.create_connection(sent[kind][0], timeout=1.0)
                    connection.sendall(sent[kind][1])
                    connection.setblocking(False)
                    held[kind].append(connection)
        if not told and since.elapsed_s() > FLOOD_S:
            ended.send("flooding")
            told = True


def _is_closed(connection: socket.socket) -> bool:
    try:
        closed = connection.recv(4096) == b""
    except BlockingIOError:
        return False
    except OSError:
        closed = True
    if closed:
        connection.close()
    return closed


def operate_in_flood(address: pages.Address, results: Connection) -> None:
    """Come as operators, one after the other, and press STOP over HTTP; the target of a process.

    Sends whether each was admitted, and milliseconds from each press to its answer.
    """
    admitted = [_is_admitted(address) for _ in range(OPERATORS)]
    stops_ms, clock = list[float](), SystemClock()
    for number in range(HTTP_STOPS):
        request = urllib.request.Request(
            f"{address.page}/stop",
            json.dumps({"id": f"flood {number}"}).encode(),
            {"Authorization": f"Bearer {address.token}"},
        )
        pressed_ns = clock.now_ns()
        done = any(_is_done(request) for _ in range(TRIES))
        stops_ms.append((clock.now_ns() - pressed_ns) / 1e6 if done else float("inf"))
        clock.sleep(0.02)
    results.send((admitted, stops_ms))


def _is_admitted(address: pages.Address) -> bool:
    url = f"ws://127.0.0.1:{address.control_port}/"
    try:
        with connect(url, proxy=None, open_timeout=OPERATOR_S, close_timeout=1) as operator:
            operator.send(json.dumps({"do": "hello", "token": address.token}))
            return bool(json.loads(operator.recv(OPERATOR_S))["kind"] == "welcome")
    except (OSError, EOFError, WebSocketException):
        return False


def _is_done(request: urllib.request.Request) -> bool:
    try:
        with urllib.request.urlopen(request, timeout=pages.ANSWER_S) as answer:
            return bool(json.loads(answer.read())["done"])
    except OSError:
        return False


def kobuki_rows(presses: int) -> list[Row]:
    """Rows of STOP and of lost pages on wheels with a Kobuki's motors, as the preset has them."""
    lost: dict[str, list[float]] = {}
    with bench_robot(ideal=False) as robot, bench_console(robot) as (_, address):
        loop = Loop(robot)
        pressed = while_driving(loop, pages.press_stops, address, [0.6] * presses, REST_S, linger_s=REST_S)
        stops_ms = [until_rest_ms(loop.stopped_ns, at_ns) for at_ns, _ in pressed]
        for way in ("silent", "hidden", "closed", "throttled"):
            lost[way] = [
                until_rest_ms(
                    loop.stopped_ns, while_driving(loop, pages.be_lost, address, 0.6, way, linger_s=2 * REST_S)
                )
                for _ in range(max(1, LOST // 4))
            ]
    ways = ", ".join(f"{way} {max(values):.0f} ms" for way, values in lost.items())
    return [
        Row(
            "stop_to_rest_kobuki_p99_ms",
            "press to less than 1 mm/s and 1 mrad/s, wheels with a Kobuki's motors",
            p99(stops_ms),
            "ms",
            low=min(stops_ms),
            high=max(stops_ms),
            note=f"{presses} presses; median {np.median(stops_ms):.0f} ms; the motors' own braking is nearly all of it",
        ),
        Row(
            "page_lost_to_rest_kobuki_ms",
            "last sign of the operator's page to rest, the same motors, the slowest",
            max(max(values) for values in lost.values()),
            "ms",
            note=f"{ways}; a throttled page beats once per second",
        ),
    ]


def memory_row(minutes: float) -> Row:
    """The row of the growth of the robot's process with log and console, over episodes of one start."""
    used, resident = list[tuple[float, float]](), list[tuple[float, float]]()
    timer, warm_min = Stopwatch(), max(WARM_SHARE * minutes, min(WARM_MIN, minutes / 2))
    with tempfile.TemporaryDirectory() as folder, _session(Path(folder)) as run_one:
        while timer.elapsed_s() < 60 * minutes:
            run_one()
            if timer.elapsed_s() >= 60 * warm_min:
                gc.collect()
                used.append((timer.elapsed_s(), _heap_bytes() / MEBIBYTE))
                resident.append((timer.elapsed_s(), _resident_bytes() / MEBIBYTE))
            for log in Path(folder).glob("*.mcap"):
                log.unlink()
    growth, error = _slope_per_h(used)
    return Row(
        "memory_mb_per_h",
        "growth of the memory in use of the robot's process with log and console, pictures of starts apart",
        growth,
        "MB/h",
        1,
        "<=",
        low=growth - 2 * error,
        high=growth + 2 * error,
        note=f"{len(used)} episodes in the last {minutes - warm_min:g} of {minutes:g} minutes, "
        f"{used[-1][1]:.0f} MB in use; resident memory {_slope_per_h(resident)[0]:+.1f} MB/h",
    )


@contextmanager
def _session(folder: Path) -> Iterator[Callable[[], None]]:
    from robot_runtime.datasets.formats import generate_episodes
    from robot_runtime.env import Env
    from robot_runtime.policies import load_policy
    from robot_runtime.recording.writer import Recorder
    from robot_runtime.runtime import run_episode
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    task, scene = load_task("pointnav_gps_compass"), load_scene(find_scene("apartment"))
    task = replace(task, max_steps=STEPS)
    recorder = Recorder(folder)
    with (
        bench_robot() as robot,
        closing(recorder),
        bench_console(robot, lambda: recorder.path) as (watched, _),
        Env(robot, task, scene, (recorder, *watched.subscribers)) as env,
    ):
        several = generate_episodes(scene, task, EPISODES, seed=0)
        episode = min(several, key=lambda one: one.shortest_path_m or float("inf"))

        def run_one() -> None:
            with watched.episode(episode):
                run_episode(env, watched.supervised(load_policy("goal-follower")), episode, seed=0)

        yield run_one


def _heap_bytes() -> int:
    """Bytes that the C library has handed out and not got back."""

    class Mallinfo(ctypes.Structure):
        _fields_ = [
            (name, ctypes.c_size_t)
            for name in (
                "arena",
                "ordblks",
                "smblks",
                "hblks",
                "hblkhd",
                "usmblks",
                "fsmblks",
                "uordblks",
                "fordblks",
                "keepcost",
            )
        ]

    mallinfo2 = ctypes.CDLL("libc.so.6").mallinfo2
    mallinfo2.restype = Mallinfo
    info = mallinfo2()
    return int(info.uordblks + info.hblkhd)


def _resident_bytes() -> int:
    pages_used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages_used * resource.getpagesize()


def _slope_per_h(samples: list[tuple[float, float]]) -> tuple[float, float]:
    """Slope of a straight line, and its standard error."""
    if len(samples) < 4:
        return float("nan"), float("nan")
    times, values = np.array(samples).T
    (slope, _), covariance = np.polyfit(times, values, 1, cov=True)
    return float(3600 * slope), float(3600 * np.sqrt(covariance[0, 0]))
