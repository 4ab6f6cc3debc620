"""Noise models by their names in YAML options, such as ``{model: azure_kinect, axial_m: 0.001}``."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import ColorNoise, DepthNoise
from sim_bridge.noise.azure_kinect import AzureKinectNoise, AzureKinectOptions
from sim_bridge.noise.color import GaussianNoise, GaussianOptions, SensorNoise, SensorOptions
from sim_bridge.noise.fitted import FittedDepthNoise, FittedDepthOptions
from sim_bridge.noise.redwood import RedwoodNoise, RedwoodOptions
from sim_bridge.noise.stereo import D435Noise, D435Options
from sim_bridge.noise.surface import Floats

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
