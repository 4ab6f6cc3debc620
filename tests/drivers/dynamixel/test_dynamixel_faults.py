"""Faults of servos and of the wire, and the known defects of other drivers, each by a name of its own."""

from __future__ import annotations

import pytest
from dynamixel_rig import HeadRig
from dynamixel_sdk import COMM_SUCCESS
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from drivers.dynamixel import protocol
from drivers.dynamixel.bus import check_reply
from drivers.dynamixel.driver import DynamixelHead
from drivers.dynamixel.protocol import ALERT, Error, HardwareError
from robot_runtime.errors import DeviceFault, StaleData


def rig_with(*faults: dict[str, object], **options: object) -> HeadRig:
    return HeadRig(emulator={"faults": list(faults)}, **options)


# --- known defects of other drivers ---------------------------------------------------------------------------------


def test_dynamixel_alert_bit_is_no_failed_instruction() -> None:
    """Drivers that take any nonzero error byte for a failure give up a servo whose voltage is low for a moment."""
    check_reply(8, "write", ALERT)
    rig = rig_with({"kind": "latched_error", "bits": int(HardwareError.INPUT_VOLTAGE)})
    with rig.head:
        assert not rig.look(0.2, 0.2).moving
        assert [state.errors for state in rig.head.servo_states] == [HardwareError.INPUT_VOLTAGE] * 2
    with raises_naming(DeviceFault, "servo 8 refuses to write", "limit error"):
        check_reply(8, "write", ALERT | Error.LIMIT)


def test_rustypot_misparse_data_behind_an_alert_is_kept() -> None:
    """rustypot 1.6.0 takes the alert bit for a failure and drops the data of the reply."""
    rig = rig_with({"kind": "latched_error", "id": 10, "bits": 1})
    with rig.head:
        rig.look(0.3, 0.0)
        assert rig.head.state(0.2).pan_rad == pytest.approx(0.3, abs=0.002)


def test_sdk_defect_a_refused_read_hands_over_no_checksum_as_data() -> None:
    """The official library returns the two bytes of the checksum as the data of a reply without data."""
    rig = HeadRig()
    bus = rig.link.open()
    data, result, error = bus._packets.readTxRx(bus._port, 10, 300, 2)
    assert (result, error, len(data)) == (COMM_SUCCESS, Error.RANGE, 2), "the defect is still there"
    with raises_naming(DeviceFault, "servo 10", "range error"):
        bus.read(10, protocol.Register(300, 2))
    rig.link.close()


# --- the wire -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [{"kind": "noisy"}, {"kind": "dropped_bytes", "probability": 0.3}])
def test_bad_packets_never_end_a_run(fault: dict[str, object]) -> None:
    rig = rig_with({**fault, "from_s": 0.5})
    with rig.head:
        for pan_rad in (0.4, -0.4, 0.0):
            assert not rig.look(pan_rad, 0.0).moving
        assert rig.head.retries > 10


def test_replies_that_are_late_are_not_taken_for_the_next_ones() -> None:
    rig = rig_with({"kind": "slow", "from_s": 0.5, "to_s": 0.62})
    with rig.head:
        rig.clock.sleep(0.4)
        rig.head.command(1.0, 0.0)
        before_rad = 0.0
        for _ in range(60):
            rig.clock.sleep(0.02)
            pan_rad = rig.head.state(1.0).pan_rad
            assert pan_rad >= before_rad - 1e-9, "an old position"
            before_rad = pan_rad
        assert not rig.look(1.0, 0.0).moving


def test_an_unplugged_adapter_is_an_error_until_it_is_connected_anew() -> None:
    rig = rig_with({"kind": "unplugged", "from_s": 1.0, "to_s": 1.5})
    rig.head.connect()
    rig.head.command(0.5, 0.0)
    rig.clock.sleep(1.2)
    with raises_naming(DeviceFault, "/dev/") as caught:
        rig.head.state(0.2)
    assert "plug it in" in caught.value.remedy
    rig.head.close()
    rig.clock.sleep(0.5)
    with rig.head:
        assert not rig.look(0.1, 0.0).moving


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_no_noise_makes_an_angle_that_is_not_there(seed: int) -> None:
    rig = rig_with({"kind": "noisy", "from_s": 0.1}, seed=seed)
    with rig.head:
        for _ in range(15):
            rig.clock.sleep(0.02)
            assert rig.head.state(1.0).pan_rad == pytest.approx(0.0, abs=0.002)


# --- servos ---------------------------------------------------------------------------------------------------------


def test_a_silent_servo_is_named() -> None:
    rig = rig_with({"kind": "silent", "id": 11, "from_s": 1.0, "to_s": 2.0})
    with rig.head:
        rig.clock.sleep(1.5)
        with raises_naming(StaleData, "servo 11 does not answer") as caught:
            rig.head.state(0.2)
        assert "cable" in caught.value.remedy
        rig.clock.sleep(1.0)
        assert not rig.look(0.2, 0.1).moving, "it goes on by itself"


