"""``robot-runtime calibrate depth``: scale and bias of a depth sensor by AprilTags at several distances.

The true depth inside a tag's black square follows from its size and the color lens. The robot drives towards upright
tags to see them from near and far; a line through all samples is the correction. Calibrate the color lens first: a
focal length that is 1 % off makes every tag 1 % too far.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from calibration.camera import figures, tagged_site
from calibration.camera.raw_images import View, require_depth
from calibration.camera.tag_corners import tag_poses
from calibration.camera.tagged_site import SiteView
from calibration.operator_guide import Guide
from calibration.procedure import Fit, Procedure
from robot_runtime.actions.discrete import Displacement
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Robot
from robot_runtime.imaging.rig import RgbdCalibration

Array = NDArray[np.float64]

KIND = "depth"

TILTS_DEG = (-20.0, 0.0, 10.0)

MOVES = (Displacement(forward_m=0.3),) * 4

INNER_SHARE = 0.4
"""Half the edge of the evaluated square over the tag's edge; it excludes flying pixels at the edges."""

MIN_PIXELS = 12
MIN_SAMPLES = 10

MIN_SPAN_M = 0.7
"""Least range of distances; scale and bias are indistinguishable at one distance."""

TAG_SHARE = 0.003
"""Standard deviation of a tag's distance over its square, per meter, for corner errors of 0.1 pixels."""

MAX_SCALE = 0.06
"""Greatest plausible error of a sensor's scale; a larger one indicates a wrong tag size."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One tag in one image.

    Attributes:
        by_tag_m: distance along the depth sensor's axis by the tag's corners.
        measured_m: the same by the depth sensor.
    """

    by_tag_m: float
    measured_m: float


@dataclass(frozen=True, eq=False)
class Correction:
    """Correction of depth: true meters are ``scale * measured + bias_m``."""

    scale: float
    bias_m: float

    def of(self, measured_m: Array) -> Array:
        return self.scale * measured_m + self.bias_m


class DepthProcedure(Procedure[SiteView, Correction]):
    """Calibration of a depth sensor; see the module."""

    kind = KIND
    limits: Mapping[str, float] = {"error_mm": 15.0}

    def __init__(
        self, size_m: float, tilts_deg: Sequence[float] = TILTS_DEG, moves: Sequence[Displacement] = MOVES
    ) -> None:
        self._size_m, self._tilts_deg, self._moves = size_m, tilts_deg, moves

    def record(self, robot: Robot, guide: Guide) -> list[SiteView]:
        require_depth(robot.camera)
        return list(tagged_site.visit(robot, guide, self._size_m, self._tilts_deg, self._moves))

    def solve(self, captures: Sequence[SiteView]) -> Fit[Correction]:
        samples = self._samples(captures)
        distances = [sample.by_tag_m for sample in samples] or [0.0]
        span_m = max(distances) - min(distances)
        if len(samples) < MIN_SAMPLES or span_m < MIN_SPAN_M:
            raise CalibrationFailed(
                f"depth was measured on {len(samples)} tags over {span_m:.2f} m of distance; at least "
                f"{MIN_SAMPLES} over {MIN_SPAN_M:g} m are needed",
                "put up matt tags within the depth sensor's range, and give the robot 1.2 m to drive towards them",
            )
        correction = line(samples)
        if abs(correction.scale - 1) > MAX_SCALE:
            raise CalibrationFailed(
                f"depth would have to be scaled by {correction.scale:.3f}: probably the tags are not "
                f"{1000 * self._size_m:g} mm wide, or the lens is not the camera's",
                "measure the black square of a tag and give it as --tag-m, and calibrate intrinsics first",
            )
        rig = captures[0].view.rig
        before_m, after_m = _errors_m(Correction(1.0, 0.0), samples), _errors_m(correction, samples)
        residuals = {
            "error_mm": 1000 * float(np.median(np.abs(after_m))),
            "uncorrected_error_mm": 1000 * float(np.median(np.abs(before_m))),
            "scale": correction.scale,
            "bias_mm": 1000 * correction.bias_m,
        }
        method = (
            f"AprilTags of {1000 * self._size_m:g} mm, {len(samples)} at {min(distances):.2f} to {max(distances):.2f} m"
        )
        return Fit(correction, _corrected(rig, correction).to_document(), rig.serial, method, residuals)

    def verify(self, solution: Correction, held_out: Sequence[SiteView]) -> dict[str, float]:
        samples = self._samples(held_out)
        if not samples:
            raise CalibrationFailed("no held-out view has depth on a tag", "put up more tags")
        return {
            "error_mm": 1000 * float(np.median(np.abs(_errors_m(solution, samples)))),
            "uncorrected_error_mm": 1000 * float(np.median(np.abs(_errors_m(Correction(1.0, 0.0), samples)))),
            "tags": float(len(samples)),
        }

    def show(self, fit: Fit[Correction], held_out: Sequence[SiteView], guide: Guide) -> None:
        samples = self._samples(held_out)
        at_m = np.array([sample.by_tag_m for sample in samples])
        errors_mm = {
            "as measured": 1000 * _errors_m(Correction(1.0, 0.0), samples),
            "corrected": 1000 * _errors_m(fit.solution, samples),
        }
        guide.picture("depth.png", figures.errors_over_distance(at_m, errors_mm))

    def _samples(self, captures: Sequence[SiteView]) -> list[Sample]:
        samples = [
            measured(capture.view, pixels, self._size_m)
            for capture in captures
            for pixels in capture.tags.corners.values()
        ]
        return [sample for sample in samples if sample is not None]


