"""Faults of a base behind a real guard process, in simulated time: what the runtime is told, and what the wheels do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from kinematic_body import KinematicBody
from raising import raises_naming

from drivers.create2.driver import CREATE_2_BASE, Create2Options
from drivers.kobuki.driver import KOBUKI_BASE, KobukiOptions
from drivers.serial_base.base import GuardProcessBase
from drivers.serial_base.driver import BaseKind, BaseOptions
from drivers.serial_base.emulator import EmulatorOptions, Fault, LowVoltage, OverCurrent, Rebooting
from drivers.serial_wire.faults import Silent, Unplugged
from robot_runtime.common.clock import SimulatedClock
from robot_runtime.errors import DeviceFault, LowBattery, StaleData
from robot_runtime.hal import Velocity
from robot_runtime.hal.simulated_motors import MotorOptions
from tests.benchmarks.locobot.motion import make_emulated_base

FORWARD = Velocity(0.2, 0.0)

pytestmark = pytest.mark.slow  # a process each


class Driven:
    """A connected base and its simulated time."""

    def __init__(self, clock: SimulatedClock, base: GuardProcessBase, body: KinematicBody) -> None:
        self.clock, self.base, self.body = clock, base, body

    def drive(self, seconds: float) -> None:
        """Repeat a command every 20 ms."""
        for _ in range(round(seconds / 0.02)):
            self.base.command(FORWARD)
            self.clock.sleep(0.02)


@contextmanager
def driven(*faults: Fault) -> Iterator[Driven]:
    with connected(KOBUKI_BASE, KobukiOptions(emulator=EmulatorOptions(faults=faults))) as robot:
        yield robot


@contextmanager
def connected(kind: BaseKind, options: BaseOptions) -> Iterator[Driven]:
    clock, base, body = make_emulated_base(kind, options, MotorOptions())
    with base:
        clock.sleep(0.5)
        yield Driven(clock, base, body)


def test_a_motion_under_way_is_finished_with_a_critical_battery_and_the_next_refused() -> None:
    with driven(LowVoltage(1.0, volts=13.0)) as robot:
        robot.drive(2.0)
        assert robot.base.state(0.1).battery_fraction < 0.05
        assert robot.body.pose.x_m > 0.3
        robot.base.stop()
        with raises_naming(LowBattery, "critical") as caught:
            robot.base.command(FORWARD)
        assert "charge" in caught.value.remedy
        robot.base.command(Velocity())


def test_the_doctor_is_told_the_firmware_and_what_the_line_lost() -> None:
    with driven() as robot:
        found = {finding.what: finding.detail for finding in robot.base.diagnose()}
    assert found["firmware"] == "1.2.0"
    assert found["line"].startswith("0 readings lost")


def test_over_current_refuses_motion_with_a_reason() -> None:
    with driven(OverCurrent(1.0, 1.5)) as robot:
        robot.drive(0.4)
        with raises_naming(DeviceFault, "draws more than 3 A"):
            robot.drive(0.5)
        robot.clock.sleep(0.5)
        robot.drive(0.2)


@pytest.mark.parametrize(("kind", "make"), [(KOBUKI_BASE, KobukiOptions), (CREATE_2_BASE, Create2Options)])
def test_a_base_that_was_restarted_drives_on_when_it_is_commanded_anew(
    kind: BaseKind, make: Callable[..., BaseOptions]
) -> None:
    with connected(kind, make(emulator=EmulatorOptions(faults=(Rebooting(1.0, 1.8),)))) as robot:
        robot.drive(0.4)
        robot.clock.sleep(2.0)
        before_m = robot.body.pose.x_m
        assert robot.base.state(0.1).velocity.linear_m_s == 0
        robot.drive(0.5)
        assert robot.body.pose.x_m > before_m + 0.02
        assert {found.what: found.detail for found in robot.base.diagnose()}["firmware"] in ("1.2.0", "3.3.0")


def test_firmware_that_is_too_old_is_refused() -> None:
    options = KobukiOptions(emulator=EmulatorOptions(firmware="1.1.0"))
    with connected(KOBUKI_BASE, options) as robot:
        with raises_naming(DeviceFault, "1.1.0") as caught:
            robot.base.state(0.1)
        assert "flash" in caught.value.remedy
        assert robot.body.pose.x_m == 0


def test_a_create_2_that_was_switched_on_with_clean_held_is_found_at_its_other_baud_rate() -> None:
    with connected(CREATE_2_BASE, Create2Options(emulator=EmulatorOptions(baud_rate=19_200))) as robot:
        robot.clock.sleep(1.0)
        robot.drive(0.5)
        assert robot.body.pose.x_m > 0.02


@pytest.mark.parametrize("fault", [Unplugged(1.0, 1.6), Silent(1.0, 1.6)])
def test_a_base_that_is_gone_for_a_moment_is_stale_and_drives_on_afterwards(fault: Fault) -> None:
    with driven(fault) as robot:
        robot.drive(0.4)
        robot.clock.sleep(0.5)
        with pytest.raises(StaleData):
            robot.base.state(0.1)
        robot.clock.sleep(1.0)
        before_m = robot.body.pose.x_m
        assert robot.base.state(0.1).velocity.linear_m_s == 0, "what was commanded before is forgotten"
        robot.drive(0.5)
        assert robot.body.pose.x_m > before_m + 0.02


def test_kobuki_174_a_base_that_stays_silent_says_what_to_do() -> None:
    """Without data, the vendor's driver only says that it waits for them."""
    with driven(Silent()) as robot:
        robot.clock.sleep(1.0)
        with raises_naming(StaleData, "silent") as caught:
            robot.base.state(0.1)
        assert "switch the Kobuki on" in caught.value.remedy
