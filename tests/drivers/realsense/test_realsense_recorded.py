"""RealSense recordings: written by the driver, played through the same pipeline, and what is wrong with torn ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from clockwork_simulation import STEP_NS, ClockworkSimulation, settled
from raising import raises_naming

from drivers.realsense.capture import Capture, FramePair
from drivers.realsense.emulator import EmulatedD435, EmulatedOptions
from drivers.realsense.live import LiveSource
from drivers.realsense.options import StreamOptions
from drivers.realsense.recorded import RecordedSource
from drivers.realsense.sdk import rs
from robot_runtime.common.clock import SimulatedClock, SystemClock, seconds_to_ns, wait_for
from robot_runtime.errors import DeviceFault, RecordingError, StaleData
from robot_runtime.imaging.rig import RgbdCalibration
from robot_runtime.imaging.source import RawRgbd

OPTIONS = StreamOptions(color="640x360", depth="424x240", latency_s=0.03)


class Recording:
    """A file, and what was delivered while it was written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        simulation = ClockworkSimulation()
        options = replace(OPTIONS, record_to=str(path))
        bus = EmulatedD435(simulation, options.color, options.depth, options.rate_hz, EmulatedOptions(), "test")
        self.raws: list[RawRgbd] = []
        with LiveSource(simulation.clock, options, bus, "test") as source:
            self.rig: RgbdCalibration = source.calibration
            for pause_s in (0.0, 0.0, 0.0, 0.5, 0.0):
                self.raws.append(source.read(settled(simulation.clock, pause_s), 1.0))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    return Recording(tmp_path_factory.mktemp("realsense") / "run.db3")


def play(path: Path, **options: object) -> RecordedSource:
    return RecordedSource(SimulatedClock(STEP_NS), StreamOptions(file=str(path), **options), "test")  # type: ignore[arg-type]


def pairs(source: RecordedSource, count: int) -> list[RawRgbd]:
    found, after_ns = [], 0
    for _ in range(count):
        found.append(source.read(after_ns, 5.0))
        after_ns = found[-1].color_stamp_ns + 1
    return found


def all_pairs(source: RecordedSource) -> list[RawRgbd]:
    """Every pair of a recording that does not repeat."""
    found: list[RawRgbd] = []

    def go_on() -> None:
        while True:
            found.append(source.read(found[-1].color_stamp_ns + 1 if found else 0, 5.0))

    with raises_naming(DeviceFault, "pairs") as end:
        go_on()
    assert f"ended after {len(found)} pairs" in end.value.message
    return found


def level(depth: np.ndarray) -> int:
    """Of the emulator's images of depth, which are alike everywhere and rise from one to the next."""
    return int(np.median(depth))


def test_a_recording_plays_what_was_delivered_at_its_own_pace(recording: Recording) -> None:
    with play(recording.path) as source:
        rig = source.calibration
        assert (rig.serial, rig.color, rig.depth) == (recording.rig.serial, recording.rig.color, recording.rig.depth)
        assert rig.color_from_depth == pytest.approx(recording.rig.color_from_depth, abs=1e-5)
        assert (source.color_mode.name, source.depth_mode.name, source.rate_hz) == ("640x360", "424x240", 30)
        played = all_pairs(source)  # more than were asked for: every pair is recorded that came meanwhile
        offsets_ns = []
        for live in recording.raws:
            (again,) = (raw for raw in played if np.array_equal(raw.depth, live.depth))
            assert np.array_equal(again.color, live.color)
            offsets_ns.append(again.color_stamp_ns - live.color_stamp_ns)
        assert max(offsets_ns) - min(offsets_ns) <= 5.1e6  # live stamps are as exact as arrivals are seen
        assert source._clock.now_ns() >= played[-1].color_stamp_ns


