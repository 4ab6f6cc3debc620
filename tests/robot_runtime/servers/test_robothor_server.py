"""RoboTHOR robot protocol over a connection: actions, events, episodes, and faulty clients."""

from __future__ import annotations

import math
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgpack
import numpy as np
import open_room
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raising import raises_naming
from robothor_rig import LIMIT_S, TOKEN, Wire, body, event, serving

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError
from robot_runtime.hal import BaseState
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, Subscriber
from robot_runtime.servers import request_server
from robot_runtime.servers.request_queue import Refused
from robot_runtime.servers.robothor_messages import parse_request
from robot_runtime.task_kinds.objectnav.format_robothor import AGENT_HEIGHT_M
from robot_runtime.task_kinds.objectnav.report import robothor_episode


def agent(step: dict[str, object]) -> tuple[float, float, float, float]:
    """x, z, rotation and horizon of an event."""
    found = step["agent"]
    assert isinstance(found, dict)
    assert found["position"]["y"] == AGENT_HEIGHT_M
    return found["position"]["x"], found["position"]["z"], found["rotation"]["y"], found["cameraHorizon"]


# --- what a client gets ---------------------------------------------------------------------------------------------


def test_an_episode_in_thors_convention() -> None:
    start = SE2(0.5, 1.0, math.radians(90))
    witness = open_room.Witness()
    with serving([open_room.make_object_episode(start=start)], [witness]) as (_, wire):
        status, first = wire.step("Initialize", gridSize=0.25, renderDepthImage=True)
        assert status == 200
        assert first["lastActionSuccess"]
        assert first["robotRuntime"]["objectType"] == "Vase"
        assert first["robotRuntime"]["ignored"] == ["renderDepthImage"]
        # ROS (0.5, 1) heading +y is THOR x -1, z 0.5, turned 90 degrees counter-clockwise: 270.
        assert agent(first) == pytest.approx((-1.0, 0.5, 270.0, 0.0), abs=2e-3)
        _, moved = wire.step("MoveAhead")
        assert agent(moved) == pytest.approx((-1.25, 0.5, 270.0, 0.0), abs=0.01)
        _, turned = wire.step("RotateRight")
        assert agent(turned)[2] == pytest.approx(300.0, abs=0.2)
        _, looked = wire.step("LookDown")
        assert agent(looked)[3] == pytest.approx(30.0, abs=0.2)
        _, stopped = wire.step("Stop")
        assert stopped["robotRuntime"]["over"]
        assert stopped["robotRuntime"]["end"] == "stop"
    actions = [step.action for step in witness.steps]
    assert actions == [None, Action.MOVE_FORWARD, Action.TURN_RIGHT, Action.LOOK_DOWN, Action.STOP]
    assert witness.ends[0].reason is EndReason.STOP


def test_images_are_the_steps_own_in_colour_and_metres() -> None:
    witness = open_room.Witness()
    with serving(subscribers=[witness]) as (_, wire):
        _, answer = wire.post(body("Initialize"))
        document = msgpack.unpackb(answer)
        seen = witness.steps[0].observation
        camera = open_room.CAMERA
        image = np.frombuffer(document["image"][0], np.uint8).reshape(camera.height, camera.width, 3)
        np.testing.assert_array_equal(image, seen["rgb"])
        metres = np.frombuffer(document["image_depth"][0], np.float64).reshape(camera.height, camera.width)
        np.testing.assert_allclose(metres, 0.5 + 4.5 * seen["depth"][:, :, 0].astype(float))
        _, answer = wire.post(body("Pass", renderImage=False))
        document = msgpack.unpackb(answer)
        assert (document["image"], document["image_depth"]) == ([], [])


def test_pass_looks_again_and_costs_no_step() -> None:
    with serving() as (server, wire):
        wire.step("Initialize")
        _, before = wire.step("RotateLeft")
        _, again = wire.step("Pass")
        assert again["agent"] == before["agent"]
        assert server.env.record.index == 1


