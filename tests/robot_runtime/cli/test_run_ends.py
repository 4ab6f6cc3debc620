"""Ways out of `run` that nobody asked for: signals, a closed terminal, policies that exit or change directory."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from terminals import LIMIT_S, read_until, start

from robot_runtime.cli.main import run_command
from robot_runtime.common.own_directory import OwnDirectory
from robot_runtime.common.signals import RAISED_AGAIN_S, interrupted_by_signals
from robot_runtime.errors import PolicyError, RecordingError, RuntimeFault
from robot_runtime.hal import Velocity
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason, EpisodeEnd

AGENTS = """
import os, shutil, sys
class Turns:
    steps = 0
    def reset(self): ...
    def act(self, observations):
        self.steps += 1
        if self.steps == 3:
            print("acted three times", flush=True)
        return "TURN_LEFT"
class Exits(Turns):
    def act(self, observations): sys.exit(0)
class ExitsAtOnce(Turns):
    def __init__(self): sys.exit(0)
class Leaves(Turns):
    def act(self, observations):
        self.steps += 1
        return os._exit(3) if self.steps == 3 else "TURN_LEFT"
class Wanders(Turns):
    def __init__(self, folder):
        os.chdir(folder)
        self.folder = folder
    def act(self, observations):
        assert os.getcwd() == self.folder
        os.chdir("/")
        self.folder = "/"
        return "STOP"
class Deletes(Turns):
    def __init__(self, folder): self.folder = folder
    def act(self, observations):
        shutil.rmtree(self.folder)
        return "STOP"
