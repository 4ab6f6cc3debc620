"""A policy on another machine: the real server and the real client, over the loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from open_room import Witness, fake_robot, make_episode, make_scene, make_task
from raising import raises_naming
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from robot_runtime.actions import timed
from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, PolicyError, PolicyMismatch, RuntimeFault, UnknownAction
from robot_runtime.policies import load_policy
from robot_runtime.policies.remote.client import LinkLost, RemotePolicy
from robot_runtime.policies.remote.protocol import EXTENSION, ProtocolError, observation_from_message, pack, unpack
from robot_runtime.policies.stepping import check_policy
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.records import EndReason
from robot_runtime.runtime import run_episode
from robot_runtime.servers import policy as server_module
from robot_runtime.servers.policy import PolicyServer
from robot_runtime.tasks.task import Task, load_task

TASK = make_task()
LOOPBACK = ("127.0.0.1", 0)


class Walker(Policy):
    """Forward a few times, then stop; counts its calls, and can fail on request."""

    name = "walker"
    needs = ("gps",)

    def __init__(self, steps: int = 3, before: Callable[[int], None] | None = None) -> None:
        self.steps, self.before = steps, before or (lambda _: None)
        self.acts = self.resets = 0
        self.seeds: list[int] = []
        self.seen: Observation = {}

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self.acts = 0
        self.resets += 1
        self.seeds.append(seed)

    def act(self, observation: Observation) -> Decision:
        self.seen = observation
        self.acts += 1
        self.before(self.acts)
        return Action.STOP if self.acts > self.steps else Action.MOVE_FORWARD

    def info(self) -> dict[str, Any]:
        return {"act": self.acts}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy computer it takes the server more than a second to see that a client has left."""
    monkeypatch.setattr(server_module, "_LEAVING_S", 30.0)


@contextmanager
def served(policy: Policy, **options: Any) -> Iterator[str]:
    with PolicyServer(policy, options.pop("task", TASK), LOOPBACK, **options) as server:
        yield f"ws://127.0.0.1:{server.port}"


class Hurried(RemotePolicy):
    """Short time limit from the second decision on; the first may take long on a busy computer."""

    def act(self, observation: Observation) -> Decision:
        if self._sequence == 2:
            self._limit_s = 0.3
        return super().act(observation)


@contextmanager
def remote(url: str, kind: type[RemotePolicy] = RemotePolicy, **options: Any) -> Iterator[RemotePolicy]:
    policy = kind(url, **{"reconnect_s": 0.3, "time_limit_s": 20.0, **options})
    try:
        yield policy
    finally:
        policy.close()


def observation(**changes: Any) -> Observation:
    shown = {
        "rgb": np.zeros((4, 5, 3), np.uint8),
        "gps": np.array([1.0, 2.0], np.float32),
        "instruction": np.array("go"),
    }
    return {**shown, **changes}


# --- whole episodes -------------------------------------------------------------------------------------------------


def run(url: str, witness: Witness, kind: type[RemotePolicy] = RemotePolicy) -> EndReason:
    with fake_robot(TASK) as robot, remote(url, kind) as policy:
        env = Env(robot, TASK, make_scene(), [witness])
        try:
            return run_episode(env, policy, make_episode(), seed=7).reason
        finally:
            assert robot.base.state(1.0).velocity.linear_m_s == 0.0


def test_a_remote_episode_equals_a_local_one() -> None:
    policy, witness = Walker(), Witness()
    with served(policy) as url:
        assert run(url, witness) is EndReason.STOP
    assert [str(step.action) for step in witness.steps[1:]] == ["move_forward"] * 3 + ["stop"]
    assert [step.policy_info["act"] for step in witness.steps[1:]] == [1, 2, 3, 4]
    assert policy.seeds == [7]
    last = witness.steps[-2].observation
    for name, array in last.items():
        assert policy.seen[name].dtype == array.dtype
        np.testing.assert_array_equal(policy.seen[name], array)


