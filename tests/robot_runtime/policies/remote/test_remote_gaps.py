"""Gaps in the link to a policy server, of a length that a motion survives: the episode goes on, and a start waits."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal, get_args

import numpy as np
import pytest
from open_room import Witness, fake_robot, make_episode, make_scene, make_task
from websockets.sync.server import ServerConnection, serve

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.env import Env
from robot_runtime.policies.remote.client import RECONNECT_S, RemotePolicy
from robot_runtime.policies.remote.protocol import pack
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.records import EndReason
from robot_runtime.robots.loader import read_robot_file
from robot_runtime.runtime import run_episode
from robot_runtime.servers.policy import PolicyServer
from robot_runtime.tasks.task import Task

TASK = make_task()
GAP_S = 1.5
ADDRESS = "127.0.0.1"


Gap = Literal["silent", "reset", "tunnel", "gateway"]
"""Packets are lost; connections are reset and refused; a tunnel or a gateway answers for the server."""

GAPS: tuple[Gap, ...] = get_args(Gap)
BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Link:
    """A link to a port of this computer that can be interrupted."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server((ADDRESS, 0))
        self.port = self._listener.getsockname()[1]
        self._open, self._over = threading.Event(), threading.Event()
        self._open.set()
        self._gap: Gap | None = None
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._thread = threading.Thread(target=self._forward)
        self._thread.start()

    def interrupt(self, gap: Gap) -> None:
        """Interrupt the link for ``GAP_S``; returns at once."""
        self._gap = gap
        if gap in ("silent", "reset"):
            self._open.clear()
        if gap == "reset":
            self._listener.close()
        if gap != "silent":
            self._reset()
        threading.Timer(GAP_S, self._restore, [gap]).start()

    def close(self) -> None:
        self._over.set()
        self._open.set()
        self._thread.join()
        self._reset()
        self._listener.close()

    def _restore(self, gap: Gap) -> None:
        if gap == "reset":
            self._listener = socket.create_server((ADDRESS, self.port))
        self._gap = None
        self._open.set()

    def _reset(self) -> None:
        for end in list(self._pairs):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._pairs.clear()

    def _forward(self) -> None:
        while not self._over.is_set():
            self._open.wait()
            with selectors.DefaultSelector() as waiting, suppress(OSError, ValueError, KeyError):
                for end in (self._listener, *self._pairs):
                    waiting.register(end, selectors.EVENT_READ)
                for key, _ in waiting.select(0.02):
                    if self._open.is_set():
                        self._take(key.fileobj)  # type: ignore[arg-type]

    def _take(self, end: socket.socket) -> None:
        if end is self._listener:
            client, _ = end.accept()
            if self._gap is not None:
                with client:
                    client.recv(65536)
                    client.sendall(BAD_GATEWAY if self._gap == "gateway" else b"")
                return
            server = socket.create_connection((ADDRESS, self._target))
            self._pairs |= {client: server, server: client}
            return
        other = self._pairs[end]
        data = end.recv(65536)
        if data:
            other.sendall(data)
            return
        for closed in (end, other):
            del self._pairs[closed]
            closed.close()


class Walker(Policy):
    """Forward three times, then stop."""

    name = "walker"
    needs = ("gps",)

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self.acts = 0

    def act(self, observation: Observation) -> Decision:
        self.acts += 1
        return Action.STOP if self.acts > 3 else Action.MOVE_FORWARD


@contextmanager
def linked_policy() -> Iterator[tuple[Walker, Link]]:
    policy = Walker()
    with PolicyServer(policy, TASK, (ADDRESS, 0)) as server:
        link = Link(server.port)
        try:
            yield policy, link
        finally:
            link.close()


class Interrupted(RemotePolicy):
    """A client whose link is interrupted before its second decision."""

    def __init__(self, link: Link, gap: Gap) -> None:
        super().__init__(f"ws://{ADDRESS}:{link.port}")
        self._interrupted, self._gap, self._decisions = link, gap, 0

    def act(self, observation: Observation) -> Decision:
        self._decisions += 1
        if self._decisions == 2:
            self._interrupted.interrupt(self._gap)
        return super().act(observation)


@pytest.mark.slow
@pytest.mark.parametrize("gap", GAPS)
def test_an_episode_goes_on_after_a_gap_in_its_policys_link(gap: Gap, in_real_time: None) -> None:
    witness = Witness()
    with linked_policy() as (policy, link), fake_robot(TASK) as robot:
        client = Interrupted(link, gap)
        try:
            end = run_episode(Env(robot, TASK, make_scene(), [witness]), client, make_episode(), seed=7)
        finally:
            client.close()
    assert end.reason is EndReason.STOP
    assert [str(step.action) for step in witness.steps[1:]] == ["move_forward"] * 3 + ["stop"]
    assert policy.acts == 4, "no decision was made twice"


@pytest.mark.slow
@pytest.mark.parametrize("gap", GAPS)
def test_a_start_waits_for_the_link(gap: Gap, in_real_time: None) -> None:
    with linked_policy() as (_, link):
        link.interrupt(gap)
        client = RemotePolicy(f"ws://{ADDRESS}:{link.port}")
        try:
            client.reset(TASK, 0)
            assert client.act({"gps": np.zeros(2, np.float32)}) is Action.MOVE_FORWARD
        finally:
            client.close()


@pytest.mark.slow
@pytest.mark.parametrize("gap", GAPS)
def test_a_new_episode_of_openpis_server_waits_for_the_link(gap: Gap, in_real_time: None) -> None:
    def handle(connection: ServerConnection) -> None:
        connection.send(pack({}))
        for _ in connection:
            connection.send(pack({"action": "move_forward"}))

    server = serve(handle, ADDRESS, 0, compression=None)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    link = Link(server.socket.getsockname()[1])
    client = RemotePolicy(f"ws://{ADDRESS}:{link.port}")
    try:
        for gap_before in (None, gap):
            if gap_before is not None:
                link.interrupt(gap_before)
            client.reset(TASK, 0)
            assert client.act({"gps": np.zeros(2, np.float32)}) is Action.MOVE_FORWARD
    finally:
        client.close()
        link.close()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("preset", ["locobot-ros-pyrobot", "locobot-ros-interbotix", "locobot-ros-create"])
def test_a_policys_link_is_judged_no_stricter_than_the_bases(preset: str) -> None:
    _, file = read_robot_file(preset)
    assert file.motion.patience_s <= RECONNECT_S
