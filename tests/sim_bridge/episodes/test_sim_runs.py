"""Whole episodes, from the command line to the score, on the simulated robot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from mcap.reader import make_reader

from robot_runtime.cli.main import run_command
from robot_runtime.common import config
from robot_runtime.errors import RecordingError
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason
from robot_runtime.scenes.scene import Scene

TASKS = ("pointnav_gps_compass", "objectnav_habitat2020", "objectnav_robothor2021")


def run(out: Path, *arguments: str) -> list[Path]:
    """Run episodes that must succeed as a command; returns the logs."""
    assert run_command(["run", "--out", str(out), *arguments]) == 0
    return sorted(out.glob("*.mcap"))


def scores(out: Path, tmp_path: Path) -> list[dict[str, object]]:
    """Output of ``score --json`` for each episode in a folder of logs."""
    path = tmp_path / "scores.json"
    assert run_command(["score", str(out), "--json", str(path)]) == 0
    return json.loads(path.read_text(encoding="utf-8"))["episodes"]


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_the_oracle_succeeds_in_the_bundled_apartment(task: str, tmp_path: Path) -> None:
    run(tmp_path / "logs", "--task", task, "--agent", "oracle", "--count", "2", "--seed", "25")
    episodes = scores(tmp_path / "logs", tmp_path)
    assert [episode["metrics"]["success"] for episode in episodes] == [True, True]


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS[:2])
def test_the_oracle_succeeds_in_an_imported_house(task: str, imported_house: Scene, tmp_path: Path) -> None:
    scene = str(imported_house.folder)
    run(tmp_path / "logs", "--task", task, "--agent", "oracle", "--count", "1", "--scene", scene)
    (episode,) = scores(tmp_path / "logs", tmp_path)
    assert episode["metrics"]["success"] is True


@pytest.mark.slow
def test_the_classical_agent_finds_its_way(tmp_path: Path) -> None:
    run(tmp_path / "logs", "--count", "2", "--seed", "3")
    assert [episode["metrics"]["success"] for episode in scores(tmp_path / "logs", tmp_path)] == [True, True]


@pytest.mark.slow
def test_the_classical_agent_finds_objects_that_a_sensor_shows_it(tmp_path: Path) -> None:
    """The observation made again from the log must be the one that the agent saw, categories included."""
    arguments = ["--task", "objectnav_habitat2020", "--agent", "classical", "--sensor", "semantic", "--count", "2"]
    logs = run(tmp_path / "logs", *arguments, "--seed", "2")
    assert [episode["metrics"]["success"] for episode in scores(tmp_path / "logs", tmp_path)] == [True, True]
    for log in logs:
        with LogReader(log) as reader:
            assert reader.header.task.name == "objectnav_habitat2020+semantic"
            last = list(reader.steps())[-1].observation
            assert (last["semantic"] == last["objectgoal"]).any()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_log(tmp_path: Path) -> None:
    """Every message but those about the host, byte for byte, noise included."""
    task = tmp_path / "short.yaml"
    preset = config.find_preset("tasks", TASKS[0]).read_text(encoding="utf-8")
    task.write_text(preset.replace("max_steps: 500", "max_steps: 100"), encoding="utf-8")
    arguments = ["--task", str(task), "--robot", "sim-noisy", "--count", "1", "--seed", "5", "--agent", "random"]

    def messages(name: str) -> list[tuple[str, int, bytes]]:
        (log,) = run(tmp_path / name, *arguments)
        with log.open("rb") as stream:
            return [
                (channel.topic, message.log_time, message.data)
                for _, channel, message in make_reader(stream).iter_messages(log_time_order=False)
                if channel.topic != "/step/host"
            ]

    first, second = messages("first"), messages("second")
    assert len(first) > 100
    assert first == second


@pytest.mark.slow
def test_ctrl_c_stops_the_wheels_and_closes_the_log(tmp_path: Path) -> None:
    out = tmp_path / "logs"
    command = [sys.executable, "-m", "robot_runtime", "run", "--agent", "random", "--real-time", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        wait_for_log(process, out)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "episode 1 of 3: the wheels are stopped, the log is closed" in errors
    assert f"logs: {out}" in errors
    assert errors.rstrip().endswith("interrupted")
    assert "Traceback" not in errors
    (log,) = out.glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.complete
        assert reader.end is not None
        assert reader.end.reason is EndReason.INTERRUPTED
        last = list(reader.steps(images=False))[-1]
        assert abs(last.base.velocity.linear_m_s) < 1e-6


def wait_for_log(process: subprocess.Popen[str], folder: Path) -> None:
    """Return once the process has logged a first action; it must not end before."""
    for _ in range(600):
        for log in folder.glob("*.mcap"):
            with suppress(RecordingError), LogReader(log) as reader:
                if len(list(reader.steps(images=False))) > 1:
                    return
        try:
            process.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    pytest.fail(f"no log after a minute, exit code {process.returncode}")


@pytest.mark.slow
def test_a_full_disk_ends_the_run_with_one_message(tmp_path: Path) -> None:
    """A limit on the file's size stands for the disk: the kernel refuses the write in the same way."""
    script = tmp_path / "limited.py"
    script.write_text(
        "import resource, signal, sys\n"
        "from robot_runtime.cli.main import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))\n"
        "main(sys.argv[1:])\n",
        encoding="utf-8",
    )
    out = tmp_path / "logs"
    command = [sys.executable, str(script), "run", "--agent", "oracle", "--count", "1", "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    message = " ".join(done.stderr.split())
    assert done.returncode == 8, message
    assert message.count("error:") == message.count("remedy:") == 1
    assert ".mcap" in message
    assert "Traceback" not in message
    (log,) = out.glob("*.mcap")
    with LogReader(log) as reader:
        assert list(reader.steps(images=False))


@pytest.mark.slow
def test_without_opengl_the_packages_are_named(tmp_path: Path) -> None:
    """Neither library can be loaded where the loader is told to find broken ones first."""
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for name in ("libEGL.so.1", "libEGL.so", "libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so"):
        (libraries / name).write_bytes(b"not a library")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "robot_runtime", "run", "--count", "1", "--out", str(tmp_path / "logs")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    message = " ".join(done.stderr.split())
    assert done.returncode == 3, message
    assert "libegl1" in message
    assert "libosmesa6" in message
    assert "Traceback" not in message
