"""From packets to poses: stamps, frames, headings, uncertainty, and everything that is no pose."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from drivers.marvelmind.driver import REPEATS, MarvelmindLocalizer
from drivers.marvelmind.mounting import Mounting, Pair
from drivers.marvelmind.options import MarvelmindOptions
from drivers.marvelmind.protocol import (
    POSITION_CM,
    POSITION_MM,
    POSITION_MM_UNIX,
    QUALITY,
    Flags,
    Packet,
    Position,
    encode,
    frame,
)
from drivers.serial_wire.faults import noisy, thinned
from drivers.serial_wire.reader import Link
from robot_runtime.common import config
from robot_runtime.common.clock import NS_PER_S, SimulatedClock
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, DeviceFault, NotConnected, StaleData
from robot_runtime.hal import PoseEstimate

FIX = Position(POSITION_MM_UNIX, 1000, 1.0, 2.0, 0.4, address=11, age_s=0.08)
LOST = replace(FIX, flags=Flags.MILLISECONDS | Flags.UNAVAILABLE)


class Wire(Link):
    """Hands over bytes when a test says so."""

    def __init__(self) -> None:
        self.on_bytes: Callable[[bytes], None] = lambda data: None
        self.fault: DeviceFault | None = None

    def open(self, on_bytes: Callable[[bytes], None]) -> None:
        self.on_bytes = on_bytes

    def check(self) -> None:
        if self.fault is not None:
            raise self.fault

    def close(self) -> None:
        pass


class Bench:
    """A localizer with a test on the other end of its wire."""

    def __init__(self, **options: object) -> None:
        options = {"beacons_in_map": {"x_m": 0.0, "y_m": 0.0, "yaw_deg": 0.0}, **options}
        self.clock = SimulatedClock(step_ns=1_000_000)
        self.wire = Wire()
        chosen = config.parse({"port": "/dev/test", **options}, MarvelmindOptions, "test")
        self.localizer = MarvelmindLocalizer(self.clock, chosen, chosen.mounting("lab"), self.wire)
        self.localizer.connect()
        self.clock.sleep(1.0)

    def hear(self, *positions: Position, after_s: float = 0.125) -> None:
        for position in positions:
            self.clock.sleep(after_s)
            self.wire.on_bytes(encode(position))

    @property
    def poses(self) -> tuple[PoseEstimate, ...]:
        return self.localizer.arrivals().estimates

    @property
    def events(self) -> list[str]:
        return [event.kind for event in self.localizer.arrivals().events]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def series(count: int, first: Position = FIX) -> list[Position]:
    return [replace(first, device_ms=first.device_ms + 125 * i) for i in range(count)]


# --- poses ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [POSITION_CM, POSITION_MM, POSITION_MM_UNIX])
def test_a_fix_is_stamped_with_the_instant_of_its_ultrasound(code: int) -> None:
    bench = Bench(latency_s=0.005)
    bench.hear(replace(FIX, code=code))
    (pose,) = bench.poses
    assert bench.clock.now_ns() - pose.stamp_ns == pytest.approx(0.085 * NS_PER_S, abs=1)
    assert (pose.pose.x_m, pose.pose.y_m, pose.frame) == (1.0, 2.0, "map")


def test_one_hedgehog_knows_no_heading(bench: Bench) -> None:
    bench.hear(replace(FIX, angle_rad=1.0))
    (pose,) = bench.poses
    assert pose.covariance[2, 2] == math.inf
    assert np.allclose(pose.covariance[:2, :2], np.eye(2) * 0.02**2)


def test_without_a_heading_the_position_is_that_of_the_hedgehog_which_is_said() -> None:
    bench = Bench(lever_m=[0.3, 0.4])
    bench.hear(FIX)
    assert (bench.poses[0].pose.x_m, bench.poses[0].pose.y_m) == (1.0, 2.0)
    assert bench.localizer.info.mark_m == (0.3, 0.4)


def test_a_pair_knows_a_heading_to_what_its_base_allows() -> None:
    bench = Bench(pair={"base_m": 0.25, "yaw_offset_deg": 90.0})
    bench.hear(replace(FIX, angle_rad=math.radians(30), pair_center=True))
    (pose,) = bench.poses
    assert pose.pose.yaw_rad == pytest.approx(math.radians(120), abs=1e-3)
    assert math.degrees(math.sqrt(pose.covariance[2, 2])) == pytest.approx(6.48, abs=0.01)
    assert pose.covariance[0, 0] == pytest.approx(0.02**2 / 2)


def test_a_pair_whose_orientation_does_not_apply_says_so_once() -> None:
    bench = Bench(pair={})
    without, with_heading = replace(FIX, pair_center=True), replace(FIX, pair_center=True, angle_rad=0.5)
    bench.hear(*series(2, without), *series(2, replace(with_heading, device_ms=2000)))
    assert [math.isinf(pose.covariance[2, 2]) for pose in bench.poses] == [True, True, False, False]
    assert bench.events == ["no_heading", "heading"]


def test_one_of_a_pair_alone_is_half_their_distance_less_certain() -> None:
    bench = Bench(pair={"base_m": 0.4})
    bench.hear(FIX)
    assert bench.poses[0].covariance[0, 0] == pytest.approx(0.02**2 + 0.2**2)


def test_the_covariance_of_a_pair_off_the_axle_swings_with_the_heading() -> None:
    """Against numbers: the robot's position moves with the heading error as the lever says."""
    bench = Bench(pair={"base_m": 0.25}, lever_m=[0.2, -0.1], beacons_in_map={"x_m": 1, "y_m": 0, "yaw_deg": 40})
    bench.hear(replace(FIX, angle_rad=0.7, pair_center=True))
    (pose,) = bench.poses
    random = np.random.default_rng(0)
    mounting = Mounting(SE2(1, 0, math.radians(40)), (0.2, -0.1), Pair(0.25))
    noise_m, noise_rad = 0.02 / math.sqrt(2), math.sqrt(2) * 0.02 / 0.25
    drawn = []
    for _ in range(20_000):
        dx, dy, da = random.standard_normal(3).tolist()
        found = mounting.base(1.0 + noise_m * dx, 2.0 + noise_m * dy, (0.7 + noise_rad * da) % (2 * math.pi))
        drawn.append((found.x_m, found.y_m, found.yaw_rad))
    sampled = np.cov(np.array(drawn).T)
    scale = np.sqrt(np.outer(np.diag(sampled), np.diag(sampled)))
    assert np.allclose(pose.covariance / scale, sampled / scale, atol=0.05)