def test_contact_is_a_failed_action_and_the_episode_goes_on() -> None:
    with serving([open_room.make_object_episode(start=SE2(2.75))], wall_x_m=3.0) as (_, wire):
        wire.step("Initialize")
        status, blocked = wire.step("MoveAhead")
        assert (status, blocked["lastActionSuccess"], blocked["collided"]) == (200, False, True)
        assert blocked["errorCode"] == ""
        assert "contact" in blocked["errorMessage"]
        _, turned = wire.step("RotateLeft")
        assert (turned["lastActionSuccess"], turned["collided"]) == (True, False)


def test_a_look_beyond_the_heads_limit_fails_as_in_the_simulator() -> None:
    with serving() as (_, wire):
        wire.step("Initialize")
        looks = [wire.step("LookDown")[1] for _ in range(3)]
        assert [look["lastActionSuccess"] for look in looks] == [True, True, False]
        assert "limit" in looks[-1]["errorMessage"]


def test_a_look_beyond_the_tasks_limits_moves_nothing() -> None:
    witness = open_room.Witness()
    with serving(look_limits_deg=(-30.0, 30.0), subscribers=[witness]) as (_, wire):
        wire.step("Initialize")
        looks = [wire.step(word)[1] for word in ("LookDown", "LookDown", "LookDown", "LookUp", "LookUp", "LookUp")]
        assert [look["lastActionSuccess"] for look in looks] == [True, False, False, True, True, False]
        horizons = [look["agent"]["cameraHorizon"] for look in looks]
        assert horizons == pytest.approx([30, 30, 30, 0, -30, -30], abs=0.5)
        assert "-30° to 30°" in looks[1]["errorMessage"]
        episode = robothor_episode(witness.headers[0], witness.steps)
        sent = [look["lastActionSuccess"] for look in looks]
        assert [action["success"] for action in episode["actions_taken"]] == sent


def test_a_look_that_the_head_cannot_finish_is_refused_whole() -> None:
    with serving(look_limits_deg=(-90.0, 30.0)) as (_, wire):
        wire.step("Initialize")
        looks = [wire.step("LookDown")[1] for _ in range(3)]
        assert [look["lastActionSuccess"] for look in looks] == [True, True, False]
        assert looks[2]["agent"]["cameraHorizon"] == pytest.approx(60, abs=0.5)
        assert "the head's -75°" in looks[2]["errorMessage"]


def test_teleport_begins_the_episode_that_starts_there() -> None:
    starts = [SE2(0.0, 0.0, 0.0), SE2(1.0, -1.0, math.radians(30)), SE2(-1.0, 0.0, 0.0)]
    episodes = [open_room.make_object_episode(id=str(i), start=start) for i, start in enumerate(starts)]
    with serving(episodes) as (_, wire):
        # ROS (1, -1) heading 30 degrees left of +x.
        pose = {"x": 1.0, "y": AGENT_HEIGHT_M, "z": 1.0, "rotation": {"x": 0, "y": 330, "z": 0}}
        _, there = wire.step("TeleportFull", horizon=0, standing=True, **pose)
        assert there["robotRuntime"]["episode"] == "1"
        assert there["robotRuntime"]["ignored"] == ["standing"]
        wire.step("Stop")
        status, refused = wire.step("TeleportFull", **pose)
        assert (status, refused["errorCode"]) == (400, "InvalidAction")
        assert "no episode that is still to be run starts" in refused["errorMessage"]
        _, following = wire.step("Initialize")
        assert following["robotRuntime"]["episode"] == "0"


