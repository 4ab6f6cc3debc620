"""The operator's server: stops, heartbeat, one operator at a time, and what else pages may send."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from console_page import PATIENCE_S, TOKEN, eventually, page
from open_room import fake_robot, make_task
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from robot_runtime.console.control import MAX_BAD_MESSAGES, ControlServer
from robot_runtime.console.protocol import Message
from robot_runtime.errors import ConfigError
from robot_runtime.estop.requests import Stops
from robot_runtime.hal import Robot, Velocity


@dataclass
class Rig:
    """A fake robot with the operator's server."""

    robot: Robot
    stops: Stops
    port: int = 0
    said: list[str] = field(default_factory=list)
    commands: list[Message] = field(default_factory=list)
    operators: list[str | None] = field(default_factory=list)

    @property
    def held(self) -> bool | None:
        return self.stops.engaged()


Make = Callable[..., Rig]


@pytest.fixture
def make() -> Iterator[Make]:
    """``make(silence_s)``: a rig, whose server ends with the test."""
    servers = []
    with fake_robot(make_task()) as robot:

        def start(silence_s: float = 30.0) -> Rig:
            rig = Rig(robot, None)  # type: ignore[arg-type]
            rig.stops = Stops(robot, rig.said.append)

            def command(message: Message) -> str:
                rig.commands.append(message)
                return rig.stops.release() if message.do == "release" else message.do

            server = ControlServer(
                ("127.0.0.1", 0), TOKEN, rig.stops, command, rig.operators.append, silence_s=silence_s
            )
            servers.append(server)
            rig.port = server.port
            return rig

        yield start
        for server in servers:
            server.close()


def test_any_page_with_the_token_stops_the_robot_and_sees_the_robots_own_state(make: Make) -> None:
    rig = make()
    rig.robot.base.command(Velocity(0.2, 0.0))
    with page(rig.port) as viewer:
        assert viewer.ask(do="beat", n=4) | {"n": 4, "e_stop": False, "yours": False} == viewer.ask(do="beat", n=4)
        answer = viewer.ask(do="stop", id="press-1", by="ada")
        assert (answer["kind"], answer["id"], answer["done"]) == ("stopped", "press-1", True)
        assert viewer.ask(do="beat")["e_stop"] is True
        rig.robot.base.release_emergency_stop()  # from elsewhere
        assert viewer.ask(do="beat")["e_stop"] is False
    assert "ada" in rig.said[0]


@pytest.mark.parametrize("id", ["", "press-1"])
def test_every_stop_stops_whatever_its_id_and_answers_with_the_bases_state(make: Make, id: str) -> None:
    rig = make()
    with page(rig.port) as operator:
        operator.ask(do="control", by="ada")
        for _ in range(3):
            assert operator.ask(do="stop", id=id)["done"] is True
            assert rig.held is True
            assert operator.ask(do="release")["kind"] == "done"
            assert rig.held is False
    assert sum("by a page" in line for line in rig.said) == 3


def test_the_second_way_of_a_press_is_not_told_again_while_the_stop_holds(make: Make) -> None:
    rig = make()
    with page(rig.port) as viewer:
        for _ in range(2):
            assert viewer.ask(do="stop", id="press-1")["done"] is True
        assert len(rig.said) == 1
        rig.robot.base.release_emergency_stop()  # from elsewhere
        assert viewer.ask(do="stop", id="press-1")["done"] is True
        assert rig.held is True
    assert len(rig.said) == 2


