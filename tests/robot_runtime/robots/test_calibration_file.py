"""Calibrations as files: what was written is what is read, and what cannot be trusted is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.common import config
from robot_runtime.common.transforms import Offset
from robot_runtime.errors import (
    AlteredCalibration,
    CalibrationError,
    ConfigError,
    ExpiredCalibration,
    ForeignCalibration,
)
from robot_runtime.robots.calibration_file import (
    Stamp,
    calibrations_in,
    check_if_stamped,
    load_content,
    open_calibration,
    read_calibration,
    write_calibration,
)
from robot_runtime.robots.camera_mount import EXTRINSICS, CameraMount, load_mount
from robot_runtime.robots.corrected_head import TiltServo

STAMP = Stamp(
    kind="extrinsics",
    robot="lab-1",
    device="001514394512",
    created="2026-01-01T12:00:00+00:00",
    valid_days=180.0,
    method="by hand",
    versions={"numpy": "2.4.6"},
    residuals={"reprojection_px": 0.2},
    held_out={"reprojection_px": 0.3},
)
LATER = "2026-03-01T12:00:00+00:00"
MOUNT = CameraMount((0.0, 0.0, 0.55), camera=Offset((0.1, 0.2, 1e-7), (1.0, -2.0, 0.0)))

plain = st.recursive(
    st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**53), 2**53)
    | st.booleans()
    | st.text("aé: #-1e", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@given(content=st.dictionaries(st.text("xyz_", min_size=1), plain, max_size=4))
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, content: dict[str, object]) -> None:
    path = tmp_path_factory.mktemp("calibration") / "new folder" / "file.yaml"
    written = write_calibration(path, STAMP, content)
    read = read_calibration(path, "extrinsics", "lab-1", "001514394512", LATER)
    assert read == written
    assert read.content == content
    assert len(read.stamp.sha256) == 64
    assert [found.name for found in path.parent.iterdir()] == ["file.yaml"]


def test_a_stamp_of_now_knows_its_versions() -> None:
    stamp = Stamp.now("depth", "lab-1", "", 30, "by hand", {"error_mm": 1.23456789}, {})
    assert {"robot_runtime", "numpy", "scipy"} <= stamp.versions.keys()
    assert stamp.residuals == {"error_mm": 1.234568}
    assert stamp.age_days(stamp.created) == 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mount.yaml"
    write_calibration(path, STAMP, config.unparse(MOUNT))
    return path


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("depth", "lab-1"), CalibrationError, ("'extrinsics'", "'depth'")),
        (("extrinsics", "lab-2"), ForeignCalibration, ("'lab-1'", "'lab-2'")),
        (("extrinsics", "lab-1", "17"), ForeignCalibration, ("001514394512", "17")),
        (("extrinsics", "lab-1", None, "2026-07-01T12:00:00+00:00"), ExpiredCalibration, ("181 days", "180")),
        (("extrinsics", "lab-1", None, "2025-12-01T12:00:00+00:00"), ExpiredCalibration, ("future",)),
    ],
)
def test_other_peoples_and_old_ones_are_refused(
    path: Path, arguments: tuple[str, ...], error: type[CalibrationError], words: tuple[str, ...]
) -> None:
    kind, robot, device, now = (*arguments, *(None, LATER)[len(arguments) - 2 :])
    assert kind is not None
    assert robot is not None
    with pytest.raises(error) as caught:
        read_calibration(path, kind, robot, device, now)
    assert all(word in caught.value.message for word in (str(path), *words))
    assert "calibrate" in caught.value.remedy or "clock" in caught.value.remedy


@pytest.mark.parametrize(
    ("found", "instead"),
    [("- 0.55", "- 0.56"), ("lab-1", "lab-2"), ("valid_days: 180.0", "valid_days: 9999.0"), ("sha256: ", "sha256: a")],
)
def test_a_changed_file_is_refused(path: Path, found: str, instead: str) -> None:
    text = path.read_text()
    assert found in text
    path.write_text(text.replace(found, instead))
    with raises_naming(AlteredCalibration, "sha256", path.name):
        open_calibration(path)


def test_comments_and_order_change_nothing(path: Path) -> None:
    stamp, _, rest = path.read_text().partition("pan_joint_m:")
    path.write_text(f"# in the second drawer\npan_joint_m:{rest}{stamp}")
    assert open_calibration(path).stamp.robot == "lab-1"


@pytest.mark.parametrize(
    ("field", "value"),
    [("robot", ""), ("valid_days", 0.0), ("valid_days", float("inf")), ("created", "2026-01-01T12:00:00")],
)
def test_a_stamp_must_be_complete(field: str, value: object) -> None:
    with pytest.raises(ValueError):
        replace(STAMP, **{field: value})


def test_content_cannot_have_a_stamp_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="calibration"):
        write_calibration(tmp_path / "x.yaml", STAMP, {"calibration": {}})
    with pytest.raises(ValueError):
        write_calibration(tmp_path / "x.yaml", STAMP, {"x": float("nan")})
    assert not list(tmp_path.iterdir())


def test_a_robot_names_its_calibrations(path: Path, tmp_path: Path) -> None:
    plain_file = tmp_path / "plain.yaml"
    plain_file.write_text("a: 1\n")
    robot = {"options": {"camera": {"mount": str(path)}, "rates": [1.0, {"x": str(plain_file)}]}, "name": "gone.yaml"}
    assert calibrations_in(robot) == {str(path): open_calibration(path).stamp.sha256}
    path.write_text(path.read_text().replace("- 0.55", "- 0.56"))
    with pytest.raises(AlteredCalibration):
        calibrations_in(robot)


def test_what_is_no_calibration_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plain.yaml"
    path.write_text("pan_joint_m: [0, 0, 1]\n")
    with raises_naming(CalibrationError, "plain.yaml", "calibration"):
        open_calibration(path)
    check_if_stamped(path, config.read_yaml(path), "extrinsics", "lab-1")
    path.write_text("calibration: {kind: extrinsics}\n")
    with raises_naming(ConfigError, "calibration"):
        open_calibration(path)


def test_a_calibrated_mount_is_a_mount(tmp_path: Path) -> None:
    path = tmp_path / "mount.yaml"
    now = Stamp.now(EXTRINSICS, "lab-1", "", 30, "by hand", {}, {})
    write_calibration(path, now, config.unparse(MOUNT))
    mount = load_mount(path, "lab-1")
    assert replace(mount, calibration=None) == MOUNT
    assert mount.calibration is not None
    with raises_naming(ForeignCalibration, "'lab-2'"):
        load_mount(path, "lab-2")
    write_calibration(path, replace(now, created="2020-01-01T00:00:00+00:00"), config.unparse(MOUNT))
    with pytest.raises(ExpiredCalibration):
        load_mount(path)


@given(st.floats(-20, 20), st.floats(0.8, 1.2), st.floats(0, 3), st.floats(-1, 1), st.booleans())
def test_a_servo_is_told_what_makes_it_look_there(
    zero_deg: float, scale: float, backlash_deg: float, wanted_rad: float, upward: bool
) -> None:
    servo = TiltServo(zero_deg, scale, backlash_deg)
    assert servo.camera_tilt_rad(servo.command_rad(wanted_rad, upward), upward) == pytest.approx(wanted_rad, abs=1e-9)


def test_a_servo_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "servo.yaml"
    write_calibration(path, Stamp.now("tilt-servo", "lab-1", "", 30, "by hand", {}, {}), {"zero_deg": 1.5})
    assert load_content(path, TiltServo, "tilt-servo", "lab-1") == TiltServo(1.5)
    with pytest.raises(ForeignCalibration):
        load_content(path, TiltServo, "tilt-servo", "lab-2")
    with pytest.raises(ValueError):
        TiltServo(scale=0)
