"""A Kobuki's readings: odometry, levels, battery and buttons, and what its lights and sounds tell."""

from __future__ import annotations

import math
from typing import Any

import pytest
from emulated_base import Bench
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.kobuki.emulator import EmulatedKobuki
from drivers.kobuki.protocol import METERS_PER_TICK, Basic, Inertia, encode
from drivers.kobuki.wire import KobukiWire
from drivers.serial_base.emulator import Fault, Lifted, LowVoltage, OverCurrent, PressedButton, StuckBumper
from drivers.serial_base.messages import RELEASE, Request
from drivers.serial_base.wire import NO_VERSION, Reading, Signal
from drivers.serial_wire.faults import DroppedBytes, Noisy
from robot_runtime.hal import Halt, Zone

MS = 1_000_000


def bench(*faults: Fault, **options: Any) -> Bench:
    return Bench(KobukiWire(), EmulatedKobuki, *faults, **options)


def fed(*frames: tuple[Basic, Inertia], period_ns: int = 20 * MS) -> Reading:
    wire = KobukiWire()
    readings = [wire.feed(encode(*frame), 10**9 + number * period_ns) for number, frame in enumerate(frames)]
    return readings[-1][-1]


def test_a_straight_drive_is_measured_in_meters() -> None:
    on_floor = bench()
    reading = on_floor.run(2.0, 0.2).reading
    assert reading.x_m == pytest.approx(on_floor.body.pose.x_m, abs=0.2 * 0.025)
    assert reading.x_m > 0.3
    assert reading.linear_m_s == pytest.approx(0.2, abs=0.01)
    assert abs(reading.y_m) < 1e-6


def test_a_turn_is_the_gyros() -> None:
    on_floor = bench(gyro_scale=1.1)
    reading = on_floor.run(2.0, 0.0, 1.0).reading
    still = on_floor.run(0.5, 0.0).reading
    assert still.yaw_rad == pytest.approx(1.1 * on_floor.body.heading_rad, abs=0.001)
    assert reading.angular_rad_s == pytest.approx(1.0, abs=0.02)


@given(
    left=st.integers(0, 65535),
    right=st.integers(0, 65535),
    time_ms=st.integers(0, 65535),
    angle=st.integers(-18000, 18000),
    ways=st.tuples(st.integers(-200, 200), st.integers(-200, 200)),
    turn=st.integers(-300, 300),
)
@settings(max_examples=100)
def test_counters_may_begin_anywhere(
    left: int, right: int, time_ms: int, angle: int, ways: tuple[int, int], turn: int
) -> None:
    later = (angle + turn + 18000) % 36000 - 18000
    reading = fed(
        (Basic(time_ms, left_encoder=left, right_encoder=right), Inertia(angle, 0)),
        (
            Basic(
                (time_ms + 20) % 65536, left_encoder=(left + ways[0]) % 65536, right_encoder=(right + ways[1]) % 65536
            ),
            Inertia(later, 0),
        ),
    )
    assert math.hypot(reading.x_m, reading.y_m) == pytest.approx(abs(sum(ways)) / 2 * METERS_PER_TICK, abs=1e-9)
    assert reading.yaw_rad == pytest.approx(math.radians(turn / 100), abs=1e-9)


def test_a_base_that_was_switched_off_and_on_has_not_moved() -> None:
    before = Basic(40_000, left_encoder=30_000, right_encoder=31_000), Inertia(9000, 0)
    reading = fed(before, (Basic(20), Inertia(0, 0)))
    assert (reading.x_m, reading.yaw_rad) == (0, 0)


def test_a_delayed_line_is_no_restart() -> None:
    frames = [
        (Basic(time_ms=20 * number, left_encoder=10 * number, right_encoder=10 * number), Inertia(0, 0))
        for number in range(4)
    ]
    wire = KobukiWire()
    wire.feed(encode(*frames[0]), 10**9)
    reading = wire.feed(b"".join(encode(*frame) for frame in frames[1:]), 3 * 10**9)[-1]
    assert reading.x_m == pytest.approx(30 * METERS_PER_TICK)
    assert wire.missed == 0


def test_lost_frames_are_counted() -> None:
    wire = KobukiWire()
    for number in (0, 1, 4):
        wire.feed(encode(Basic(20 * number), Inertia(0, 0)), 10**9 + number * 20 * MS)
    assert wire.missed == 2


