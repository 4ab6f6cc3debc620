"""The guard process's decisions, on a Kobuki's wire: when commands pass, when the wheels are at zero, what is sent."""

from __future__ import annotations

import math
from typing import Any

import pytest
from emulated_base import Bench

from drivers.kobuki.emulator import EmulatedKobuki
from drivers.kobuki.protocol import BaseControl, encode
from drivers.kobuki.wire import KobukiWire
from drivers.serial_base.emulator import Fault, QuantizedSpeed, Rebooting, SlowReplies
from drivers.serial_base.messages import EMERGENCY_STOP, RELEASE, STOP, Answer, Request, State, Trouble, pack, unpack
from drivers.serial_base.settings import GuardSettings
from drivers.serial_base.wire import Reading
from drivers.serial_wire.faults import Silent
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Halt
from robot_runtime.safety.guard import GuardLimits

STOP_BYTES = encode(BaseControl(0, 0))
LIMITS = GuardLimits(0.7, 3.0, 1.0, 7.0)


def bench(*faults: Fault, **options: Any) -> Bench:
    return Bench(KobukiWire(), EmulatedKobuki, *faults, **options)


def time_to_zero_s(driven: Bench, within_s: float = 2.0) -> float:
    """Seconds until the firmware is commanded to stand."""
    begin_ns = driven.now_ns
    while driven.device.velocity.linear_m_s != 0:
        driven.run(0.001)
        assert driven.now_ns - begin_ns < within_s * 1e9
    return (driven.now_ns - begin_ns) / 1e9


def test_rvd_559_a_command_expires_after_0_2_s() -> None:
    """Robot Vulnerability Database, entry 559: kobuki_node and its multiplexer hold the last command for up to 2 s."""
    driven = bench()
    driven.run(1.0, 0.2)
    assert time_to_zero_s(driven) <= 0.22
    assert driven.run(0.1).halt is Halt.EXPIRED


def test_contact_stops_within_the_sensors_period() -> None:
    driven = bench()
    driven.run(1.0, 0.3)
    driven.body.wall_x_m = driven.body.pose.x_m + 0.18
    driven.run(0.001, 0.3)
    begin_ns = driven.now_ns
    while driven.device.velocity.linear_m_s > 0:
        driven.run(0.001, 0.3)
    assert (driven.now_ns - begin_ns) / 1e6 <= 20 + 8 + 1 + 1, "period, frame, command, and a step"
    assert driven.run(0.2, 0.3).halt is Halt.CONTACT


def test_kobuki_109_a_silent_base_is_sent_zeros() -> None:
    """The vendor's driver notices after seconds that its base is silent; here it is 0.1 s."""
    driven = bench(Silent(1.0, 2.0))
    driven.run(1.15, 0.2)
    driven.sent = b""
    assert driven.run(0.5, 0.2).halt is Halt.NO_FEEDBACK
    assert driven.sent.count(STOP_BYTES) >= 20
    driven.run(0.5)
    assert driven.run(0.3, 0.2).halt is Halt.NONE


def test_a_base_that_was_rebooted_stands_until_a_new_command() -> None:
    driven = bench(Rebooting(1.0, 1.5))
    driven.run(1.2, 0.2)
    before = driven.state.reading
    after = driven.run(0.5).reading
    assert driven.device.velocity.linear_m_s == 0
    assert after.x_m == pytest.approx(before.x_m, abs=0.01)
    assert driven.run(0.5, 0.2).reading.x_m > after.x_m


def test_late_replies_hold_the_wheels_and_commands_pass_again_afterwards() -> None:
    driven = bench(SlowReplies(1.0, 2.0, by_s=0.3))
    driven.run(1.2, 0.2)
    assert driven.device.velocity.linear_m_s == 0
    driven.run(1.5, 0.2)
    assert driven.device.velocity.linear_m_s == pytest.approx(0.2)


def test_a_coarse_speed_controller_is_emulated() -> None:
    coarse = bench(QuantizedSpeed(quantum_m_s=0.1))
    coarse.run(2.0, 0.13)
    assert coarse.state.reading.linear_m_s == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_command_that_is_not_finite_is_refused_with_wheels_at_zero(value: float) -> None:
    driven = bench()
    driven.run(1.0, 0.2)
    answer = driven.command(value)
    assert answer.error is not None
    assert "finite" in answer.error[0]
    assert driven.sent.endswith(STOP_BYTES)
    assert driven.command(0.1, value).error is not None


def test_a_command_out_of_range_is_limited() -> None:
    driven = bench()
    driven.run(2.0, 1e9)
    assert driven.device.velocity.linear_m_s == pytest.approx(0.7)


def test_requests_stop_and_hold() -> None:
    driven = bench()
    driven.run(1.0, 0.2)
    for kind, halt in ((STOP, Halt.NONE), (EMERGENCY_STOP, Halt.E_STOP), (RELEASE, Halt.NONE)):
        answer = driven.guard.handle(Request(kind, 7, driven.now_ns), driven.now_ns, lambda: 3)
        assert (answer.number, answer.linear_m_s, answer.halt, answer.written) == (7, 0.0, halt.value, 3)
        assert driven.sent.endswith(STOP_BYTES)


def test_a_burst_of_commands_does_not_fill_the_line() -> None:
    driven = bench()
    driven.run(0.5, 0.2)
    driven.sent = b""
    for number in range(500):
        driven.command(0.1 + number / 5000)
    assert len(driven.sent) <= 2 * len(STOP_BYTES)


def test_firmware_that_is_too_old_is_a_fault_with_wheels_at_zero() -> None:
    old = bench(firmware="1.1.0")
    old.run(1.0, 0.2)
    assert isinstance(old.wire.fault, DeviceFault)
    assert "1.1.0" in old.wire.fault.message
    assert "flash" in old.wire.fault.remedy
    assert old.device.velocity.linear_m_s == 0


def test_messages_come_back() -> None:
    messages = [
        Request("command", 4, 123, (0.1, -2.0)),
        Answer(4, 0.1, 0.0, "none", 12, ("message", "remedy")),
        State(5, Reading(7, bumper=2, battery_v=15.0, battery_fraction=0.5), Halt.CONTACT, "hold", 1, 2, "fifo"),
        Trouble("message", "remedy", True),
    ]
    found = [unpack(pack(message)) for message in messages]
    assert found[0] == messages[0]
    assert found[2:] == messages[2:]
    assert isinstance(found[1], Answer)
    assert tuple(found[1].error or ()) == ("message", "remedy")
    settings = GuardSettings("drivers.kobuki.wire:KobukiWire", "/dev/kobuki", LIMITS, 1, e_stop=True)
    assert GuardSettings.unpack(settings.pack()) == settings
    assert isinstance(settings.make_wire(), KobukiWire)