@given(
    frame_yaw=st.floats(-3, 3),
    lever=st.tuples(st.floats(-0.3, 0.3), st.floats(-0.3, 0.3)),
    offset_deg=st.floats(-180, 180),
    clockwise=st.booleans(),
    base=st.builds(SE2, st.floats(-9, 9), st.floats(-9, 9), st.floats(-3, 3)),
)
@settings(max_examples=40)
def test_what_a_pair_reports_leads_back_to_the_robot(
    frame_yaw: float, lever: tuple[float, float], offset_deg: float, clockwise: bool, base: SE2
) -> None:
    mounting = Mounting(SE2(1.0, -2.0, frame_yaw), lever, Pair(0.25, offset_deg, clockwise))
    found = mounting.base(*mounting.coordinates_of(base))
    assert found.distance_to(base) < 1e-9
    assert abs(math.remainder(found.yaw_rad - base.yaw_rad, 2 * math.pi)) < 1e-9


def test_an_alignment_file_says_where_beacons_and_hedgehogs_are(tmp_path: Path) -> None:
    file = tmp_path / "alignment.yaml"
    text = "map_from_source: {x_m: 3.0, y_m: 1.0, yaw_rad: 0.5}\nlever_m: [0.1, 0.0]\n"
    file.write_text(text + "yaw_offset_rad: 0.25\n", encoding="utf-8")
    options = MarvelmindOptions(alignment=str(file), pair=Pair())
    found = options.mounting("lab")
    assert (found.map_from_beacons, found.lever_m) == (SE2(3.0, 1.0, 0.5), (0.1, 0.0))
    assert found.pair is not None
    assert math.radians(found.pair.yaw_offset_deg) == pytest.approx(0.25)
    file.write_text(text, encoding="utf-8")
    with raises_naming(ConfigError, "heading", "both hedgehogs"):
        options.mounting("lab")


def test_without_an_alignment_poses_are_said_to_be_in_the_beacons_own_frame(bench: Bench) -> None:
    assert bench.localizer.info.frame == "map"
    own = Bench(beacons_in_map=None)
    own.hear(FIX)
    assert (own.localizer.info.frame, own.poses[0].frame) == ("beacons", "beacons")


