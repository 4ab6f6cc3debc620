"""Recordings of an Azure Kinect: written and read by the SDK itself, and a real one."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raising import raises_naming

from drivers.azure_kinect.calibration import FactoryCalibration
from drivers.azure_kinect.device import Configuration
from drivers.azure_kinect.mkv import MkvReader, MkvWriter, check_complete
from drivers.azure_kinect.nominal_calibration import factory_document
from drivers.azure_kinect.sdk import Capture, Image, ImuSample, load_sdk
from drivers.azure_kinect.sdk_types import SUCCEEDED, Handle
from drivers.azure_kinect.source import KinectSource
from drivers.azure_kinect.streams import RecordedStream
from robot_runtime.common.clock import SimulatedClock
from robot_runtime.errors import DeviceFault, NotConnected, StaleData
from robot_runtime.hal import Intrinsics
from robot_runtime.imaging.reproject import Reprojector

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13) or platform.machine() != "x86_64",
    reason="the Kinect SDK is not packaged for this Python",
)

PERIOD_US = 66_667
BEGIN_US = 7_000_000
SIZE = (1280, 720)
CONFIGURATION = Configuration("720p", "nfov_2x2", 15, imu=False)


def jpeg(gray: int) -> np.ndarray:
    _, data = cv2.imencode(".jpg", np.full((*SIZE[::-1], 3), gray, np.uint8))
    return np.asarray(data, np.uint8).reshape(-1)


def capture(number: int, color: bool = True, depth: bool = True) -> Capture:
    """Its number is its gray level, times ten, and its depth, in decimetres."""
    at_us = BEGIN_US + number * PERIOD_US
    counts = np.full((288, 320), 1000 + 100 * number, np.uint16)
    return Capture(
        Image(jpeg(10 * number), at_us) if color else None, Image(counts, at_us + 100) if depth else None, size=SIZE
    )


def write(
    path: Path,
    captures: list[Capture],
    configuration: Configuration = CONFIGURATION,
    imu: list[ImuSample] | None = None,
) -> Path:
    writer = MkvWriter(load_sdk(), path, configuration, factory_document("000000000007"))
    for taken in captures:
        writer.write(taken)
    for sample in imu or []:
        writer.write_imu(sample)
    writer.close()
    writer.close()
    return path


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five captures."""
    return write(tmp_path_factory.mktemp("kinect") / "five.mkv", [capture(number) for number in range(5)])


def source_of(path: Path, real_time: bool = False, clock: SimulatedClock | None = None) -> KinectSource:
    clock = clock or SimulatedClock(1_000_000)
    return KinectSource(load_sdk(), clock, RecordedStream(load_sdk(), clock, path, real_time))


def test_what_was_written_is_read(recording: Path) -> None:
    reader = MkvReader(load_sdk(), recording)
    assert reader.configuration == CONFIGURATION
    assert reader.calibration.rstrip(b"\0") == factory_document("000000000007")
    for number in range(5):
        read, wrote = reader.next_capture(), capture(number)
        assert read is not None
        for mine, theirs in ((wrote.color, read.color), (wrote.depth, read.depth)):
            assert mine is not None
            assert theirs is not None
            assert np.array_equal(mine.data, theirs.data)
            assert mine.device_us == theirs.device_us
        assert read.size == SIZE
    assert reader.next_capture() is None
    reader.close()
    reader.close()


def test_pairs_come_in_turn_and_end(recording: Path) -> None:
    with source_of(recording) as source:
        assert source.calibration.serial == "000000000007"
        assert (source.color_mode.name, source.depth_mode.name, source.rate_hz) == ("720p", "nfov_2x2", 15.0)
        for number in range(5):
            raw = source.read(0, 1.0)
            assert raw.color.shape == (720, 1280, 3)
            assert (raw.color == 10 * number).all()
            assert (raw.depth == 1000 + 100 * number).all()
            assert raw.depth_stamp_ns - raw.color_stamp_ns == 100_000
        with raises_naming(StaleData, "five.mkv"):
            source.read(0, 1.0)


def test_in_real_time_they_come_at_the_pace_of_the_recording(recording: Path) -> None:
    clock = SimulatedClock(1_000_000)
    clock.sleep(3.0)
    with source_of(recording, real_time=True, clock=clock) as source:
        first = source.read(0, 1.0)
        assert first.color_stamp_ns == 3_000_000_000
        # Others passed meanwhile.
        third = source.read(first.color_stamp_ns + 1_500 * PERIOD_US, 1.0)
        assert third.color[0, 0, 0] == 20
        assert third.color_stamp_ns == 3_000_000_000 + 2_000 * PERIOD_US
        assert clock.now_ns() >= third.depth_stamp_ns
        with raises_naming(StaleData, "pair", "real_time: false"):
            source.read(clock.now_ns(), 0.02)
        assert source.read(clock.now_ns(), 1.0).color[0, 0, 0] == 30


