"""One owner for each base: locks, orphans, and what stops the wheels when foreign code fails."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from brook_base import BrookWire
from emulated_base import INFO
from raising import raises_naming

from drivers.serial_base import process, tcp
from drivers.serial_base.guard_link import TAKE_OVER_S, GuardLink
from drivers.serial_base.messages import MAX_PACKET, Trouble, unpack
from drivers.serial_base.ownership import OwnerLock, end_orphan
from drivers.serial_base.process import GuardProcess
from drivers.serial_base.settings import GuardSettings
from drivers.serial_base.tcp import SocketTransport, connect_tcp
from drivers.serial_base.wire import Transport
from drivers.serial_wire.port import Attachment, Port, PortInUse
from drivers.serial_wire.pty_emulation import Pty
from robot_runtime.common.clock import NS_PER_S, SystemClock, wait_for
from robot_runtime.errors import DeviceFault
from robot_runtime.safety.guard import GuardLimits

PATIENCE_S = 20.0


class VendorError(Exception):
    """What the library of a base's vendor raises."""


class VendorWire(BrookWire):
    """A wire whose connection is a vendor's library, with failures of its own."""

    failures: list[str]
    sent: list[bytes]

    def __init__(self) -> None:
        super().__init__()
        self._failing("make")

    def _failing(self, what: str) -> None:
        if what in self.failures:
            self.failures.remove(what)
            raise VendorError(f"error 17 in {what}")

    def open(self, port: str) -> Transport:
        self._failing("open")

        def write(data: bytes) -> None:
            self._failing("write")
            self.sent.append(data)

        def read() -> bytes:
            self._failing("read")
            return b""

        return SimpleNamespace(fileno=lambda: 0, read=read, write=write, close=lambda: self._failing("close"))


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> type[VendorWire]:
    monkeypatch.setattr(VendorWire, "failures", [], raising=False)
    monkeypatch.setattr(VendorWire, "sent", [], raising=False)
    return VendorWire


def settings_of(wire: type, port: str = "vendor's", **more: str) -> GuardSettings:
    return GuardSettings(f"{wire.__module__}:{wire.__qualname__}", port, GuardLimits.of(INFO), **more)  # type: ignore[arg-type]


class FakeClock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.ns = 0

    def now_ns(self) -> int:
        return self.ns

    def sleep(self, seconds: float) -> None:
        self.ns += round(seconds * NS_PER_S)


@pytest.mark.parametrize("failing", ["make", "open", "write", "close"])
def test_whatever_a_wire_raises_the_wheels_are_stopped_in_place_of_the_guard(
    failing: str, vendor: type[VendorWire], monkeypatch: pytest.MonkeyPatch
) -> None:
    link = GuardLink(settings_of(vendor), lambda _: None, lambda _: None)
    monkeypatch.setattr(link, "_clock", FakeClock())
    vendor.failures += [failing] * 3
    link._lose("it has ended")
    assert link.fault is not None
    assert "the wheels were stopped" in link.fault.message
    assert vendor.sent[-2:] == [b"wheels 0.0000 0.0000\n"] * 2


def test_wheels_that_may_still_turn_are_reported_with_the_reason(
    vendor: type[VendorWire], monkeypatch: pytest.MonkeyPatch
) -> None:
    link = GuardLink(settings_of(vendor), lambda _: None, lambda _: None)
    clock = FakeClock()
    monkeypatch.setattr(link, "_clock", clock)
    vendor.failures += ["write"] * 1000
    link._lose("it has ended")
    assert link.fault is not None
    assert "MAY STILL TURN (VendorError: error 17 in write)" in link.fault.message
    assert clock.ns >= TAKE_OVER_S * NS_PER_S


def test_a_message_that_cannot_be_used_ends_the_process_and_stops_the_wheels(
    vendor: type[VendorWire], monkeypatch: pytest.MonkeyPatch
) -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link = GuardLink(settings_of(vendor), lambda _: None, lambda _: None)
    monkeypatch.setattr(link, "_link", near)
    with near, far:
        far.send(b"no JSON")
        link._receive()
    assert link.fault is not None
    assert "its message cannot be used" in link.fault.message
    assert vendor.sent


@pytest.mark.parametrize("failing", ["open", "read", "write"])
def test_a_failure_of_the_vendors_code_is_a_lost_port_that_is_opened_again(
    failing: str, vendor: type[VendorWire]
) -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, far:
        guard = GuardProcess(settings_of(vendor), far)
        if failing == "open":
            vendor.failures.append("open")
            with raises_naming(DeviceFault, "VendorError: error 17"):
                guard._open(0)
        else:
            guard._open(0)
            near.recv(MAX_PACKET)
            vendor.failures += [failing, "close"]
            guard._read() if failing == "read" else guard._send(b"x")
            trouble = unpack(near.recv(MAX_PACKET))
            assert isinstance(trouble, Trouble)
            assert "VendorError: error 17" in trouble.message
            assert not trouble.final
        assert guard._port is None
        guard._check(guard._now_ns() + NS_PER_S)
        assert guard._port is not None
    assert os.sched_getscheduler(0) == os.SCHED_OTHER, "what is not the process itself keeps its priority"