def test_a_server_that_dies_ends_the_episode_with_the_wheels_at_zero() -> None:
    about = pack({EXTENSION: {"protocol": 1, "policy": "p", "needs": [], "task": None}})

    def handle(connection: ServerConnection) -> None:
        connection.send(about)
        for _ in range(3):
            sequence = unpack(connection.recv())[EXTENSION]["sequence"]
            connection.send(pack({EXTENSION: {"sequence": sequence}, "action": "move_forward"}))
        connection.recv()
        server.socket.close()
        connection.socket.shutdown(socket.SHUT_RDWR)

    witness = Witness()
    server = serve(handle, "127.0.0.1", 0, compression=None)
    port = server.socket.getsockname()[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with pytest.raises(LinkLost) as error:
        run(f"ws://127.0.0.1:{port}", witness)
    server.shutdown()
    thread.join()
    assert "serve policy" in error.value.remedy
    assert witness.ends[0].reason is EndReason.FAULT
    assert [str(step.action) for step in witness.steps[1:]] == ["move_forward"] * 2


def test_a_policy_that_takes_too_long_ends_the_episode() -> None:
    release = threading.Event()
    with served(Walker(before=lambda act: act == 2 and release.wait(60))) as url:
        witness = Witness()
        with raises_naming(PolicyError, "0.3 s"):
            run(url, witness, Hurried)
        release.set()
    assert witness.ends[0].reason is EndReason.FAULT
    assert len(witness.steps) == 2


# --- link -----------------------------------------------------------------------------------------------------------


def test_a_lost_link_is_restored_between_steps_with_the_policys_state() -> None:
    policy = Walker()
    with served(policy) as url, remote(url) as client:
        client.reset(TASK, 0)
        assert client.act(observation()) is Action.MOVE_FORWARD
        _cut(client)
        assert [client.act(observation()) for _ in range(3)] == [Action.MOVE_FORWARD, Action.MOVE_FORWARD, Action.STOP]
    assert (policy.resets, policy.acts) == (1, 4)


def test_a_late_disconnect_keeps_the_next_clients_session(monkeypatch: pytest.MonkeyPatch) -> None:
    left = threading.Semaphore(0)
    leave = PolicyServer._leave

    def tell(server: PolicyServer, own: set[str], properly: bool) -> None:
        leave(server, own, properly)
        left.release()

    monkeypatch.setattr(PolicyServer, "_leave", tell)
    with PolicyServer(Walker(), TASK, LOOPBACK) as server, connect(f"ws://127.0.0.1:{server.port}") as second:
        second.recv()
        with connect(f"ws://127.0.0.1:{server.port}") as first:
            first.recv()
            ours = {"type": "reset", "session": "a", "sequence": 0, "task": _task_document(), "seed": 0}
            first.send(pack({EXTENSION: ours}))
            first.recv()
            second.send(pack({EXTENSION: {"type": "act", "session": "a", "sequence": 1}, "gps": np.zeros(2)}))
            second.recv()
        assert left.acquire(timeout=30)
        assert server._episode is not None
        assert server._episode.gone is None


def test_a_request_that_is_repeated_is_decided_once() -> None:
    policy = Walker()
    with served(policy) as url, connect(url) as link:
        link.recv()
        task = _task_document()
        for _ in range(2):
            link.send(pack({EXTENSION: {"type": "reset", "session": "a", "sequence": 0, "task": task, "seed": 0}}))
            assert unpack(link.recv())[EXTENSION] == {"sequence": 0}
        answers = []
        for _ in range(2):
            link.send(pack({EXTENSION: {"type": "act", "session": "a", "sequence": 1}, "gps": np.zeros(2)}))
            answers.append(link.recv())
    assert answers[0] == answers[1]
    assert (policy.resets, policy.acts) == (1, 1)


@pytest.mark.parametrize("sequence", [0, 2, -1, 10**9])
def test_a_request_out_of_order_is_refused(sequence: int) -> None:
    policy = Walker()
    with served(policy) as url, connect(url) as link:
        link.recv()
        link.send(
            pack({EXTENSION: {"type": "reset", "session": "a", "sequence": 0, "task": _task_document(), "seed": 0}})
        )
        link.recv()
        link.send(pack({EXTENSION: {"type": "act", "session": "b" if sequence == 0 else "a", "sequence": sequence}}))
        assert "error" in unpack(link.recv())[EXTENSION]
    assert policy.acts == 0


def test_an_episode_ends_when_the_server_restarts() -> None:
    with served(Walker()) as url, remote(url) as client:
        client.reset(TASK, 0)
        client._session = "another"
        with raises_naming(PolicyError, "episode"):
            client.act(observation())


def test_one_robot_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(Walker()) as url, remote(url) as first:
        first.reset(TASK, 0)
        with remote(url) as second:
            with monkeypatch.context() as hurried:
                hurried.setattr(server_module, "_LEAVING_S", 0.05)
                with raises_naming(PolicyError, "robot"):
                    second.reset(TASK, 0)
            assert first.act(observation()) is Action.MOVE_FORWARD
            first.close()
            second.reset(TASK, 0)
            assert second.act(observation()) is Action.MOVE_FORWARD
        with raises_naming(PolicyError, "episode"):
            first.act(observation())


def test_a_server_that_is_not_there_is_named() -> None:
    with raises_naming(LinkLost, "ws://127.0.0.1:9"):
        RemotePolicy("ws://127.0.0.1:9", reconnect_s=0.1)


@pytest.mark.parametrize("url", ["ws://", "ws://host:notaport", "ws://127.0.0.1:99999999"])
def test_an_invalid_address_is_named(url: str) -> None:
    with pytest.raises((ConfigError, LinkLost)) as error:
        RemotePolicy(url, reconnect_s=0.1)
    assert url in error.value.message


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf", "0"])
def test_an_invalid_time_limit_is_refused(value: str) -> None:
    with raises_naming(ConfigError, "time_limit_s", repr(value)):
        load_policy("ws://127.0.0.1:9", time_limit_s=value)


def test_an_unknown_argument_is_named() -> None:
    with raises_naming(ConfigError, "speed"):
        load_policy("ws://127.0.0.1:9", speed="3")


def test_connections_are_counted_before_their_handshake_and_lock_no_client_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(server_module, "OPEN_S", 300.0)
    with PolicyServer(Walker(), TASK, LOOPBACK) as server:
        address = ("127.0.0.1", server.port)
        silent = [socket.create_connection(address, timeout=30.0) for _ in range(3)]
        assert silent[0].recv(1) == b"", "the first makes room, although nobody has sent a byte"
        with remote(f"ws://127.0.0.1:{server.port}", reconnect_s=30.0) as policy:
            policy.reset(TASK, 0)
        for connection in silent:
            connection.close()


def test_a_connection_that_sends_no_handshake_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "OPEN_S", 0.05)
    with (
        PolicyServer(Walker(), TASK, LOOPBACK) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=30.0) as silent,
    ):
        assert silent.recv(1) == b""


