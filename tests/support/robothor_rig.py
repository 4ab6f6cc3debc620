"""A RoboTHOR server on the fake robot, and a client of the wire alone."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgpack
import open_room

from robot_runtime.records import Subscriber
from robot_runtime.servers.robothor import RobothorServer
from robot_runtime.tasks.episode import Episode

TOKEN = "a-token"
LIMIT_S = 120.0
"""For whatever a test waits for; reached only by a failure."""


@dataclass
class Wire:
    """Sends requests as the client does, one connection each."""

    port: int
    user: str = "robot"
    token: str = TOKEN
    host: str = "127.0.0.1"

    def post(self, body: bytes, path: str = "/step", **headers: str) -> tuple[int, bytes]:
        """Any body; returns status and answer."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=LIMIT_S)
        try:
            connection.request("POST", path, body, {"Authorization": f"Bearer {self.token}"} | headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def step(self, action: str, sequence: int = 0, **arguments: Any) -> tuple[int, dict[str, Any]]:
        """One action; returns status and the event."""
        status, answer = self.post(body(action, sequence, **arguments))
        return status, event(answer)


def body(action: str, sequence: int = 0, **arguments: Any) -> bytes:
    """A request as the client writes it."""
    return json.dumps({"action": action, **arguments, "sequenceId": sequence, "agentId": 0}).encode()


def event(answer: bytes) -> dict[str, Any]:
    """The one agent's event in an answer."""
    (agent,) = msgpack.unpackb(answer, raw=False)["metadata"]["agents"]
    assert isinstance(agent, dict)
    return agent


@contextmanager
def serving(
    episodes: Sequence[Episode] | None = None,
    subscribers: Sequence[Subscriber] = (),
    client_timeout_s: float = 60.0,
    takeover: bool = False,
    look_limits_deg: tuple[float, float] | None = None,
    **fake: Any,
) -> Iterator[tuple[RobothorServer, Wire]]:
    """Serve in the open room until the block ends; whatever the robot's thread raises is raised there."""
    task = replace(open_room.make_task("objectnav"), look_limits_deg=look_limits_deg)
    raised: list[BaseException] = []
    with (
        open_room.fake_robot(task, **fake) as robot,
        RobothorServer(
            robot,
            task,
            open_room.make_scene(),
            [open_room.make_object_episode()] if episodes is None else episodes,
            TOKEN,
            ("127.0.0.1", 0),
            subscribers,
            client_timeout_s,
            takeover=takeover,
        ) as server,
    ):

        def serve() -> None:
            try:
                server.serve()
            except BaseException as error:
                raised.append(error)
                raise

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server, Wire(server.port)
        server.stop()
        thread.join(LIMIT_S)
        assert not thread.is_alive()
    assert raised == []
