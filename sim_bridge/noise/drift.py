"""Errors of measured or driven motion that grow with the distance."""

import math
from dataclasses import dataclass

import numpy as np

from robot_runtime.common.config import Positive, Strict
from robot_runtime.common.quantities import SmallAngle, Spread


@dataclass(frozen=True)
class DriftOptions(Strict):
    """Errors that grow with the distance; the defaults mean none. Standard deviations grow with its square root.

    Attributes:
        linear_scale: systematic, from a wrong wheel diameter.
        angular_scale: systematic, from a wrong wheel separation.
        linear_noise_m: standard deviation of the distance after 1 m.
        angular_noise_rad: standard deviation of the angle after turning 1 rad.
        heading_noise_rad: standard deviation of the heading after driving 1 m.
    """

    linear_scale: Positive = 1.0
    angular_scale: Positive = 1.0
    linear_noise_m: Spread = 0.0
    angular_noise_rad: SmallAngle = 0.0
    heading_noise_rad: SmallAngle = 0.0

    @property
    def exact(self) -> bool:
        """Whether there is no error at all."""
        return self == DriftOptions()


class Drift:
    """Distorts small motions, one after the other; the same generator gives the same distortions."""

    def __init__(self, options: DriftOptions) -> None:
        self.exact = options.exact
        self._options = options
        self._random = np.random.default_rng(0)

    def restart(self, random: np.random.Generator) -> None:
        """Draw from this generator from now on."""
        self._random = random

    def distort(self, forward_m: float, turn_rad: float) -> tuple[float, float]:
        """The distorted motion along the heading and about the axis; standstill stays standstill."""
        if self.exact or (forward_m == 0 and turn_rad == 0):
            return forward_m, turn_rad
        options = self._options
        along, about = self._random.standard_normal(2).tolist()
        turn_std_rad = math.sqrt(
            options.angular_noise_rad**2 * abs(turn_rad) + options.heading_noise_rad**2 * abs(forward_m)
        )
        return (
            forward_m * options.linear_scale + along * options.linear_noise_m * math.sqrt(abs(forward_m)),
            turn_rad * options.angular_scale + about * turn_std_rad,
        )