def test_a_silent_client_is_disconnected_and_continues_its_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SILENT_S", 0.05)
    monkeypatch.setattr(server_module, "SILENT_EPISODE_S", 0.05)
    policy = Walker()
    with served(policy) as url:
        with connect(url) as silent:
            silent.recv()
            with pytest.raises(ConnectionClosed, match="no request for"):
                silent.recv(timeout=30.0)
        with remote(url, reconnect_s=30.0) as robot:
            robot.reset(TASK, 0)
            robot.act(observation())
            assert robot._link is not None
            with pytest.raises(ConnectionClosed):
                robot._link.recv(timeout=30.0)
            assert robot.act(observation()) is Action.MOVE_FORWARD
            assert policy.acts == 2


def test_only_clients_with_the_token_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROBOT_RUNTIME_TOKEN", raising=False)
    with served(Walker(), token="secret") as url:
        with raises_naming(PolicyError, "401"):
            RemotePolicy(url)
        with raises_naming(PolicyError, "401"):
            RemotePolicy(url, token="guess")
        with remote(url, token="secret") as client:
            client.reset(TASK, 0)
        monkeypatch.setenv("ROBOT_RUNTIME_TOKEN", "secret")
        with remote(url) as client:
            client.reset(TASK, 0)


# --- what the server is sent ----------------------------------------------------------------------------------------


def test_a_raising_policy_is_reported_and_the_server_continues() -> None:
    def stumble(act: int) -> None:
        if act == 1 and walker.resets == 1:
            raise ZeroDivisionError("no luck")

    told: list[str] = []
    walker = Walker(before=stumble)
    with served(walker, on_error=told.append) as url, remote(url) as client:
        client.reset(TASK, 0)
        with raises_naming(PolicyError, "ZeroDivisionError", "act", "no luck"):
            client.act(observation())
        client.reset(TASK, 1)
        assert client.act(observation()) is Action.MOVE_FORWARD
    assert "no luck" in told[0]


