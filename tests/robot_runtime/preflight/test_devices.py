"""The doctor of a whole robot, and of its computer: every line has a status and what is not ok a remedy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from open_room import make_fake, make_task

from robot_runtime.cli.main import run_command
from robot_runtime.common.host_checks import Finding, Status
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Robot
from robot_runtime.preflight import computer
from robot_runtime.preflight.devices import check_calibrations, check_devices
from robot_runtime.robots.calibration_file import Stamp, write_calibration


def findings(robot: Robot) -> dict[str, Finding]:
    found = {finding.what: finding for finding in check_devices(robot)}
    assert all(finding.remedy for finding in found.values() if finding.status is not Status.OK)
    return found


def fake(**options: object) -> Robot:
    return make_fake(make_task(), **options)


def test_a_robot_in_order_is_ok_in_every_line() -> None:
    found = findings(fake())
    assert {"base", "battery", "head", "camera", "localizer", "referee", "odometry"} <= set(found)
    assert {finding.status for finding in found.values()} == {Status.OK}
    assert found["base"].detail == "50 states per second of 50"


@pytest.mark.parametrize(
    ("options", "what", "status", "text"),
    [
        ({"battery_fraction": 0.05}, "battery", Status.FAIL, "5 %"),
        ({"battery_fraction": 0.15}, "battery", Status.WARN, "15 %"),
        ({"battery_fraction": 0.9}, "battery", Status.OK, "90 %"),
        ({"faults": [{"kind": "lost_frames"}]}, "camera", Status.FAIL, "camera"),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, object], what: str, status: Status, text: str) -> None:
    finding = findings(fake(**options))[what]
    assert finding.status is status
    assert text in finding.detail


def test_a_device_that_does_not_connect_hides_no_other() -> None:
    robot = fake()

    def refuse() -> None:
        raise DeviceFault("port /dev/camera: there is no such device", "plug it in")

    robot.camera.connect = refuse  # type: ignore[method-assign]
    found = findings(robot)
    assert found["camera"] == Finding("camera", Status.FAIL, "port /dev/camera: there is no such device", "plug it in")
    assert found["base"].status is Status.OK


def test_devices_are_closed_afterwards() -> None:
    robot = fake()
    findings(robot)
    with pytest.raises(DeviceFault):
        robot.base.state(1.0)


def test_an_engaged_emergency_stop_fails() -> None:
    robot = fake()
    with robot:
        robot.base.emergency_stop()
    assert findings(robot)["wheels"].status is Status.FAIL


# --- calibrations ---------------------------------------------------------------------------------------------------


@pytest.fixture
def servo(tmp_path: Path) -> Callable[[float, float], str]:
    def write(age_days: float, valid_days: float) -> str:
        path = tmp_path / f"servo{age_days:.0f}.yaml"
        stamp = Stamp.now("tilt-servo", "lab", "", valid_days, "test", {}, {})
        stamp = replace(stamp, created=f"2026-01-{31 - round(age_days):02d}T00:00:00+00:00")
        write_calibration(path, stamp, {"zero_deg": 1.0})
        return str(path)

    return write


@pytest.mark.parametrize(
    ("age_days", "robot", "status"),
    [(1, "lab", Status.OK), (9, "lab", Status.WARN), (11, "lab", Status.FAIL), (1, "other", Status.FAIL)],
)
def test_the_age_of_calibrations_is_judged(
    servo: Callable[[float, float], str], age_days: float, robot: str, status: Status
) -> None:
    configuration = {"tilt_servo": servo(age_days, 10.0), "odometry": None}
    found = {finding.what: finding for finding in check_calibrations(configuration, robot, "2026-01-31T00:00:00+00:00")}
    assert found["calibration of tilt-servo"].status is status
    assert found["calibration of odometry"].detail == "there is none"


def test_an_altered_calibration_fails(servo: Callable[[float, float], str]) -> None:
    path = Path(servo(1, 10.0))
    path.write_text(path.read_text(encoding="utf-8").replace("1.0", "2.0"), encoding="utf-8")
    (finding,) = check_calibrations({"tilt_servo": str(path)}, "lab", "2026-01-31T00:00:00+00:00")
    assert finding.status is Status.FAIL


# --- the commands ---------------------------------------------------------------------------------------------------


def test_the_command_ends_with_what_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lab.yaml"
    robot = {"name": "lab", "driver": "drivers.fake.driver.make_robot", "options": {"battery_fraction": 0.01}}
    file.write_text(yaml.safe_dump(robot), encoding="utf-8")
    assert run_command(["doctor", "--robot", str(file)]) == DeviceFault.exit_code
    printed = capsys.readouterr()
    assert "fail  battery: 1 %" in printed.out
    assert "remedy: charge it" in printed.out
    assert "failed: battery" in printed.err
    assert run_command(["doctor", "computer", "--robot", "fake"]) == 0


@pytest.mark.parametrize(("free_gb", "status"), [(0.5, Status.FAIL), (5.0, Status.WARN), (50.0, Status.OK)])
def test_the_disk_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_gb: float, status: Status) -> None:
    class Usage:
        free = free_gb * 1e9

    monkeypatch.setattr(computer.shutil, "disk_usage", lambda folder: Usage)
    assert computer.disk(tmp_path).status is status


def test_the_computer_is_examined() -> None:
    found = computer.check()
    assert [finding.what for finding in found] == ["disk", "clock", "real-time priority"]
    assert all(finding.remedy for finding in found if finding.status is not Status.OK)
