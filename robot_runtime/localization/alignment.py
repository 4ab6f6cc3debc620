"""Alignment of a beacon system's frame with the scene's map, from positions known in both.

The positions come from a short guided drive (the robot starts on a known pose of the map, and odometry gives its pose
at each measurement) or from surveyed points on which the robot stood. Either way::

    map_from_source · z_i  =  p_i + R(yaw_i) · lever

with the position z of the source's mark (hedgehog, tag), the robot's pose (p, yaw) in the map, and the mark's position
in base_link. With the rotation's cosine and sine as two free numbers, these equations are linear, and the length of
(cosine, sine) is the scale of the frame. Outliers are excluded by consensus (Fischler and Bolles 1981); the rest is
refined as a rigid motion of the plane.

A frame that is mirrored or in millimeters cannot be corrected by such a motion. It is detected, because it fits as soon
as it is mirrored or its scale is free, and reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.quantities import PartOffset
from robot_runtime.errors import CalibrationFailed
from robot_runtime.robots.calibration_file import Stamp, check_if_stamped

KIND = "localization"
"""Kind of the calibration that writes alignments."""

MIN_SAMPLES = 8
MIN_SPREAD_M = 0.25
"""Standard deviation of the positions along their longest axis: below, 2 cm of noise rotate the frame by degrees."""
MIN_TURN_RAD = math.radians(60)
"""Range of headings that is needed to solve for the mark's position on the robot."""
SCALE_TOLERANCE = 0.05
INLIER_M = 0.10
"""Five times the noise of ultrasonic beacons."""
MAX_RMS_M = 0.05
"""Residual above which the two sets of positions do not belong to one motion."""

_TRIALS = 100
_MIN_AGREEING = 0.6
"""Fraction of the positions that must agree; a moved beacon or a jump leaves fewer."""

Rows = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AlignmentSample:
    """One instant: the mark measured by the source, and the robot's pose.

    Attributes:
        x_m: x of the mark, in the source's frame.
        y_m: y of the mark, in the source's frame.
        robot: base_link in map at that instant.
        yaw_rad: the heading that the source measured; None if it measures none.
    """

    x_m: float
    y_m: float
    robot: SE2
    yaw_rad: float | None = None


@dataclass(frozen=True)
class Alignment(config.Strict):
    """The result of :func:`solve_alignment`, and the content of a file of :func:`load_alignment`.

    Attributes:
        map_from_source: transform from the source's frame to ``map``.
        lever_m: the mark in base_link, forward and left.
        yaw_offset_rad: angle to add to the source's heading, besides the rotation of the frame, to get the robot's;
            None if the source measures none.
        rms_m: distance between aligned and known positions, over the ``samples`` that were used; None in a manual file.
        max_m: largest such distance; None in a manual file.
        samples: number of samples used; 0 in a manual file.
        outliers: number of samples left out.
        calibration: stamp of the calibration; None in a manual file.
    """

    map_from_source: SE2
    lever_m: tuple[PartOffset, PartOffset] = (0.0, 0.0)
    yaw_offset_rad: float | None = None
    rms_m: float | None = None
    max_m: float | None = None
    samples: int = 0
    outliers: int = 0
    calibration: Stamp | None = None

    def robot_at(self, x_m: float, y_m: float, yaw_rad: float) -> SE2:
        """base_link in map, for a mark at (x, y) in the source's frame on a robot with heading ``yaw_rad`` in map."""
        mark_x_m, mark_y_m = self.map_from_source.apply(x_m, y_m)
        arm_x_m, arm_y_m = SE2(0.0, 0.0, yaw_rad).apply(*self.lever_m)
        return SE2(mark_x_m - arm_x_m, mark_y_m - arm_y_m, yaw_rad)

    def heading(self, yaw_rad: float) -> float | None:
        """The robot's heading in map for a heading of the source; None if the offset is unknown."""
        if self.yaw_offset_rad is None:
            return None
        return wrap_angle(self.map_from_source.yaw_rad + yaw_rad + self.yaw_offset_rad)


def load_alignment(path: Path, robot: str | None = None) -> Alignment:
    """The alignment in a YAML file that ``robot-runtime calibrate localization`` or a person wrote.

    Args:
        path: path of the file.
        robot: name that a calibrated file must carry; None to accept any.

    Raises:
        ConfigError: naming file and field.
        CalibrationError: a calibrated file that was changed, belongs to another robot, or is too old.
    """
    document = config.read_yaml(path)
    check_if_stamped(path, document, KIND, robot)
    return config.parse(document, Alignment, str(path))