def test_a_base_that_does_not_report_the_stop_is_not_said_to_be_held(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make()
    monkeypatch.setattr(rig.robot.base, "emergency_stop", lambda: None)
    with page(rig.port) as viewer:
        answer = viewer.ask(do="stop", id="press-1")
        assert (answer["done"], "held" in answer["text"]) == (False, True)


@pytest.mark.slow
def test_silent_handshakes_and_connections_lock_no_operator_out(make: Make) -> None:
    rig = make()
    address = ("127.0.0.1", rig.port)
    with ExitStack() as flood, page(rig.port) as operator:
        operator.ask(do="control", by="ada")
        for _ in range(200):
            flood.enter_context(socket.create_connection(address, timeout=PATIENCE_S))
        for _ in range(40):
            begun = flood.enter_context(socket.create_connection(address, timeout=PATIENCE_S))
            begun.sendall(b"GET / HTTP/1.1\r\n")
        for _ in range(5):
            with page(rig.port) as late:
                assert late.ask(do="stop", id="")["done"] is True
        assert operator.ask(do="beat")["yours"] is True
    assert threading.active_count() < 120


def test_one_operator_at_a_time_and_only_that_one_commands(make: Make) -> None:
    rig = make()
    with page(rig.port) as first, page(rig.port) as second:
        assert first.ask(do="control", by=" ")["kind"] == "refused"  # without a name
        assert first.ask(do="control", by="ada")["yours"] is True
        refused = second.ask(do="control", by="bob")
        assert refused["kind"] == "refused"
        assert "ada" in refused["why"]
        assert second.ask(do="abort")["kind"] == "refused"
        assert second.ask(do="verdict", by="bob", log="x", judgment="fail")["kind"] == "done"  # a second judge
        assert first.ask(do="pause")["kind"] == "done"
        assert first.ask(do="control", want=False)["operator"] is None
        assert second.ask(do="control", by="bob")["operator"] == "bob"
        assert rig.held is False  # control was given up, not lost
    assert [message.do for message in rig.commands] == ["verdict", "pause"]
    assert rig.operators[:3] == ["ada", None, "bob"]


@pytest.mark.parametrize("way", ["closed", "hidden", "killed"])
def test_a_lost_page_of_the_operator_stops_the_robot(make: Make, way: str) -> None:
    rig = make()
    with page(rig.port) as operator:
        operator.ask(do="control", by="ada")
        if way == "hidden":
            assert operator.ask(do="leave", why="hidden")["yours"] is False
        elif way == "killed":
            operator.connection.socket.close()
    eventually(lambda: rig.held)
    eventually(lambda: rig.operators == ["ada", None])


def test_a_silent_page_of_the_operator_stops_the_robot_and_a_silent_viewer_does_not(make: Make) -> None:
    rig = make(silence_s=0.2)
    with page(rig.port), page(rig.port) as operator:
        operator.ask(do="control", by="ada")
        for _ in range(6):
            rig.robot.clock.sleep(0.02)
            operator.ask(do="beat")
        assert rig.held is False
        eventually(lambda: rig.held)
    assert "0.2 s" in rig.said[0]


def test_without_the_token_nothing_is_answered(make: Make) -> None:
    rig = make()
    for first in ('{"do": "hello", "token": "b"}', '{"do": "stop", "id": "1"}', "nonsense", b"\xff"):
        with connect(f"ws://127.0.0.1:{rig.port}/", proxy=None) as connection:
            connection.send(first)
            with pytest.raises(ConnectionClosed) as closed:
                connection.recv(PATIENCE_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
    assert rig.held is False


def test_hostile_messages_are_refused_and_end_only_their_own_connection(make: Make) -> None:
    rig = make()
    with page(rig.port) as hostile, page(rig.port) as operator:
        operator.ask(do="control", by="ada")
        for _ in range(MAX_BAD_MESSAGES):
            assert hostile.ask(do="fly")["kind"] == "refused"
        with pytest.raises(ConnectionClosed):
            hostile.ask(do="beat")
        with page(rig.port) as flood, pytest.raises(ConnectionClosed):
            flood.ask(do="x" * 100_000)
        assert operator.ask(do="beat")["yours"] is True
    with page(rig.port) as late:
        assert late.ask(do="stop", id="1")["done"] is True


def test_a_base_that_refuses_is_said_so_and_asked_again(make: Make) -> None:
    rig = make()
    rig.robot.base.close()
    with page(rig.port) as viewer:
        assert viewer.ask(do="stop", id="press-1")["done"] is False
        assert viewer.ask(do="beat")["e_stop"] is None
        rig.robot.base.connect()
        assert viewer.ask(do="stop", id="press-1")["done"] is True


def test_a_port_that_is_taken_is_named(make: Make) -> None:
    rig = make()
    with pytest.raises(ConfigError, match=str(rig.port)):
        ControlServer(("127.0.0.1", rig.port), TOKEN, rig.stops, lambda _: "", lambda _: None)
