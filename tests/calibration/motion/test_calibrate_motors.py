"""Motors, calibrated on fake robots whose motors are known."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from raising import raises_naming
from rich.console import Console

from calibration.motion.motors import MotorProcedure
from calibration.operator_guide import Guide
from calibration.procedure import calibrate
from robot_runtime.errors import CalibrationFailed, ForeignCalibration, StaleData
from robot_runtime.hal import Robot, Velocity
from robot_runtime.hal.motors import KnownMotors
from robot_runtime.robots.calibration_file import MOTORS, MotorCalibration, load_content
from robot_runtime.robots.loader import RobotContext, load_robot

HIDDEN = {
    "dead_time_s": 0.15,
    "lag_s": 0.12,
    "gain": [0.97, 1.02],
    "threshold_m_s": [0.03, 0.06],
    "accel_m_s2": 1.2,
    "report_delay_s": 0.04,
}


@contextmanager
def robot(folder: Path, hidden: dict[str, Any], name: str = "lab-1", **more: Any) -> Iterator[Robot]:
    """A fake robot with these motors by a YAML file of its own, connected."""
    path = folder / f"{name}.yaml"
    options = {"rate_hz": 50.0, "motors": hidden, "faults": more.pop("faults", [])}
    document = {"name": name, "driver": "drivers.fake.driver.make_robot", "options": options, **more}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    with load_robot(str(path), RobotContext(None, None, 0)) as connected:
        yield connected


def run(connected: Robot, out: Path) -> Any:
    return calibrate(MotorProcedure(), connected, Guide(Console(file=io.StringIO()), None, attended=True), out, 30)


@pytest.mark.slow
def test_motors_are_found_without_an_operator_and_used_by_their_own_robot_only(tmp_path: Path) -> None:
    out = tmp_path / "motors.yaml"
    with robot(tmp_path, HIDDEN) as connected:
        file = run(connected, out)
        assert not connected.base.motors.calibrated
    found = load_content(out, MotorCalibration, MOTORS, "lab-1")
    assert found.model.dead_time_s == pytest.approx(0.15, abs=0.01)
    assert found.model.lag_s == pytest.approx(0.12, abs=0.01)
    assert found.model.gain == pytest.approx((0.97, 1.02), abs=0.01)
    assert found.model.threshold_m_s == pytest.approx((0.03, 0.06), abs=0.005)
    assert found.model.accel_m_s2 == pytest.approx(1.2, rel=0.1)
    for low, high in found.intervals.values():
        assert low <= high
    low, high = found.intervals["lag_s"]
    assert 0 < high - low < 0.02
    assert file.stamp.residuals["drive_s"] < 60
    assert file.stamp.residuals["extent_m"] < 0.5
    assert file.stamp.residuals["report_delay_ms"] == pytest.approx(40, abs=20)
    with robot(tmp_path, HIDDEN, motors=str(out)) as connected:
        assert connected.base.motors == KnownMotors(found.model, calibrated=True)
    with raises_naming(ForeignCalibration, "lab-1"), robot(tmp_path, HIDDEN, "lab-2", motors=str(out)):
        pass


def test_a_wheel_that_does_not_turn_is_named(tmp_path: Path) -> None:
    with robot(tmp_path, {"threshold_m_s": [0.02, 0.5]}) as connected:
        with raises_naming(CalibrationFailed, "right"):
            run(connected, tmp_path / "motors.yaml")
        assert connected.base.command(Velocity()) == Velocity()
    assert not (tmp_path / "motors.yaml").exists()


def test_a_base_that_turns_the_wrong_way_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with robot(tmp_path, HIDDEN) as connected:
        command = connected.base.command
        monkeypatch.setattr(
            connected.base, "command", lambda v: command(Velocity(-v.linear_m_s, -v.angular_rad_s)), raising=True
        )
        with raises_naming(CalibrationFailed, "the wrong way"):
            run(connected, tmp_path / "motors.yaml")
        before = connected.base.state(1.0).odom
        connected.clock.sleep(1.0)
        settled = connected.base.state(1.0).odom
        connected.clock.sleep(1.0)
        assert connected.base.state(1.0).odom == settled != before


def test_a_silent_base_ends_the_drive(tmp_path: Path) -> None:
    silent = {"kind": "silent_base", "from_s": 3.0, "to_s": 60.0}
    with robot(tmp_path, HIDDEN, faults=[silent]) as connected, raises_naming(StaleData, "base"):
        run(connected, tmp_path / "motors.yaml")


def test_a_touch_ends_the_drive(tmp_path: Path) -> None:
    touch = {"kind": "stuck_bumper", "from_s": 3.0, "to_s": 60.0}
    with robot(tmp_path, HIDDEN, faults=[touch]) as connected, raises_naming(CalibrationFailed, "contact"):
        run(connected, tmp_path / "motors.yaml")


@pytest.mark.slow
def test_a_base_beyond_the_limits_is_refused(tmp_path: Path) -> None:
    late = {"dead_time_s": 0.5, "lag_s": 0.1}
    with robot(tmp_path, late) as connected, raises_naming(CalibrationFailed, "dead time"):
        run(connected, tmp_path / "motors.yaml")
