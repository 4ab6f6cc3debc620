"""Every command ends within seconds of Ctrl-C or SIGTERM, in each phase, headless and on a terminal."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import small_campaign

from robot_runtime.cli.main import INTERRUPTED_EXIT_CODE, run_command

LIMIT_S = 3.0
"""From the signal to the end of the process."""

PROGRAM = """
import sys
import robot_runtime.export.rerun_stream as stream
stream.VIEWER = "127.0.0.1", int(sys.argv[1])
from robot_runtime.cli.main import main
print("begins", flush=True)
main(sys.argv[2:])
"""
TURNS = """
class Turns:
    def reset(self): print("resets", flush=True)
    def act(self, observations):
        print("acts", flush=True)
        return "TURN_LEFT"
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interrupted")
    (folder / "turns.py").write_text(TURNS, encoding="utf-8")
    command = ["run", "--robot", "fake", "--policy", "oracle", "--scene", "arena", "--count", "1"]
    assert run_command([*command, "--out", str(folder / "logs")]) == 0
    small_campaign.write_plan(folder, 30)
    return folder


@pytest.fixture
def deaf_viewer() -> Iterator[int]:
    """The port of a viewer that accepts connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


RUN = ("run", "--robot", "fake", "--policy", "FOLDER/turns.py:Turns", "--real-time", "--count", "1")
SHOWN, OPENED = ("begins", 0.5), ("begins", 2.0)
"""What a command prints as its phase begins, and seconds from then to the signal."""

RUNS = (SHOWN, ("resets", 0.5), ("acts", 0.5))
COMMANDS = {
    "view": (("view", "FOLDER/logs"), (SHOWN, OPENED)),
    "foxglove": (("view", "FOLDER/logs", "--foxglove", "--port", "0"), (SHOWN, ("serving", 0.2))),
    "run": ((*RUN, "--out", "OUT"), RUNS),
    "console": ((*RUN, "--console", "127.0.0.1:0", "--out", "OUT"), RUNS),
    "campaign": (("campaign", "run", "FOLDER/plan.yaml", "--out", "OUT"), (SHOWN, ("begins", 4.0))),
    "replay": (("replay", "FOLDER/logs", "--into", "sim", "--out", "OUT"), (SHOWN, OPENED)),
}
AT_ONCE = 2
"""Processes: each waits most of its time, and the signal's effect is measured beside the start of others."""


def interrupted(command: list[str], phase: tuple[str, float], number: int, on_terminal: bool) -> tuple[int, float]:
    """Exit code of a command that gets a signal in a phase, and the seconds from the signal to its end."""
    master, stream = pty.openpty() if on_terminal else os.pipe()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
    ) as one:
        os.close(stream)
        seen = b""
        while phase[0].encode() not in seen:
            part = os.read(master, 4096)
            assert part, seen
            seen += part
        time.sleep(phase[1])
        assert one.poll() is None, seen
        one.send_signal(number)
        began_s = time.monotonic()
        try:
            code = one.wait(10 * LIMIT_S)
        finally:
            one.kill()
        took_s = time.monotonic() - began_s
    os.close(master)
    return code, took_s


@pytest.mark.slow
@pytest.mark.usefixtures("in_real_time")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_ends_soon_after_a_signal(logs: Path, deaf_viewer: int, tmp_path: Path, name: str) -> None:
    arguments, phases = COMMANDS[name]
    started: dict[tuple[object, ...], Future[tuple[int, float]]] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for turn, phase in enumerate(phases):
            for number in (signal.SIGINT, signal.SIGTERM):
                on_terminal = (number == signal.SIGINT) == (turn % 2 == 0)  # the phases take turns
                out = str(tmp_path / f"{turn}-{number}")
                words = [word.replace("FOLDER", str(logs)).replace("OUT", out) for word in arguments]
                command = [sys.executable, "-c", PROGRAM, str(deaf_viewer), *words]
                case = (phase, number.name, "terminal" if on_terminal else "headless")
                started[case] = pool.submit(interrupted, command, phase, number, on_terminal)
    ends = {case: one.result() for case, one in started.items()}
    assert {case: code for case, (code, _) in ends.items() if code != INTERRUPTED_EXIT_CODE} == {}
    assert {case: took_s for case, (_, took_s) in ends.items() if took_s > LIMIT_S} == {}


@pytest.mark.slow
def test_a_viewer_that_goes_away_is_an_error(logs: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            with suppress(OSError):  # the server is closed at the end
                while True:
                    server.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        command = [sys.executable, "-c", PROGRAM, str(server.getsockname()[1]), "view", str(logs / "logs")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "viewer has gone" in done.stderr
    assert "--foxglove" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_without_a_display_the_view_names_the_other_ways(logs: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", PROGRAM, str(port), "view", str(logs / "logs")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert "no display" in done.stderr
    assert "--out" in done.stderr
    assert "--foxglove" in done.stderr
