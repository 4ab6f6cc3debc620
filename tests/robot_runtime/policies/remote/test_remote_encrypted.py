"""Policy server over TLS, with a self-signed certificate and a token."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
from open_room import Witness, fake_robot, make_episode, make_scene, make_task
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.cli.main import run_command
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, PolicyError
from robot_runtime.policies.remote.client import LinkLost, RemotePolicy
from robot_runtime.policies.remote.encryption import client_context, server_context
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason
from robot_runtime.runtime import run_episode
from robot_runtime.servers.policy import PolicyServer
from robot_runtime.tasks.task import Task

TASK = make_task()
TOKEN = "a-token-of-enough-characters"

AGENT = """
class Agent:
    def reset(self):
        self.steps = 0

    def act(self, observations):
        self.steps += 1
        return "stop" if self.steps > 2 else "turn_left"
"""


class Turner(Policy):
    """Turns twice, then stops."""

    name = "turner"

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self.acts = 0

    def act(self, observation: Observation) -> Action:
        self.acts += 1
        return Action.STOP if self.acts > 2 else Action.TURN_LEFT


@dataclass(frozen=True)
class Files:
    """Files of a self-signed certificate."""

    certificate: Path
    key: Path
    trusted: str


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    made = Files(folder / "server.pem", folder / "server.key", str(folder / "authority.pem"))
    issued.private_key_pem.write_to_path(str(made.key))
    for blob in issued.cert_chain_pems:
        blob.write_to_path(str(made.certificate), append=True)
    authority.cert_pem.write_to_path(made.trusted)
    return made


@contextmanager
def served(files: Files, **options: Any) -> Iterator[int]:
    encryption = server_context(files.certificate, files.key)
    with PolicyServer(Turner(), TASK, ("127.0.0.1", 0), encryption=encryption, **options) as server:
        yield server.port


def test_an_episode_over_tls(files: Files) -> None:
    witness = Witness()
    with served(files, token=TOKEN) as port, fake_robot(TASK) as robot:
        policy = RemotePolicy(f"wss://127.0.0.1:{port}", token=TOKEN, certificate=files.trusted)
        env = Env(robot, TASK, make_scene(), [witness])
        assert run_episode(env, policy, make_episode(), seed=0).reason is EndReason.STOP
        policy.close()
    assert [step.action for step in witness.steps[1:]] == [Action.TURN_LEFT, Action.TURN_LEFT, Action.STOP]


def test_the_token_is_checked_behind_tls(files: Files) -> None:
    with served(files, token=TOKEN) as port, raises_naming(PolicyError, "401"):
        RemotePolicy(f"wss://127.0.0.1:{port}", token="guess", certificate=files.trusted)


def test_an_untrusted_certificate_is_refused_at_once(files: Files) -> None:
    with served(files) as port, raises_naming(PolicyError, f"wss://127.0.0.1:{port}", "certificate=FILE") as raised:
        RemotePolicy(f"wss://127.0.0.1:{port}", reconnect_s=60)
    assert not isinstance(raised.value, LinkLost)


def test_a_certificate_for_another_name_is_refused(files: Files, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("gpu.example")
    other = Files(tmp_path / "server.pem", tmp_path / "server.key", str(tmp_path / "authority.pem"))
    issued.private_key_pem.write_to_path(str(other.key))
    issued.cert_chain_pems[0].write_to_path(str(other.certificate))
    authority.cert_pem.write_to_path(other.trusted)
    with served(other) as port, raises_naming(PolicyError, "127.0.0.1"):
        RemotePolicy(f"wss://127.0.0.1:{port}", certificate=other.trusted)


def test_a_client_without_tls_is_not_served(files: Files) -> None:
    with served(files) as port, raises_naming(PolicyError, f"ws://127.0.0.1:{port}"):
        RemotePolicy(f"ws://127.0.0.1:{port}", reconnect_s=0.3)


def test_files_that_do_not_serve_are_named(files: Files, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    for certificate, key in ((tmp_path / "none.pem", files.key), (files.certificate, empty), (empty, files.key)):
        with raises_naming(ConfigError, (certificate if certificate.name == "none.pem" else "empty.pem")):
            server_context(certificate, key)
    for certificate in (tmp_path / "none.pem", empty):
        with raises_naming(ConfigError, certificate.name):
            client_context(certificate)
    with raises_naming(ConfigError, "wss://"):
        RemotePolicy("ws://127.0.0.1:9", certificate=files.trusted)


def test_a_certificate_needs_its_key(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["serve", "policy", "random", "--certificate", str(files.certificate)]) == 2
    assert "belong together" in capsys.readouterr().err


@pytest.mark.slow
def test_the_commands_beyond_the_loopback(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Listening on every address, with the token that the server makes up and prints."""
    (tmp_path / "agent.py").write_text(AGENT)
    monkeypatch.delenv("ROBOT_RUNTIME_TOKEN", raising=False)
    arguments = ["serve", "policy", f"{tmp_path}/agent.py:Agent", "--host", "0.0.0.0", "--port", "0"]
    arguments += ["--certificate", str(files.certificate), "--key", str(files.key)]
    server = subprocess.Popen([sys.executable, "-m", "robot_runtime", *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        shown = server.stdout.readline() + server.stdout.readline()
        found = re.search(rf"wss://{re.escape(socket.gethostname())}:(\d+)\n.*ROBOT_RUNTIME_TOKEN=(\S+)", shown)
        assert found is not None, shown
        url = f"wss://127.0.0.1:{found[1]}"
        run = ["run", "--robot", "fake", "--policy", url, "--agent-arg", f"certificate={files.trusted}"]
        run += ["--count", "1", "--out", str(tmp_path / "logs")]
        assert run_command(run) == PolicyError.exit_code
        assert "401" in capsys.readouterr().err
        monkeypatch.setenv("ROBOT_RUNTIME_TOKEN", found[2])
        assert run_command(run) == 0
        (log,) = (tmp_path / "logs").glob("*.mcap")
        with LogReader(log) as reader:
            assert reader.header.agent == f"{tmp_path}/agent.py:Agent@{url}"
    finally:
        server.kill()
        server.communicate()


@contextmanager
def encrypted_pair(files: Files) -> Iterator[list[ssl.SSLSocket]]:
    """Two ends of an encrypted connection."""
    contexts = server_context(files.certificate, files.key), client_context(files.trusted)
    plain = socket.socketpair()
    ends: list[ssl.SSLSocket] = []
    for context, end in zip(contexts, plain, strict=True):
        end.settimeout(10.0)
        sides: dict[str, Any] = {"server_side": True} if not ends else {"server_hostname": "localhost"}
        ends.append(context.wrap_socket(end, do_handshake_on_connect=False, **sides))
    shaking = threading.Thread(target=ends[0].do_handshake)
    shaking.start()
    ends[1].do_handshake()
    shaking.join()
    try:
        yield ends
    finally:
        for end in ends:
            end.close()


def read_exactly(end: ssl.SSLSocket, count: int) -> bytes:
    got = bytearray()
    while len(got) < count:
        got += end.recv(count - len(got)) or pytest.fail("the connection ended")
    return bytes(got)


def test_both_ends_read_while_they_write(files: Files) -> None:
    """Nothing is lost, nor does the process crash, where two threads of each end are in OpenSSL at once."""
    blocks = [bytes(range(100)) * (1 + at % 3) for at in range(20)]
    whole = b"".join(blocks)
    for _ in range(100):  # a plain SSLSocket fails within them
        read: dict[int, bytes] = {}
        with encrypted_pair(files) as ends:

            def receive(at: int, read: dict[int, bytes] = read, ends: list[ssl.SSLSocket] = ends) -> None:
                read[at] = read_exactly(ends[at], len(whole))

            def write(at: int, ends: list[ssl.SSLSocket] = ends) -> None:
                for block in blocks:
                    ends[at].sendall(block)

            threads = [threading.Thread(target=work, args=(at,)) for work in (receive, write) for at in (0, 1)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10.0)
        assert read == {0: whole, 1: whole}


def test_a_reader_that_waits_lets_others_write(files: Files) -> None:
    with encrypted_pair(files) as (server, client):
        got: list[bytes] = []
        waiting = threading.Thread(target=lambda: got.append(server.recv(100)))
        waiting.start()
        server.sendall(b"while the other thread waits")
        assert client.recv(100) == b"while the other thread waits"
        client.sendall(b"now")
        waiting.join(10.0)
    assert got == [b"now"]


def test_waiting_ends_at_its_limit_and_when_the_socket_is_closed(files: Files) -> None:
    with encrypted_pair(files) as (server, client):
        server.settimeout(0.05)
        with pytest.raises(TimeoutError):
            server.recv(1)
        client.settimeout(None)
        ended: list[Exception | bytes] = []

        def read() -> None:
            try:
                ended.append(client.recv(1))
            except (OSError, ValueError) as error:
                ended.append(error)

        waiting = threading.Thread(target=read)
        waiting.start()
        client.close()
        waiting.join(10.0)
    assert len(ended) == 1
    assert not waiting.is_alive()


def test_what_arrives_after_the_own_end_is_decrypted(files: Files) -> None:
    with encrypted_pair(files) as (server, client):
        client.shutdown(socket.SHUT_WR)
        server.sendall(b"the last words")
        assert client.recv(100) == b"the last words"
        server.shutdown(socket.SHUT_RDWR)
        assert client.recv(100) == b""
