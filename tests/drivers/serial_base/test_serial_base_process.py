"""The guard process in real time: it stops the wheels whatever dies, is stopped, or is pulled out."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from emulated_base import INFO, another_device, comes_to_rest, drive, in_real_time
from kinematic_body import KinematicBody
from raising import raises_naming

from drivers.kobuki.emulator import EmulatedKobuki
from drivers.kobuki.serial_port import KOBUKI
from drivers.serial_base.base import GuardProcessBase
from drivers.serial_base.emulator import Sensed
from drivers.serial_base.guard_link import GuardLink
from drivers.serial_base.messages import MAX_PACKET, RELEASE, STOP, Answer, Request, State, unpack
from drivers.serial_base.process import GuardProcess
from drivers.serial_base.settings import GuardSettings
from drivers.serial_base.wire import Reading
from drivers.serial_wire.faults import Silent, Unplugged
from drivers.serial_wire.port import Port
from drivers.serial_wire.pty_emulation import Pty
from robot_runtime.common.clock import NS_PER_S, SystemClock, wait_for
from robot_runtime.errors import DeviceFault, NotConnected, RuntimeFault, StaleData
from robot_runtime.hal import Halt, Velocity
from robot_runtime.safety.guard import GuardLimits

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_real_time")]
WIRE = "drivers.kobuki.wire:KobukiWire"
FORWARD = Velocity(0.2, 0.0)
PATIENCE_S = 20.0

OnFloor = tuple[GuardProcessBase, KinematicBody]


@pytest.fixture
def on_floor(tmp_path: Path) -> Iterator[OnFloor]:
    with in_real_time(EmulatedKobuki, WIRE, tmp_path) as made:
        yield made


def fault_of(base: GuardProcessBase) -> RuntimeFault:
    """The error that the base's state comes to raise."""

    def probe() -> RuntimeFault | None:
        try:
            base.state(0.5)
        except RuntimeFault as error:
            return error
        return None

    found = wait_for(SystemClock(), probe, PATIENCE_S, 0.01)
    assert found is not None
    return found