def test_logs_can_be_scored_and_episodes_run_out(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    with serving(subscribers=[recorder]) as (_, wire):
        wire.step("Reset", sceneName="open_room_physics")
        wire.step("MoveAhead")
        wire.step("Stop")
        status, refused = wire.step("Initialize")
        assert status == 410
        assert "all 1 episodes" in refused["errorMessage"]
    (log,) = tmp_path.glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.header.agent == "robothor-client"
        assert reader.end is not None
        assert reader.end.reason is EndReason.STOP


# --- what it may not do ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "arguments", "says"),
    [
        ("Jump", {}, "'Jump' is not one of"),
        ("MoveAhead", {"moveMagnitude": 1.0}, "moveMagnitude is 1.0"),
        ("MoveAhead", {"moveMagnitude": "far"}, "not a number"),
        ("RotateLeft", {"degrees": 1e300}, "degrees"),
        ("LookUp", {"speed": 3}, "no argument 'speed'"),
    ],
)
def test_what_the_task_does_not_have_is_refused_and_moves_nothing(
    action: str, arguments: dict[str, object], says: str
) -> None:
    with serving([open_room.make_object_episode(), open_room.make_object_episode(id="2")]) as (server, wire):
        wire.step("Initialize")
        status, refused = wire.step(action, **arguments)
        assert (status, refused["lastActionSuccess"], refused["errorCode"]) == (400, False, "InvalidAction")
        assert says in refused["errorMessage"]
        assert server.env.record.index == 0
        assert not server.env.episode_over
        assert wire.step("RotateLeft")[0] == 200


@pytest.mark.parametrize(
    ("action", "arguments", "says"),
    [
        ("Initialize", {"rotateStepDegrees": 90}, "rotateStepDegrees is 90"),
        ("Initialize", {"fieldOfView": 90}, "fieldOfView is 90"),
        ("Reset", {"sceneName": "FloorPlan_Val1_1"}, "not in 'FloorPlan_Val1_1'"),
        ("TeleportFull", {"x": "a", "z": 0}, "not a number"),
        ("TeleportFull", {"x": 0}, "not a number"),
    ],
)
def test_an_episode_that_the_server_does_not_have_is_refused(
    action: str, arguments: dict[str, object], says: str
) -> None:
    with serving() as (server, wire):
        status, refused = wire.step(action, **arguments)
        assert (status, refused["lastActionSuccess"], refused["errorCode"]) == (400, False, "InvalidAction")
        assert says in refused["errorMessage"]
        assert server.env.episode_over


def test_moving_needs_an_episode() -> None:
    with serving() as (_, wire):
        status, refused = wire.step("MoveAhead")
        assert status == 409
        assert "Initialize" in refused["errorMessage"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[1]",
        b"{}",
        b'{"action": 3}',
        b'{"action": "Stop", "sequenceId": -1}',
        b'{"action": "Stop", "sequenceId": true}',
        b'{"action": "Stop", "agentId": 1}',
        b'{"action": "Stop", "renderImage": "no"}',
        b'{"action": "Stop", "x": NaN}',
        b'{"action": "' + b"a" * 101 + b'"}',
        b"[" * 60_000,
        b'{"sequenceId": ' + b"9" * 5000 + b', "action": "Stop"}',
    ],
    ids=lambda content: content[:40].decode("latin-1"),
)
def test_malformed_requests_are_refused(content: bytes) -> None:
    with pytest.raises(Refused):
        parse_request(content)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_or_understood(content: bytes) -> None:
    try:
        request = parse_request(content)
    except Refused:
        return
    assert isinstance(request.action, str)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
_NAMES = st.sampled_from(
    ["MoveAhead", "RotateLeft", "Initialize", "Reset", "TeleportFull", "Pass", "Stop", "x", "LookUp"]
)
_KEYS = st.sampled_from(["x", "z", "rotation", "horizon", "gridSize", "sceneName", "degrees", "agentId", "renderImage"])


@pytest.mark.slow
def test_no_request_ends_the_server_or_leaves_the_list_of_actions() -> None:
    episodes = [open_room.make_object_episode(id=str(i)) for i in range(400)]
    with serving(episodes) as (server, wire):

        @settings(max_examples=60, suppress_health_check=list(HealthCheck))
        @given(_NAMES, st.dictionaries(_KEYS, _JSON, max_size=4), st.integers(-2, 2))
        def send(action: str, arguments: dict[str, object], sequence: int) -> None:
            status, answer = wire.post(body(action, sequence, **{"agentId": 0} | arguments))
            assert status in (200, 400, 409)
            assert isinstance(event(answer)["lastActionSuccess"], bool)

        send()
        wire.step("Stop")
        assert wire.step("Initialize")[0] == 200
        assert not server.env.episode_over


