"""``robot-runtime serve robothor`` as a process: output, logs, scores and exit code."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from raising import raises_naming
from robothor_rig import LIMIT_S, Wire

from robot_runtime.cli_options.addresses import check_token
from robot_runtime.errors import ConfigError
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason


@contextmanager
def command(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], Wire]]:
    """The command on the fake robot, and a client with the token that it printed."""
    arguments = ["serve", "robothor", "--robot", "fake", "--count", "1", "--port", "0", "--out", str(folder), *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "robot_runtime", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        shown = process.stdout.readline() + process.stdout.readline()
        found = re.search(
            r'Controller\(host=f"robot-\{os\.getpid\(\)\}:(?P<token>[^@]+)@(?P<host>[^"]+)", port=(?P<port>\d+)\)',
            shown,
        )
        assert found is not None, shown
        yield process, Wire(int(found["port"]), token=found["token"], host=found["host"])
    finally:
        process.kill()
        process.communicate()


def end_of(folder: Path) -> EndReason:
    (log,) = folder.glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.end is not None
        return reader.end.reason


@pytest.mark.slow
def test_serves_logs_scores_and_ends(tmp_path: Path) -> None:
    with command(tmp_path / "logs") as (process, wire):
        assert len(wire.token) >= 16
        assert wire.step("Initialize")[0] == 200
        assert wire.step("Jump")[0] == 400
        assert wire.step("Stop")[0] == 200
        scores, said = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, said
        assert "robothor-client" in scores
        assert "refused: action 'Jump'" in said
    assert end_of(tmp_path / "logs") is EndReason.STOP


@pytest.mark.slow
def test_beyond_the_loopback_only_the_token_lets_in(tmp_path: Path) -> None:
    with command(tmp_path / "logs", "--host", "0.0.0.0") as (_, wire):
        assert wire.host == socket.gethostname()
        wire.host = own_address()
        assert len(wire.token) >= 16
        for token in ("", "guess", wire.token[:-1]):
            assert replace(wire, token=token).step("Initialize")[0] == 401
        assert wire.step("Initialize")[0] == 200
        assert replace(wire, token="guess").step("Stop")[0] == 401
        assert wire.step("Stop")[0] == 200


def own_address() -> str:
    """This machine's address in its network, or the loopback where there is none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # reserved for documentation (RFC 5737)
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


@pytest.mark.slow
def test_ctrl_c_in_an_episode_ends_it_and_closes_the_log(tmp_path: Path) -> None:
    with command(tmp_path / "logs") as (process, wire):
        assert wire.step("Initialize")[0] == 200
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
        assert process.returncode == 130
    assert end_of(tmp_path / "logs") is EndReason.INTERRUPTED


@pytest.mark.parametrize(
    ("token", "host", "names"),
    [
        ("a b", "127.0.0.1", "token"),
        ("a:b@c/", "127.0.0.1", "characters"),
        ("ü" * 20, "127.0.0.1", "characters"),
        ("short", "0.0.0.0", "16"),
        ("short", "robot.local", "16"),
    ],
)
def test_invalid_tokens_are_refused(token: str, host: str, names: str) -> None:
    with raises_naming(ConfigError, names):
        check_token(token, host)


@pytest.mark.parametrize(("token", "host"), [("short", "localhost"), ("short", "127.0.0.2"), ("a" * 16, "0.0.0.0")])
def test_valid_tokens(token: str, host: str) -> None:
    check_token(token, host)
