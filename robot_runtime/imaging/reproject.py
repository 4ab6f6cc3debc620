"""Reprojection of a calibrated color and depth pair into the ideal pinhole camera of a policy's training.

The target camera stands in the color sensor's optical center, rotated by the caller's matrix. Color therefore needs no
depth: it is looked up through precomputed maps, without gaps behind edges. Depth is drawn as a surface into the target
(:mod:`robot_runtime.imaging.raster`); pixels without a surface are holes.
"""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.raster import SPAN_ROWS, depth_of, draw_surface
from robot_runtime.imaging.rig import RgbdCalibration

GRAZING_DEG = 87.0
"""A surface at a flatter angle to the depth sensor counts as an edge between two surfaces."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Reprojected:
    """The target camera's images. The arrays belong to the reprojector and change with its next call.

    Attributes:
        rgb: uint8 (H, W, 3), black outside the color sensor's view.
        depth_m: float32 (H, W), along the target's optical axis; 0 where there is no measurement.
        holes: bool (H, W), where there is none.
    """

    rgb: NDArray[np.uint8]
    depth_m: NDArray[np.float32]
    holes: NDArray[np.bool_]


class Reprojector:
    """Reprojection of pairs without memory allocation.

    Args:
        calibration: calibration of the pair.
        target: the training camera's pinhole.
        color_from_target: float64 (3, 3), rotation from the target's optical frame to the color sensor's; None for
            none.
        depth_range_m: depths outside are holes.

    Attributes:
        unseen: bool (H, W), target pixels outside the color sensor's view.
    """

    def __init__(
        self,
        calibration: RgbdCalibration,
        target: Intrinsics,
        color_from_target: Matrix | None = None,
        depth_range_m: tuple[float, float] = (0.1, 65.0),
    ) -> None:
        near_m, far_m = depth_range_m
        if not 0 < near_m < far_m:
            raise ValueError(f"need 0 < near < far, got {depth_range_m}")
        self.calibration = calibration
        self.target = target
        turn = np.eye(3) if color_from_target is None else np.asarray(color_from_target, np.float64)
        size = (target.height, target.width)
        self._result = Reprojected(np.zeros((*size, 3), np.uint8), np.zeros(size, np.float32), np.zeros(size, np.bool_))
        self._inverse = np.zeros(size, np.float32)
        self._prepare_color(calibration.color, turn)
        self._prepare_depth(calibration, turn, near_m, far_m)

    def __call__(self, color: NDArray[np.uint8], depth: NDArray[np.uint16] | None) -> Reprojected:
        """Reproject one pair.

        Args:
            color: uint8 (h, w, 3), of the calibration's size.
            depth: uint16 (h, w), of the calibration's size; None for all holes.

        Raises:
            DeviceFault: for an image of another size or type, that is, of another mode than the calibration's.
        """
        result = self._result
        self._check("color", color, (*self._color_size, 3), np.dtype(np.uint8))
        if self._reduced is not None:
            height, width = self._reduced.shape[:2]
            color = color[: height * self._reduction, : width * self._reduction]
            cv2.resize(color, (width, height), self._reduced, interpolation=cv2.INTER_AREA)
            color = self._reduced
        cv2.remap(color, *self._color_maps, cv2.INTER_LINEAR, result.rgb, cv2.BORDER_CONSTANT)
        if depth is None:
            result.depth_m.fill(0)
            result.holes.fill(True)
            return result
        self._check("depth", depth, self._depth_size, np.dtype(np.uint16))
        np.copyto(self._depth, depth)  # the compiled code needs a writeable, contiguous array
        unit_m, bias_m, near_m, far_m, steepest = self._scalars
        draw_surface(
            self._depth,
            self._rays,
            self._origin,
            unit_m,
            bias_m,
            near_m,
            far_m,
            steepest,
            self._vertices,
            self._spans,
            self._inverse,
        )
        depth_of(self._inverse, near_m, far_m, result.depth_m, result.holes)
        return result

    def warm_up(self) -> None:
        """Reproject empty images, so that compiled code is loaded and memory is touched before the first real ones."""
        self(np.zeros((*self._color_size, 3), np.uint8), np.zeros(self._depth_size, np.uint16))

    def _prepare_color(self, color: Lens, turn: Matrix) -> None:
        """Maps from target pixels to color pixels; a far finer image is first reduced by an integer factor."""
        self._color_size = (color.height, color.width)
        pixels = color.project(Lens.of(self.target).pixel_rays() @ turn.T)
        self.unseen = ~color.holds(pixels)
        reduction = max(1, int(color.fx / self.target.fx))
        size = (color.height // reduction, color.width // reduction)
        self._reduction = reduction
        self._reduced = np.zeros((*size, 3), np.uint8) if reduction > 1 else None
        pixels = (pixels + 0.5) / reduction - 0.5
        clipped = np.clip(pixels, 0, (size[1] - 1, size[0] - 1))
        clipped[self.unseen] = -2  # outside by more than a pixel, so that the border is not interpolated
        maps = clipped.astype(np.float32)
        self._color_maps = cv2.convertMaps(maps[..., 0], maps[..., 1], cv2.CV_16SC2)

    def _prepare_depth(self, calibration: RgbdCalibration, turn: Matrix, near_m: float, far_m: float) -> None:
        """Rays and origin of the depth sensor in the target's pixels, for :func:`draw_surface`."""
        lens, matrix = calibration.depth, calibration.color_from_depth
        self._depth_size = (lens.height, lens.width)
        camera = Lens.of(self.target).matrix
        directions = lens.pixel_rays()
        directions[np.isnan(directions[..., 0])] = 0  # no ray
        rays = np.moveaxis(directions @ (camera @ turn.T @ matrix[:3, :3]).T, -1, 0)
        self._depth = np.zeros(self._depth_size, np.uint16)
        self._vertices = np.zeros((2, 3, lens.width), np.float32)
        self._spans = np.zeros((SPAN_ROWS, lens.width), np.int32)
        self._rays = np.ascontiguousarray(rays, np.float32)
        self._origin = (camera @ turn.T @ matrix[:3, 3]).astype(np.float32)
        # float32 like the images, because numba would compile again for Python floats.
        self._scalars = (
            np.float32(calibration.depth_unit_m),
            np.float32(calibration.depth_bias_m),
            np.float32(near_m),
            np.float32(far_m),
            np.float32(math.tan(math.radians(GRAZING_DEG)) / max(lens.fx, lens.fy)),
        )

    def _check(
        self, what: str, image: NDArray[np.generic], shape: tuple[int, ...], dtype: np.dtype[np.generic]
    ) -> None:
        if image.shape != shape or image.dtype != dtype:
            raise DeviceFault(
                f"camera {self.calibration.serial}: a {what} image is {image.dtype} {image.shape}, its calibration is "
                f"for {dtype} {shape}",
                "use the calibration of the mode that the camera runs in",
            )
