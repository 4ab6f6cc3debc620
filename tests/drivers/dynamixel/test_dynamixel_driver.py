"""The pan-tilt's driver: preparing the servos, limits, motion and its end, in lockstep and in real time."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import pytest
from dynamixel_rig import HeadRig, servos_in_real_time
from emulated_base import another_device
from raising import raises_naming

from drivers.dynamixel import bus, protocol
from drivers.dynamixel.driver import DynamixelHead
from drivers.dynamixel.emulator import emulated_servos
from drivers.dynamixel.link import PortLink
from drivers.dynamixel.options import DynamixelOptions
from drivers.dynamixel.protocol import counts_of
from drivers.dynamixel.variants import VARIANTS
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.common.host_checks import Status
from robot_runtime.errors import ConfigError, DeviceFault, InvalidCommand, NotConnected
from robot_runtime.motion.controller import MotionController
from robot_runtime.records import Outcome
from robot_runtime.robots.loader import RobotContext, load_robot

PATIENCE_S = 20.0


def test_up_is_up_on_both_robots() -> None:
    for variant in ("pyrobot", "interbotix"):
        rig = HeadRig(variant=variant, speed_deg_s=90.0)
        with rig.head:
            state = rig.look(0.5, 0.4)
            assert (state.pan_rad, state.tilt_rad) == pytest.approx((0.5, 0.4), abs=0.001)
            assert rig.tilt.get(protocol.POSITION) == counts_of(-0.4), "the joint counts downward"


def test_the_servos_have_the_profile_the_watchdog_and_torque_while_connected() -> None:
    rig = HeadRig(variant="interbotix")
    with rig.head:
        for servo in (rig.pan, rig.tilt):
            assert servo.get(protocol.PROFILE_VELOCITY) == 131
            assert servo.get(protocol.PROFILE_ACCELERATION) == 15
            assert servo.get(protocol.BUS_WATCHDOG) == 10, "200 ms in units of 20 ms"
            assert servo.get(protocol.TORQUE) == 1
    assert rig.pan.get(protocol.BUS_WATCHDOG) == 0, "the servo holds the camera afterwards"
    assert rig.pan.get(protocol.TORQUE) == 1


def test_the_torque_is_released_if_so_chosen() -> None:
    rig = HeadRig(release=True)
    with rig.head:
        pass
    assert rig.tilt.get(protocol.TORQUE) == 0


def test_switching_on_does_not_turn_the_head() -> None:
    rig = HeadRig()
    rig.pan.set(protocol.GOAL_POSITION, 1100)
    with rig.head:
        rig.clock.sleep(1.0)
        assert rig.head.state(0.2).pan_rad == pytest.approx(0.0, abs=0.002)


def test_a_goal_that_the_servo_cannot_reach_ends_the_look_with_the_remaining_error() -> None:
    rig = HeadRig(emulator={"faults": [{"kind": "stuck", "id": 11, "from_s": 1.1}]})
    with rig.robot:
        rig.clock.sleep(1.0)
        motion = MotionController(rig.clock, rig.robot.base, rig.head)
        result = motion.execute(Displacement(tilt_rad=math.radians(30)))
    assert result.outcome is Outcome.TIMED_OUT
    error_deg = float(result.detail.split("° from its goal")[0].split()[-1])
    assert error_deg == pytest.approx(math.degrees(result.measured.tilt_rad) - 30, abs=0.1)
    assert error_deg < -5


@pytest.mark.parametrize("angle", [math.nan, math.inf])
def test_angles_that_are_not_finite_are_refused(angle: float) -> None:
    rig = HeadRig()
    with rig.head, pytest.raises(InvalidCommand):
        rig.head.command(angle, 0.0)


def test_nothing_works_before_connect_and_after_close() -> None:
    rig = HeadRig()
    with pytest.raises(NotConnected):
        rig.head.state(1.0)
    with rig.head:
        pass
    with pytest.raises(NotConnected):
        rig.head.command(0.0, 0.0)
    rig.head.close()


def test_limits_beyond_the_servos_own_are_refused_at_the_beginning() -> None:
    rig = HeadRig(min_pan_deg=-120.0)
    with raises_naming(DeviceFault, "servo 10", "-90° to 90°", "-120°") as caught:
        rig.head.connect()
    assert "min_pan_deg" in caught.value.remedy


def test_a_goal_beyond_the_limits_is_clipped_and_the_answer_says_so() -> None:
    rig = HeadRig(max_tilt_deg=30.0)
    with rig.head:
        assert rig.head.command(0.0, 1.5) == pytest.approx((0.0, math.radians(30)))


@pytest.mark.slow
def test_the_other_robots_servos_are_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "REPLY_S", 0.4)  # emulated servos of a busy computer
    with servos_in_real_time(*emulated_servos(VARIANTS["interbotix"])) as path:
        options = DynamixelOptions(variant="pyrobot", port=path)
        head = DynamixelHead(SystemClock(), options, PortLink(SystemClock(), options))
        with raises_naming(DeviceFault, "servo 8 does not answer; those that do: 10 and 11") as caught:
            head.connect()
    assert "Interbotix' 10 and 11" in caught.value.remedy


def test_a_servo_with_another_drive_mode_is_refused_or_configured() -> None:
    rig = HeadRig()
    rig.tilt.set(protocol.DRIVE_MODE, 0)
    with raises_naming(DeviceFault, "servo 11", "register 10 is 0") as caught:
        rig.head.connect()
    assert "configure: true" in caught.value.remedy
    willing = HeadRig(configure=True)
    willing.tilt.set(protocol.DRIVE_MODE, 0)
    willing.tilt.set(protocol.TORQUE, 1)  # as another program left it
    with willing.head:
        assert willing.tilt.get(protocol.DRIVE_MODE) == protocol.REVERSED
        assert not willing.look(0.0, 0.2).moving


def test_an_unknown_model_is_refused() -> None:
    rig = HeadRig()
    rig.pan.set(protocol.MODEL, 12)
    with raises_naming(DeviceFault, "servo 10 is a model 12"):
        rig.head.connect()


@pytest.mark.parametrize("option", [{"watchdog_s": 3.0}, {"watchdog_s": 0.03}, {"min_pan_deg": 5.0}, {"pan": 3}])
def test_bad_options_are_refused(option: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        HeadRig(**option)


def test_a_robots_file_names_the_head(tmp_path: Path) -> None:
    file = tmp_path / "robot.yaml"
    head = "{driver: drivers.dynamixel.driver.make_head, options: {port: /dev/ttyUSB7}}"
    file.write_text(f"name: lab\ndriver: drivers.fake.driver.make_robot\nhead: {head}\n", encoding="utf-8")
    robot = load_robot(str(file), RobotContext(None, None, seed=0))
    assert isinstance(robot.head, DynamixelHead)
    with raises_naming(DeviceFault, "/dev/ttyUSB7"):
        robot.connect()


def connected(path: str) -> DynamixelHead:
    options = DynamixelOptions(variant="interbotix", port=path)
    return DynamixelHead(SystemClock(), options, PortLink(SystemClock(), options))


def test_a_thread_keeps_the_servos_going_on_a_real_port() -> None:
    with servos_in_real_time(*emulated_servos(VARIANTS["interbotix"])) as path, connected(path) as head:
        head.command(0.2, -0.1)
        state = wait_for(SystemClock(), lambda: None if head.state(5.0).moving else head.state(5.0), PATIENCE_S, 0.01)
        assert state is not None
        assert (state.pan_rad, state.tilt_rad) == pytest.approx((0.2, -0.1), abs=0.01)
        with raises_naming(DeviceFault, path) as caught:
            connected(path).connect()
        assert "end the program" in caught.value.remedy


def test_another_device_on_the_port_is_an_error_at_connecting(tmp_path: Path) -> None:
    with another_device(tmp_path / "servos") as path, raises_naming(DeviceFault, path, "none of them") as caught:
        connected(path).connect()
    assert "find-port" in caught.value.remedy


def test_a_motion_that_the_watchdog_stopped_does_not_go_on_with_the_next_program() -> None:
    pan, tilt = emulated_servos(VARIANTS["interbotix"])
    pan.set(protocol.TORQUE, 1)
    pan.set(protocol.GOAL_POSITION, 1100)
    pan.set(protocol.BUS_WATCHDOG, protocol.WATCHDOG_TRIPPED)
    with servos_in_real_time(pan, tilt) as path, connected(path):
        assert abs(pan.get(protocol.GOAL_POSITION) - protocol.CENTER) < 20


class StoppedClock(SystemClock):
    """A clock on which nobody wakes up once it is stopped, as in a process that got SIGSTOP."""

    def __init__(self) -> None:
        self.runs = threading.Event()
        self.runs.set()

    def sleep_until(self, deadline_ns: int) -> None:
        self.runs.wait(PATIENCE_S)
        super().sleep_until(deadline_ns)


def test_servos_stop_by_themselves_when_the_program_is_stopped() -> None:
    pan, tilt = emulated_servos(VARIANTS["interbotix"])
    clock, far = StoppedClock(), SystemClock()
    with servos_in_real_time(pan, tilt) as path:
        options = DynamixelOptions(variant="interbotix", port=path, speed_deg_s=15.0, watchdog_s=0.1)
        with DynamixelHead(far, options, PortLink(clock, options)) as head:
            head.command(1.5, 0.0)
            assert wait_for(far, lambda: pan.angle > 2060 or None, PATIENCE_S, 0.005)
            clock.runs.clear()
            assert wait_for(far, lambda: pan.get(protocol.BUS_WATCHDOG) == 255 or None, PATIENCE_S, 0.005)
            stopped_at = pan.angle
            clock.runs.set()
            assert wait_for(far, lambda: pan.get(protocol.BUS_WATCHDOG) == 5 or None, PATIENCE_S, 0.005)
            far.sleep(0.1)
            assert pan.angle == pytest.approx(stopped_at, abs=1.5), "the goal from before does not hold any more"
            assert head.state(5.0).moving
            head.command(0.0, 0.0)
            assert wait_for(far, lambda: pan.angle < stopped_at - 10 or None, PATIENCE_S, 0.005)


@pytest.mark.parametrize(("decivolts", "status"), [(50, Status.FAIL), (95, Status.FAIL), (120, Status.OK)])
def test_a_supply_that_cannot_move_the_head_is_no_ok(decivolts: int, status: Status) -> None:
    rig = HeadRig()
    for servo in (rig.pan, rig.tilt):
        servo.set(protocol.VOLTAGE, decivolts)
    with rig.head:
        rig.look(0.1, 0.1)
        found = rig.head.diagnose()
    assert {finding.status for finding in found} == {status}
    assert all(f"{decivolts / 10:.1f} V" in finding.detail for finding in found)


def test_a_homing_offset_in_a_servo_is_refused_or_removed() -> None:
    rig = HeadRig()
    rig.pan.set(protocol.HOMING_OFFSET, 1024)
    with raises_naming(DeviceFault, "register 20", "1024", "configure: true"):
        rig.head.connect()
    willing = HeadRig(configure=True)
    willing.pan.set(protocol.HOMING_OFFSET, 1024)
    with willing.head:
        assert willing.pan.get(protocol.HOMING_OFFSET) == 0
