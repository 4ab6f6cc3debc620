"""Checks of a computer and its RealSense."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivers.realsense import doctor
from drivers.realsense.software_device import SERIAL, SoftwareD435
from robot_runtime.common.host_checks import Status


def test_a_device_is_told_with_its_port_and_modes() -> None:
    device = SoftwareD435("640x360", "424x240", 30)
    (found,) = device.context.query_devices()
    who, modes = doctor.device_findings(found)
    assert (who.what, who.status) == (f"Intel RealSense D435 {SERIAL}", Status.OK)
    assert who.detail == "on USB 3.2, firmware 5.16.0.1"
    assert "1280x720@30" in modes.detail
    assert "424x240@90" in modes.detail


def test_the_sdk_is_found_and_a_locked_device_says_how_to_open_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert doctor.check()[0].status is Status.OK
    monkeypatch.setattr(doctor, "usb_devices", lambda vendor, products: [tmp_path / "gone"])
    locked = doctor.check()[1]
    assert locked.status is Status.FAIL
    assert "99-realsense.rules" in locked.remedy


def test_the_udev_rule_knows_the_doctors_cameras() -> None:
    rules = (Path(doctor.__file__).parent / "99-realsense.rules").read_text(encoding="utf-8")
    assert rules.count("|".join(doctor.CAMERAS)) == 2
