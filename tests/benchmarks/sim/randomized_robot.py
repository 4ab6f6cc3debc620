"""A simulated robot with random parameters, which stands for the real one in ``bench gap``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class RandomizedParameters:
    """Parameters of one robot, which the fit does not know.

    Attributes:
        forward_m: error of a move of 0.25 m.
        turn_rad: error of a turn of 30 degrees, in its direction.
        tilt_deg: tilt of the camera, up positive.
        slides: whether the robot slides along walls.
        latency_s: latency of poses.
        spread_m: standard deviation of an action's end along its direction.
        spread_rad: standard deviation of an action's final heading.
    """

    forward_m: float
    turn_rad: float
    tilt_deg: float
    slides: bool
    latency_s: float
    spread_m: float
    spread_rad: float

    @classmethod
    def draw(cls, random: np.random.Generator) -> RandomizedParameters:
        """Draw biases of 4 to 10 %, 1 to 4 degrees of tilt, and sliding or not."""

        def either_way(low: float, high: float) -> float:
            return float(random.uniform(low, high) * random.choice((-1, 1)))

        return cls(
            forward_m=0.25 * either_way(0.04, 0.1),
            turn_rad=math.radians(30.0) * either_way(0.04, 0.1),
            tilt_deg=either_way(1.0, 4.0),
            slides=bool(random.integers(2)),
            latency_s=float(random.uniform(0.02, 0.1)),
            spread_m=float(random.uniform(0.003, 0.01)),
            spread_rad=float(random.uniform(0.008, 0.02)),
        )

    def options(self) -> dict[str, Any]:
        """Options of the simulated robot."""
        covariance = np.diag([self.spread_m**2, (self.spread_m / 2) ** 2, self.spread_rad**2]).tolist()
        means = {
            "move_forward": [self.forward_m, 0.0, 0.0],
            "turn_left": [0.0, 0.0, self.turn_rad],
            "turn_right": [0.0, 0.0, -self.turn_rad],
        }
        return {
            "contact": {"behaviour": "slide" if self.slides else "stop"},
            "action_noise": {
                "model": "gaussian",
                "forward_m": 0.25,
                "turn_deg": 30.0,
                "actions": {name: {"mean": mean, "covariance": covariance} for name, mean in means.items()},
            },
            "camera": {"mount_error": {"tilt_deg": self.tilt_deg}},
            "localizer": {"rate_hz": 50.0, "latency_s": self.latency_s},
        }