def measured(view: View, pixels: Array, size_m: float) -> Sample | None:
    """Return the measured and the true depth inside a tag; None with too few measured pixels.

    Args:
        view: view with color and depth.
        pixels: float64 (4, 2), the tag's corners in the color image.
        size_m: edge of the black square.
    """
    rig = view.rig
    depth_from_tag = np.linalg.inv(rig.color_from_depth) @ tag_poses(rig.color, pixels, size_m)[0]
    face, middle = depth_from_tag[:3, 0], depth_from_tag[:3, 3]
    radius_m = INNER_SHARE * size_m
    corner = radius_m * np.array([(0, -1, -1), (0, 1, -1), (0, 1, 1), (0, -1, 1)])
    outline = rig.depth.project(corner @ depth_from_tag[:3, :3].T + middle)
    if not np.isfinite(outline).all():
        return None
    low, high = np.floor(outline.min(axis=0)).astype(int), np.ceil(outline.max(axis=0)).astype(int)
    columns = np.arange(max(0, low[0]), min(rig.depth.width, high[0] + 1))
    rows = np.arange(max(0, low[1]), min(rig.depth.height, high[1] + 1))
    if not (columns.size and rows.size):
        return None
    grid = np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)
    rays = rig.depth.rays(grid)
    expected_m = (face @ middle) / (rays @ face)
    on_tag = np.abs((rays * expected_m[:, None] - middle) @ depth_from_tag[:3, 1:]).max(axis=1) < radius_m
    depth_m = view.depth_m[grid[:, 1], grid[:, 0]].astype(np.float64)
    usable = on_tag & (depth_m > 0)
    if usable.sum() < max(MIN_PIXELS, on_tag.sum() / 2):
        return None
    return Sample(float(np.median(expected_m[usable])), float(np.median(depth_m[usable])))


def line(samples: Sequence[Sample]) -> Correction:
    """Fit the correction with a robust loss."""
    by_tag_m = np.array([sample.by_tag_m for sample in samples])
    measured_m = np.array([sample.measured_m for sample in samples])
    sigma_m = TAG_SHARE * by_tag_m**2 + 0.001

    def residuals(values: Array) -> Array:
        return np.asarray((values[0] * measured_m + values[1] - by_tag_m) / sigma_m)

    scale, bias_m = least_squares(residuals, np.array([1.0, 0.0]), loss="soft_l1").x.tolist()
    return Correction(scale, bias_m)


def _errors_m(correction: Correction, samples: Sequence[Sample]) -> Array:
    measured_m = np.array([sample.measured_m for sample in samples])
    return np.asarray(correction.of(measured_m) - np.array([sample.by_tag_m for sample in samples]))


def _corrected(rig: RgbdCalibration, correction: Correction) -> RgbdCalibration:
    """Return the calibration with the correction applied on top."""
    return replace(
        rig,
        depth_unit_m=rig.depth_unit_m * correction.scale,
        depth_bias_m=correction.scale * rig.depth_bias_m + correction.bias_m,
        source=KIND,
    )
