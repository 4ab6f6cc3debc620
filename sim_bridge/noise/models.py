"""Noise models by their names in YAML options, such as ``{model: azure_kinect, axial_m: 0.001}``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import cv2
import numpy as np
from pydantic import Field

from robot_runtime.common import config
from robot_runtime.common.config import NonNegative
from robot_runtime.errors import ConfigError
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import ColorNoise, DepthNoise
from robot_runtime.imaging.depth import jumps
from sim_bridge.noise.azure_kinect import AzureKinectNoise, AzureKinectOptions
from sim_bridge.noise.color import GaussianNoise, GaussianOptions, SensorNoise, SensorOptions
from sim_bridge.noise.redwood import RedwoodNoise, RedwoodOptions
from sim_bridge.noise.stereo import D435Noise, D435Options
from sim_bridge.noise.surface import Floats

EDGE = 0.04
"""Share of the depth by which neighbors on different surfaces are apart."""

CHECKED_M = np.linspace(0.0, 5.0, 11, dtype=np.float32)
MAX_ERROR_M = 5.0
"""Depths at which polynomials are checked, and the largest error there."""

Share = Annotated[float, Field(ge=0, le=1)]
Coefficients = tuple[float, float, float]


@dataclass(frozen=True)
class FittedDepthOptions(config.Strict):
    """Options of the fitted depth noise.

    Attributes:
        sigma: standard deviation of the depth z, meters: c[0] + c[1] z + c[2] z², nowhere below 0.
        bias: measured less true depth, meters, by the same polynomial.
        window_px: width over which errors are alike, an odd number.
        holes: [depth m, share of pixels there without a measurement], linear in between; at random.
        edge_gain: factor on the errors at edges.
        edge_holes: share of pixels lost at edges.
    """

    model: Literal["fitted"] = "fitted"
    sigma: Coefficients = (0.0, 0.0, 0.0)
    bias: Coefficients = (0.0, 0.0, 0.0)
    window_px: Annotated[int, Field(ge=1, le=31)] = 1
    holes: tuple[tuple[NonNegative, Share], ...] = ()
    edge_gain: NonNegative = 1.0
    edge_holes: Share = 0.0

    def __post_init__(self) -> None:
        depths_m = [depth_m for depth_m, _ in self.holes]
        if sorted(set(depths_m)) != depths_m:
            raise ValueError(f"holes must go from near to far, got {depths_m}")
        for name, limit_m in (("sigma", MAX_ERROR_M), ("bias", MAX_ERROR_M)):
            errors_m = _polynomial(CHECKED_M, getattr(self, name))
            if np.abs(errors_m).max() > limit_m:
                raise ValueError(f"{name} is more than {limit_m} m between 0 and 5 m: coefficients are in meters")
        if any(self.sigma) and _polynomial(CHECKED_M, self.sigma).max() <= 0:
            raise ValueError(f"sigma, a standard deviation, is nowhere above 0 between 0 and 5 m, got {self.sigma}")


class FittedDepthNoise(DepthNoise):
    """Depth noise with fitted moments and holes."""

    def __init__(self, options: FittedDepthOptions) -> None:
        self._options = options

    def measure(self, depth_m: Floats, lens: Lens, random: np.random.Generator) -> Floats:
        options = self._options
        noise = random.standard_normal(depth_m.shape, np.float32)
        if options.window_px > 1:
            window = (options.window_px, options.window_px)
            noise = np.asarray(cv2.blur(noise, window), np.float32) * np.float32(options.window_px)
        sigma_m = np.maximum(_polynomial(depth_m, options.sigma), 0)
        near, far = jumps(depth_m, EDGE)
        edge = far > near
        sigma_m[edge] *= np.float32(options.edge_gain)
        bias_m = _polynomial(depth_m, options.bias)
        measured = np.maximum(depth_m + bias_m + sigma_m * noise, 0).astype(np.float32)
        lost = np.full(depth_m.shape, np.float32(0))
        if options.holes:
            known_m, shares = zip(*options.holes, strict=True)
            lost = np.interp(depth_m, known_m, shares).astype(np.float32)
        lost[edge] = np.maximum(lost[edge], np.float32(options.edge_holes))
        measured[(depth_m <= 0) | (random.random(depth_m.shape, np.float32) < lost)] = 0
        return measured


def _polynomial(depth_m: Floats, coefficients: Coefficients) -> Floats:
    c0, c1, c2 = (np.float32(value) for value in coefficients)
    return np.asarray(c0 + depth_m * (c1 + depth_m * c2), np.float32)


M = TypeVar("M")
Model = tuple[type[Any], Callable[[Any], M]]
"""The type of the options and the constructor of the model."""

DEPTH: dict[str, Model[DepthNoise]] = {
    "azure_kinect": (AzureKinectOptions, AzureKinectNoise),
    "d435": (D435Options, D435Noise),
    "fitted": (FittedDepthOptions, FittedDepthNoise),
    "redwood": (RedwoodOptions, RedwoodNoise),
}

COLOR: dict[str, Model[ColorNoise]] = {
    "gaussian": (GaussianOptions, GaussianNoise),
    "sensor": (SensorOptions, SensorNoise),
}


class ExactDepth(DepthNoise):
    """Depth without noise."""

    def measure(self, depth_m: Floats, lens: Lens, random: np.random.Generator) -> Floats:
        return depth_m


def depth_noise(options: Mapping[str, Any], where: str) -> DepthNoise:
    """The model that options name. Raises ``ConfigError``."""
    if not options:
        return ExactDepth()
    return _make(DEPTH, options, where)


def color_noise(options: Mapping[str, Any], where: str) -> ColorNoise:
    """The model that options name. Raises ``ConfigError``."""
    if not options:
        return SensorNoise(SensorOptions(photon=0.0, read=0.0, exposure_s=0.0, readout_s=0.0))
    return _make(COLOR, options, where)


def _make(models: Mapping[str, Model[M]], options: Mapping[str, Any], where: str) -> M:
    name = options.get("model")
    if not isinstance(name, str) or name not in models:
        raise ConfigError(f"{where}: there is no noise model {name!r}", f"set 'model' to one of {', '.join(models)}")
    parse, make = models[name]
    return make(config.parse(dict(options), parse, where))