def test_the_last_pair_is_not_lost_where_the_player_stops_meanwhile(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    with play(recording.path) as source:
        last = level(all_pairs(source)[-1].depth)
    take, late, delayed = Capture.take, list[FramePair](), False

    def pausing(self: Capture, wait_ms: int = 0) -> FramePair | None:
        """The last pair comes after it was waited for, and before anybody looks whether there are more."""
        nonlocal delayed
        pair = late.pop() if late else take(self, wait_ms)
        if pair is None or delayed or level(np.asarray(pair.depth.get_data())) != last:
            return pair
        late.append(pair)
        delayed = True
        stopped = rs.playback_status.stopped
        assert wait_for(SystemClock(), lambda: source._playback.current_status() == stopped or None, 30.0, 0.01)
        return None

    monkeypatch.setattr(Capture, "take", pausing)
    with play(recording.path) as source:
        assert level(all_pairs(source)[-1].depth) == last
    assert delayed


@pytest.mark.slow
def test_the_end_of_a_recording_is_a_fault_unless_it_repeats(recording: Recording) -> None:
    with play(recording.path) as source, pytest.raises(DeviceFault) as end:
        pairs(source, 30)
    assert "repeat: true" in end.value.remedy
    with play(recording.path, repeat=True) as source:
        found = pairs(source, 20)
        stamps = [raw.color_stamp_ns for raw in found]
        assert stamps == sorted(set(stamps))
        assert min(np.diff(stamps)) > seconds_to_ns(0.025)


def test_waiting_for_a_pair_that_comes_later_ends_in_time_and_loses_nothing(recording: Recording) -> None:
    with play(recording.path) as source:
        stamps = [raw.color_stamp_ns for raw in all_pairs(source)]
        pause_ns = max(np.diff(stamps))
        assert pause_ns > seconds_to_ns(0.4)
    after_ns = 0

    def go_on() -> None:
        nonlocal after_ns
        while True:
            after_ns = source.read(after_ns, 0.2).color_stamp_ns + 1

    with play(recording.path) as source:
        with raises_naming(StaleData, "real_time: false"):
            go_on()
        assert source._clock.now_ns() == pytest.approx(after_ns + seconds_to_ns(0.2), abs=STEP_NS)
        late = source.read(after_ns, 1.0)
        assert late.color_stamp_ns - after_ns == pytest.approx(pause_ns, abs=10)


def test_without_real_time_pauses_of_a_recording_are_none(recording: Recording) -> None:
    with play(recording.path) as source:
        in_real_time = [level(raw.depth) for raw in all_pairs(source)]
    shown: list[int] = []

    def go_on() -> None:
        while True:
            after_ns = source._clock.now_ns() + seconds_to_ns(0.3)
            raw = source.read(after_ns, 0.5)
            assert min(raw.color_stamp_ns, raw.depth_stamp_ns) == after_ns
            shown.append(level(raw.depth))

    with play(recording.path, real_time=False) as source, raises_naming(DeviceFault, "pairs"):
        go_on()
    assert shown == in_real_time
    with pytest.raises(ValueError, match="real_time"):
        StreamOptions(real_time=False)


def test_an_existing_file_is_not_recorded_over(recording: Recording) -> None:
    simulation = ClockworkSimulation()
    options = replace(OPTIONS, record_to=str(recording.path))
    bus = EmulatedD435(simulation, options.color, options.depth, options.rate_hz, EmulatedOptions(), "test")
    with raises_naming(RecordingError, "record_to"):
        LiveSource(simulation.clock, options, bus, "test").connect()


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "torn"])
def test_what_is_no_whole_recording_is_refused(recording: Recording, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"{kind}.db3"
    data = recording.path.read_bytes()
    content = {"empty": b"", "text": b"this is no recording", "torn": data[: len(data) // 2]}
    if kind in content:
        path.write_bytes(content[kind])
    source = play(path)
    with pytest.raises(DeviceFault) as refusal:
        _play_all(source)
    assert str(path) in refusal.value.message
    assert refusal.value.remedy


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE topics SET name = replace(name, 'Gain/desc', 'Gain/xesc')", "option/Gain/"),
        ("DELETE FROM messages WHERE topic_id IN (SELECT id FROM topics WHERE name LIKE '%Gain/description')", "Gain/"),
        ("UPDATE topics SET type = x'ff00' WHERE name LIKE '%Color_0/info'", "Color_0/info"),
        ("DROP TABLE messages", "messages"),
    ],
)
def test_a_damaged_list_of_topics_is_refused_instead_of_waited_for(
    recording: Recording, tmp_path: Path, change: str, named: str
) -> None:
    path = tmp_path / "damaged.db3"
    path.write_bytes(recording.path.read_bytes())
    with closing(sqlite3.connect(path)) as database:
        database.execute(change)
        database.commit()
    with raises_naming(DeviceFault, path, named):
        play(path).connect()


def test_a_recording_on_which_the_sdk_crashes_is_refused(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "cut.db3"
    path.write_bytes(recording.path.read_bytes())
    with closing(sqlite3.connect(path)) as database:
        of_topic = "topic_id = (SELECT id FROM topics WHERE name LIKE '%Depth_0/tf/ref_1')"
        ((data,),) = database.execute(f"SELECT data FROM messages WHERE {of_topic}").fetchall()
        eight_numbers = data.replace(b"0.000000,1.000000,", b"0.000000\xff1.000000,", 1)
        database.execute(f"UPDATE messages SET data = ? WHERE {of_topic}", (eight_numbers,))
        database.commit()
    with raises_naming(DeviceFault, path, "crashes", "signal 11"):
        play(path).connect()


def _play_all(source: RecordedSource) -> None:
    with source:
        pairs(source, 30)