def test_a_missing_sensor_is_named() -> None:
    with served(Walker()) as url, remote(url) as client:
        client.reset(TASK, 0)
        with raises_naming(PolicyError, "gps"):
            client.act({"rgb": np.zeros((2, 2, 3), np.uint8)})
        assert client.needs == ("gps",)
        with raises_naming(PolicyError, "gps"):
            check_policy(client, make_task(sensors=("rgb",)))


def test_a_sensor_that_only_the_server_has_is_named() -> None:
    first = pack({EXTENSION: {"protocol": 1, "policy": "p", "needs": ["gps", "lidar"], "task": None}})
    with answering(first=first) as url, raises_naming(PolicyMismatch, "lidar"):
        RemotePolicy(url)


def test_what_is_no_declaration_is_named() -> None:
    about = {"protocol": 1, "policy": "p", "needs": [], "task": None, "declared": {"name": 3}}
    with answering(first=pack({EXTENSION: about})) as url, raises_naming(ConfigError, "declared"):
        RemotePolicy(url)


def test_a_privileged_policy_is_not_served() -> None:
    with raises_naming(PolicyError, "oracle"):
        PolicyServer(load_policy("oracle"), TASK, LOOPBACK)


_KEYS = st.sampled_from([EXTENSION, "type", "session", "gps", b"__ndarray__", b"data", b"dtype", b"shape"])
_ATOMS = (
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.floats() | st.text(max_size=5) | st.binary(max_size=9)
)
_ALMOST_MESSAGES = st.recursive(
    _ATOMS | st.sampled_from(["<f4", "|b1", "O", "<U3", "f4,f4"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=12,
).map(msgpack.packb)


@pytest.mark.slow
@given(st.binary(max_size=200) | _ALMOST_MESSAGES)
@settings(max_examples=300)
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    try:
        message = unpack(data)
    except ProtocolError:
        return
    observation_from_message(message)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\xff" * 50,
        b"\x81\xa3gps" + b"\xc6\xff\xff\xff\xff",
        b"\x91" * 5000 + b"\xc0",
        msgpack.packb([1, 2]),
        msgpack.packb({EXTENSION: 3}),
        msgpack.packb({EXTENSION: {"type": "act", "session": 1, "sequence": 1}}),
        msgpack.packb({EXTENSION: {"type": "shutdown", "session": "a", "sequence": 1}}),
        msgpack.packb({"gps": {b"__ndarray__": True, b"data": b"", b"dtype": "|O", b"shape": [0]}}),
        msgpack.packb({"gps": {b"__ndarray__": True, b"data": b"x", b"dtype": "<f4", b"shape": [2**40]}}),
        msgpack.packb({"gps": {b"__ndarray__": True, b"data": b"", b"dtype": "(1000,1000)f8", b"shape": [1]}}),
        msgpack.packb({"gps": {b"__ndarray__": True, b"data": b"", b"dtype": "<f4", b"shape": [-1, 0]}}),
        "text",
    ],
)
def test_hostile_messages_end_their_own_connection_only(data: bytes | str) -> None:
    walker = Walker()
    with served(walker) as url, remote(url) as client:
        client.reset(TASK, 0)
        with connect(url) as hostile:
            hostile.recv()
            hostile.send(data)
            assert isinstance(hostile.recv(timeout=20), str)
            with pytest.raises(ConnectionClosed):
                hostile.recv(timeout=20)
        assert client.act(observation()) is Action.MOVE_FORWARD


def test_a_message_that_is_too_large_ends_its_connection_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robot_runtime.policies.remote.protocol.MAX_REQUEST_BYTES", 1000)
    with served(Walker()) as url:
        with connect(url) as hostile:
            hostile.recv()
            hostile.send(b"\x00" * 2000)
            with pytest.raises(ConnectionClosed, match="1009"):
                hostile.recv(timeout=20)
        with remote(url) as client:
            client.reset(TASK, 0)


# --- what the client is sent ----------------------------------------------------------------------------------------


