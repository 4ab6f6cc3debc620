"""A Create 2's readings, modes, and the facts of its firmware that the driver works around."""

from __future__ import annotations

from typing import Any

import pytest
from emulated_base import Bench

from drivers.create2.emulator import EmulatedCreate2
from drivers.create2.protocol import SEPARATION_M, STREAMED, Command, Mode, Opcode, Packet, drive_direct, encode_stream
from drivers.create2.wire import PADDING, Create2Wire
from drivers.serial_base.emulator import Fault, Lifted, OverCurrent, PressedButton, StuckBumper
from drivers.serial_wire.faults import DroppedBytes, Noisy, Silent
from robot_runtime.hal import Halt, Velocity, Zone


def bench(*faults: Fault, **options: Any) -> Bench:
    return Bench(Create2Wire(), EmulatedCreate2, *faults, **options)


def firmware(driven: Bench) -> EmulatedCreate2:
    assert isinstance(driven.device, EmulatedCreate2)
    return driven.device


def test_forward_and_turn_are_measured() -> None:
    driven = bench(motors="create2")
    reading = driven.run(2.0, 0.2).reading
    assert reading.x_m == pytest.approx(driven.body.pose.x_m, abs=0.01)
    assert reading.linear_m_s == pytest.approx(0.2, abs=0.04)
    driven.run(0.3)
    reading = driven.run(2.0, 0.0, -1.0).reading
    assert reading.yaw_rad == pytest.approx(driven.body.pose.yaw_rad, abs=0.06)
    assert reading.angular_rad_s < -0.7


def test_reverse_is_negative() -> None:
    driven = bench(motors="create2")
    driven.run(1.5, -0.2)
    reading = driven.run(1.0).reading
    assert reading.x_m == pytest.approx(driven.body.pose.x_m, abs=0.01)
    assert reading.x_m < -0.2


def test_a_pushed_robot_is_flagged_and_its_motion_not_believed() -> None:
    """The encoders have one channel, and count up however they are pushed."""
    driven = bench()
    driven.run(1.0, 0.2)
    before = driven.run(1.0).reading
    assert not before.pushed
    for _ in range(50):
        driven.body.push(-0.004, 0.0)
        driven.run(0.02)
    reading = driven.state.reading
    assert reading.pushed
    assert reading.x_m == pytest.approx(before.x_m, abs=0.002)
    assert not driven.run(1.0).reading.pushed


def test_pushed_faster_than_commanded_is_flagged() -> None:
    driven = bench()
    driven.run(1.0, 0.1)
    for _ in range(20):
        driven.body.push(0.01, 0.0)
        driven.run(0.02, 0.1)
    assert driven.state.reading.pushed


def test_a_bump_does_not_stop_the_base_and_the_guard_does() -> None:
    driven = bench(StuckBumper(1.0, 2.0, zone=2))
    driven.run(0.99, 0.2)
    assert driven.device.velocity.linear_m_s > 0
    state = driven.run(0.1, 0.2)
    assert state.halt is Halt.CONTACT
    assert firmware(driven).mode is Mode.SAFE
    assert driven.device.velocity == Velocity()
    assert Zone.CENTER in Zone(state.reading.bumper), "both switches: the middle"


@pytest.mark.parametrize(("zone", "found"), [(1, Zone.LEFT), (4, Zone.RIGHT), (2, Zone(7))])
def test_two_bumper_switches_make_three_zones(zone: int, found: Zone) -> None:
    assert Zone(bench(StuckBumper(zone=zone)).run(0.2).reading.bumper) == found


def test_pycreate2_swap_wheel_drops_keep_their_sides() -> None:
    """pycreate2 swaps left and right."""
    for bits, zone in ((4, Zone.RIGHT), (8, Zone.LEFT), (12, Zone.LEFT | Zone.RIGHT)):
        wire = Create2Wire()
        frame = dict.fromkeys(STREAMED, 0) | {Packet.BUMPS_AND_WHEEL_DROPS: bits}
        (reading,) = wire.feed(encode_stream(frame), 10**9)
        assert Zone(reading.wheel_drop) == zone


