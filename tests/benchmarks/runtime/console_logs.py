"""Row ``log_hz`` of ``bench console``: RGB-D frames recorded without loss while a policy decides.

As a program (``python -m tests.benchmarks.runtime.console_logs FOLDER FRAMES``) it records without a policy, and
prints the CPU seconds that this took, for the row that compares it with ``rosbag record``.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from robot_runtime.actions.timed import Control, VelocityControl
from robot_runtime.common.clock import SystemClock, seconds_to_ns
from robot_runtime.common.threads import background
from robot_runtime.hal import Intrinsics, RgbdFrame
from robot_runtime.policy import random_generator
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, EpisodeEnd, StepRecord
from tests.benchmarks.report import Row, cpu_s
from tests.benchmarks.runtime.log_scoring import bench_header, bench_steps

HZ = 30
WIDTH, HEIGHT = 640, 480
DIFFERENT = 15
"""Frames that are repeated; a video has no two equal ones."""

POLICY = "pointnav-depth"


def camera_frames(count: int = DIFFERENT) -> list[RgbdFrame]:
    """Frames as of an RGB-D camera that turns: smooth surfaces, edges, noise in the last bits of color and depth."""
    random = random_generator(0)
    x, y = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
    found = []
    for number in range(count):
        wall = np.sin((x + 9 * number) / 37) + np.cos(y / 53) + ((x + 9 * number) // 80 + y // 60) % 2
        smooth = 128 + 40 * wall[..., None] * np.array([1.0, 0.8, 0.6])
        rgb = np.clip(smooth + random.normal(0, 1.5, smooth.shape), 0, 255).astype(np.uint8)
        millimeters = np.rint(1500 + 700 * wall + random.normal(0, 3, wall.shape)).astype(np.uint16)
        found.append(RgbdFrame(0, rgb, millimeters * np.float32(0.001)))
    return found


def record(folder: Path, frames: list[RgbdFrame], count: int, dropping: bool = True) -> tuple[list[int], float]:
    """Record a task whose policy gives a velocity per frame.

    Args:
        folder: folder of the log.
        frames: camera frames, repeated in turn.
        count: number of frames, at ``HZ``.
        dropping: whether frames that come late are left out.

    Returns:
        The numbers of the frames that were taken, and the CPU seconds of this process meanwhile.
    """
    header = bench_header(0)
    task = replace(
        header.task, control=Control((0.0, 0.0), VelocityControl((0.0, 0.25), (-1.0, 1.0), (0.0, 0.0), 1 / HZ))
    )
    header = replace(header, task=task, intrinsics=Intrinsics.from_hfov(WIDTH, HEIGHT, 79.0))
    one = next(bench_steps(header))
    steps = [_step(one, frames[number % len(frames)], number) for number in range(count)]
    clock, taken = SystemClock(), list[int]()
    before_s = cpu_s(resource.RUSAGE_SELF)
    with Recorder(folder) as recorder:
        recorder.on_episode_start(header)
        start_ns = clock.now_ns()
        for number in range(count):
            due_ns = start_ns + seconds_to_ns(number / HZ)
            if dropping and clock.now_ns() >= due_ns + seconds_to_ns(1 / HZ):
                continue  # the camera has a newer one by now
            clock.sleep_until(due_ns)
            step = steps[number]
            recorder.on_step(step if step.index == len(taken) else replace(step, index=len(taken)))
            taken.append(number)
        recorder.on_episode_end(EpisodeEnd(EndReason.STOP, len(taken), header.start_ns))
    return taken, cpu_s(resource.RUSAGE_SELF) - before_s


def _step(one: StepRecord, frame: RgbdFrame, number: int) -> StepRecord:
    stamp_ns = one.frame.stamp_ns + seconds_to_ns(number / HZ)
    return replace(one, index=number, frame=replace(frame, stamp_ns=stamp_ns))


def log_row(seconds: float) -> Row:
    """The row, measured for so long."""
    frames, count = camera_frames(), round(HZ * seconds)
    with tempfile.TemporaryDirectory() as folder:
        with _deciding() as decisions:
            taken, _ = record(Path(folder), frames, count)
        (path,) = Path(folder).glob("*.mcap")
        with LogReader(path) as reader:
            kept = [
                np.array_equal(step.frame.rgb, frame.rgb) and np.array_equal(step.frame.depth_m, frame.depth_m)
                for step, frame in zip(reader.steps(), (frames[number % len(frames)] for number in taken), strict=True)
            ]
        size_mb = path.stat().st_size / 1e6
    return Row(
        "log_hz",
        f"RGB-D frames of {WIDTH}x{HEIGHT} per second that are in the log, bit by bit, of {HZ} per second offered",
        HZ * sum(kept) / count,
        "Hz",
        HZ,
        note=f"{count - sum(kept)} of {count} dropped; {size_mb / count:.2f} MB per frame; the policy {POLICY} decided "
        f"{len(decisions) / seconds:.0f} times per second in the same process",
    )


@contextmanager
def _deciding() -> Iterator[list[object]]:
    """Let a learned policy decide at ``HZ``, in a thread; yields its decisions so far."""
    from robot_runtime.policies import load_source
    from robot_runtime.policy import PolicySource
    from robot_runtime.tasks.task import load_task

    policy, task = load_source(PolicySource(POLICY)), load_task("pointnav_gps_compass")
    policy.reset(task, 0)
    shape = (task.camera.height, task.camera.width, 1)
    observation = {
        "depth": random_generator(0).uniform(0, 1, shape).astype(np.float32),
        "pointgoal_with_gps_compass": np.array([2.0, 0.3], np.float32),
        "gps": np.zeros(2, np.float32),
        "compass": np.zeros(1, np.float32),
    }
    decisions: list[object] = []

    def decide(ended: threading.Event) -> None:
        while not ended.wait(1 / HZ):
            decisions.append(policy.act(observation))

    with closing(policy), background(decide, "policy"):
        yield decisions


def _main(folder: Path, count: int) -> None:
    _, used_s = record(folder, camera_frames(), count, dropping=False)
    print(used_s)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))