def test_it_starts_anew_when_it_is_connected_again(recording: Path) -> None:
    source = source_of(recording)
    for _ in range(2):
        with source:
            assert source.read(0, 1.0).color[0, 0, 0] == 0
    with pytest.raises(NotConnected):
        source.read(0, 1.0)


def test_captures_with_one_picture_alone_are_passed_over_and_counted(tmp_path: Path) -> None:
    alone = [capture(number, color=number % 2 == 0, depth=number % 2 == 1) for number in range(4)]
    path = write(tmp_path / "alone.mkv", [*alone, capture(4)])
    with source_of(path) as source:
        assert source.read(0, 1.0).color[0, 0, 0] == 40
    clock = SimulatedClock(1_000_000)
    with (
        source_of(path, real_time=True, clock=clock) as source,
        raises_naming(StaleData, "color or depth alone", "rate_hz"),
    ):
        source.read(0, 0.1)


def test_inertial_samples_come_with_the_captures(tmp_path: Path) -> None:
    felt = [
        ImuSample(30.0, (0.0, 0.0, -9.75), BEGIN_US + number * 10_000, (0.0, 0.0, 0.25), BEGIN_US + number * 10_000)
        for number in range(12)
    ]
    path = write(tmp_path / "imu.mkv", [capture(0), capture(1)], Configuration("720p", "nfov_2x2", 15, True), felt)
    with source_of(path) as source:
        source.read(0, 1.0)
        source.read(0, 1.0)
        samples = source.take_imu()
        assert [sample.acceleration_us for sample in samples] == [BEGIN_US + n * 10_000 for n in range(7)]
        assert samples[0].acceleration_m_s2 == (0.0, 0.0, -9.75)
        assert samples[0].angular_rad_s == (0.0, 0.0, 0.25)
        stamps_ns = [source.stream.to_clock_ns(sample.angular_us) for sample in samples]
        assert np.diff(stamps_ns).tolist() == [10_000_000] * 6
        assert source.take_imu() == ()


def test_a_damaged_picture_is_an_error(tmp_path: Path) -> None:
    taken = capture(0)
    assert taken.color is not None
    broken = Capture(Image(taken.color.data[:200], taken.color.device_us), taken.depth, size=SIZE)
    with source_of(write(tmp_path / "broken.mkv", [broken])) as source, raises_naming(DeviceFault, "7.000 s"):
        source.read(0, 1.0)


