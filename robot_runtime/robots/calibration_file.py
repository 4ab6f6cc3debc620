"""Calibration files: the configuration file of a device or model, with a stamp of its origin and validity.

::

    calibration:                      # the stamp
      schema: 1
      kind: extrinsics                # which `robot-runtime calibrate` wrote it
      robot: lab-1                    # `name` in the robot's YAML
      device: '001514394512'          # serial number of the calibrated device; '' where it has none
      created: '2026-11-22T05:40:00+00:00'
      valid_days: 180.0               # reading it later is an error
      method: AprilTags, 24 views, 4 stations
      versions: {robot_runtime: 0.2.0, commit: 81e46c3, numpy: 2.4.6, ...}
      residuals: {reprojection_px: 0.21}      # on the captures used for solving
      held_out: {reprojection_px: 0.24}       # on other captures
      sha256: 9f2c...                 # of everything else in the document
    pan_joint_m: [0.0, 0.0, 0.88]     # the content, here a camera mount
    ...

A calibrated mount is a mount, a calibrated pair of lenses is a pair of lenses, and one reader checks all stamps.
"""

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from robot_runtime.common import config
from robot_runtime.common.clock import utc_now_iso
from robot_runtime.common.provenance import provenance
from robot_runtime.common.yaml_text import dump_yaml
from robot_runtime.errors import AlteredCalibration, CalibrationError, ExpiredCalibration, ForeignCalibration
from robot_runtime.hal.motors import MotorModel

T = TypeVar("T")

STAMP = "calibration"
"""Key of the stamp in a document."""

SECONDS_PER_DAY = 86400


@dataclass(frozen=True)
class Stamp(config.Strict):
    """Origin and quality of a calibration; see the module's docstring for the fields.

    Attributes:
        created: ISO 8601 with its offset from UTC.
        residuals: figures by name, with the unit in the name.
        held_out: figures of held-out data by name, with the unit in the name.
        sha256: 64 hexadecimal digits; empty until the file is written.
    """

    kind: str
    robot: str
    device: str
    created: str
    valid_days: float
    method: str
    versions: dict[str, str]
    residuals: dict[str, float]
    held_out: dict[str, float]
    sha256: str = ""
    schema: Literal[1] = 1

    def __post_init__(self) -> None:
        if not (self.kind and self.robot):
            raise ValueError("'kind' and 'robot' cannot be empty")
        config.check_positive(self, "valid_days")
        if dt.datetime.fromisoformat(self.created).tzinfo is None:
            raise ValueError(f"created must say its offset from UTC, got {self.created!r}")

    @classmethod
    def now(
        cls,
        kind: str,
        robot: str,
        device: str,
        valid_days: float,
        method: str,
        residuals: Mapping[str, float],
        held_out: Mapping[str, float],
    ) -> "Stamp":
        """A stamp of the current time and of this installation's versions."""
        here = provenance()
        libraries = {name: here["libraries"].get(name) for name in ("numpy", "scipy", "opencv-python-headless")}
        versions = {"robot_runtime": here["robot_runtime"], "commit": here["commit"], **libraries}
        known = {name: version for name, version in versions.items() if version is not None}
        return cls(kind, robot, device, utc_now_iso(), valid_days, method, known, _floats(residuals), _floats(held_out))

    def age_days(self, now: str) -> float:
        """Days from ``created`` to ``now`` (ISO 8601)."""
        then = dt.datetime.fromisoformat(self.created)
        return (dt.datetime.fromisoformat(now) - then).total_seconds() / SECONDS_PER_DAY


@dataclass(frozen=True)
class CalibrationFile:
    """A stamp and its document without the stamp.

    Attributes:
        content: mappings, lists, strings and numbers; parse it with ``config.parse(content, Class, str(path))``.
    """

    path: Path
    stamp: Stamp
    content: Mapping[str, Any] = field(default_factory=dict)


def write_calibration(path: Path, stamp: Stamp, content: Mapping[str, Any]) -> CalibrationFile:
    """Write a calibration atomically, and return it with its hash.

    Args:
        path: path of the file.
        stamp: stamp without a hash.
        content: the document: finite numbers, strings, lists, mappings (``config.unparse``).

    Raises:
        ValueError: ``content`` has a key ``calibration``, or values that YAML or JSON cannot represent.
    """
    if STAMP in content:
        raise ValueError(f"the content must not have the key {STAMP!r}: it is the stamp's")
    # Through JSON, so that tuples become lists as they will be read.
    plain = json.loads(json.dumps(dict(content), allow_nan=False))
    signed = replace(stamp, sha256="")
    signed = replace(stamp, sha256=_digest({STAMP: config.unparse(signed), **plain}))
    from robot_runtime.common.creating import creating

    with creating(path) as draft:
        draft.write_text(dump_yaml({STAMP: config.unparse(signed), **plain}, width=120), encoding="utf-8")
    return CalibrationFile(path, signed, plain)


def open_calibration(path: Path) -> CalibrationFile:
    """Read an unaltered calibration of any kind, robot and age.

    Raises:
        ConfigError: no such file, malformed YAML or stamp.
        CalibrationError: there is no stamp.
        AlteredCalibration: the content was changed after it was written.
    """
    document = config.read_yaml(path)
    if not isinstance(document, dict) or STAMP not in document:
        raise CalibrationError(
            f"{path}: not a calibration file: field {STAMP!r} is missing",
            "use a file that `robot-runtime calibrate` wrote, or convert another program's: "
            f"`robot-runtime calibrate import {path} --robot ROBOT --out FILE`",
        )
    return _opened(path, document)


