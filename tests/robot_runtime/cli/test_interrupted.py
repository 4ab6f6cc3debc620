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
COMMANDS = {
    "view": (("view", "FOLDER/logs"), ("begins",)),
    "foxglove": (("view", "FOLDER/logs", "--foxglove", "--port", "0"), ("begins", "serving")),
    "run": ((*RUN, "--out", "FOLDER/out"), ("begins", "resets", "acts")),
    "console": ((*RUN, "--console", "127.0.0.1:0", "--out", "FOLDER/con"), ("begins", "resets", "acts")),
    "campaign": (("campaign", "run", "FOLDER/plan.yaml", "--out", "FOLDER/camp"), ("begins",)),
    "replay": (("replay", "FOLDER/logs", "--into", "sim", "--out", "FOLDER/rep"), ("begins",)),
}
CASES = [(name, phase) for name, (_, phases) in COMMANDS.items() for phase in phases]


@pytest.mark.slow
@pytest.mark.usefixtures("in_real_time")
@pytest.mark.parametrize(("name", "phase"), CASES)
@pytest.mark.parametrize(("number", "on_terminal"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_command_ends_soon_after_a_signal(
    logs: Path, deaf_viewer: int, tmp_path: Path, name: str, phase: str, number: int, on_terminal: bool
) -> None:
    words = [word.replace("FOLDER", str(logs)) for word in COMMANDS[name][0]]
    words = [
        word.replace(str(logs), str(tmp_path)) if word.endswith(("/out", "/con", "/rep", "/camp")) else word
        for word in words
    ]
    command = [sys.executable, "-c", PROGRAM, str(deaf_viewer), *words]
    master, stream = pty.openpty() if on_terminal else os.pipe()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
    ) as one:
        os.close(stream)
        seen = b""
        while phase.encode() not in seen:
            part = os.read(master, 4096)
            assert part, seen
            seen += part
        time.sleep(5.0 if name == "campaign" else 1.0)  # into the phase
        assert one.poll() is None, seen
        one.send_signal(number)
        began_s = time.monotonic()
        try:
            code = one.wait(10 * LIMIT_S)
        finally:
            one.kill()
        took_s = time.monotonic() - began_s
    os.close(master)
    assert code == INTERRUPTED_EXIT_CODE
    assert took_s <= LIMIT_S


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
