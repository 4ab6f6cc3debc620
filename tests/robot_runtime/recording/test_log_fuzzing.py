"""Logs with random damage, outside and inside their records: every reader answers with typed errors, in bounded time.

``pytest -m exhaustive tests/robot_runtime/recording/test_log_fuzzing.py`` mutates ten thousand other logs.
"""

from __future__ import annotations

import json
import random
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import synthetic
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.errors import RuntimeFault
from robot_runtime.hal import PoseEstimate
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.recover import recover
from robot_runtime.recording.writer import Recorder
from robot_runtime.scoring.report.episode_data import load_episode_data
from robot_runtime.scoring.summary import Maps, score_log
from tests.benchmarks.runtime.log_edits import CHAINED, LogEdit

FEW = 500
MANY = 10_000
LONGEST_S = 10.0
MOST_MORE_KB = 600_000

JSON_TOPICS = (*CHAINED, "/step/host", "/base/state", "/localizer/wheels", "/objects", "/events")
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2, 10**9, 10**30, -0.5, 1e-300, 1e300, "Infinity", "-Infinity", "NaN", ""),
    *("0", "\x1b[2J", "x" * 10_000, "../..", [], {}, [1], [[]], {"a": 1}, [None] * 3, "reached", "stop", "map", "odom"),
)


def log(folder: Path, task: synthetic.Task) -> Path:
    """A short log with small images and every kind of record."""
    header = synthetic.header(task, localizers={"policy": ("wheels",), "odometry": ("wheels",), "referee": ("truth",)})
    steps = synthetic.drive(header, [FORWARD, LEFT, FORWARD, STOP])
    recorder = Recorder(folder)
    recorder.on_episode_start(header)
    for step in steps:
        recorder.on_base_state(step.base)
        recorder.on_poses("wheels", (PoseEstimate(step.base.stamp_ns, step.base.odom, "odom"),))
        recorder.on_step(step)
    recorder.on_episode_end(synthetic.end_of(steps))
    assert recorder.path is not None
    return recorder.path


class Mutator:
    """Mutations of logs, each the same for the same number."""

    def __init__(self, folder: Path) -> None:
        tasks = (synthetic.pointnav_task(16, 12), synthetic.objectnav_task())
        self._originals = [log(folder / task.name, task) for task in tasks]
        self._target = folder / "mutated.mcap"

    def mutated(self, number: int) -> Path:
        """The file of one mutation; the next call overwrites it."""
        chance = random.Random(number)
        original = chance.choice(self._originals)
        if number % 4 == 0:
            self._target.write_bytes(_damaged(original.read_bytes(), chance))
            return self._target
        edit = LogEdit(original)
        if number % 4 == 1:
            edit.unchain()
        for _ in range(chance.choice((1, 1, 2, 5))):
            chance.choice((_json, _json, _json, _json, _order, _message, _attachment))(edit, chance)
        if number % 4 == 2:
            with suppress(ValueError):  # a record may be no object any more
                edit.chain_again()
        return edit.write(self._target)