def test_a_stamp_is_that_of_the_measurement() -> None:
    on_floor = bench()
    on_floor.run(1.0)
    age_ns = on_floor.now_ns - on_floor.state.reading.stamp_ns
    assert 5 * MS <= age_ns <= 30 * MS


@pytest.mark.parametrize(("bit", "zone"), [(1, Zone.RIGHT), (2, Zone.CENTER), (4, Zone.LEFT)])
def test_bumper_and_cliff_bits_are_the_devices(bit: int, zone: Zone) -> None:
    """The vendor's library swaps left and right of the cliff sensors' readings."""
    reading = fed((Basic(0, bumper=bit, cliff=bit), Inertia(0, 0)))
    assert (Zone(reading.bumper), Zone(reading.cliff)) == (zone, zone)


@pytest.mark.parametrize(("bit", "zone"), [(1, Zone.RIGHT), (2, Zone.LEFT), (3, Zone.LEFT | Zone.RIGHT)])
def test_wheel_drop_bits_are_the_devices(bit: int, zone: Zone) -> None:
    assert Zone(fed((Basic(0, wheel_drop=bit), Inertia(0, 0))).wheel_drop) == zone


def test_lights_tell_the_guards_state_and_supplies_stay_on() -> None:
    lit = bench(StuckBumper(0.5, 1.0, zone=2), PressedButton(1.5, 1.6), stop_buttons=1)
    assert isinstance(lit.device, EmulatedKobuki)
    words = []
    for _ in range(4):
        lit.run(0.45, 0.1)
        words.append(lit.device.output)
    green, orange, red = 2, 3, 1
    assert [word >> 8 & 3 for word in words] == [green, orange, green, red]
    assert all(word & 0xF0 == 0xF0 for word in words)
    lit.guard.end()
    lit.run(0.1)
    assert lit.device.sounds


def test_its_own_button_is_an_emergency_stop_that_latches_until_it_is_released() -> None:
    held = bench(PressedButton(0.5, 1.5), stop_buttons=1)
    assert held.run(0.45, 0.2).halt is Halt.NONE
    assert held.run(0.5, 0.2).halt is Halt.E_STOP
    held.guard.handle(Request(RELEASE, 1, held.now_ns), held.now_ns, lambda: 0)
    assert held.run(0.1, 0.2).halt is Halt.E_STOP, "the button is still held down"
    assert held.run(1.0, 0.2).halt is Halt.E_STOP, "it is not any more, and the stop latches"
    assert held.device.velocity.linear_m_s == 0
    held.guard.handle(Request(RELEASE, 2, held.now_ns), held.now_ns, lambda: 0)
    held.run(0.5, 0.2)
    assert held.device.velocity.linear_m_s > 0


@pytest.mark.parametrize("fault", [Noisy(0.5, 5.0), DroppedBytes(0.5, 5.0, probability=0.3)])
def test_bad_packets_never_end_a_run(fault: Fault) -> None:
    driven = bench(fault)
    assert driven.run(4.0, 0.2).reading.x_m == pytest.approx(driven.body.pose.x_m, abs=0.02)
    assert driven.body.pose.x_m > 0.6
    assert driven.state.missed > 0
    assert driven.state.skipped > 0


def test_over_current_and_a_plugged_adapter_forbid_motion() -> None:
    blocked = bench(OverCurrent(0.5, 1.0))
    assert blocked.run(0.7, 0.2).hold.startswith("a wheel's motor")
    assert blocked.device.velocity.linear_m_s == 0
    assert blocked.run(0.6, 0.2).hold == ""
    reading = fed((Basic(0, charger=0x16), Inertia(0, 0)))
    assert reading.charging


def test_a_lifted_robot_does_not_move() -> None:
    lifted = bench(Lifted(0.5, 1.0))
    assert lifted.run(0.7, 0.2).halt is Halt.WHEEL_DROP
    assert lifted.device.velocity.linear_m_s == 0


def test_battery_is_volts_and_charge() -> None:
    reading = bench(LowVoltage(volts=14.85)).run(0.2).reading
    assert reading.battery_v == pytest.approx(14.8, abs=0.06)
    assert reading.battery_fraction == pytest.approx(0.52, abs=0.03)


def test_a_version_that_is_never_told_is_reported() -> None:
    wire = KobukiWire()
    wire.begin(0)
    assert wire.version == ""
    for second in range(1, 6):
        wire.upkeep(Signal.IDLE, second * 10**9)
    assert wire.version == NO_VERSION