def solve_alignment(samples: Sequence[AlignmentSample], lever_m: tuple[float, float] | None = (0.0, 0.0)) -> Alignment:
    """Fit the rigid motion of the plane that explains most of ``samples``.

    Args:
        samples: samples in any order; see :data:`MIN_SAMPLES` and :data:`MIN_SPREAD_M`.
        lever_m: the mark in base_link; None to solve for it too, for which the robot must have turned by
            :data:`MIN_TURN_RAD`.

    Raises:
        CalibrationFailed: too few samples or too little motion, a frame that is mirrored or in another unit, or
            positions that no motion explains. The message has the numbers.
    """
    equations = _Equations.of(samples, lever_m)
    equations.check_motion()
    fits = equations.consensus()
    if np.count_nonzero(fits) < _MIN_AGREEING * len(samples):
        raise _no_motion_error(equations)
    agreed = equations.select(fits)
    scale = agreed.scale()
    if abs(scale - 1) > SCALE_TOLERANCE:
        raise _wrong_scale_error(scale)

    solution = agreed.motion()
    errors_m = agreed.errors_m(solution)
    rms_m = float(np.sqrt(np.mean(errors_m**2)))
    if rms_m > MAX_RMS_M:
        raise CalibrationFailed(
            f"alignment: known and measured positions differ by {rms_m:.3f} m rms, {MAX_RMS_M:g} m is allowed",
            "check that the robot started on the stated pose and did not slip, keep the beacons in sight, and repeat "
            "the drive",
        )
    yaw_rad = math.atan2(solution[1], solution[0])
    solved = [float(value) for value in solution]
    return Alignment(
        map_from_source=SE2(solved[2], solved[3], yaw_rad),
        lever_m=lever_m or (solved[4], solved[5]),
        yaw_offset_rad=_yaw_offset([sample for sample, good in zip(samples, fits, strict=True) if good], yaw_rad),
        rms_m=rms_m,
        max_m=float(errors_m.max()),
        samples=len(agreed),
        outliers=int(np.count_nonzero(~fits)),
    )