def test_a_lifted_robot_goes_to_passive_and_accepts_motion_again_on_the_floor() -> None:
    driven = bench(Lifted(1.0, 2.0))
    driven.run(1.5, 0.2)
    assert firmware(driven).mode is Mode.PASSIVE
    assert driven.state.halt is Halt.WHEEL_DROP
    driven.run(1.0)
    assert firmware(driven).mode is Mode.SAFE
    assert driven.device.velocity == Velocity()
    assert driven.run(0.5, 0.2).reading.linear_m_s > 0.1


def test_the_last_command_persists_and_the_guards_zeros_end_it() -> None:
    driven = bench()
    driven.run(1.0, 0.2)
    driven.connected = False
    driven.run(1.0)
    assert driven.device.velocity.linear_m_s == pytest.approx(0.2), "the firmware alone never stops"
    driven.connected = True
    driven.run(0.1)
    assert driven.device.velocity == Velocity()


@pytest.mark.parametrize(
    "cut", [drive_direct(0.2, 0.2).encoded[:3], bytes([Opcode.STREAM, 18, 7]), bytes([Opcode.SONG])]
)
def test_a_command_that_was_cut_off_does_not_block_the_parser(cut: bytes) -> None:
    driven = bench()
    driven.run(0.5, 0.2)
    driven.device.receive(cut, driven.now_ns)
    driven.run(0.01)
    driven.connected = False
    driven.device.receive(driven.wire.end(), driven.now_ns)
    driven.run(0.02)
    assert driven.device.velocity == Velocity()
    assert firmware(driven).mode is Mode.PASSIVE
    driven.connected = True
    driven.guard.begin(driven.now_ns)
    assert driven.run(1.0, 0.2).reading.linear_m_s > 0.1


def test_padding_is_longer_than_any_command_of_ours() -> None:
    driven = bench()
    driven.run(1.0, 0.2)
    assert len(PADDING) > 1 + 2 * 16
    assert Command(Opcode.START).encoded * len(PADDING) == PADDING


@pytest.mark.parametrize("fault", [Noisy(0.5, 4.0), DroppedBytes(0.5, 4.0, probability=0.1)])
def test_bad_packets_never_end_a_run(fault: Fault) -> None:
    driven = bench(fault)
    driven.run(4.0, 0.2)
    assert driven.run(1.0, 0.2).reading.linear_m_s > 0.1
    assert driven.body.pose.x_m > 0.4
    assert driven.state.skipped > 0


def test_over_current_and_buttons() -> None:
    assert bench(OverCurrent()).run(0.2).hold.startswith("a wheel's motor")
    held = bench(PressedButton(0.5, 0.6), stop_buttons=1)
    assert held.run(1.0, 0.2).halt is Halt.E_STOP
    assert held.device.velocity == Velocity()
    assert firmware(held).digits == b"STOP"


def test_battery_is_volts_and_charge() -> None:
    reading = bench().run(0.2).reading
    assert reading.battery_v == pytest.approx(16.0)
    assert reading.battery_fraction == pytest.approx(0.85, abs=0.01)


@pytest.mark.parametrize("motors", ["ideal", "create2"])
@pytest.mark.parametrize("speed_m_s", [0.05, 0.3, -0.2])
def test_a_base_that_is_quicker_than_its_model_is_not_pushed(motors: str, speed_m_s: float) -> None:
    driven = bench(motors=motors)
    for _ in range(3):
        driven.run(1.0, speed_m_s)
        driven.run(1.0)
        driven.run(1.0, 0.0, 1.0)
        driven.run(1.0)
    assert not any(state.reading.pushed for state in driven.states)


def signed(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(2, "big", signed=True) for number in numbers)


