"""The emergency stop from outside: the command in another terminal, and the keys in `run`'s own."""

from __future__ import annotations

import math
import os
import pty
import socket
import subprocess
import sys
import termios
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from open_room import fake_robot, make_episode, make_scene, make_task
from raising import raises_naming
from terminals import LIMIT_S, read_until, start

from drivers.fake.base import FakeBase
from robot_runtime.cli.entry import stop_arguments
from robot_runtime.cli.main import run_command
from robot_runtime.cli_options.options import DEFAULT_TASK
from robot_runtime.common.config import find_preset
from robot_runtime.env import Env
from robot_runtime.errors import DeviceFault, EpisodeError
from robot_runtime.estop import requests, server
from robot_runtime.estop.requests import carry_out, wait_for_release
from robot_runtime.estop.server import StopServer, ask, running
from robot_runtime.hal import Halt, Robot, Velocity
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeEnd

AGENTS = """
import os
from robot_runtime.cli.entry import stop_arguments
from robot_runtime.cli.main import run_command
class Turns:
    steps = 0
    def reset(self): print("reset", flush=True)
    def act(self, observations):
        self.steps += 1
        if self.steps % 3 == 0:
            print("acted", flush=True)
        return "TURN_LEFT"
class IsStopped(Turns):
    def act(self, observations):
        self.steps += 1
        if self.steps == 2:
            assert run_command(["stop", "--process", str(os.getpid())]) == 0
        return self.action
class IsStoppedDriving(IsStopped): action = "TURN_LEFT"
class IsStoppedLooking(IsStopped): action = "LOOK_UP"
"""


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """A file with agents."""
    path = tmp_path / "agents.py"
    path.write_text(AGENTS, encoding="utf-8")
    return path


def run_fake(agent: str, out: Path, *more: str) -> list[str]:
    return ["run", "--robot", "fake", "--task", "objectnav_habitat2020", "--agent", agent, "--out", str(out), *more]


def ends_of(folder: Path) -> list[EpisodeEnd]:
    """Ends of a folder's episodes, each with its wheels at zero."""
    ends = []
    for log in sorted(folder.glob("*.mcap")):
        with LogReader(log) as reader:
            *_, last = reader.steps(images=False)
            assert last.base.velocity == Velocity()
            assert reader.end is not None
            ends.append(reader.end)
    return ends


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["IsStoppedDriving", "IsStoppedLooking"])
def test_the_command_ends_an_episode_whatever_the_policy_does(
    tmp_path: Path, agents: Path, agent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(run_fake(f"{agents}:{agent}", tmp_path / "logs", "--count", "1")) == EpisodeError.exit_code
    (end,) = ends_of(tmp_path / "logs")
    assert (end.reason.value, end.steps) == ("interrupted", 2)
    assert end.detail == "base: held by e_stop"
    shown = capsys.readouterr()
    assert f"process {os.getpid()}: fake: emergency stop" in shown.out
    assert "1 of 1 episodes ended early and do not count" in shown.err
    assert f"--resume --out {tmp_path / 'logs'}" in shown.err


@pytest.mark.slow
def test_keys_stop_and_release_the_robot_and_the_terminal_is_as_before(tmp_path: Path, agents: Path) -> None:
    master, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    with start(run_fake(f"{agents}:Turns", tmp_path / "logs", "--count", "2", "--real-time"), terminal) as process:
        assert b"acted" in (shown := read_until(master, b"acted")), shown
        os.write(master, b" ")
        assert b"waiting for the release" in (shown := read_until(master, b"waiting for the release")), shown
        assert b"the wheels are held" in shown
        os.write(master, b"r")
        assert b"reset" in (shown := read_until(master, b"reset")), shown
        assert b"acted" in (shown := read_until(master, b"acted")), shown
        os.write(master, b"\x03")  # Ctrl-C
        read_until(master, b"interrupted\r\n")
        assert process.wait(LIMIT_S) == 130
        assert termios.tcgetattr(terminal) == before
    os.close(master)
    os.close(terminal)
    stopped, interrupted = ends_of(tmp_path / "logs")
    assert (stopped.reason.value, interrupted.reason.value) == ("interrupted", "interrupted")
    assert stopped.detail == "base: held by e_stop"
    assert "keyboard" in interrupted.detail


def test_nothing_to_stop_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["stop", "--process", "1"]) == 7
    assert "no command on this machine runs a robot" in " ".join(capsys.readouterr().err.split())