@dataclass(frozen=True)
class _Equations:
    """Two rows for each sample: ``design @ (cosine, sine, x, y[, lever forward, lever left]) = known``."""

    source: Rows
    robot: Rows
    design: Rows
    known: Rows

    @classmethod
    def of(cls, samples: Sequence[AlignmentSample], lever_m: tuple[float, float] | None) -> _Equations:
        source = np.array([(s.x_m, s.y_m) for s in samples], np.float64).reshape(-1, 2)
        robot = np.array([(s.robot.x_m, s.robot.y_m, s.robot.yaw_rad) for s in samples], np.float64).reshape(-1, 3)
        (x, y), (c, s) = source.T, (np.cos(robot[:, 2]), np.sin(robot[:, 2]))
        ones, zeros = np.ones_like(x), np.zeros_like(x)
        columns = [(x, y), (-y, x), (ones, zeros), (zeros, ones)]
        known = robot[:, :2]
        if lever_m is None:
            columns += [(-c, -s), (s, -c)]
        else:
            forward_m, left_m = lever_m
            known = known + np.stack((c * forward_m - s * left_m, s * forward_m + c * left_m), -1)
        design = np.stack([np.stack(pair, -1).ravel() for pair in columns], -1)
        return cls(source, robot, design, known.ravel())

    def __len__(self) -> int:
        return len(self.source)

    @property
    def solves_lever(self) -> bool:
        return bool(self.design.shape[1] == 6)

    def select(self, chosen: NDArray[Any]) -> _Equations:
        """The equations of some samples, by mask or index."""
        design, known = self.design.reshape(len(self), 2, -1)[chosen], self.known.reshape(len(self), 2)[chosen]
        return _Equations(self.source[chosen], self.robot[chosen], design.reshape(-1, design.shape[-1]), known.ravel())

    def mirrored(self) -> _Equations:
        """The equations with the source's y axis reversed."""
        design = self.design.copy()
        # The columns of cosine and sine are (x, y) and (-y, x); with -y for y they are (x, -y) and (y, x).
        design[:, :2] *= np.array([[1, -1], [-1, 1]] * len(self))
        return _Equations(self.source * (1, -1), self.robot, design, self.known)

    def free(self) -> Rows:
        """Least squares with the length of (cosine, sine) free."""
        return np.asarray(np.linalg.lstsq(self.design, self.known, rcond=None)[0])

    def scale(self) -> float:
        solution = self.free()
        return math.hypot(solution[0], solution[1])

    def motion(self) -> Rows:
        """Least squares with (cosine, sine) of length 1."""

        def coefficients(parameters: Rows) -> Rows:
            return np.concatenate(([math.cos(parameters[0]), math.sin(parameters[0])], parameters[1:]))

        start = self.free()
        first = np.concatenate(([math.atan2(start[1], start[0])], start[2:]))
        fit = least_squares(lambda parameters: self.design @ coefficients(parameters) - self.known, first)
        return coefficients(fit.x)

    def errors_m(self, solution: Rows) -> Rows:
        """Distance between aligned and known position of each sample."""
        off = self.design @ solution - self.known
        return np.asarray(np.hypot(off[0::2], off[1::2]))

    def consensus(self) -> NDArray[np.bool_]:
        """Mask of the largest set of samples that one solution, of any scale, brings within :data:`INLIER_M`."""
        random = np.random.default_rng(0)
        least = 3 if self.solves_lever else 2
        best = np.zeros(len(self), np.bool_)
        for _ in range(_TRIALS):
            chosen = random.choice(len(self), least, replace=False)
            fits = self.errors_m(self.select(chosen).free()) < INLIER_M
            if np.count_nonzero(fits) > np.count_nonzero(best):
                best = fits
        # All inliers give a better direction than the two noisy positions that selected them.
        return self.errors_m(self.select(best).free()) < INLIER_M

    def check_motion(self) -> None:
        if len(self) < MIN_SAMPLES:
            raise CalibrationFailed(
                f"alignment: {len(self)} positions are known in both frames, {MIN_SAMPLES} are needed",
                "drive longer, or visit more surveyed points",
            )
        if not (np.isfinite(self.source).all() and np.isfinite(self.robot).all()):
            raise CalibrationFailed("alignment: a position is not finite", "leave out samples without a position")
        spread_m = float(np.sqrt(np.linalg.eigvalsh(np.cov(self.robot[:, :2].T)).max()))
        if spread_m < MIN_SPREAD_M:
            raise CalibrationFailed(
                f"alignment: the robot's positions spread by {spread_m:.2f} m only, {MIN_SPREAD_M:g} m are needed to "
                "determine the rotation",
                "drive an L of a meter or more each way",
            )
        headings = np.exp(1j * self.robot[:, 2])
        turned_rad = (
            float(np.ptp(np.angle(headings * np.conj(headings.mean())))) if abs(headings.mean()) > 1e-9 else math.pi
        )
        if self.solves_lever and turned_rad < MIN_TURN_RAD:
            raise CalibrationFailed(
                f"alignment: the robot turned by {math.degrees(turned_rad):.0f}° only, "
                f"{math.degrees(MIN_TURN_RAD):.0f}° are needed to determine the position of the mark on it",
                "turn during the drive, or state the position of the mark",
            )


def _no_motion_error(equations: _Equations) -> CalibrationFailed:
    """The error that explains why no motion fits."""
    if np.count_nonzero(equations.mirrored().consensus()) >= _MIN_AGREEING * len(equations):
        return CalibrationFailed(
            "alignment: the source's frame is mirrored: its positions fit only with one axis reversed",
            "swap two of the system's axes, or enter its beacons as seen from above, with y to the left of x",
        )
    fits = np.count_nonzero(equations.consensus())
    return CalibrationFailed(
        f"alignment: only {fits} of {len(equations)} positions agree with one motion of the plane to {INLIER_M:g} m",
        "a beacon was moved, the robot slipped or started elsewhere than stated, or the source jumps: repeat the drive "
        "in sight of the beacons",
    )


def _wrong_scale_error(scale: float) -> CalibrationFailed:
    unit = {-3: "millimeters", -2: "centimeters"}.get(round(math.log10(scale)) if scale > 0 else 0)
    guess = f"it seems to be in {unit}" if unit else "the beacons' positions or the size of the wheels are wrong"
    return CalibrationFailed(
        f"alignment: one unit of the source's frame is {scale:.4g} m: {guess}",
        "correct the source's unit or its map of beacons, then repeat",
    )


def _yaw_offset(samples: Sequence[AlignmentSample], frame_yaw_rad: float) -> float | None:
    """Circular mean of the difference between the robot's headings and the source's."""
    off = [s.robot.yaw_rad - frame_yaw_rad - s.yaw_rad for s in samples if s.yaw_rad is not None]
    if not off:
        return None
    mean = np.exp(1j * np.array(off)).mean()
    if abs(mean) < 0.9:
        raise CalibrationFailed(
            "alignment: the source's heading does not turn with the robot's",
            "check the sense of its angles and the mounting of its pair of beacons",
        )
    return float(np.angle(mean))
