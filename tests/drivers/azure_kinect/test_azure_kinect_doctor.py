"""Checks of a computer that is to run an Azure Kinect, and its expected rate."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path

import pytest
from raising import raises_naming

from drivers.azure_kinect import doctor, sdk_transform
from robot_runtime.cli.main import run_command
from robot_runtime.common.host_checks import Finding, Status, examine, usb_devices
from robot_runtime.errors import ConfigError

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13) or platform.machine() != "x86_64",
    reason="the Kinect SDK is not packaged for this Python",
)

WORKS = {"milliseconds": 1000.0}
FAILS = {"reason": "Transform engine create failed with error code: 204"}


@pytest.fixture
def without_opengl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr(sdk_transform, "measure_in_subprocess", lambda times: FAILS)


def found(what: str) -> Finding:
    (finding,) = [finding for finding in doctor.check() if finding.what == what]
    return finding


def test_the_libraries_are_found(without_opengl: None) -> None:
    assert found("Kinect SDK").status is Status.OK
    assert found("depth engine").status is Status.OK


def test_missing_opengl_is_reported_with_its_reason_and_remedy(without_opengl: None) -> None:
    finding = found("OpenGL for live depth")
    assert finding.status is Status.FAIL
    assert "there is no DISPLAY: Transform engine create failed" in finding.detail
    assert "recordings can be read without it" in finding.detail
    assert "X server" in finding.remedy


def test_opengl_that_works_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":7")
    monkeypatch.setattr(sdk_transform, "measure_in_subprocess", lambda times: WORKS)
    assert found("OpenGL for live depth") == Finding("OpenGL for live depth", Status.OK, "works on :7")


def test_a_depth_engine_that_does_not_load_names_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str) -> None:
        raise OSError("libGL.so.1: cannot open shared object file")

    doctor.load_sdk()
    monkeypatch.setattr(doctor.ctypes, "CDLL", fail)
    finding = found("depth engine")
    assert finding.status is Status.FAIL
    assert "libGL.so.1" in finding.detail
    assert "libgl1" in finding.remedy


def test_without_the_package_nothing_else_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    (finding,) = doctor.check()
    assert finding.status is Status.FAIL
    assert finding.remedy == "pip install 'robot-runtime[azure-kinect]'"


def test_a_device_that_may_not_be_opened_is_told_from_none(
    without_opengl: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(doctor, "usb_devices", lambda vendor, products: [])
    assert found("device").status is Status.WARN
    file = tmp_path / "004"
    monkeypatch.setattr(doctor, "usb_devices", lambda vendor, products: [file])
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    locked = found("device")
    assert locked.status is Status.FAIL
    assert str(file) in locked.detail
    assert "99-k4a.rules" in locked.remedy
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    assert found("device").status is Status.OK


def test_usb_devices_are_found_by_their_ids(tmp_path: Path) -> None:
    for name, vendor, product in (("2-1", "045e", "097c"), ("2-2", "045e", "0000"), ("1-1", "8086", "097c")):
        folder = tmp_path / name
        folder.mkdir()
        for file, content in (("idVendor", vendor), ("idProduct", product), ("busnum", "2"), ("devnum", "14")):
            (folder / file).write_text(content + "\n", encoding="ascii")
    (tmp_path / "2-1:1.0").mkdir()
    assert usb_devices("045e", ("097c", "097d"), tmp_path) == [Path("/dev/bus/usb/002/014")]


@pytest.mark.slow
def test_the_command_tells_all_and_judges_what_is_named(
    without_opengl: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["doctor"]) == 0
    assert "azure-kinect" in capsys.readouterr().out
    assert run_command(["doctor", "azure-kinect"]) == 7
    assert "failed: OpenGL for live depth" in capsys.readouterr().err
    assert run_command(["doctor", "azure"]) == 2
    with raises_naming(ConfigError, "'azure'"):
        examine(["azure"])