# --- the door -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN[:-1]])
def test_without_the_token_nothing_moves(token: str) -> None:
    with serving() as (server, wire):
        status, refused = Wire(wire.port, token=token).step("Initialize")
        assert status == 401
        assert "token" in refused["errorMessage"]
        assert server.env.episode_over


def test_basic_authentication_as_a_url_carries_it() -> None:
    with serving() as (_, wire):
        for credentials, expected in (("cm9ib3Q6YS10b2tlbg==", 200), ("cm9ib3Q6YS10b2tlbg", 401), ("Og==", 401)):
            assert wire.post(body("Initialize"), Authorization=f"Basic {credentials}")[0] == expected


def test_other_paths_methods_and_lengths() -> None:
    with serving() as (_, wire):
        assert wire.post(b"{}", path="/reset")[0] == 404
        assert wire.post(b"{}", path="/../step")[0] == 404
        assert raw(wire.port, b"GET /ping HTTP/1.0\r\n\r\n").endswith(b"PONG")
        assert b" 404 " in raw(wire.port, b"GET /step HTTP/1.0\r\n\r\n")
        assert b" 411 " in raw(wire.port, b"POST /step HTTP/1.0\r\n\r\n")
        assert b" 411 " in raw(wire.port, b"POST /step HTTP/1.0\r\nContent-Length: -5\r\n\r\n")
        assert b" 413 " in raw(
            wire.port, b"POST /step HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % (request_server.MAX_BODY + 1)
        )
        assert b" 413 " in raw(wire.port, b"POST /step HTTP/1.0\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n")
        assert wire.step("Initialize")[0] == 200


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=200) | st.binary(max_size=100).map(lambda tail: b"POST /step HTTP/1.1\r\n" + tail))
def test_any_bytes_at_the_door(fuzzed_server: Wire, content: bytes) -> None:
    raw(fuzzed_server.port, content)
    assert raw(fuzzed_server.port, b"GET /ping HTTP/1.0\r\n\r\n").endswith(b"PONG")


@pytest.fixture(scope="module")
def fuzzed_server() -> Iterator[Wire]:
    with serving() as (_, wire):
        yield wire


def raw(port: int, content: bytes) -> bytes:
    """Reply to some bytes, after which nothing more is sent."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as connection:
        try:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            while got := connection.recv(65536):
                answer += got
        except ConnectionError:
            pass
    return answer


class Countdown:
    """A ``threading.Timer`` that runs out when the test says so, however long the computer stands still meanwhile."""

    started: queue.Queue[Countdown] = queue.Queue()

    def __init__(self, limit_s: float, expire: Callable[[], None]) -> None:
        self.limit_s, self.expire = limit_s, expire
        self.cancelled = False

    def start(self) -> None:
        self.started.put(self)

    def cancel(self) -> None:
        self.cancelled = True


def test_a_slow_sender_has_its_time_and_others_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "Timer", Countdown)
    with serving() as (_, wire), socket.create_connection(("127.0.0.1", wire.port), timeout=LIMIT_S) as slow:
        slow.sendall(b"POST /step HTTP/1.0\r\nContent-Length: 100\r\n\r\n{")
        of_slow = Countdown.started.get(timeout=LIMIT_S)
        assert wire.step("Initialize")[0] == 200
        assert Countdown.started.get(timeout=LIMIT_S).cancelled, "a request that has come has all the time"
        assert (of_slow.limit_s, of_slow.cancelled) == (request_server.READ_S, False)
        of_slow.expire()
        assert slow.recv(100) == b""


@pytest.mark.parametrize("address", [("127.0.0.1", None), ("192.0.2.1", 0), ("no.such.host.invalid", 0)])
def test_an_address_that_cannot_be_had(address: tuple[str, int | None]) -> None:
    with serving() as (_, wire):
        host, port = address
        taken = wire.port if port is None else port
        with raises_naming(ConfigError, f"{host}:{taken}"):
            request_server.RequestServer((host, taken), TOKEN, lambda *_: None, lambda _: b"")


def test_connections_beyond_the_limit_are_closed_and_lock_no_client_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_server, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(request_server, "READ_S", 300.0)
    with serving() as (_, wire):
        idle = [socket.create_connection(("127.0.0.1", wire.port), timeout=LIMIT_S) for _ in range(3)]
        assert idle[0].recv(1) == b""
        assert wire.step("Initialize")[0] == 200
        for connection in idle:
            connection.close()


# --- repeats, several clients, lost clients -------------------------------------------------------------------------


class Gate(Subscriber):
    """Holds the robot in mid-action until it is opened."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def on_base_state(self, state: BaseState) -> None:
        if not self.open.is_set() and state.velocity.linear_m_s > 0.1:
            self.reached.set()
            assert self.open.wait(LIMIT_S)


