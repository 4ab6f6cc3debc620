"""Checks of the doctor for robots behind ROS 1."""

from __future__ import annotations

import builtins
import socket
from typing import Any

import pytest

from drivers.ros_locobot import doctor
from robot_runtime.common.host_checks import Status


def test_a_master_that_answers_is_ok_and_another_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv("ROS_MASTER_URI", f"http://127.0.0.1:{port}")
        assert doctor.check()[2].status is Status.OK
    gone = doctor.check()[2]
    assert (gone.status, str(port) in gone.detail) == (Status.WARN, True)
    assert "ROS_MASTER_URI" in gone.remedy


@pytest.mark.parametrize("uri", ["robot", "http://robot:port", "http://robot"])
def test_a_malformed_address_is_named(monkeypatch: pytest.MonkeyPatch, uri: str) -> None:
    monkeypatch.setenv("ROS_MASTER_URI", uri)
    found = doctor.check()[2]
    assert found.status is Status.FAIL
    assert uri in found.detail


def test_missing_libraries_are_named_with_what_brings_them(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without_ros(name: str, *arguments: Any, **options: Any) -> Any:
        if name.split(".")[0] in ("rospy", "kobuki_msgs"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return imported(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_ros)
    library, messages, _ = doctor.check()
    assert (library.status, messages.status) == (Status.FAIL, Status.WARN)
    assert "python3-rospy" in library.remedy
    assert "setup.bash" in messages.remedy