"""


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """A file with agents."""
    path = tmp_path / "agents.py"
    path.write_text(AGENTS, encoding="utf-8")
    return path


def run_fake(agent: str, out: Path, *more: str) -> list[str]:
    return ["run", "--robot", "fake", "--count", "1", "--agent", agent, "--out", str(out), *more]


def end_of(folder: Path) -> EpisodeEnd:
    """The end of the only log in a folder, whose wheels are at zero."""
    (log,) = folder.glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.complete
        *_, last = reader.steps(images=False)
        assert last.base.velocity == Velocity()
        assert reader.end is not None
        return reader.end


def terminate(process: subprocess.Popen[bytes], terminal: int) -> str:
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)  # which must not disturb the clean-up
    shown = read_until(terminal, b"interrupted\r\n").decode()
    os.close(terminal)
    return shown


def close_terminal(process: subprocess.Popen[bytes], terminal: int) -> str:
    os.close(terminal)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "name", "message"),
    [(terminate, "SIGTERM", "the wheels are stopped, the log is closed"), (close_terminal, "SIGHUP", "")],
)
def test_a_signal_ends_an_episode_as_ctrl_c_does(
    tmp_path: Path, agents: Path, end: Callable[[subprocess.Popen[bytes], int], str], name: str, message: str
) -> None:
    master, terminal = pty.openpty()
    with start(run_fake(f"{agents}:Turns", tmp_path / "logs", "--real-time"), terminal) as process:
        os.close(terminal)
        assert b"acted" in (output := read_until(master, b"acted three times")), output
        shown = end(process, master)
        assert process.wait(LIMIT_S) == 130
    assert message in shown
    assert "Traceback" not in shown
    assert (end_of(tmp_path / "logs").reason, end_of(tmp_path / "logs").detail) == (
        EndReason.INTERRUPTED,
        f"ended by {name}",
    )


def test_a_signal_that_was_ignored_from_the_start_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupted_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_first_signal_interrupts_and_repetitions_do_not() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interrupted_by_signals():
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


class Dropped:
    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


def swallowed_by_a_library() -> None:
    with suppress(BaseException):
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("foreign", [Dropped, swallowed_by_a_library])
def test_an_interruption_that_foreign_code_swallows_is_raised_again(
    monkeypatch: pytest.MonkeyPatch, foreign: Callable[[], object]
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # pytest's own keeps the exception
    before = signal.getsignal(signal.SIGALRM)

    def work() -> None:
        with interrupted_by_signals():
            foreign()
            threading.Event().wait(60)

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        work()
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_an_alarm_of_somebody_else_is_theirs() -> None:
    rang: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rang.append(number))
    try:
        with interrupted_by_signals():
            signal.raise_signal(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert rang == [signal.SIGALRM]


def test_an_interruption_raised_again_waits_for_the_clean_up() -> None:
    cleaned = False

    def work() -> None:
        nonlocal cleaned
        with interrupted_by_signals():
            try:
                swallowed_by_a_library()
                raise OSError("interrupted system call")  # what the library makes of it
            finally:
                cleaned = not threading.Event().wait(4 * RAISED_AGAIN_S)

    with pytest.raises(KeyboardInterrupt) as interruption:
        work()
    assert cleaned
    assert isinstance(interruption.value.__cause__, OSError)


def test_a_policy_that_exits_has_failed(capsys: pytest.CaptureFixture[str], tmp_path: Path, agents: Path) -> None:
    assert run_command(run_fake(f"{agents}:Exits", tmp_path / "logs")) == 9
    assert "SystemExit" in capsys.readouterr().err
    assert end_of(tmp_path / "logs").reason is EndReason.FAULT
    assert run_command(run_fake(f"{agents}:ExitsAtOnce", tmp_path / "none")) == 9


def test_an_agent_that_ends_its_own_process_has_failed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, agents: Path
) -> None:
    arguments = ["run", "--robot", "fake", "--count", "1", "--policy", f"habitat:{agents}:Leaves"]
    assert run_command([*arguments, "--out", str(tmp_path / "logs")]) == PolicyError.exit_code
    assert "ended with exit status 3" in " ".join(capsys.readouterr().err.split())
    end = end_of(tmp_path / "logs")
    assert (end.reason, end.steps) == (EndReason.FAULT, 2)


def test_an_agent_that_would_end_the_runtimes_process_has_failed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, agents: Path
) -> None:
    assert run_command(run_fake(f"{agents}:Leaves", tmp_path / "logs")) == PolicyError.exit_code
    assert "os._exit(3)" in " ".join(capsys.readouterr().err.split())
    end = end_of(tmp_path / "logs")
    assert (end.reason, end.steps) == (EndReason.FAULT, 2)


def test_a_forked_child_of_an_agent_may_exit() -> None:
    with OwnDirectory():
        child = os.fork()
        if not child:
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert os._exit.__module__ == "posix"


@pytest.mark.slow
def test_a_console_without_unicode_ends_no_command() -> None:
    command = [sys.executable, "-m", "robot_runtime", "scene", "info", "apartment"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ran = subprocess.run(command, env=environment, timeout=LIMIT_S, check=False, capture_output=True)
    assert ran.returncode == 0, ran.stderr
    assert b"m?, of which" in ran.stdout


def test_a_file_in_place_of_a_folder_and_a_deleted_folder_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, agents: Path
) -> None:
    (tmp_path / "logs").write_text("")
    assert run_command(run_fake(f"{agents}:Turns", tmp_path / "logs" / "one")) == RecordingError.exit_code
    said = " ".join(capsys.readouterr().err.split())
    assert f"{tmp_path / 'logs'}: is a file, where a folder is needed remedy: name a new folder" in said
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run_command(run_fake(f"{agents}:Turns", tmp_path / "other")) == RuntimeFault.exit_code
    assert "the working directory was deleted" in capsys.readouterr().err


@pytest.mark.slow
def test_a_policy_that_changes_directory_moves_no_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, agents: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    arguments = run_fake("agents.py:Wanders", Path("logs"), "--agent-arg", f"folder={elsewhere}")
    assert run_command(arguments) == 0
    assert Path.cwd() == tmp_path
    assert end_of(tmp_path / "logs").reason is EndReason.STOP
    assert not list(elsewhere.iterdir())


def test_a_folder_of_logs_that_vanishes_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, agents: Path
) -> None:
    out = tmp_path / "logs"
    assert run_command(run_fake(f"{agents}:Deletes", out, "--agent-arg", f"folder={out}")) == 8
    assert "deleted or moved" in " ".join(capsys.readouterr().err.split())