def test_a_repeated_request_moves_nothing_and_gets_the_same_answer() -> None:
    with serving() as (server, wire):
        wire.step("Initialize", 1)
        first = wire.post(body("MoveAhead", 2))
        assert wire.post(body("MoveAhead", 2)) == first
        assert server.env.record.index == 1
        status, refused = wire.step("RotateLeft", 2)
        assert status == 409
        assert "sequenceId 2 is not above 2" in refused["errorMessage"]
        assert wire.step("RotateLeft", 1)[0] == 409
        assert wire.step("RotateLeft", 7)[0] == 200
        assert server.env.record.index == 2


def test_numbers_begin_anew_with_an_episode_and_zero_counts_nothing() -> None:
    episodes = [open_room.make_object_episode(id=str(i)) for i in range(2)]
    with serving(episodes) as (server, wire):
        wire.step("Initialize", 8)
        wire.step("Stop", 9)
        assert wire.step("Initialize", 1)[1]["robotRuntime"]["index"] == 1
        for _ in range(2):
            assert wire.step("RotateLeft", 0)[0] == 200
        assert server.env.record.index == 2


def test_a_repeat_while_the_action_runs_waits_for_its_answer() -> None:
    gate = Gate()
    answers: list[tuple[int, bytes]] = []
    with serving(subscribers=[gate]) as (server, wire):
        wire.step("Initialize", 1)
        senders = [threading.Thread(target=lambda: answers.append(wire.post(body("MoveAhead", 2)))) for _ in range(2)]
        senders[0].start()
        assert gate.reached.wait(LIMIT_S)
        senders[1].start()
        status, refused = wire.step("RotateLeft", 3)
        assert status == 409
        assert "another request" in refused["errorMessage"]
        gate.open.set()
        for sender in senders:
            sender.join(LIMIT_S)
        assert len(answers) == 2
        assert answers[0] == answers[1]
        assert answers[0][0] == 200
        assert server.env.record.index == 1


def test_an_episode_is_its_clients_alone() -> None:
    episodes = [open_room.make_object_episode(id=str(i)) for i in range(2)]
    with serving(episodes) as (_, wire):
        other = replace(wire, user="other")
        mine = {"Authorization": "Basic bWU6YS10b2tlbg=="}  # me:a-token
        assert wire.post(body("Initialize"), **mine)[0] == 200
        status, refused = other.step("RotateLeft")
        assert status == 409
        assert "another client, me@127.0.0.1" in refused["errorMessage"]
        assert other.step("Initialize")[0] == 409
        assert wire.post(body("Stop"), **mine)[0] == 200
        assert other.step("Initialize")[0] == 200


def test_a_second_program_of_the_same_name_does_not_end_the_episode() -> None:
    witness = open_room.Witness()
    episodes = [open_room.make_object_episode(id=str(i)) for i in range(2)]
    with serving(episodes, [witness]) as (_, wire):
        wire.step("Initialize")
        status, refused = Wire(wire.port).step("Initialize")
        assert (status, refused["errorCode"]) == (409, "InvalidAction")
        assert "--takeover" in refused["errorMessage"]
        assert witness.ends == []
        assert wire.step("MoveAhead")[1]["robotRuntime"]["episode"] == "0"


