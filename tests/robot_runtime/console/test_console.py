"""The whole console of a fake robot without a browser: pictures, stops on both ways, verdicts, lost processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import trustme
from console_page import PATIENCE_S, TOKEN, eventually, page
from open_room import fake_robot, make_episode, make_scene, make_task
from raising import raises_naming
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from robot_runtime.common.clock import Stopwatch
from robot_runtime.common.geometry import SE2
from robot_runtime.console import feed
from robot_runtime.console.console import Console, ConsoleSettings
from robot_runtime.console.supervision import PageGuide
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, EpisodeAborted
from robot_runtime.hal import Halt, Velocity
from robot_runtime.placement.guide import Guide
from robot_runtime.placement.offset import Offset, Tolerance
from robot_runtime.policies import load_policy
from robot_runtime.policies.human.human import Human
from robot_runtime.policies.remote.encryption import client_context
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.verdict_files import read_verdicts
from robot_runtime.recording.writer import Recorder
from robot_runtime.runtime import run_episode


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[Console, Env]]:
    """A console of a fake robot, and the environment that it watches."""
    task = make_task()
    recorder = Recorder(tmp_path)
    settings = ConsoleSettings(port=0, token=TOKEN)
    with (
        closing(recorder),
        fake_robot(task) as robot,
        Console(robot, settings, lambda _: None, log=lambda: recorder.path) as console,
        Env(robot, task, make_scene(), (recorder, *console.subscribers)) as env,
    ):
        yield console, env


def origin(console: Console) -> str:
    return console.url.split("/#")[0]


def control_port(console: Console) -> int:
    found = re.search(r'control-port" content="(\d+)"', get(origin(console) + "/")[1].decode())
    assert found is not None
    return int(found[1])


def get(url: str, token: str = "", data: bytes | None = None) -> tuple[int, bytes]:
    request = urllib.request.Request(url, data, {"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            assert "script-src 'self'" in answer.headers.get("Content-Security-Policy", "script-src 'self'")
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, b""


@contextmanager
def live(console: Console, token: str = TOKEN) -> Iterator[ClientConnection]:
    with connect(origin(console).replace("http", "ws") + "/live", proxy=None) as connection:
        connection.send(token)
        yield connection


def until(viewer: ClientConnection, kind: str) -> Any:
    """The next message of a kind: a letter for pictures, else a word."""
    while True:
        message = viewer.recv(PATIENCE_S)
        if isinstance(message, bytes):
            if message[:1].decode() == kind:
                return message[1:]
        elif json.loads(message)["kind"] == kind:
            return json.loads(message)


def run(console: Console, env: Env) -> None:
    with console.episode(make_episode(), 1, 2):
        run_episode(env, console.supervised(load_policy("goal-follower")), make_episode(), seed=0)


def test_an_episode_is_shown_judged_twice_and_its_start_kept_for_the_next_run(
    opened: tuple[Console, Env], tmp_path: Path
) -> None:
    console, env = opened
    with live(console) as viewer:
        assert until(viewer, "state")["stage"] == "idle"
        run(console, env)
        while (state := until(viewer, "state"))["stage"] != "over":
            pass
        assert (state["step"], state["end"], state["number"], state["total"]) == (env.end.steps, "stop", 1, 2)
        assert "goal-follower" not in json.dumps(state)  # those who judge must not know
        assert state["base"]["battery_fraction"] == 1.0
    with live(console) as late:  # gets all that there is
        assert cv2.imdecode(np.frombuffer(until(late, "m"), np.uint8), cv2.IMREAD_GRAYSCALE).shape == (120, 120)
    (log,) = tmp_path.glob("*.mcap")
    eventually(lambda: get(f"{origin(console)}/final/episode%201", TOKEN)[0] == 200)
    assert get(f"{origin(console)}/final/episode%201", "wrong")[0] == 401
    with page(control_port(console)) as judge:
        verdict = {"do": "verdict", "log": "episode 1", "judgment": "success"}
        assert judge.ask(**verdict, by="ada")["kind"] == "done"
        assert "ada" in judge.ask(**verdict, by="ada")["why"]
        assert judge.ask(**verdict | {"judgment": "fail"}, by="bob", note="too far")["kind"] == "done"
        assert judge.ask(do="verdict", log="../../etc/passwd", by="eve", judgment="fail")["kind"] == "refused"
    with LogReader(log) as reader:
        said = read_verdicts(log, reader.header).statements
    assert [(one.who, one.judgment, one.note) for one in said] == [("ada", "success", ""), ("bob", "fail", "too far")]
    with live(console) as viewer, console.episode(make_episode()):
        while not (picture := until(viewer, "r")):
            pass
        assert cv2.imdecode(np.frombuffer(picture, np.uint8), cv2.IMREAD_COLOR) is not None


def test_a_stop_over_http_is_the_same_press_as_over_the_operators_connection(opened: tuple[Console, Env]) -> None:
    console, _ = opened
    url = origin(console) + "/stop"
    assert get(url, "wrong", b'{"id": "1"}')[0] == 401
    for hostile in (b"", b"[]", b'{"id": 5}', b'{"id": "' + b"x" * 100 + b'"}', b"[" * 900, b"x" * 5000):
        assert get(url, TOKEN, hostile)[0] in (400, 413)
    assert console.stops.engaged() is False
    status, body = get(url, TOKEN, b'{"id": "press-1"}')
    assert (status, json.loads(body)["done"], json.loads(body)["e_stop"]) == (200, True, True)
    console.stops.release()
    with page(control_port(console)) as other_way:
        assert other_way.ask(do="stop", id="press-1")["done"] is True
        assert console.stops.engaged() is True  # whatever its id
        console.stops.release()
    for _ in range(2):
        status, body = get(url, TOKEN, b'{"id": ""}')
        assert (status, json.loads(body)["done"]) == (200, True)
        assert console.stops.engaged() is True
        console.stops.release()


def test_a_phone_joins_by_a_code_of_the_address_that_only_the_token_shows(opened: tuple[Console, Env]) -> None:
    console, _ = opened
    url = origin(console) + "/join"
    assert get(url, "wrong")[0] == 401
    code = cv2.imdecode(np.frombuffer(get(url, TOKEN)[1], np.uint8), cv2.IMREAD_GRAYSCALE)
    framed = cv2.copyMakeBorder(code, 40, 40, 40, 40, cv2.BORDER_CONSTANT, value=255)
    assert cv2.QRCodeDetector().detectAndDecode(framed)[0] == console.url


@pytest.mark.slow
def test_idle_connections_and_half_requests_do_not_hold_up_a_stop_over_http(opened: tuple[Console, Env]) -> None:
    console, _ = opened
    host, port = origin(console).removeprefix("http://").rsplit(":", 1)
    with ExitStack() as flood:
        for sent in (b"",) * 400 + (b"POST /stop HTTP/1.1\r\nHost: x\r\n",) * 200:
            idle = flood.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE_S))
            idle.sendall(sent)
        status, body = get(origin(console) + "/stop", TOKEN, b'{"id": "press-1"}')
        assert (status, json.loads(body)["done"]) == (200, True)
        assert console.stops.engaged() is True


def test_pictures_need_the_token_and_the_robot_needs_no_page(opened: tuple[Console, Env]) -> None:
    console, env = opened
    with live(console, "wrong") as viewer, pytest.raises(ConnectionClosed):
        viewer.recv(PATIENCE_S)
    port = control_port(console)
    (process,) = (child for child in multiprocessing.active_children() if child.name == "console")
    with page(port) as viewer:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        run(console, env)  # goes on without its page
        assert viewer.ask(do="stop", id="1")["done"] is True
    assert env.end.steps > 0


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_the_end_of_the_pages_process_ends_neither_alerts_nor_run_and_the_end_is_soon(
    how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "FROZEN_S", 0.2)
    said: list[str] = []
    told: list[str] = []
    settings = ConsoleSettings(port=0, token=TOKEN)
    with fake_robot(make_task()) as robot:
        console = Console(robot, settings, said.append, notify=told.append)
        with console:
            assert console._feed is not None
            assert get(origin(console))[0] == 200
            (process,) = (child for child in multiprocessing.active_children() if child.name == "console")
            assert process.pid is not None
            os.kill(process.pid, how)

            def is_lost() -> bool:
                assert console._feed is not None
                console._feed.put("final", ("episode 1", np.zeros((300, 300, 3), np.uint8)))
                return any("page is not served" in line for line in said)

            eventually(is_lost)
            robot.base.emergency_stop()
            eventually(lambda: any("emergency stop" in line for line in told))
            timer = Stopwatch()
        # From here on, the robot's process would go on to close its log.
        assert timer.elapsed_s() < 10.0, "no time limit of tens of seconds is waited for"
        assert not process.is_alive()


def test_a_console_on_a_port_that_is_taken_is_named(opened: tuple[Console, Env]) -> None:
    console, env = opened
    port = int(origin(console).rsplit(":", 1)[1])
    with raises_naming(ConfigError, port), Console(env.robot, ConsoleSettings(port=port), lambda _: None):
        pass


def test_a_placement_by_hand_is_shown_driven_and_can_be_ended(opened: tuple[Console, Env]) -> None:
    console, env = opened
    base, clock = env.robot.base, env.robot.clock
    said: list[str] = []
    shown = console._feed
    assert shown is not None
    guide = PageGuide(shown.show_offset, Guide(said.append), console.supervision, env.robot.base)
    guide.begin(SE2(1.0, 0.0), Tolerance(), drives=False)
    with live(console) as viewer, console.episode(make_episode()):
        guide.show(0, Offset.of(SE2(), SE2(0.3, -0.1)), "push")
        while (state := until(viewer, "state"))["offset"] is None:
            pass
        assert state["stage"] == "placing"
        assert state["offset"] == state["offset"] | {"ahead_m": 0.3, "left_m": -0.1, "near": False, "note": "push"}
        assert len(said) == 2  # what was there before is told as well
        with page(control_port(console)) as operator:
            left = {"do": "hold", "action": "velocity_control", "stick": [0.0, 1.0]}
            assert operator.ask(**left)["kind"] == "refused"  # not in control
            operator.ask(do="control", by="ada")
            assert operator.ask(do="hold", action="velocity_control", stick=[0, 7])["kind"] == "refused"
            operator.ask(**left)
            for tick in range(5):
                guide.show(tick, None, "no pose")
                clock.sleep(0.1)
            assert base.state(1.0).velocity.angular_rad_s > 0
            operator.ask(do="let_go")
            guide.show(5, None, "no pose")
            clock.sleep(0.5)
            assert base.state(1.0).velocity == Velocity()
            operator.ask(**left)
            guide.show(6, None, "no pose")
        eventually(lambda: base.state(1.0).halt is Halt.E_STOP)  # the page was closed
        clock.sleep(0.5)
        assert base.state(1.0).velocity == Velocity()
        console.supervision.abort("ada ended the episode")
        with raises_naming(EpisodeAborted, "ada"):
            guide.show(1, None, "no pose")


@pytest.mark.slow
def test_a_person_who_is_to_see_the_camera_alone_sees_neither_depth_nor_map() -> None:
    task, person = make_task(), Human(view="camera")
    with (
        fake_robot(task) as robot,
        Console(robot, ConsoleSettings(port=0, token=TOKEN), lambda _: None, person) as console,
        Env(robot, task, make_scene(), console.subscribers) as env,
        live(console) as viewer,
    ):
        env.reset(make_episode())
        seen = set[str]()
        while "c" not in seen or "step" not in seen:
            message = viewer.recv(PATIENCE_S)
            seen.add(message[:1].decode() if isinstance(message, bytes) else json.loads(message)["kind"])
            if isinstance(message, str) and json.loads(message).get("max_steps"):
                assert json.loads(message)["pose"] is None
                seen.add("step")
    assert not seen & {"d", "m", "path", "extent"}


@pytest.mark.slow
def test_a_campaigns_status_is_shown_without_what_would_unblind_it() -> None:
    status = {"title": "lab", "done": 1, "total": 4, "eta_s": 60.0, "answer": "not yet", "rows": [], "asks": []}
    settings = ConsoleSettings(port=0, token=TOKEN)
    with (
        fake_robot(make_task()) as robot,
        Console(robot, settings, lambda _: None, campaign=lambda: status | {"policies": ["x"]}) as console,
        live(console) as viewer,
    ):
        shown = until(viewer, "campaign")
    assert shown == status | {"kind": "campaign"}


@pytest.mark.slow
def test_a_console_with_a_certificate_is_encrypted(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    trusted = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(trusted)
    trusting = client_context(trusted)
    settings = ConsoleSettings(port=0, token=TOKEN, certificate=certificate, key=key)
    with fake_robot(make_task()) as robot, Console(robot, settings, lambda _: None) as console:
        assert console.url.startswith("https://")
        with urllib.request.urlopen(origin(console), timeout=PATIENCE_S, context=trusting) as answer:
            assert answer.status == 200
        with connect(f"wss://127.0.0.1:{console.control_port}/", proxy=None, ssl=trusting) as operator:
            operator.send(json.dumps({"do": "hello", "token": TOKEN}))
            assert json.loads(operator.recv(PATIENCE_S))["kind"] == "welcome"