def test_files_that_are_no_recordings_are_refused(tmp_path: Path, recording: Path) -> None:
    def message(name: str, content: bytes | None) -> str:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(DeviceFault) as caught:
            source_of(path).connect()
        assert str(path) in caught.value.message
        return caught.value.message

    whole = recording.read_bytes()
    assert "cannot be read: No such file" in message("none.mkv", None)
    assert "not a Matroska file" in message("text.mkv", b"not a film")
    assert "not a Matroska file" in message("empty.mkv", b"")
    assert f"{len(whole) // 2} of {len(whole)} bytes" in message("half.mkv", whole[: len(whole) // 2])
    # The SDK would end the process over some of these.
    for size in (40, 100, 1000, 5000, len(whole) - 1):
        assert "is cut off" in message(f"{size}.mkv", whole[:size])
    assert "is damaged at byte" in message("hole.mkv", whole[:52] + bytes(8) + whole[60:])
    index = whole.index(b"\x1c\x53\xbb\x6b", len(whole) // 2)
    assert "it lacks Cues" in message("open.mkv", whole[:index] + b"\x1c\x53\xbb\x6c" + whole[index + 4 :])
    plain = b"\x1a\x45\xdf\xa3\x80" + b"\x18\x53\x80\x67\x80"
    assert "no captures in" in message("plain.mkv", plain)


@given(cut=st.integers(0, 4000), at=st.integers(0, 3999), value=st.integers(0, 255))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_of_a_file_head_is_more_than_a_fault(
    recording: Path, tmp_path: Path, cut: int, at: int, value: int
) -> None:
    path = tmp_path / "damaged.mkv"
    content = bytearray(recording.read_bytes())
    content[at] = value
    path.write_bytes(content)
    with contextlib.suppress(DeviceFault):
        check_complete(path)
    path.write_bytes(content[:cut])
    with raises_naming(DeviceFault, "damaged.mkv"):
        check_complete(path)


def test_a_recording_without_calibration_is_refused(tmp_path: Path) -> None:
    sdk, path, handle = load_sdk(), tmp_path / "bare.mkv", Handle()
    record = sdk.record
    assert record.k4a_record_create(str(path).encode(), None, CONFIGURATION.raw, ctypes.byref(handle)) == SUCCEEDED
    assert record.k4a_record_write_header(handle) == SUCCEEDED
    made = sdk.make_capture(capture(0))
    assert record.k4a_record_write_capture(handle, made) == SUCCEEDED
    sdk.k4a.k4a_capture_release(made)
    record.k4a_record_close(handle)
    with raises_naming(DeviceFault, "bare.mkv", "calibration"):
        source_of(path).connect()


def test_a_recording_without_depth_is_refused(tmp_path: Path) -> None:
    sdk, path, handle = load_sdk(), tmp_path / "flat.mkv", Handle()
    raw = CONFIGURATION.raw
    raw.depth_mode = 0
    assert sdk.record.k4a_record_create(str(path).encode(), None, raw, ctypes.byref(handle)) == SUCCEEDED
    assert sdk.record.k4a_record_write_header(handle) == SUCCEEDED
    made = sdk.make_capture(capture(0, depth=False))
    assert sdk.record.k4a_record_write_capture(handle, made) == SUCCEEDED
    sdk.k4a.k4a_capture_release(made)
    sdk.record.k4a_record_close(handle)
    with raises_naming(DeviceFault, "flat.mkv", "color", "depth"):
        source_of(path).connect()


def test_a_folder_that_is_not_there_cannot_be_recorded_to(tmp_path: Path) -> None:
    with raises_naming(DeviceFault, "folder"):
        write(tmp_path / "nowhere" / "x.mkv", [])


def test_the_sdk_holds_no_picture_longer_than_it_needs(tmp_path: Path) -> None:
    write(tmp_path / "more.mkv", [capture(number) for number in range(3)])
    assert load_sdk()._buffers == {}


@pytest.fixture
def real(shared_data: Path) -> Path:
    """The recording of a real unit that pyk4a publishes for its own tests."""
    path = shared_data / "azure_kinect" / "recording.mkv"
    if not path.is_file():
        pytest.skip(f"the recording of a real Azure Kinect is not at {path}")
    return path


def test_a_real_recording_becomes_an_observation(real: Path) -> None:
    with source_of(real) as source:
        raw = source.read(0, 1.0)
        rig = source.calibration
        assert rig.serial == "001514394512"
        assert raw.color.shape == (720, 1280, 3)
        assert raw.depth.shape == (576, 640)
        assert raw.infrared is not None
        measured = raw.depth[raw.depth > 0]
        assert (measured.min(), measured.max()) == (165, 3690)
        assert np.mean(raw.depth == 0) == pytest.approx(0.235, abs=0.0005)
        seen = Reprojector(rig, Intrinsics.from_hfov(640, 480, 79.0), depth_range_m=(0.1, 6.0))(raw.color, raw.depth)
    # A wall with a window behind a mug: what the color camera sees is filled but for a few rows, depth but for what
    # lies outside the illuminator's hexagon, and no depth is made up.
    assert np.mean(seen.rgb.any(axis=2)) == pytest.approx(0.92, abs=0.02)
    valid = seen.depth_m[seen.depth_m > 0]
    assert valid.size / seen.depth_m.size == pytest.approx(0.72, abs=0.08)
    assert valid.min() > 0.15
    assert valid.max() < 3.9
    assert np.median(valid) == pytest.approx(float(np.median(measured)) / 1000, abs=0.25)


def test_the_real_calibration_is_read_in_every_mode(real: Path) -> None:
    raw = (real.parent / "calibration.json").read_bytes()
    factory = FactoryCalibration(load_sdk(), raw, "calibration.json")
    rig = factory.of("720p", "nfov")
    assert rig.color.fx == pytest.approx(611.8, abs=0.1)
    assert rig.depth.fx == pytest.approx(504.6, abs=0.1)
    assert 1000 * rig.color_from_depth[:3, 3] == pytest.approx([-32.1, -2.2, 3.9], abs=0.05)
    tilt_deg = np.degrees(np.arcsin(rig.color_from_depth[1, 2]))
    assert tilt_deg == pytest.approx(4.9, abs=0.1)
    assert len(factory.modes) == 10