def test_the_end_happens_completely_whatever_fails_in_it(
    vendor: type[VendorWire], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(process.signal, "signal", lambda *_: None)
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, far:
        guard = GuardProcess(settings_of(vendor, e_stop_file=str(tmp_path / "memory")), far)
        clock = FakeClock()
        monkeypatch.setattr(guard, "_clock", clock)

        def broken(*_: object) -> None:
            vendor.sent.clear()
            raise ZeroDivisionError("parser")

        monkeypatch.setattr(guard, "_serve", broken)
        monkeypatch.setattr(guard, "_end_call", lambda: broken())
        with pytest.raises(ZeroDivisionError):
            guard.run()
        told = [unpack(near.recv(MAX_PACKET)) for _ in range(2)]
        assert isinstance(told[1], Trouble)
        assert told[1].final
        assert "ZeroDivisionError: parser" in told[1].message
    assert len(vendor.sent) > 3
    assert set(vendor.sent) == {b"wheels 0.0000 0.0000\n"}
    OwnerLock(str(tmp_path / "memory.lock"), "vendor's").take()
    assert "parser" in capsys.readouterr().err


# --- locks ------------------------------------------------------------------------------------------------------------


def test_a_base_has_one_owner_and_the_second_reads_who_it_is(tmp_path: Path) -> None:
    path = str(tmp_path / "state" / "lock")
    owner, other = OwnerLock(path, "10.0.0.7:9000"), OwnerLock(path, "10.0.0.7:9000")
    owner.take()
    owner.take()
    with raises_naming(PortInUse, "10.0.0.7:9000") as caught:
        other.take()
    assert caught.value.holder == os.getpid()
    assert f"process {os.getpid()}" in caught.value.message
    owner.release()
    other.take()
    other.release()
    assert not Path(path).exists()


def test_a_lock_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with raises_naming(DeviceFault, str(tmp_path / "file")) as caught:
        OwnerLock(str(tmp_path / "file" / "lock"), "port").take()
    assert "XDG_STATE_HOME" in caught.value.remedy


def test_a_serial_port_in_use_names_the_process_that_has_it() -> None:
    terminal = Pty()
    holder = Port(terminal.path, 115_200, Attachment("Pebble"))
    with raises_naming(PortInUse, f"process {os.getpid()}"):
        Port(terminal.path, 115_200, Attachment("Pebble"))
    holder.close()
    terminal.unplug()


HOLDER = """
import sys, time
from drivers.serial_base.ownership import OwnerLock
OwnerLock(sys.argv[1], "port").take()
print("taken", flush=True)
time.sleep(600)
"""


@contextmanager
def holder_of(path: Path, runtime: int, program: str = "drivers.serial_base") -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HOLDER, str(path), program, str(runtime)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"taken\n"
            yield holder
        finally:
            holder.kill()


def in_use_of(path: Path) -> PortInUse:
    with pytest.raises(PortInUse) as caught:
        OwnerLock(str(path), "port").take()
    return caught.value


def test_only_a_guard_process_without_its_runtime_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder_of(path, os.getpid()) as holder:  # this process lives
        os.kill(holder.pid, signal.SIGSTOP)
        assert not end_orphan(in_use_of(path), at_once=False)
    with holder_of(path, 1, "another.program") as holder:
        assert not end_orphan(in_use_of(path), at_once=False)
    with holder_of(path, 1) as holder:  # its parent is not the runtime that it names
        in_use = in_use_of(path)
        assert in_use.holder == holder.pid
        assert not end_orphan(in_use, at_once=True)  # it sends its last zeros
        os.kill(holder.pid, signal.SIGSTOP)
        stopped = wait_for(SystemClock(), lambda: end_orphan(in_use, at_once=True) or None, PATIENCE_S, 0.01)
        assert stopped == f"guard process {holder.pid} of a runtime that has ended (process 1) was stopped"
        assert holder.wait(PATIENCE_S) == -signal.SIGKILL
    OwnerLock(str(path), "port").take()


def test_the_next_guard_process_ends_a_stopped_orphan_stops_the_wheels_and_says_so(
    vendor: type[VendorWire], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.signal, "signal", lambda *_: None)
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, far, holder_of(tmp_path / "memory.lock", 1) as holder:
        os.kill(holder.pid, signal.SIGSTOP)
        guard = GuardProcess(settings_of(vendor, e_stop_file=str(tmp_path / "memory")), far)
        guard._start()
        told = [unpack(near.recv(MAX_PACKET)) for _ in range(2)]
        assert isinstance(told[0], Trouble)
        assert f"guard process {holder.pid}" in told[0].message
        assert "the wheels were stopped" in told[0].message
        assert told[1] == Trouble("", "")
        assert vendor.sent[0] == b"wheels 0.0000 0.0000\n"
        guard._owner.release()


# --- connections over TCP ---------------------------------------------------------------------------------------------


@contextmanager
def served() -> Iterator[tuple[SocketTransport, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        transport = connect_tcp(f"127.0.0.1:{server.getsockname()[1]}", "Brook")
        far, _ = server.accept()
        with far:
            yield transport, far
            transport.close()


def test_the_system_gives_up_what_is_not_acknowledged() -> None:
    with served() as (transport, _):
        limit = transport._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert limit == tcp.UNACKNOWLEDGED_MS == 500


def test_a_device_that_takes_bytes_too_slowly_is_lost_within_the_limit_of_a_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tcp, "WRITE_S", 0.05)
    with served() as (transport, far):
        over = threading.Event()

        def sip() -> None:
            while not over.wait(0.01):
                far.recv(4096)

        sipping = threading.Thread(target=sip)
        sipping.start()
        try:
            with raises_naming(DeviceFault, "too slowly"):
                transport.write(bytes(100_000_000))
        finally:
            over.set()
            sipping.join()


def test_the_last_command_arrives_although_reports_are_unread() -> None:
    with served() as (transport, far):
        far.sendall(b"state 0 0 - - -\n" * 100)
        assert select.select([transport], [], [], PATIENCE_S)[0]
        transport.write(b"wheels 0 0\n")
        transport.close()
        received = b""
        while data := far.recv(4096):  # a reset would be an error here
            received += data
        assert received == b"wheels 0 0\n"