def test_the_process_imports_pyserial_and_no_other_library() -> None:
    code = (
        "import sys\nbefore = set(sys.modules)\n"
        "import drivers.serial_base.process, drivers.kobuki.wire, drivers.create2.wire\n"
        "print(*{name.partition('.')[0] for name in {*sys.modules} - before} - {*sys.stdlib_module_names})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) <= {"drivers", "robot_runtime", "serial"}


LARGE = {"numpy", "torch", "cv2", "mujoco", "scipy", "onnxruntime"}


def loaded_by(process: int) -> list[str]:
    """Parts of the paths of all libraries that a process has loaded."""
    return Path(f"/proc/{process}/maps").read_text(encoding="utf-8").replace("/", " ").split()


def test_the_base_drives_and_its_port_has_one_owner(on_floor: OnFloor) -> None:
    base, body = on_floor
    with pytest.raises(NotConnected):
        base.command(FORWARD)
    with base:
        drive(base, FORWARD, 0.8)
        assert body.pose.x_m > 0.05
        assert not LARGE & set(loaded_by(base.guard_process_id))
        with raises_naming(DeviceFault, "base") as caught:
            Port(str(base._settings.port), 115_200, KOBUKI)
        assert "end the program" in caught.value.remedy
        base.emergency_stop()
        assert base.state(0.5).halt is Halt.E_STOP
        assert base.command(FORWARD) == Velocity()
        base.release_emergency_stop()
        newest = base.newest
        assert newest is not None
        assert newest.missed == 0
    assert comes_to_rest(body, 1.0)


def test_killed_guard_process_leaves_the_wheels_at_zero_and_is_restarted_cleanly(on_floor: OnFloor) -> None:
    base, body = on_floor
    with base:
        drive(base, FORWARD, 0.5)
        os.kill(base.guard_process_id, signal.SIGKILL)
        fault = fault_of(base)
        assert isinstance(fault, DeviceFault)
        assert "wheels were stopped" in fault.message
        assert "connect again" in fault.remedy
        assert comes_to_rest(body, 1.0)
        with pytest.raises(DeviceFault):
            base.command(FORWARD)
        base.stop()
        base.close()
        base.connect()
        drive(base, FORWARD, 0.3)
        assert base.state(0.5).velocity.linear_m_s > 0


def test_guard_process_that_is_stopped_is_ended_and_the_wheels_are_at_zero(on_floor: OnFloor) -> None:
    base, body = on_floor
    with base:
        drive(base, FORWARD, 0.5)
        os.kill(base.guard_process_id, signal.SIGSTOP)
        fault = fault_of(base)
        assert isinstance(fault, (DeviceFault, StaleData))
        assert comes_to_rest(body, 2.0)
        assert "guard process" in fault_of(base).message


def test_guard_process_stops_the_wheels_on_its_own_sigterm(on_floor: OnFloor) -> None:
    base, body = on_floor
    with base:
        drive(base, FORWARD, 0.5)
        os.kill(base.guard_process_id, signal.SIGTERM)
        assert "SIGTERM" in fault_of(base).message
        assert comes_to_rest(body, 1.0)


class ButtonedKobuki(EmulatedKobuki):
    """A Kobuki whose button is pressed by hand."""

    pressed = False

    def message(self, sensed: Sensed, now_ns: int) -> bytes:
        return super().message(sensed._replace(buttons=int(self.pressed)), now_ns)


def test_an_emergency_stop_by_its_button_holds_in_the_next_runtime_until_the_operator_releases_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = tmp_path / "memory" / "e_stop"

    def runtime() -> GuardProcessBase:
        settings = replace(made._settings, stop_buttons=1, e_stop_file=str(memory))
        return GuardProcessBase(SystemClock(), INFO, settings, 0.05)

    with in_real_time(ButtonedKobuki, WIRE, tmp_path) as (made, body):
        with runtime() as base:
            drive(base, FORWARD, 0.3)
            monkeypatch.setattr(ButtonedKobuki, "pressed", True)
            assert wait_for(SystemClock(), lambda: memory.exists() or None, PATIENCE_S, 0.01)
            monkeypatch.setattr(ButtonedKobuki, "pressed", False)
            assert base.command(FORWARD) == Velocity()
        for ending in (GuardProcessBase.close, lambda base: os.kill(base.guard_process_id, signal.SIGKILL)):
            with runtime() as base:
                assert base.state(5.0).halt is Halt.E_STOP
                ending(base)
        assert comes_to_rest(body, 1.0)
        with runtime() as base:
            base.release_emergency_stop()
            drive(base, FORWARD, 0.3)
            assert base.state(0.5).halt is Halt.NONE
        assert not memory.exists()


def test_a_stop_that_was_released_is_not_engaged_anew_when_the_base_is_plugged_in_again() -> None:
    terminal, (near, far) = Pty(), socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    settings = GuardSettings(WIRE, terminal.path, GuardLimits.of(INFO), e_stop=True, lockstep=True)
    with near, far:
        process = GuardProcess(settings, far)
        process._open(0)
        assert process._guard.e_stop
        process._guard.handle(Request(RELEASE, 1, 0), 0, lambda: 0)
        process._lose(DeviceFault("pulled out", "plug it in"), 0)
        process._open(1)
        assert not process._guard.e_stop
    terminal.unplug()


def test_a_memory_that_cannot_be_written_is_told_and_the_stop_holds(
    on_floor: OnFloor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made, _ = on_floor
    (tmp_path / "file").touch()
    settings = replace(made._settings, e_stop_file=str(tmp_path / "file" / "e_stop"))
    with GuardProcessBase(SystemClock(), INFO, settings, 0.05) as base:
        base.emergency_stop()
        assert wait_for(SystemClock(), lambda: "cannot be written" in caplog.text or None, PATIENCE_S, 0.01)
        assert base.command(FORWARD) == Velocity()


RUNTIME = """
import sys, time
from drivers.serial_base.base import GuardProcessBase
from drivers.serial_base.settings import GuardSettings
from robot_runtime.common.clock import SystemClock
from robot_runtime.hal import BaseInfo, Velocity
from robot_runtime.safety.guard import GuardLimits
info = BaseInfo("base", 0.18, 0.7, 3.0, 1.0, 7.0, 50.0)
base = GuardProcessBase(SystemClock(), info, GuardSettings(sys.argv[1], sys.argv[2], GuardLimits.of(info)), 0.05)
base.connect()
while True:
    base.command(Velocity(0.2, 0.0))
    print(base.guard_process_id, flush=True)
    time.sleep(0.02)
"""


def test_runtime_killed_in_mid_motion_leaves_the_wheels_at_zero_and_the_port_free(
    on_floor: OnFloor, tmp_path: Path
) -> None:
    base, body = on_floor
    with subprocess.Popen([sys.executable, "-c", RUNTIME, WIRE, str(tmp_path / "base")], stdout=subprocess.PIPE) as run:
        assert wait_for(SystemClock(), lambda: body.pose.x_m > 0.02 or None, PATIENCE_S, 0.02)
        run.kill()
    assert comes_to_rest(body, 1.0)
    with base:  # as soon as the guard process has sent its last zeros
        drive(base, FORWARD, 0.3)


def test_a_stopped_guard_process_goes_on_when_its_runtime_is_killed_and_stops_the_wheels(
    on_floor: OnFloor, tmp_path: Path
) -> None:
    base, body = on_floor
    with subprocess.Popen([sys.executable, "-c", RUNTIME, WIRE, str(tmp_path / "base")], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        guard = int(run.stdout.readline())
        assert wait_for(SystemClock(), lambda: body.pose.x_m > 0.02 or None, PATIENCE_S, 0.02)
        os.kill(guard, signal.SIGSTOP)
        run.kill()  # before it finds its guard process stopped
    assert comes_to_rest(body, 2.0)
    with base:
        drive(base, FORWARD, 0.3)


def test_a_runtime_that_was_stopped_for_long_gets_its_answer_when_it_goes_on() -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    far.settimeout(60.0)  # as rospy does with every new socket of its process
    settings = GuardSettings(WIRE, "/dev/none", GuardLimits.of(INFO))
    with near, far:
        process = GuardProcess(settings, far)
        state, answer = State(1, Reading(0), Halt.NONE), Answer(7, 0.0, 0.0, "none", 3)
        for _ in range(10_000):  # more than the socket holds
            process._tell(state)
        process._tell(answer)
        near.setblocking(False)
        received = []
        with suppress(BlockingIOError):
            while True:
                received.append(unpack(near.recv(MAX_PACKET)))
                process._deliver()
        assert len(received) < 10_000
        assert {type(message) for message in received[:-1]} == {State}
        assert received[-1] == answer


def test_a_pause_of_the_runtime_itself_is_no_silence_of_the_guard_process(monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link = GuardLink(GuardSettings(WIRE, "/dev/none", GuardLimits.of(INFO)), lambda _: None, lambda _: None)
    now_ns = [0]
    monkeypatch.setattr(link, "_clock", SimpleNamespace(now_ns=lambda: now_ns[0]))
    monkeypatch.setattr(link, "_link", near)

    def wait() -> None:
        if now_ns[0]:
            link._answer = Answer(1, 0.1, 0.0, "none", 3)
        now_ns[0] += 10 * NS_PER_S  # stopped, and continued

    monkeypatch.setattr(link, "_wait", wait)
    with near, far:
        assert link.request(STOP, 0).linear_m_s == 0.1


def test_unplugged_in_mid_motion_and_plugged_in_again(tmp_path: Path) -> None:
    with in_real_time(EmulatedKobuki, WIRE, tmp_path, Unplugged(4.0, 5.0)) as (base, _), base:
        troubles: set[str] = set()

        def drives_again() -> bool | None:
            try:
                base.command(FORWARD)
                moves = base.state(0.15).velocity.linear_m_s > 0.1
            except StaleData as error:
                troubles.add(error.message)
                return None
            return True if moves and troubles else None

        assert wait_for(SystemClock(), drives_again, PATIENCE_S, 0.02)
        assert any("was disconnected" in trouble or "no such device" in trouble for trouble in troubles)


def test_a_start_waits_for_a_base_that_is_silent_for_a_while(tmp_path: Path) -> None:
    with in_real_time(EmulatedKobuki, WIRE, tmp_path, Silent(0.0, 3.0)) as (base, _), base:
        assert base.state(0.15).velocity == Velocity()


def test_rvd_556_a_base_that_is_switched_off_is_an_error_at_connecting(tmp_path: Path) -> None:
    """Robot Vulnerability Database, entry 556: kobuki_node starts normally with the base switched off."""

    with in_real_time(EmulatedKobuki, WIRE, tmp_path, Silent()) as (base, _):
        with raises_naming(DeviceFault, "silent") as caught:
            base.connect()
        assert "switch the Kobuki on" in caught.value.remedy
        base.close()


def test_another_device_on_the_port_is_an_error_at_connecting(tmp_path: Path) -> None:
    with another_device(tmp_path / "base") as path:
        settings = GuardSettings(WIRE, path, GuardLimits.of(INFO))
        with raises_naming(DeviceFault, "none of them was a Kobuki's") as caught:
            GuardProcessBase(SystemClock(), INFO, settings, 0.05).connect()
    assert "find-port" in caught.value.remedy


def test_missing_port_and_port_held_by_another_are_errors_at_connecting(on_floor: OnFloor, tmp_path: Path) -> None:

    base, _ = on_floor
    holder = Port(str(tmp_path / "base"), 115_200, KOBUKI)
    with raises_naming(DeviceFault, "base") as caught:
        base.connect()
    assert "end the program" in caught.value.remedy
    holder.close()
    missing = replace(base._settings, port=str(tmp_path / "none"))
    with raises_naming(DeviceFault, "none") as caught:
        GuardProcessBase(SystemClock(), base.info, missing, 0.05).connect()
    assert "plug the Kobuki in" in caught.value.remedy
