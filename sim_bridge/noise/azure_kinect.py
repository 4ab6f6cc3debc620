"""An Azure Kinect's time-of-flight depth.

=================  =================================================================================================
range bias         constant, proportional, and periodic ("wiggling", four periods per half wavelength of the highest
                   modulation, 320 MHz: Bamji et al., ISSCC 2018); data sheet: below 11 mm + 0.1 % of the distance
axial noise        grows with the square of the distance and with the angle of incidence, as less light comes back;
                   at most 17 mm by the data sheet; measured 1 to 4 mm between 1 and 3.5 m (Tölgyessy et al., Sensors
                   2021, 21(2):413; Kurillo et al., Sensors 2022, 22(7):2469)
lateral noise      a pixel measures at a neighbor's place (Nguyen, Izadi and Lovell, 3DIMPVT 2012, for its predecessor)
flying pixels      on an edge the returns of both surfaces mix, weighted by the light that each sends; most such pixels
                   are found by the device and left out (Tölgyessy et al., section 3.6)
multipath          in corners light comes back by way of another surface and makes them rounder: one diffuse bounce of
                   every surface in view (Jiménez et al., "Modeling and correction of multipath interference in time of
                   flight cameras", Image and Vision Computing 2014)
mask               the illuminator of the narrow modes fills a hexagon, as on the published recording of a real unit
                   (pyk4a's test asset); the wide modes fill a circle of 120 degrees
=================  =================================================================================================
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from robot_runtime.common.config import NonNegative, Positive, Strict
from robot_runtime.common.quantities import DepthError, Spread
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import DepthNoise
from robot_runtime.imaging.depth import jumps
from sim_bridge.noise.bounce import one_bounce
from sim_bridge.noise.surface import Floats, normals, pixel_rays, range_factor

WIGGLE_M = 299_792_458 / 320e6 / 2 / 4
HEXAGON = ((-0.03, 0.52), (0.23, 0.0), (0.78, 0.0), (1.07, 0.52), (0.81, 1.0), (0.23, 1.0))
"""Corners as fractions of width and height."""

JUMP = 0.04
"""Share of the depth by which neighbors on different surfaces are apart."""

COARSE = 8
"""Multipath changes slowly over the image: it is computed at an eighth of its size."""

RINGS = ((1, 8), (2, 8), (4, 8), (8, 12), (16, 16), (30, 16))
"""Radii in coarse pixels, and directions per ring, from which light may come by one bounce."""

Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class AzureKinectOptions(Strict):
    """Its options, with the model's name.

    Attributes:
        bias_m: constant bias of the range.
        bias_share: bias per meter of range.
        wiggle_m: amplitude of the periodic bias.
        axial_m: standard deviation at short range.
        axial_growth: growth of the standard deviation per square meter.
        lateral_px: standard deviation of the lateral error.
        flying: share of the pixels on an edge that become flying pixels.
        edge_holes: share of the pixels on an edge that are left out.
        multipath: share of the light between surfaces that reaches the device; 0 for none.
        reflectivity: reflectivity of all surfaces, in the infrared.
        max_signal_m: greatest measured distance of a white surface that is seen at a right angle.
        mask: ``auto`` is a hexagon where the image is not square.
    """

    model: Literal["azure_kinect"] = "azure_kinect"
    bias_m: DepthError = 0.002
    bias_share: float = 0.0005
    wiggle_m: Spread = 0.001
    axial_m: Spread = 0.0007
    axial_growth: NonNegative = 0.00015
    lateral_px: NonNegative = 0.3
    flying: Share = 0.3
    edge_holes: Share = 0.4
    multipath: Share = 0.15
    reflectivity: Annotated[float, Field(gt=0, le=1)] = 0.5
    max_signal_m: Positive = 10.0
    mask: Literal["auto", "hexagon", "none"] = "auto"


class AzureKinectNoise(DepthNoise):
    """The depth noise of an Azure Kinect, as the module describes it."""

    def __init__(self, options: AzureKinectOptions) -> None:
        self._options = options

    def measure(self, depth_m: Floats, lens: Lens, random: np.random.Generator) -> Floats:
        options, factor = self._options, range_factor(lens)
        depth = shifted(depth_m, options.lateral_px, random) if options.lateral_px else depth_m.copy()
        attenuation, excess_m = self._light(depth_m, lens)
        range_m = depth * factor
        wiggle = np.sin(range_m * np.float32(2 * math.pi / WIGGLE_M)) * np.float32(options.wiggle_m)
        error = wiggle + range_m * np.float32(options.bias_share) + np.float32(options.bias_m) + excess_m
        axial = np.hypot(np.float32(options.axial_m), np.float32(options.axial_growth) * attenuation)
        error += axial * random.standard_normal(depth.shape, np.float32)
        measured = np.where(depth > 0, depth + error / factor, 0).astype(np.float32)
        self._mix_edges(depth_m, measured, random)
        measured[attenuation > options.max_signal_m**2] = 0
        if options.mask == "hexagon" or (options.mask == "auto" and lens.width != lens.height):
            measured[~hexagon(lens.width, lens.height)] = 0
        return measured

    def _light(self, depth_m: Floats, lens: Lens) -> tuple[Floats, Floats]:
        """Per pixel r² / (reflectivity cos incidence), m², and how much longer the mean path is for multipath, m."""
        size = (max(1, lens.width // COARSE), max(1, lens.height // COARSE))
        coarse = cv2.resize(depth_m, size, interpolation=cv2.INTER_NEAREST)
        rays = cv2.resize(pixel_rays(lens), size, interpolation=cv2.INTER_NEAREST)
        points = np.asarray(rays * coarse[..., None], np.float32)
        normal = normals(points)
        range_m = np.linalg.norm(points, axis=-1)
        cosine = -np.einsum("hwc,hwc->hw", normal, points) / np.maximum(range_m, 1e-6)
        cosine = np.clip(cosine, 0.1, 1)
        attenuation = range_m**2 / (self._options.reflectivity * cosine)
        excess = np.zeros_like(range_m)
        if self._options.multipath:
            patch_sr = (COARSE / lens.fx) * (COARSE / lens.fy)
            bounced = one_bounce(points, normal, cosine.astype(np.float64), _offsets(), patch_sr)
            excess = bounced * self._options.multipath * self._options.reflectivity
        full = (lens.width, lens.height)
        return (
            np.asarray(cv2.resize(attenuation.astype(np.float32), full, interpolation=cv2.INTER_LINEAR), np.float32),
            np.asarray(cv2.resize(excess.astype(np.float32), full, interpolation=cv2.INTER_LINEAR), np.float32),
        )

    def _mix_edges(self, depth_m: Floats, measured: Floats, random: np.random.Generator) -> None:
        near, far = jumps(depth_m, JUMP)
        rows, columns = np.nonzero(near)
        draw = random.random((2, rows.size), np.float32)
        # The nearer surface sends more light: weights go with the inverse square of the distance.
        front, back = near[rows, columns], far[rows, columns]
        weight = draw[1] / (draw[1] + (1 - draw[1]) * (front / back) ** 2)
        mixed = weight * front + (1 - weight) * back
        flies = draw[0] < self._options.flying
        measured[rows[flies], columns[flies]] = mixed[flies]
        lost = draw[0] > 1 - self._options.edge_holes
        measured[rows[lost], columns[lost]] = 0


def shifted(depth_m: Floats, std_px: float, random: np.random.Generator) -> Floats:
    """Depth with the position of each pixel changed by a normal error, rounded to integer pixels."""
    height, width = depth_m.shape
    offsets = np.rint(random.standard_normal((2, height, width), np.float32) * np.float32(std_px)).astype(np.int32)
    index = np.arange(height * width, dtype=np.int32).reshape(height, width) + offsets[0] * width + offsets[1]
    return np.asarray(depth_m.ravel()[np.clip(index, 0, height * width - 1)])


@lru_cache(maxsize=4)
def hexagon(width: int, height: int) -> NDArray[np.bool_]:
    """Mask, bool (H, W), of the pixels that the illuminator reaches."""
    mask = np.zeros((height, width), np.uint8)
    corners = np.array([(x * width - 0.5, y * height - 0.5) for x, y in HEXAGON])
    cv2.fillConvexPoly(mask, np.rint(corners).astype(np.int32), 1)
    return mask.astype(np.bool_)


@lru_cache(maxsize=1)
def _offsets() -> NDArray[np.float64]:
    """float64 (N, 3): rows and columns away, and for how many pixels of the image each stands."""
    offsets, before = [], 0.5
    for radius, directions in RINGS:
        beyond = radius * 1.5
        share = math.pi * (beyond**2 - before**2) / directions
        before = beyond
        for number in range(directions):
            angle = 2 * math.pi * (number + 0.5) / directions
            offsets.append((round(radius * math.sin(angle)), round(radius * math.cos(angle)), share))
    return np.array(offsets, np.float64)