@contextmanager
def answering(*answers: Any, first: Any = None) -> Iterator[str]:
    """A server written against openpi's protocol, which says this and nothing else."""

    def handle(connection: ServerConnection) -> None:
        connection.send(pack({}) if first is None else first)
        for answer in answers:
            connection.recv()
            connection.send(answer if isinstance(answer, bytes | str) else pack(answer))
        connection.recv()

    server = serve(handle, "127.0.0.1", 0, compression=None)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
    finally:
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ({"action": "move_forward"}, Action.MOVE_FORWARD),
        ({"action": 0, "server_timing": {"infer_ms": 3.0}}, Action.STOP),
        ({"action": np.int64(2)}, Action.TURN_LEFT),
        ({"action": np.array([3])}, Action.TURN_RIGHT),
    ],
)
def test_a_server_of_openpis_kind_drives_the_robot(answer: dict[str, Any], meant: Action) -> None:
    with answering(answer) as url, remote(url) as client:
        client.reset(TASK, 0)
        assert client.act(observation()) is meant


def test_a_continuous_action_of_such_a_server_is_scaled_by_the_task() -> None:
    answer = {
        "action": ["velocity_control", "velocity_stop"],
        "action_args": {"linear_velocity": np.array([1.0]), "angular_velocity": [-1.0], "velocity_stop": [-1.0]},
    }
    with answering(answer) as url, remote(url) as client:
        client.reset(load_task("objectnav_hm3d2023"), 0)
        assert client.act(observation()) == timed.velocity(0.3, -0.45, 0.0, 0.1)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (b"\xc1", PolicyError, "ws://"),
        ("Traceback ...\nValueError: no camera", PolicyError, "no camera"),
        ({"actions": np.zeros((10, 7))}, PolicyError, "actions"),
        ({"action": None}, PolicyError, "None"),
        ({"action": "fly"}, UnknownAction, "fly"),
        ({"action": 17}, UnknownAction, "17"),
        ({"action": "velocity_control", "command": {"linear_m_s": 1.0}}, PolicyError, "linear_m_s"),
        ({"action": "velocity_control", "action_args": {}}, UnknownAction, TASK.name),
        (b"\x81" + b"\xc6\x7f\xff\xff\xff", PolicyError, "ws://"),
        (b"\x00" * (2 << 20), LinkLost, "ws://"),
    ],
)
def test_invalid_answers_are_errors(answer: Any, error: type[RuntimeFault], said: str) -> None:
    with answering(answer) as url, remote(url) as client:
        client.reset(TASK, 0)
        with raises_naming(error, said):
            client.act(observation())


def test_late_answers_to_earlier_requests_are_ignored() -> None:
    first = pack({EXTENSION: {"protocol": 1, "policy": "p", "needs": [], "task": None}})
    late = [{EXTENSION: {"sequence": 0}}, {EXTENSION: {"sequence": 0}}]
    with answering(*late, first=first) as url, remote(url) as client:
        client.reset(TASK, 0)
        client._limit_s = 0.3
        with raises_naming(PolicyError, "0.3 s"):
            client.act(observation())


def test_another_version_of_the_protocol_is_refused() -> None:
    with answering(first=pack({EXTENSION: {"protocol": 99}})) as url, raises_naming(PolicyError, "99", "1"):
        RemotePolicy(url)


# --- openpi's client ------------------------------------------------------------------------------------------------


def test_a_client_of_openpis_kind_is_answered() -> None:
    """Messages that ``openpi_client.WebsocketClientPolicy`` sends and expects, byte for byte."""
    walker = Walker(steps=1)
    with served(walker, token="secret", seed=5) as url:
        with pytest.raises(InvalidStatus):
            connect(url)
        headers = {"Authorization": "Api-Key secret"}
        for _ in range(2):
            with connect(url, compression=None, max_size=None, additional_headers=headers) as link:
                assert isinstance(unpack(link.recv()), dict)
                gps = {b"__ndarray__": True, b"data": b"\x00" * 8, b"dtype": "<f4", b"shape": (2,)}
                answers = []
                for _ in range(2):
                    link.send(msgpack.packb({"gps": gps}))
                    answers.append(unpack(link.recv()))
            assert [answer["action"] for answer in answers] == ["move_forward", "stop"]
            assert [answer["actions"].tolist() for answer in answers] == [[[1]], [[0]]]
            assert answers[0]["server_timing"]["infer_ms"] >= 0
    assert walker.seeds == [5, 5]


def _cut(client: RemotePolicy) -> None:
    """Break the connection without a word to the other end."""
    assert client._link is not None
    client._link.socket.close()


def _task_document() -> Any:
    from robot_runtime.common import config

    return config.unparse(TASK)