def _damaged(data: bytes, chance: random.Random) -> bytes:
    """Bytes of a file or message changed, cut, repeated or inserted."""
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 30))):
        place = chance.randrange(len(damaged) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            damaged[place : place + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            del damaged[place:]
        elif kind == 2:
            del damaged[place : place + chance.choice((1, 8, 100))]
        elif kind == 3:
            damaged[place:place] = damaged[place : place + chance.choice((1, 8, 100, 5000))]
        else:
            damaged[place:place] = chance.randbytes(chance.choice((1, 8, 100)))
    return bytes(damaged)


def _json(edit: LogEdit, chance: random.Random) -> None:
    places = [place for topic in JSON_TOPICS for place in edit.numbers(topic)]
    place = chance.choice(places)
    with suppress(ValueError):  # mutated before
        data = json.loads(edit.entries[place][1].data)
        edit.put(place, json.dumps(_changed(data, chance)).encode())


def _changed(value: Any, chance: random.Random) -> Any:
    """JSON with one value replaced, removed or repeated."""
    if isinstance(value, dict) and value and chance.random() < 0.93:
        key = chance.choice(list(value))
        if chance.random() < 0.1:
            return {name: inner for name, inner in value.items() if name != key}
        if chance.random() < 0.05:
            return {**value, chance.choice(("extra", "", key + "_")): chance.choice(ODD)}
        return {**value, key: _changed(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        place = chance.randrange(len(value))
        if chance.random() < 0.2:
            return value[:place] + value[place + 1 :] if chance.random() < 0.5 else [*value, value[place]]
        return [*value[:place], _changed(value[place], chance), *value[place + 1 :]]
    if isinstance(value, float) and chance.random() < 0.3:
        return value * chance.choice((-1.0, 1e3, 1e9, 1e150))
    return chance.choice(ODD)


def _order(edit: LogEdit, chance: random.Random) -> None:
    place, other = chance.randrange(len(edit.entries)), chance.randrange(len(edit.entries))
    entry = edit.entries.pop(place)
    for _ in range(chance.randrange(3)):
        edit.entries.insert(other, entry)


def _message(edit: LogEdit, chance: random.Random) -> None:
    place = chance.randrange(len(edit.entries))
    edit.put(place, _damaged(edit.entries[place][1].data, chance))


def _attachment(edit: LogEdit, chance: random.Random) -> None:
    name = chance.choice(sorted(edit.attachments))
    if name.endswith(".pgm") or chance.random() < 0.2:
        edit.attachments[name] = _damaged(edit.attachments[name], chance)
    else:
        with suppress(ValueError):
            edit.attachments[name] = json.dumps(_changed(json.loads(edit.attachments[name]), chance)).encode()


def read_everything(path: Path) -> None:
    """Read a log in every way, as far as it goes."""
    with LogReader(path) as log:
        assert isinstance(log.complete, bool)
        ways: tuple[Callable[[], object], ...] = (
            lambda: list(log.steps()),
            lambda: list(log.steps(images=False, verify=True)),
            lambda: list(log.base_states()),
            lambda: list(log.events()),
            log.poses,
        )
        for way in ways:
            with suppress(RuntimeFault):
                way()


def check(mutations: Mutator, maps: Maps, number: int) -> None:
    """Read, score and show one mutated log."""
    path = mutations.mutated(number)
    start_s = time.process_time()
    with suppress(RuntimeFault):
        read_everything(path)
    score = score_log(path, maps=maps)
    assert "cannot be scored: " not in score.reason or "(" not in score.reason, f"{number}: {score.reason}"
    load_episode_data(path, maps=maps)
    with suppress(RuntimeFault):
        recover(path, path.with_suffix(".mended"))
    path.with_suffix(".mended").unlink(missing_ok=True)
    assert time.process_time() - start_s < LONGEST_S, number


def check_all(folder: Path, numbers: range) -> None:
    mutations, maps = Mutator(folder), Maps()
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in numbers:
        check(mutations, maps, number)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < MOST_MORE_KB


def test_a_raw_pose_that_is_not_finite_is_left_out_of_the_report(tmp_path: Path) -> None:
    edit = LogEdit(log(tmp_path, synthetic.pointnav_task(16, 12)))

    def turn(data: dict[str, Any]) -> None:
        data["yaw_rad"][0] = "Infinity"

    edit.change("/localizer/wheels", 1, turn)
    _, episode = load_episode_data(edit.write(tmp_path / "edited.mcap"), maps=Maps())
    assert episode is not None
    assert episode.pose_tracks


@pytest.mark.slow
def test_500_mutated_logs(tmp_path: Path) -> None:
    check_all(tmp_path, range(FEW))


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.timeout(3_600)
def test_more_mutated_logs(tmp_path: Path) -> None:
    check_all(tmp_path, range(FEW, FEW + MANY))
