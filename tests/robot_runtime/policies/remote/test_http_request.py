"""Requests over HTTP: forms, and servers that are silent, slow, endless or gone, each a typed error in time."""

from __future__ import annotations

import email
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from navigator_servers import STRAIGHT, Emulator, emulated
from open_room import Witness, fake_robot, make_episode, make_scene, make_task
from raising import raises_naming

from robot_runtime.actions.timed import Control, TrajectoryControl
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, LinkLost, PolicyError
from robot_runtime.policies import load_policy
from robot_runtime.policies.remote.http_request import (
    MAX_ANSWER_BYTES,
    address,
    form_request,
    json_object,
    json_request,
    post,
)
from robot_runtime.records import EndReason
from robot_runtime.runtime import run_episode

TASK = make_task(control=Control((-0.5, 0.5), trajectory=TrajectoryControl()))
HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


@contextmanager
def peer(serve: Callable[[socket.socket, threading.Event], object]) -> Iterator[str]:
    """A server whose connections are handled by a function, after the request has come."""
    ended = threading.Event()

    def accept() -> None:
        while True:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    if ended.is_set():
                        return
                    request = b""
                    while not request.endswith(b"{}"):
                        request += connection.recv(1 << 16)
                    serve(connection, ended)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield url
        ended.set()
        socket.create_connection(("127.0.0.1", listener.getsockname()[1])).close()
        thread.join()


def silent(connection: socket.socket, ended: threading.Event) -> None:
    ended.wait(20)


def dripping(connection: socket.socket, ended: threading.Event) -> None:
    connection.sendall(HEAD)
    while not ended.wait(0.02):
        connection.sendall(b" ")


def endless(connection: socket.socket, ended: threading.Event) -> None:
    connection.sendall(HEAD)
    for _ in range(1000):
        connection.sendall(bytes(1 << 20))


def gone(connection: socket.socket, ended: threading.Event) -> None:
    connection.close()


def half(connection: socket.socket, ended: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")


def refusing(connection: socket.socket, ended: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 500 Internal Server Error\r\n\r\nCUDA\nout of memory")


@pytest.mark.parametrize(
    ("serve", "kind", "named"),
    [
        (silent, PolicyError, "0.3 s"),
        (dripping, PolicyError, "0.3 s"),
        (gone, LinkLost, "cannot be reached"),
        (half, LinkLost, "cannot be reached"),
    ],
)
def test_a_server_without_an_answer_costs_the_time_limit_at_most(serve: Any, kind: Any, named: str) -> None:
    with peer(serve) as url:
        began = time.monotonic()
        with raises_naming(kind, url, named):
            post(address(url), json_request("/x", {}), 0.3)
        assert time.monotonic() - began < 5


@pytest.mark.parametrize(("serve", "named"), [(endless, f"{MAX_ANSWER_BYTES} bytes"), (refusing, "CUDA out of memory")])
def test_an_endless_answer_and_a_refusal_are_errors(serve: Any, named: str) -> None:
    with peer(serve) as url, raises_naming(PolicyError, url, named):
        post(address(url), json_request("/x", {}), 20)


def test_nobody_there() -> None:
    with raises_naming(LinkLost, "http://127.0.0.1:9", "cannot be reached"):
        post(address("http://127.0.0.1:9"), json_request("/x", {}), 20)


def test_a_form_holds_its_files_and_fields() -> None:
    request = form_request("/x", {"image": ("a.png", b"\r\n--\x00\xff")}, {"json": '{"é": 1}'})
    message: Any = email.message_from_bytes(
        f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode() + request.body
    )
    file, text = message.get_payload()
    assert (file.get_filename(), file.get_content_type()) == ("a.png", "image/png")
    assert file.get_payload(decode=True) == b"\r\n--\x00\xff"
    assert text.get_payload(decode=True).decode() == '{"é": 1}'


@pytest.mark.parametrize("url", ["localhost:80", "ftp://x", "http://", "http://x:99999", "http://[::1", "http://x:0"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with raises_naming(ConfigError, url, "http://localhost:8080"):
        address(url)


def test_json_that_is_no_object_is_refused() -> None:
    with raises_naming(PolicyError, "here", "[1]"):
        json_object(b"[1]", "here")


# --- episodes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stalls", [False, True])
def test_a_bad_answer_in_motion_stops_the_wheels(stalls: bool) -> None:
    """The robot follows the last trajectory meanwhile, no longer than its age allows."""
    leave = threading.Event()
    emulator = Emulator(answer=lambda _: STRAIGHT, raw=lambda step: b"{}" if step == 3 and not stalls else None)
    if stalls:
        emulator.wait = lambda route: len(emulator.seen) == 3 and route == "pointgoal_step" and leave.wait(20)
    witness = Witness()
    with emulated(emulator) as place, fake_robot(TASK) as robot:
        policy = load_policy(f"navdp://{place}", time_limit_s=2.0 if stalls else 20.0)
        with raises_naming(PolicyError, place):
            run_episode(Env(robot, TASK, make_scene(), [witness]), policy, make_episode(goal=(2.5, 0.0)), seed=7)
        leave.set()
        robot.clock.sleep(1.0)  # the wheels are told at once, and slow down
        assert robot.base.state(1.0).velocity.linear_m_s == 0.0
    assert witness.ends[0].reason is EndReason.FAULT
    assert {str(step.action) for step in witness.steps[1:]} == {"trajectory_control"}
    assert max(abs(state.velocity.linear_m_s) for state in witness.states) > 0.1


def test_a_first_reset_may_take_longer_than_a_decision() -> None:
    """The servers load a checkpoint then."""
    slow = Emulator(wait=lambda route: time.sleep(0.6) if route == "navigator_reset" else None)
    with emulated(slow) as place:
        policy = load_policy(f"navdp://{place}", time_limit_s=0.3)
        policy.reset(TASK, 0)
        policy = load_policy(f"navdp://{place}", reset_limit_s=0.3)
        with raises_naming(PolicyError, "0.3 s"):
            policy.reset(TASK, 0)