def test_a_goal_given_to_a_silent_servo_is_sent_once_it_answers() -> None:
    rig = rig_with({"kind": "silent", "from_s": 1.0, "to_s": 1.1}, {"kind": "goal_refused", "from_s": 1.0, "to_s": 1.1})
    with rig.head:
        rig.clock.sleep(1.0)
        assert rig.look(0.3, 0.0).pan_rad == pytest.approx(0.3, abs=0.005)


def test_no_power_is_named_when_connecting() -> None:
    rig = rig_with({"kind": "silent"})
    with raises_naming(DeviceFault, "servo 10 does not answer") as caught:
        rig.head.connect()
    assert "power supply" in caught.value.remedy


@pytest.mark.parametrize(
    ("bits", "name"), [(HardwareError.OVERLOAD, "overload"), (HardwareError.OVERHEATING, "overheating")]
)
def test_a_servo_in_error_is_a_fault_with_its_remedy(bits: HardwareError, name: str) -> None:
    rig = rig_with({"kind": "latched_error", "id": 11, "bits": int(bits), "from_s": 1.0})
    with rig.head:
        rig.clock.sleep(1.1)
        for use in (lambda: rig.head.state(0.2), lambda: rig.head.command(0.0, 0.0)):
            with raises_naming(DeviceFault, "servo 11", "switched itself off", name) as caught:
                use()
            assert "reboot: true" in caught.value.remedy
    with raises_naming(DeviceFault, name):
        rig.head.connect()


def test_a_latched_error_is_cleared_by_a_restart_if_so_chosen() -> None:
    rig = HeadRig(reboot=True)
    rig.tilt.latch(HardwareError.OVERLOAD)
    with rig.head:
        assert not rig.look(0.0, 0.2).moving


def test_a_servo_that_restarts_in_mid_run_is_a_fault() -> None:
    rig = rig_with({"kind": "restarted", "id": 10, "from_s": 1.0})
    with rig.head:
        rig.clock.sleep(1.1)
        with raises_naming(DeviceFault, "servo 10", "no torque") as caught:
            rig.head.state(0.2)
        assert "power supply" in caught.value.remedy


def test_a_goal_that_is_not_taken_over_is_a_fault_and_not_ignored() -> None:
    rig = rig_with({"kind": "goal_refused", "id": 11, "from_s": 1.0})
    with rig.head:
        rig.clock.sleep(1.0)
        rig.head.command(0.1, 0.1)
        rig.clock.sleep(0.5)
        with raises_naming(DeviceFault, "servo 11", "does not take its goal over"):
            rig.head.state(0.2)


def test_one_lost_goal_is_sent_again() -> None:
    rig = rig_with({"kind": "goal_refused", "from_s": 1.0, "to_s": 1.03})
    with rig.head:
        rig.clock.sleep(1.0)
        assert rig.look(0.2, 0.0).pan_rad == pytest.approx(0.2, abs=0.005)


def test_a_hot_servo_begins_no_motion() -> None:
    rig = rig_with({"kind": "hot", "id": 10, "temperature_c": 66, "from_s": 1.0})
    with rig.head:
        rig.clock.sleep(1.1)
        with raises_naming(DeviceFault, "servo 10", "66 °C", "65 °C"):
            rig.head.command(0.1, 0.0)
        assert rig.head.state(0.2).pan_rad == pytest.approx(0.0, abs=0.002)


def test_closing_a_dead_bus_raises_nothing() -> None:
    rig = rig_with({"kind": "silent", "from_s": 1.0})
    rig.head.connect()
    rig.clock.sleep(1.1)
    rig.head.close()
    assert isinstance(rig.head, DynamixelHead)


def test_a_silent_servo_does_not_keep_the_other_from_being_left_in_order() -> None:
    rig = rig_with({"kind": "silent", "id": 10, "from_s": 1.0}, release=True)
    rig.head.connect()
    rig.clock.sleep(1.1)
    rig.head.close()
    assert rig.tilt.get(protocol.TORQUE) == 0


def test_a_reply_that_contains_a_header_is_read() -> None:
    rig = HeadRig()
    with rig.head:
        rig.pan.set(protocol.Register(128, 4), -1)
        angle_rad = protocol.angle_rad_of(0x07FD)
        state = rig.look(angle_rad, 0.0)
        assert b"\xff\xff\xfd" in bytes(rig.pan.read(protocol.STATE)[1])
        assert state.pan_rad == pytest.approx(angle_rad, abs=0.001)
        assert rig.head.retries == 0