def test_with_takeover_a_new_client_ends_the_episode_and_the_old_one_is_refused() -> None:
    witness = open_room.Witness()
    episodes = [open_room.make_object_episode(id=str(i)) for i in range(2)]
    old, new = ({"Authorization": f"Basic {name}"} for name in ("b2xkOmEtdG9rZW4=", "bmV3OmEtdG9rZW4="))
    with serving(episodes, [witness], takeover=True) as (_, wire):
        wire.post(body("Initialize"), **old)
        status, answer = wire.post(body("Initialize"), **new)
        assert (status, event(answer)["robotRuntime"]["episode"]) == (200, "1")
        assert witness.ends[0].reason is EndReason.INTERRUPTED
        status, answer = wire.post(body("MoveAhead"), **old)
        assert status == 409
        assert "another client, new@127.0.0.1" in event(answer)["errorMessage"]


def test_a_silent_client_loses_its_episode() -> None:
    witness = open_room.Witness()
    episodes = [open_room.make_object_episode(id=str(i)) for i in range(2)]
    ended = threading.Event()
    owners: list[str | None] = []

    class End(Subscriber):
        def on_episode_end(self, end: object) -> None:
            owners.append(server._queue._owner)
            ended.set()

    with serving(episodes, [witness, End()], client_timeout_s=0.1) as (server, wire):
        wire.step("Initialize")
        assert ended.wait(LIMIT_S)
        assert owners == [None], "who hears of the end can begin the next one"
        assert witness.ends[0].reason is EndReason.INTERRUPTED
        assert "silent" in witness.ends[0].detail
        assert replace(wire, user="other").step("Initialize")[0] == 200


def vanish(port: int, content: bytes, gate: Gate) -> None:
    """Send a request and close the connection while the robot moves."""
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as connection:
        head = f"POST /step HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {len(content)}\r\n\r\n"
        connection.sendall(head.encode() + content)
        assert gate.reached.wait(LIMIT_S)


def test_a_client_that_vanishes_stops_the_robot() -> None:
    gate, witness = Gate(), open_room.Witness()
    with serving(subscribers=[gate, witness]) as (server, wire):
        wire.step("Initialize")
        vanish(wire.port, body("MoveAhead"), gate)
        call = server._call
        assert call is not None
        assert call.cut.wait(LIMIT_S)
        gate.open.set()
        assert call.done.wait(LIMIT_S)
        assert witness.ends[0].reason is EndReason.INTERRUPTED
        assert "connection was lost" in witness.ends[0].detail
        assert [step.action for step in witness.steps] == [None]
        robot = server.env.robot
        robot.clock.sleep(0.1)
        state = robot.base.state(0.1)
        assert state.velocity.linear_m_s == 0.0
        assert state.odom.x_m < 0.1
        assert wire.step("MoveAhead")[0] == 409


def test_a_numbered_request_is_finished_without_its_client_and_answered_to_the_repeat() -> None:
    gate, witness = Gate(), open_room.Witness()
    with serving(subscribers=[gate, witness]) as (server, wire):
        wire.step("Initialize", 1)
        vanish(wire.port, body("MoveAhead", 2), gate)
        gate.open.set()
        status, moved = wire.step("MoveAhead", 2)
        assert (status, moved["lastActionSuccess"]) == (200, True)
        assert server.env.record.index == 1
        assert witness.ends == []


def test_a_device_fault_ends_the_episode_and_says_so() -> None:
    witness = open_room.Witness()
    episodes = [open_room.make_object_episode(id=str(i)) for i in range(2)]
    faults = [{"kind": "silent_base", "from_s": 3.0, "to_s": 7.0}]
    with serving(episodes, [witness], faults=faults) as (server, wire):
        wire.step("Initialize")
        status = 200
        while status == 200:
            status, failed = wire.step("MoveAhead")
        assert status == 500
        assert failed["robotRuntime"]["error"] == "StaleData"
        assert "remedy" in failed["errorMessage"]
        assert witness.ends[0].reason is EndReason.FAULT
        server.env.robot.clock.sleep(2.5)
        assert wire.step("Initialize")[0] == 200
