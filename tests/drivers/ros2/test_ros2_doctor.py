"""What the doctor says about a computer for ROS 2; rclpy itself is not needed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from drivers.ros2 import doctor
from robot_runtime.common.host_checks import Status


@pytest.fixture
def computer(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (*doctor.PROFILES, doctor.SERVER, "ROS_SUPER_CLIENT", "RMW_IMPLEMENTATION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    return monkeypatch


def statuses() -> list[Any]:
    return [found.status for found in doctor.check()]


def test_a_computer_without_rclpy_has_none_of_it(computer: pytest.MonkeyPatch) -> None:
    computer.setattr(importlib.util, "find_spec", lambda name: None)
    (found,) = doctor.check()
    assert found.absent
    assert "setup.bash" in found.remedy


def test_the_silent_loss_between_vendors_is_found_and_cured(computer: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert statuses() == [Status.OK, Status.OK]
    profile = tmp_path / "profile.xml"
    profile.write_text("<profiles></profiles>")
    computer.setenv(doctor.PROFILES[0], str(profile))
    _, found = doctor.check()
    assert found.status is Status.WARN
    assert "Odometry" in found.detail
    profile.write_text(found.remedy)
    assert statuses() == [Status.OK, Status.OK]
    profile.unlink()
    assert statuses() == [Status.OK, Status.FAIL]


def test_a_client_of_a_discovery_server_must_be_a_super_client(computer: pytest.MonkeyPatch) -> None:
    computer.setenv(doctor.SERVER, "192.168.1.5:11811")
    assert statuses()[-1] is Status.WARN
    computer.setenv("ROS_SUPER_CLIENT", "True")
    assert statuses() == [Status.OK, Status.OK, Status.OK]
