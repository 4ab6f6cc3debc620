"""Rows of ``bench score`` on files: time and memory of scoring per log, for few and for many logs.

The recorder writes the logs: a PointNav episode of 60 steps with small images in an empty hall.
"""

from __future__ import annotations

import math
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import BaseState, Halt, HeadState, PoseEstimate, RgbdFrame, Velocity, Zone
from robot_runtime.recording.log_files import find_logs
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import ActionResult, EndReason, EpisodeEnd, EpisodeHeader, Outcome, StepRecord, StepTimes
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Scene, SceneFile
from robot_runtime.scoring.summary import iter_scores
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Success, Task, TrainingCamera
from tests.benchmarks.report import Row

STEPS = 60
COUNTS = (200, 2000)
DIFFERENT = 20
"""Number of different logs; the others are copies, which take as long to read."""

_TIMEOUT_S = 900
_SIZE_M = (20.0, 5.0)


def log_rows() -> list[Row]:
    """Rows of CPU time per log of few and of many logs, their ratio, and the memory of each further log."""
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder)
        _write_logs(logs, COUNTS[1])
        (few_us, few_kb), (many_us, many_kb) = (_measured(logs, count) for count in COUNTS)
    note = f"processor time; logs of {STEPS} steps, read and scored one by one, one process"
    memory = "growth of a fresh process's peak, with the scores kept for a table"
    growth_kb = (many_kb - few_kb) / (COUNTS[1] - COUNTS[0])
    return [
        Row("score_us_per_log_200", "PointNav log scored, of 200", few_us, "us", 5000, "<=", note=note),
        Row("score_us_per_log_2000", "PointNav log scored, of 2,000", many_us, "us", 5000, "<=", note=note),
        Row("score_cost_ratio", "cost of a log of 2,000 over one of 200", many_us / few_us, "times", 1.2, "<="),
        Row("score_kb_per_log", "memory per further log", growth_kb, "kB", 10, "<=", note=memory),
    ]


def _measured(logs: Path, count: int) -> tuple[float, float]:
    """Microseconds per log, and total kilobytes, of a new process, because a peak never decreases."""
    command = [sys.executable, "-m", __name__, str(logs), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_TIMEOUT_S)
    per_log_us, peak_kb = map(float, done.stdout.split())
    return per_log_us, peak_kb


def _measure(logs: Path, count: int) -> None:
    """Print both for the first logs, without the cost of the first log (compilation, map)."""
    paths = find_logs([logs])[:count]
    list(iter_scores(paths[:1]))
    before_s = _processor_s()
    scores = list(iter_scores(paths))
    per_log_us = 1e6 * (_processor_s() - before_s) / count
    assert all(score.scorable for score in scores), scores[0].reason
    print(per_log_us, _peak_kb())


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak_kb() -> int:
    """Peak by Linux's VmHWM, which begins with the program; ``ru_maxrss`` begins with the parent's size."""
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:")))


def _write_logs(folder: Path, count: int) -> None:
    recorder = Recorder(folder)
    originals = []
    for number in range(DIFFERENT):
        header = bench_header(number)
        recorder.on_episode_start(header)
        last = None
        for last in bench_steps(header):
            recorder.on_step(last)
        assert last is not None
        recorder.on_episode_end(EpisodeEnd(EndReason.STOP, last.index, last.times.observed_ns))
        assert recorder.path is not None
        originals.append(recorder.path)
    for number in range(DIFFERENT, count):
        shutil.copyfile(originals[number % DIFFERENT], folder / f"copy{number:05d}.mcap")


def bench_header(number: int) -> EpisodeHeader:
    """Header of an episode of PointNav through a hall."""
    task = Task(
        name="bench",
        kind="pointnav",
        source="bench",
        actions=(Action.STOP, Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT),
        magnitudes=Magnitudes(0.25, 30.0, 30.0),
        sensors=("gps", "compass"),
        camera=TrainingCamera(16, 12, 79.0, 0.88, 0.5, 5.0, True),
        robot_radius_m=0.18,
        max_steps=500,
        success=Success("distance", 0.36),
    )
    return EpisodeHeader(
        episode=Episode(str(number), "hall", SE2(1.0, 2.5, 0.0), (Goal(1.0 + 0.25 * (STEPS - 1), 2.5),)),
        task=task,
        scene=Scene(Path("hall"), SceneFile(1, "hall", (), (), source={"generator": "bench"}), _hall(), {}, "0" * 64),
        robot="bench",
        robot_config={},
        agent="straight",
        seed=number,
        intrinsics=task.camera.intrinsics,
        depth_unit_m=0.001,
        mount=(0.0, 0.0, 0.88),
        start_ns=seconds_to_ns(1.0),
        provenance={"created": "bench"},
    )


def _hall() -> OccupancyMap:
    resolution_m = 0.05
    cells = np.full((round(_SIZE_M[1] / resolution_m), round(_SIZE_M[0] / resolution_m)), Cell.FREE, np.uint8)
    cells[[0, -1], :] = cells[:, [0, -1]] = Cell.OCCUPIED
    return OccupancyMap(cells, resolution_m, 0.0, 0.0)


def bench_steps(header: EpisodeHeader) -> Iterator[StepRecord]:
    """Steps straight ahead, with deviations of some centimeters, and a stop."""
    camera, now_ns = header.task.camera, header.start_ns
    random = np.random.default_rng(header.seed)
    for index in range(STEPS + 1):
        action = None if index == 0 else Action.STOP if index == STEPS else Action.MOVE_FORWARD
        x_m = header.episode.start.x_m + 0.25 * min(index, STEPS - 1)
        pose = SE2(x_m, 2.5 + 0.05 * math.sin(index + header.seed), 0.0)
        now_ns += seconds_to_ns(1.0)
        moved = None if action is None else header.task.magnitudes.displacement(action)
        rgb = random.integers(0, 255, (camera.height, camera.width, 3), np.uint8)
        depth_m = np.full((camera.height, camera.width), 2.0, np.float32)
        estimate = PoseEstimate(now_ns, pose, "map")
        yield StepRecord(
            index=index,
            action=action,
            result=None if moved is None else ActionResult(Outcome.REACHED, moved, moved, Zone.NONE, 1.0),
            observation={"gps": np.array([x_m, 0.0], np.float32), "compass": np.zeros(1, np.float32)},
            frame=RgbdFrame(now_ns, rgb, depth_m),
            pose=estimate,
            referee=estimate,
            base=BaseState(now_ns, pose, Velocity(), Zone.NONE, Zone.NONE, Zone.NONE, Halt.NONE, 16.2, 0.9),
            head=HeadState(now_ns, 0.0, 0.0, False),
            times=StepTimes(now_ns, now_ns, now_ns, now_ns),
        )


if __name__ == "__main__":
    _measure(Path(sys.argv[1]), int(sys.argv[2]))
