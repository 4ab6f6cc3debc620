"""Serial ports: finding the one that was unplugged, what it may be, its rules, permission and latency."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from raising import raises_naming

from drivers.hardware import cli, doctor, ports, udev
from drivers.hardware.ports import SerialPort, latency_timer_ms, usb_ports, wait_for_change
from robot_runtime.cli.main import run_command
from robot_runtime.common.clock import SimulatedClock
from robot_runtime.common.host_checks import Status
from robot_runtime.errors import ConfigError, DeviceFault

U2D2 = SerialPort("/dev/ttyUSB1", 0x0403, 0x6014, "FT4THVJ5", "USB <-> Serial Converter", "/dev/serial/by-id/usb-FTDI")
OTHER = SerialPort("/dev/ttyUSB0", 0x0403, 0x6001)


def clock() -> SimulatedClock:
    return SimulatedClock(1_000_000)


def plugged(*found: SerialPort) -> dict[str, SerialPort]:
    return {port.path: port for port in found}


# --- find-port ------------------------------------------------------------------------------------------------------


def test_the_port_that_vanishes_and_the_one_that_appears_are_found() -> None:
    before, after = plugged(OTHER, U2D2), plugged(OTHER)
    assert wait_for_change(clock(), before, False, 5.0, lambda: after) == U2D2
    assert wait_for_change(clock(), after, True, 5.0, lambda: before) == U2D2
    assert wait_for_change(clock(), before, False, 5.0, lambda: before) is None


def test_a_port_says_what_it_may_be() -> None:
    assert U2D2.names == ("dynamixel",)
    assert "may be dynamixel" in str(U2D2)
    assert OTHER.names == (), "a Kobuki has a serial number of its own"


def test_the_command_leads_through_unplugging(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states = [plugged(OTHER, U2D2), plugged(OTHER)]  # before, and after it was unplugged
    monkeypatch.setattr(ports, "usb_ports", lambda: states.pop(0) if len(states) > 1 else states[0])
    monkeypatch.setattr(ports, "wait_for_change", lambda *_, **__: U2D2)
    cli.find_port(timeout_s=1.0)
    printed = capsys.readouterr().out
    assert "unplug the device now" in printed
    assert "/dev/ttyUSB1 is gone: plug it in again" in printed
    assert "write port: /dev/serial/by-id/usb-FTDI" in printed
    assert "hardware udev --install" in printed


def test_a_wait_for_nothing_ends_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "usb_ports", lambda: plugged(OTHER))
    monkeypatch.setattr(ports, "wait_for_change", lambda *_, **__: None)
    with raises_naming(DeviceFault, "no port vanished in 1 s"):
        cli.find_port(timeout_s=1.0)


def test_ports_are_those_on_usb(monkeypatch: pytest.MonkeyPatch) -> None:
    usb = SimpleNamespace(device="/dev/ttyUSB7", vid=0x0403, pid=0x6014, serial_number=None, product=None)
    board = SimpleNamespace(device="/dev/ttyS0", vid=None, pid=None, serial_number=None, product=None)
    monkeypatch.setattr(ports.list_ports, "comports", lambda: [usb, board])
    assert list(usb_ports()) == ["/dev/ttyUSB7"]


# --- udev -----------------------------------------------------------------------------------------------------------


def test_rules_are_installed_and_outdated_ones_are_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["hardware", "udev", "--into", str(tmp_path)]) == 0
    assert "60-dynamixel.rules: missing (/dev/dynamixel)" in capsys.readouterr().out
    assert run_command(["hardware", "udev", "--install", "--into", str(tmp_path)]) == 0
    assert "missing" not in capsys.readouterr().out
    (tmp_path / "60-dynamixel.rules").write_text("# older", encoding="utf-8")
    assert run_command(["hardware", "udev", "--into", str(tmp_path)]) == 0
    assert "60-dynamixel.rules: outdated" in capsys.readouterr().out


def test_rules_without_permission_name_the_command(tmp_path: Path) -> None:
    with raises_naming(ConfigError, str(tmp_path / "absent"), "sudo"):
        udev.install(udev.rule_files(), tmp_path / "absent")


def test_every_driver_with_a_port_has_a_rule() -> None:
    assert {"dynamixel", "marvelmind"} <= {rule.link for file in udev.rule_files() for rule in file.rules}


# --- doctor ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timer", "status"), [("1", Status.OK), ("16", Status.WARN), (None, Status.OK)], ids=["short", "long", "none"]
)
def test_the_latency_timer_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timer: str | None, status: Status
) -> None:
    port = tmp_path / "ttyUSB9"
    port.touch()
    if timer is not None:
        (tmp_path / "sys" / "ttyUSB9").mkdir(parents=True)
        (tmp_path / "sys" / "ttyUSB9" / "latency_timer").write_text(f"{timer}\n", encoding="ascii")
    monkeypatch.setattr(ports, "latency_timer_ms", lambda path: latency_timer_ms(path, tmp_path / "sys"))
    (finding,) = doctor.port_findings(str(port), "port")
    assert finding.status is status
    assert bool(finding.remedy) is (status is not Status.OK)


def test_a_port_without_permission_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    (finding,) = doctor.port_findings("/dev/ttyUSB0", "port")
    assert finding.status is Status.FAIL
    assert "dialout" in finding.remedy


def test_every_finding_that_is_not_ok_has_a_remedy() -> None:
    assert all(finding.remedy for finding in doctor.check() if finding.status is not Status.OK)
