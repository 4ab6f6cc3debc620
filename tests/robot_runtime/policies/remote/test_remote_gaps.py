"""Gaps in the link to a policy server, of a length that a motion survives: the episode goes on, and a start waits."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from open_room import Witness, fake_robot, make_episode, make_scene, make_task

from robot_runtime.actions.continuous import Decision
from robot_runtime.actions.discrete import Action
from robot_runtime.env import Env
from robot_runtime.policies.remote.client import RECONNECT_S, RemotePolicy
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.records import EndReason
from robot_runtime.robots.loader import read_robot_file
from robot_runtime.runtime import run_episode
from robot_runtime.servers.policy import PolicyServer
from robot_runtime.tasks.task import Task

TASK = make_task()
GAP_S = 1.5
ADDRESS = "127.0.0.1"


class Link:
    """A link to a port of this computer that can be interrupted: silent (packets are lost), or reset and refused."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server((ADDRESS, 0))
        self.port = self._listener.getsockname()[1]
        self._open, self._over = threading.Event(), threading.Event()
        self._open.set()
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._thread = threading.Thread(target=self._forward)
        self._thread.start()

    def interrupt(self, resets: bool) -> None:
        """Interrupt the link for ``GAP_S``; returns at once."""
        self._open.clear()
        if resets:
            self._listener.close()
            self._reset()
        threading.Timer(GAP_S, self._restore, [resets]).start()

    def close(self) -> None:
        self._over.set()
        self._open.set()
        self._thread.join()
        self._reset()
        self._listener.close()

    def _restore(self, resets: bool) -> None:
        if resets:
            self._listener = socket.create_server((ADDRESS, self.port))
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

    def __init__(self, link: Link, resets: bool) -> None:
        super().__init__(f"ws://{ADDRESS}:{link.port}")
        self._gap, self._resets, self._decisions = link, resets, 0

    def act(self, observation: Observation) -> Decision:
        self._decisions += 1
        if self._decisions == 2:
            self._gap.interrupt(self._resets)
        return super().act(observation)


@pytest.mark.parametrize("resets", [False, True])
def test_an_episode_goes_on_after_a_gap_in_its_policys_link(resets: bool, in_real_time: None) -> None:
    witness = Witness()
    with linked_policy() as (policy, link), fake_robot(TASK) as robot:
        client = Interrupted(link, resets)
        try:
            end = run_episode(Env(robot, TASK, make_scene(), [witness]), client, make_episode(), seed=7)
        finally:
            client.close()
    assert end.reason is EndReason.STOP
    assert [str(step.action) for step in witness.steps[1:]] == ["move_forward"] * 3 + ["stop"]
    assert policy.acts == 4, "no decision was made twice"


@pytest.mark.parametrize("resets", [False, True])
def test_a_start_waits_for_the_link(resets: bool, in_real_time: None) -> None:
    with linked_policy() as (_, link):
        link.interrupt(resets)
        client = RemotePolicy(f"ws://{ADDRESS}:{link.port}")
        try:
            client.reset(TASK, 0)
            assert client.act({"gps": np.zeros(2, np.float32)}) is Action.MOVE_FORWARD
        finally:
            client.close()


@pytest.mark.parametrize("preset", ["locobot-ros-pyrobot", "locobot-ros-interbotix", "locobot-ros-create"])
def test_a_policys_link_is_judged_no_stricter_than_the_bases(preset: str) -> None:
    _, file = read_robot_file(preset)
    assert file.motion.patience_s <= RECONNECT_S