@pytest.mark.parametrize(
    ("command", "linear_m_s", "angular_rad_s"),
    [
        (Command(Opcode.DRIVE, signed(200, 32767)), 0.2, 0.0),
        (Command(Opcode.DRIVE, signed(200, -32768)), 0.2, 0.0),
        (Command(Opcode.DRIVE, signed(-200, 32767)), -0.2, 0.0),
        (Command(Opcode.DRIVE, signed(200, 1)), 0.0, 0.4 / SEPARATION_M),
        (Command(Opcode.DRIVE, signed(200, -1)), 0.0, -0.4 / SEPARATION_M),
        (Command(Opcode.DRIVE, signed(200, 500)), 0.2, 0.4),
        (Command(Opcode.DRIVE, signed(200, -500)), 0.2, -0.4),
        (Command(Opcode.DRIVE_PWM, signed(255, 255)), 0.5, 0.0),
        (Command(Opcode.DRIVE_PWM, signed(51, -51)), 0.0, 0.2 / SEPARATION_M),
        (Command(Opcode.DRIVE_DIRECT, signed(100, 300)), 0.2, -0.2 / SEPARATION_M),
    ],
)
def test_every_command_of_the_wheels_is_carried_out(command: Command, linear_m_s: float, angular_rad_s: float) -> None:
    device = firmware(bench())
    device.take(Command(Opcode.START).encoded + command.encoded)
    assert device.velocity == Velocity(), "not in Passive mode"
    device.take(Command(Opcode.SAFE).encoded + command.encoded)
    assert device.velocity.linear_m_s == pytest.approx(linear_m_s)
    assert device.velocity.angular_rad_s == pytest.approx(angular_rad_s)


DOCUMENTED = {
    133: 0, 134: 0, 135: 0, 136: 0, 138: 1, 139: 3, 141: 1, 143: 0, 144: 3, 150: 1, 162: 2, 163: 4, 164: 4, 165: 1,
    167: 15, 168: 3,
}  # fmt: skip
"""Bytes of data by opcode, of iRobot's Open Interface specification."""


@pytest.mark.parametrize("opcode", DOCUMENTED)
def test_data_of_a_documented_opcode_are_never_taken_as_opcodes(opcode: int, caplog: pytest.LogCaptureFixture) -> None:
    device = firmware(bench())
    device.take(bytes([Opcode.START, Opcode.FULL, opcode, *[Opcode.STOP] * DOCUMENTED[opcode]]))
    assert device.mode is not Mode.OFF
    device.take(bytes([opcode, *[Opcode.STOP] * DOCUMENTED[opcode]]))
    if opcode not in (Opcode.LEDS, Opcode.PLAY, Opcode.PAUSE_RESUME, Opcode.DIGITS, Opcode.SCHEDULING_LEDS):
        assert caplog.text.count(f"opcode {opcode} ({Opcode(opcode).name}) is not carried out") == 1


def test_what_ends_control_by_the_interface_stops_the_wheels() -> None:
    device = firmware(bench())
    device.take(Command(Opcode.START).encoded + Command(Opcode.FULL).encoded + drive_direct(0.2, 0.2).encoded)
    assert device.velocity != Velocity()
    device.take(Command(Opcode.DOCK).encoded)
    assert (device.mode, device.velocity) == (Mode.PASSIVE, Velocity())


@pytest.mark.parametrize("gap_s", [0.3, 0.7, 1.5, 3.0])
def test_a_wheel_that_coasts_in_a_gap_of_the_readings_is_not_pushed(gap_s: float) -> None:
    """The guard's zeros reach the base; its readings are lost meanwhile."""
    driven = bench(Silent(from_s=1.0, to_s=1.0 + gap_s), motors="create2")
    driven.run(1.0, 0.3)
    driven.run(gap_s + 0.5)
    assert not any(state.reading.pushed for state in driven.states)
    assert driven.state.reading.x_m == pytest.approx(driven.body.pose.x_m, abs=0.01)


def test_a_robot_that_is_pushed_after_a_gap_is_flagged() -> None:
    driven = bench(Silent(from_s=1.0, to_s=2.0))
    driven.run(2.2, 0.0)
    for _ in range(50):
        driven.body.push(-0.004, 0.0)
        driven.run(0.02)
    assert driven.state.reading.pushed
