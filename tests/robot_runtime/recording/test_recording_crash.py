"""Recording in processes that are killed, and with a limit of the file's size."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import synthetic
from mcap.reader import make_reader

from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.recover import recover

TIMEOUT_S = 120

PRELUDE = """
import sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import synthetic
from robot_runtime.recording.writer import Recorder

header = synthetic.header()
steps = synthetic.drive(header, [synthetic.FORWARD] * 20)
recorder = Recorder(Path(sys.argv[2]))
"""


def python(body: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + body, str(Path(synthetic.__file__).parent), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def only_log(folder: Path) -> Path:
    (path,) = folder.glob("*.mcap")
    return path


@pytest.mark.slow
def test_kill_9_costs_less_than_the_last_second(tmp_path: Path) -> None:
    """The recorder says when it is idle for the second time, hence everything before is older than half a second."""
    body = """
import threading
from robot_runtime.recording.log_writer import LogWriter

idle = threading.Semaphore(0)

class Announcing(LogWriter):
    def idle(self):
        super().idle()
        idle.release()

recorder = Recorder(Path(sys.argv[2]), open_log=Announcing)
recorder.on_episode_start(header)
for step in steps:
    recorder.on_step(step)
recorder.on_base_state(replace(steps[-1].base, stamp_ns=steps[-1].base.stamp_ns + 10**9))
idle.acquire(), idle.acquire()
print("ready", flush=True)
sys.stdin.read()
"""
    process = python(body, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate(timeout=TIMEOUT_S)[1]
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == -signal.SIGKILL

    with LogReader(only_log(tmp_path)) as log:
        assert not log.complete
        assert log.end is None
        assert log.header.scene.map.cells.any()
        assert len(list(log.steps())) == 21
        assert len(list(log.base_states())) == 1
    recover(only_log(tmp_path), tmp_path / "mended")
    with (tmp_path / "mended").open("rb") as file:
        assert len(list(make_reader(file, validate_crcs=True).iter_messages(topics=["/step"]))) == 21


@pytest.mark.slow
def test_kill_9_while_writing_leaves_whole_steps(tmp_path: Path) -> None:
    body = """
recorder.on_episode_start(header)
for i in range(10**9):
    recorder.on_step(replace(steps[i % 20], index=i))
    if i == 60:
        print("busy", flush=True)
"""
    process = python(body, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n", process.communicate(timeout=TIMEOUT_S)[1]
    process.kill()
    process.communicate(timeout=TIMEOUT_S)
    with LogReader(only_log(tmp_path)) as log:
        indices = [record.index for record in log.steps(images=False)]
        assert indices == list(range(len(indices)))
        assert len(indices) >= 61 - 8 - 1  # what was queued, and what was being written


@pytest.mark.slow
def test_a_program_that_ends_without_ending_the_episode_leaves_a_whole_file(tmp_path: Path) -> None:
    process = python("recorder.on_episode_start(header)\nrecorder.on_step(steps[0])\nraise SystemExit(3)", tmp_path)
    _, stderr = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, stderr) == (3, "")
    with only_log(tmp_path).open("rb") as file:
        assert len(list(make_reader(file).iter_messages(topics=["/step"]))) == 1
    with LogReader(only_log(tmp_path)) as log:
        assert log.end is None


@pytest.mark.slow
def test_file_size_limit_of_the_system(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="needs a POSIX system")
    body = """
import resource, signal
from robot_runtime.errors import RecordingError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    synthetic.play(recorder, header, steps * 20)
except RecordingError as error:
    print(error.message)
"""
    stdout, stderr = python(body, tmp_path).communicate(timeout=TIMEOUT_S)
    assert stderr == ""
    assert stdout == f"{only_log(tmp_path)}: cannot be written: File too large\n"
    with LogReader(only_log(tmp_path)) as log:
        assert list(log.steps())