def test_a_robot_is_held_until_it_is_released() -> None:
    said: list[str] = []
    own = (os.getpid(),)
    with fake_robot(make_task()) as robot, StopServer(robot, said.append):
        assert ask("stop", own)[0].done
        robot.base.command(Velocity(0.2, 0.0))
        robot.clock.sleep(0.2)
        assert (robot.base.state(1.0).velocity, robot.base.state(1.0).halt) == (Velocity(), Halt.E_STOP)
        assert ask("release", own)[0].done
        for _ in range(10):
            robot.base.command(Velocity(0.2, 0.0))
            robot.clock.sleep(0.02)
        assert robot.base.state(1.0).velocity.linear_m_s > 0
    assert ["emergency stop" in line for line in said] == [True, True]
    assert os.getpid() not in running().values()


def test_requests_that_are_not_understood_and_silent_ones_are_refused() -> None:
    with fake_robot(make_task()) as robot, StopServer(robot, lambda _: None):
        (answer,) = ask("go", (os.getpid(),))  # type: ignore[arg-type]
        assert (answer.done, answer.text) == (False, "refused: not understood")
        robot.base.close()
        (answer,) = ask("stop", (os.getpid(),))
        assert not answer.done
        assert "connect" in answer.text


def test_another_user_may_stop_but_not_release(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_robot(make_task()) as robot, StopServer(robot, lambda _: None):
        monkeypatch.setattr(server, "may_release", lambda user: False)
        assert ask("stop", (os.getpid(),))[0].done
        (answer,) = ask("release", (os.getpid(),))
        assert (answer.done, robot.base.state(1.0).halt) == (False, Halt.E_STOP)


def test_a_release_leaves_alone_what_another_user_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_robot(make_task()) as robot, StopServer(robot, lambda _: None) as listening:
        assert ask("stop", (os.getpid(),))[0].done
        listening._stopped_by = os.getuid() + 1
        (answer,) = ask("release", (os.getpid(),))
        assert (answer.done, str(os.getuid() + 1) in answer.text) == (False, True)
        assert robot.base.state(1.0).halt is Halt.E_STOP
        assert run_command(["stop", "--release", "--process", str(os.getpid())]) == 0
        assert robot.base.state(1.0).halt is not Halt.E_STOP


def test_a_release_of_what_is_not_held_says_so() -> None:
    with fake_robot(make_task()) as robot, StopServer(robot, lambda _: None):
        (answer,) = ask("release", (os.getpid(),))
        assert (answer.done, "no emergency stop" in answer.text) == (True, True)


def test_a_silent_client_holds_up_no_stop_and_all_robots_are_asked_at_once() -> None:
    with (
        fake_robot(make_task()) as first,
        fake_robot(make_task()) as second,
        StopServer(first, lambda _: None),
        StopServer(second, lambda _: None),
    ):
        with ExitStack() as silent:
            for address, process in running().items():
                if process == os.getpid():
                    silent.enter_context(socket.socket(socket.AF_UNIX)).connect(address)
            assert [answer.done for answer in ask("stop", (os.getpid(),))] == [True, True]
        assert all(robot.base.state(1.0).halt is Halt.E_STOP for robot in (first, second))


def test_the_command_needs_little_and_names_the_run_without_its_token(capfd: pytest.CaptureFixture[str]) -> None:
    program = "import sys; from robot_runtime.cli.entry import main; main()"
    loaded = "import atexit, sys; atexit.register(lambda: print(len({'numpy', 'typer', 'rich'} & set(sys.modules))));"
    with fake_robot(make_task()) as robot, StopServer(robot, lambda _: None):
        command = [sys.executable, "-c", loaded + program, "stop", "--process", str(os.getpid())]
        assert subprocess.run(command, check=False, timeout=LIMIT_S).returncode == 0
        assert robot.base.state(1.0).halt is Halt.E_STOP
    said = capfd.readouterr().out
    assert f"process {os.getpid()}: fake: emergency stop" in said
    assert said.endswith("0\n"), "nothing heavy was imported"


@pytest.mark.parametrize(
    ("words", "understood"),
    [
        ((), (False, [])),
        (("--release",), (True, [])),
        (("--process", "5", "--process=6"), (False, [5, 6])),
        (("--process",), None),
        (("--help",), None),
        (("--relase",), None),
    ],
)
def test_a_plain_command_line_is_understood_without_the_parser(
    words: tuple[str, ...], understood: tuple[bool, list[int]] | None
) -> None:
    assert stop_arguments(words) == understood


def test_a_run_is_named_without_secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(server, "_PROCESSES", tmp_path)
    (tmp_path / "7").mkdir()
    words = ("/usr/bin/python3", "/opt/robot-runtime", "run", "--robot", "fake", "--console-token", "secret", "")
    (tmp_path / "7" / "cmdline").write_bytes("\0".join(words).encode())
    assert server._run_of(7) == "run --robot fake --console-token …"
    assert server._run_of(8) == "unknown command"


def test_the_next_episode_waits_for_the_release_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    with fake_robot(make_task()) as robot:
        robot.clock.sleep(0.1)
        wait_for_release(robot, said.append)
        assert not said
        carry_out("stop", robot)
        operator = threading.Thread(target=carry_out, args=("release", robot))

        def told(line: str) -> None:
            said.append(line)
            operator.start()

        wait_for_release(robot, told)
        operator.join()
        assert len(said) == 1
        carry_out("stop", robot)
        monkeypatch.setattr(requests, "RELEASE_LIMIT_S", 0.0)
        with raises_naming(DeviceFault, "not released"):
            wait_for_release(robot, said.append)


def test_the_first_episode_waits_too_for_a_stop_that_was_engaged_before(
    tmp_path: Path, agents: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connect = FakeBase.connect

    def connect_engaged(base: FakeBase) -> None:
        connect(base)
        base.emergency_stop()

    monkeypatch.setattr(FakeBase, "connect", connect_engaged)
    monkeypatch.setattr(requests, "RELEASE_LIMIT_S", 0.0)
    assert run_command(run_fake(f"{agents}:Turns", tmp_path / "logs", "--count", "1")) == DeviceFault.exit_code
    said = " ".join(capsys.readouterr().err.split())
    assert "waiting for the release" in said
    assert "was not released" in said
    assert not list((tmp_path / "logs").glob("*.mcap"))


@pytest.mark.slow
def test_no_episode_begins_with_a_low_battery(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    driver, options = "drivers.fake.driver.make_robot", {"battery_fraction": 0.15}
    robot = tmp_path / "robot.yaml"
    for limit, code in ((0.2, 7), (0.1, 0)):
        document = {"name": "mine", "driver": driver, "options": options, "min_battery_fraction": limit}
        robot.write_text(yaml.safe_dump(document), encoding="utf-8")
        arguments = ["--robot", str(robot), "--count", "1", "--agent", "random", "--out", str(tmp_path / str(limit))]
        assert run_command(["run", "--task", str(short_task(tmp_path)), *arguments]) == code
        said = " ".join(capsys.readouterr().err.split())
        assert ("the battery is at 15 % (16.5 V), 20 % is needed" in said) == (code == 7)
        assert run_command(["preflight", "--policy", "random", "--task", DEFAULT_TASK, "--robot", str(robot)]) == code
        shown = capsys.readouterr().out
        assert f"at least {100 * limit:.0f} %" in shown
        assert "15 % (16.5 V)" in shown
    assert not list((tmp_path / "0.2").glob("*"))


def short_task(folder: Path) -> Path:
    """The default task with ten steps at most."""
    path = folder / "task.yaml"
    preset = find_preset("tasks", DEFAULT_TASK).read_text(encoding="utf-8")
    path.write_text(preset.replace("max_steps: 500", "max_steps: 10"), encoding="utf-8")
    return path


def test_an_unknown_charge_is_said_and_not_refused() -> None:
    with fake_robot(make_task()) as robot:
        robot.clock.sleep(0.1)
        state = robot.base.state(1.0)
        assert state.battery == "100 % (16.5 V)"
        assert replace(state, battery_fraction=math.nan, battery_v=math.nan).battery == "unknown charge"
        robot.base._state = replace(state, battery_fraction=math.nan)  # type: ignore[attr-defined]
        robot.check_ready()


def test_an_engaged_emergency_stop_begins_no_episode() -> None:
    with fake_robot(make_task()) as robot:
        robot.clock.sleep(0.1)
        robot.base.emergency_stop()
        with raises_naming(DeviceFault, "emergency stop is engaged"), make_env(robot) as env:
            env.reset(make_episode())


def make_env(robot: Robot) -> Env:
    return Env(robot, make_task(), make_scene())