def read_calibration(
    path: Path, kind: str, robot: str, device: str | None = None, now: str | None = None
) -> CalibrationFile:
    """Read a valid calibration of a kind, robot and device.

    Args:
        path: path of the file.
        kind: kind of the calibration.
        robot: its name.
        device: serial number; None if unknown.
        now: ISO 8601; the present by default.

    Raises:
        ConfigError: no such file, malformed YAML or stamp.
        CalibrationError: no stamp, or another kind of calibration.
        AlteredCalibration: it was changed.
        ForeignCalibration: it belongs to another robot or device.
        ExpiredCalibration: it is too old.
    """
    if not path.exists():
        what = f"{path}: no such file, which is named as the {kind} calibration of robot {robot!r}"
        raise CalibrationError(what, "check the path, or calibrate again: `robot-runtime calibrate --help`")
    file = open_calibration(path)
    check_stamp(file, kind, robot, device, now)
    return file


def load_content(path: Path, content: type[T], kind: str, robot: str) -> T:
    """Read the content of a robot's calibration as a dataclass. Raises as :func:`read_calibration`."""
    return config.parse(dict(read_calibration(path, kind, robot).content), content, str(path))


def check_if_stamped(path: Path, document: Any, kind: str, robot: str | None = None) -> None:
    """Check the stamp of a document if it has one: it must be unaltered, valid, and of the kind and robot.

    Args:
        path: path of the document, for messages.
        document: result of ``config.read_yaml(path)``.
        kind: kind of the calibration.
        robot: its name; None if unknown.

    Raises:
        ConfigError: malformed stamp.
        CalibrationError: another kind, or as :func:`read_calibration`.
    """
    if isinstance(document, dict) and STAMP in document:
        check_stamp(_opened(path, document), kind, robot)


def calibrations_in(configuration: Any) -> dict[str, str]:
    """The calibrations that a robot's configuration names, for logs: sha256 by path.

    Args:
        configuration: mappings, lists and values; every text that is the path of a YAML file is read.

    Raises:
        ConfigError: malformed YAML.
        AlteredCalibration: a calibration was changed after it was written.
    """
    if isinstance(configuration, Mapping):
        return calibrations_in(list(configuration.values()))
    if isinstance(configuration, list | tuple):
        return {path: sha256 for value in configuration for path, sha256 in calibrations_in(value).items()}
    if not isinstance(configuration, str) or not configuration.endswith((".yaml", ".yml")):
        return {}
    path = Path(configuration)
    document = config.read_yaml(path) if path.is_file() else None
    if not isinstance(document, dict) or STAMP not in document:
        return {}
    return {configuration: _opened(path, document).stamp.sha256}


def check_stamp(
    file: CalibrationFile, kind: str, robot: str | None, device: str | None = None, now: str | None = None
) -> None:
    """Raise unless the calibration is of this kind, robot and device (None: any), and still valid."""
    path, stamp = file.path, file.stamp
    if stamp.kind != kind:
        raise CalibrationError(f"{path}: is a calibration of {stamp.kind!r}, not of {kind!r}", remedy(kind, robot))
    if robot is not None and stamp.robot != robot:
        raise ForeignCalibration(
            f"{path}: was made on robot {stamp.robot!r}, and this is {robot!r}", remedy(kind, robot)
        )
    if device is not None and stamp.device != device:
        raise ForeignCalibration(
            f"{path}: is of device {stamp.device!r}, and {robot!r} has {device!r}", remedy(kind, robot)
        )
    age_days = stamp.age_days(now or utc_now_iso())
    if age_days > stamp.valid_days:
        raise ExpiredCalibration(
            f"{path}: is {age_days:.0f} days old (made {stamp.created}), and valid for {stamp.valid_days:g}",
            remedy(kind, robot or stamp.robot),
        )
    if age_days < -1:
        raise ExpiredCalibration(
            f"{path}: was made {-age_days:.0f} days in the future ({stamp.created})", "set this computer's clock"
        )


def remedy(kind: str, robot: str | None) -> str:
    """The remedy for a calibration that cannot be used."""
    return f"recalibrate: `robot-runtime calibrate {kind} --robot {robot or 'ROBOT'} --out FILE`"


def _opened(path: Path, document: Mapping[str, Any]) -> CalibrationFile:
    stamp = config.parse(document[STAMP], Stamp, f"{path}: field {STAMP!r}")
    unsigned = {**document, STAMP: {**document[STAMP], "sha256": ""}}
    digest = _digest(unsigned)
    if digest != stamp.sha256:
        raise AlteredCalibration(
            f"{path}: was changed after it was written: its sha256 is {stamp.sha256[:12] or 'missing'}, "
            f"that of its content {digest[:12]}",
            f"restore the file, or {remedy(stamp.kind, stamp.robot)}",
        )
    return CalibrationFile(path, stamp, {key: value for key, value in document.items() if key != STAMP})


def _digest(document: Mapping[str, Any]) -> str:
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _floats(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(float(value), 6) for name, value in figures.items()}


MOTORS = "motors"
"""Kind of the calibration of a base's motors."""


@dataclass(frozen=True)
class MotorCalibration(config.Strict):
    """Content of the file that ``calibrate motors`` writes, and the robot's YAML names as ``motors``.

    ::

        model: {dead_time_s: 0.198, lag_s: 0.103, gain: [0.988, 1.012], threshold_m_s: [0.021, 0.034],
                speed_quantum_m_s: 0.0, accel_m_s2: null, separation_m: 0.23}
        intervals: {dead_time_s: [0.196, 0.2], ...}

    Attributes:
        model: model of the motors.
        intervals: 95 % intervals of the model's values, by name.
    """

    model: MotorModel
    intervals: dict[str, tuple[float, float]]
