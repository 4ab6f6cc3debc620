"""Differences of a recorded and a simulated image: depth errors per pixel, color by PSNR and SSIM."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

FAR_OFF_M = 0.05
"""A pixel with a larger depth error shows another object, or the other side of an edge."""

BANDS = 24
"""Horizontal bands of an image, top to bottom, whose bias is computed separately."""

_WINDOW, _SIGMA_PX, _C1, _C2 = (11, 11), 1.5, (0.01 * 255) ** 2, (0.03 * 255) ** 2
"""SSIM's constants (Wang et al. 2004)."""


@dataclass(frozen=True)
class DepthError:
    """Statistics of recorded minus simulated depth.

    Edges are included, where a shift of a pixel makes an error of meters. So ``mean_abs_mm`` and ``p95_mm`` measure
    how well outlines agree, ``median_mm`` and ``bias_mm`` how well surfaces do.

    Attributes:
        compared: share of the image with both depths; the errors are of these pixels, None if there are none.
        missing_recorded: share of the image with simulated depth only.
        missing_twin: share of the image with recorded depth only.
        mean_abs_mm: mean absolute error.
        median_mm: median absolute error.
        p95_mm: 95th percentile of the absolute error.
        bias_mm: median of the signed errors.
        far_off: share of the compared pixels with an error above :data:`FAR_OFF_M`.
        bands_mm: the bias of each of :data:`BANDS` horizontal bands, top first; None where nothing is compared.
    """

    compared: float
    missing_recorded: float
    missing_twin: float
    mean_abs_mm: float | None = None
    median_mm: float | None = None
    p95_mm: float | None = None
    bias_mm: float | None = None
    far_off: float | None = None
    bands_mm: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class ColorError:
    """Difference of two color images of the same view.

    Attributes:
        mean_abs: mean absolute difference over all channels, of 255.
        psnr_db: None if the images are identical.
        ssim: structural similarity of the luminance (Wang et al. 2004).
    """

    mean_abs: float
    psnr_db: float | None
    ssim: float


def depth_error_m(recorded_m: Floats, simulated_m: Floats) -> Floats:
    """Recorded minus simulated depth, float32 (H, W); NaN where either is 0."""
    return np.where((recorded_m > 0) & (simulated_m > 0), recorded_m - simulated_m, np.float32(np.nan))


def depth_error(recorded_m: Floats, simulated_m: Floats) -> DepthError:
    """Compare two depth images, float32 (H, W), meters, 0 where nothing is seen."""
    error_m = depth_error_m(recorded_m, simulated_m)
    both = ~np.isnan(error_m)
    shares = (
        float(both.mean()),
        float(((recorded_m <= 0) & (simulated_m > 0)).mean()),
        float(((recorded_m > 0) & (simulated_m <= 0)).mean()),
    )
    errors_mm = 1000 * error_m[both].astype(np.float64)
    if not errors_mm.size:
        return DepthError(*shares)
    absolute_mm = np.abs(errors_mm)
    median_mm, p95_mm = np.percentile(absolute_mm, (50, 95))
    return DepthError(
        *shares,
        mean_abs_mm=float(absolute_mm.mean()),
        median_mm=float(median_mm),
        p95_mm=float(p95_mm),
        bias_mm=float(np.median(errors_mm)),
        far_off=float((absolute_mm > 1000 * FAR_OFF_M).mean()),
        bands_mm=tuple(_bias_mm(band) for band in np.array_split(error_m, BANDS)),
    )


def _bias_mm(error_m: Floats) -> float | None:
    errors_m = error_m[~np.isnan(error_m)]
    return 1000 * float(np.median(errors_m)) if errors_m.size else None


def color_error(recorded: NDArray[np.uint8], simulated: NDArray[np.uint8]) -> ColorError:
    """Compare two color images, uint8 (H, W, 3)."""
    mean_abs, squared = (cv2.norm(recorded, simulated, kind) / recorded.size for kind in (cv2.NORM_L1, cv2.NORM_L2SQR))
    psnr_db = 10 * math.log10(255**2 / squared) if squared > 0 else None
    return ColorError(mean_abs, psnr_db, _ssim(_luminance(recorded), _luminance(simulated)))


def _luminance(rgb: NDArray[np.uint8]) -> Floats:
    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), np.float32)


def _ssim(a: Floats, b: Floats) -> float:
    mean_a, mean_b = _blurred(a), _blurred(b)
    variance_a, variance_b = _blurred(a * a) - mean_a * mean_a, _blurred(b * b) - mean_b * mean_b
    covariance = _blurred(a * b) - mean_a * mean_b
    similarity = (2 * mean_a * mean_b + _C1) * (2 * covariance + _C2)
    similarity /= (mean_a * mean_a + mean_b * mean_b + _C1) * (variance_a + variance_b + _C2)
    return float(similarity.mean(dtype=np.float64))


def _blurred(image: Floats) -> Floats:
    return np.asarray(cv2.GaussianBlur(image, _WINDOW, _SIGMA_PX), np.float32)