@pytest.mark.parametrize(
    "options",
    [
        {"rate_hz": 0.0},
        {"noise_m": 0.0},
        {"latency_s": -0.1},
        {"address": 0},
        {"pair": {"base_m": 0.0}},
        {"alignment": "a.yaml", "lever_m": [0.1, 0.0]},
        {"alignment": "a.yaml", "pair": {"yaw_offset_deg": 3.0}},
        {"lever_m": [0.1, 0.0]},
        {"pair": {"yaw_offset_deg": 3.0}},
        {"emulator": {"outlier_probability": 1.0}},
        {"emulator": {"noise_m": -1.0}},
        {"emulator": {"outlier_m": 0.0}},
        {"emulator": {"faults": [{"kind": "gremlins"}]}},
        {"beacon_in_map": {}},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with raises_naming(ConfigError, "test: field"):
        Bench(**{"beacons_in_map": None, **options})


# --- what is no pose ------------------------------------------------------------------------------------------------


def test_a_fix_that_failed_is_no_pose_whatever_its_coordinates(bench: Bench) -> None:
    bench.hear(*series(2), *series(3, replace(LOST, device_ms=2000)), *series(2, replace(FIX, device_ms=3000)))
    assert len(bench.poses) == 4
    assert bench.events == ["no_fix", "fix"]
    assert {event.source for event in bench.localizer.arrivals().events} == {bench.localizer.info.name}


def test_old_poses_are_refused_with_the_hedgehogs_own_reason(bench: Bench) -> None:
    bench.hear(FIX, *series(6, replace(LOST, device_ms=2000)))
    bench.wire.on_bytes(frame(Packet(QUALITY, bytes([11, 23]) + bytes(14))))
    with raises_naming(StaleData, "hedgehog 11", "no fix", "23 %") as caught:
        bench.localizer.latest(0.5)
    assert "beacons" in caught.value.remedy
    with raises_naming(StaleData, "hedgehog 11", "no fix"):
        bench.localizer.at(bench.clock.now_ns(), 0.2)


def test_silence_and_noise_are_told_apart(bench: Bench) -> None:
    with raises_naming(StaleData, "hedgehog and modem"):
        bench.localizer.latest(0.5)
    bench.wire.on_bytes(b"\x00\x81\x42" * 50)
    with raises_naming(StaleData, "150 bytes", "packet") as caught:
        bench.localizer.latest(0.5)
    assert "baud_rate" in caught.value.remedy


@pytest.mark.parametrize("spoil", [noisy, lambda data, random: thinned(data, 0.3, random)])
def test_bad_packets_never_end_a_run(bench: Bench, spoil: Callable[[bytes, np.random.Generator], bytes]) -> None:
    random, sent = np.random.default_rng(0), series(100)
    for fix in sent:
        bench.clock.sleep(0.125)
        bench.wire.on_bytes(spoil(encode(fix), random))
    bench.hear(replace(sent[-1], device_ms=sent[-1].device_ms + 125))
    assert 50 <= len(bench.poses) < 100
    assert {(pose.pose.x_m, pose.pose.y_m) for pose in bench.poses} == {(FIX.x_m, FIX.y_m)}
    assert bench.localizer.latest(0.5).pose.x_m == FIX.x_m


def test_silence_after_good_fixes_is_stale(bench: Bench) -> None:
    bench.hear(FIX)
    bench.clock.sleep(1.0)
    with raises_naming(StaleData, "1.080 s"):
        bench.localizer.latest(0.5)


def test_a_measurement_that_is_sent_again_and_again_is_no_new_pose(bench: Bench) -> None:
    bench.hear(FIX, *[FIX] * (REPEATS + 5), *series(2, replace(FIX, device_ms=2000)))
    assert len(bench.poses) == 3
    assert bench.events == ["frozen", "fix"]


def test_a_clock_that_goes_back_is_told_and_its_new_time_taken(bench: Bench) -> None:
    bench.hear(*series(3, replace(FIX, device_ms=9000)), *series(3, replace(FIX, device_ms=4000)))
    assert bench.events == ["clock_went_back"]
    assert "5.250 s" in bench.localizer.arrivals().events[0].detail
    assert len(bench.poses) == 5, "the packet at the break may be an old one that was held back"
    stamps = [pose.stamp_ns for pose in bench.poses]
    assert stamps == sorted(stamps), "stamps are the runtime's own clock's"


def test_a_hedgehog_that_was_on_for_49_days_begins_its_count_anew(bench: Bench) -> None:
    bench.hear(replace(FIX, code=POSITION_MM, device_ms=2**32 - 60), replace(FIX, code=POSITION_MM, device_ms=65))
    assert len(bench.poses) == 2
    assert bench.events == []


def test_positions_of_other_hedgehogs_are_not_the_robots(bench: Bench) -> None:
    other = replace(FIX, address=40, flags=Flags.MILLISECONDS | Flags.OTHER_HEDGEHOG)
    bench.hear(other, FIX, replace(other, device_ms=1100))
    assert len(bench.poses) == 1


def test_two_hedgehogs_on_one_wire_are_not_guessed_between() -> None:
    bench = Bench()
    bench.hear(FIX, replace(FIX, address=12))
    with raises_naming(DeviceFault, "11 and 12") as caught:
        bench.localizer.latest(0.5)
    assert "'address'" in caught.value.remedy
    named = Bench(address=12)
    named.hear(FIX, replace(FIX, address=12, x_m=5.0))
    assert [pose.pose.x_m for pose in named.poses] == [5.0]


# --- the connection -------------------------------------------------------------------------------------------------


def test_connecting_again_begins_anew(bench: Bench) -> None:
    bench.hear(FIX)
    mark = bench.localizer.arrivals().mark
    bench.localizer.close()
    with pytest.raises(NotConnected):
        bench.localizer.latest(0.5)
    bench.localizer.connect()
    arrived = bench.localizer.arrivals(mark)
    assert arrived.restarted
    assert arrived.estimates == ()
    bench.hear(replace(FIX, device_ms=5))
    assert len(bench.poses) == 1
    assert bench.events == [], "another connection's clock says nothing about this one's"


def test_a_broken_wire_ends_every_read(bench: Bench) -> None:
    bench.hear(FIX)
    bench.wire.fault = DeviceFault("port /dev/test: gone", "plug it in")
    for use in (lambda: bench.localizer.latest(9.0), lambda: bench.localizer.at(0, 0.1), bench.localizer.arrivals):
        with raises_naming(DeviceFault, "port"):
            use()


# --- what is valid but useless ----------------------------------------------------------------------------------------


def quality(percent: int) -> bytes:
    return frame(Packet(QUALITY, bytes([11, percent]) + bytes(14)))


@pytest.mark.parametrize(
    "useless",
    [replace(FIX, flags=Flags.MILLISECONDS | Flags.OUTSIDE_GEOFENCE), replace(FIX, x_m=0.0, y_m=0.0, z_m=0.0)],
)
def test_a_position_that_is_none_is_no_fix(useless: Position) -> None:
    bench = Bench()
    bench.hear(*series(4), *series(4, replace(useless, device_ms=2000)))
    assert len(bench.poses) == 4
    assert bench.events == ["no_fix"]
    bench.hear(*series(1, replace(FIX, device_ms=3000)))
    assert bench.events == ["no_fix", "fix"]


def test_positions_without_quality_are_no_fix_and_the_quality_is_told() -> None:
    bench = Bench()
    for position in series(8):
        bench.hear(position)
        bench.wire.on_bytes(quality(0))
    assert len(bench.poses) == 1
    with raises_naming(StaleData, "0 %"):
        bench.localizer.latest(0.5)


def test_packets_without_a_position_are_told_from_silence() -> None:
    bench = Bench()
    for code, size in ((0x0005, 42), (0x0003, 32), (0x0012, 14)):
        bench.wire.on_bytes(frame(Packet(code, bytes(size))))
    with raises_naming(StaleData, "0x0005", "0x0003", "none with a position"):
        bench.localizer.latest(0.5)


def test_positions_of_another_address_are_told_from_silence() -> None:
    bench = Bench(address=11)
    bench.hear(*series(3, replace(FIX, address=12)))
    with raises_naming(StaleData, "hedgehog 12", "11", "address"):
        bench.localizer.latest(0.5)


@pytest.mark.parametrize(
    "sentence",
    [
        b"$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47\r\n",
        b"$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A\r\n",
        b"$GNVTG,084.4,T,,M,022.4,N,041.5,K*4f\r\n",
    ],
)
@pytest.mark.parametrize("chunk", [7, 1000])
def test_sentences_of_nmea_are_named(sentence: bytes, chunk: int) -> None:
    bench = Bench()
    text = sentence * 8
    for start in range(0, len(text), chunk):
        bench.wire.on_bytes(text[start : start + chunk])
    with raises_naming(StaleData, "NMEA") as caught:
        bench.localizer.latest(0.5)
    assert "Marvelmind" in caught.value.remedy
    assert "baud" not in caught.value.remedy


def test_noise_is_not_nmea() -> None:
    bench = Bench()
    bench.wire.on_bytes(bytes(range(256)) * 4)
    with raises_naming(StaleData, "without a packet") as caught:
        bench.localizer.latest(0.5)
    assert "baud_rate" in caught.value.remedy
