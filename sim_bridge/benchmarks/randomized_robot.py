"""A simulated robot with random settings that nobody is told: the made-up reality of ``robot-runtime bench gap``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Hidden:
    """What one robot does that nobody is told.

    Attributes:
        forward_m: how much farther a move of 0.25 m goes. turn_rad: how much farther a turn of 30 degrees goes, either
            way. tilt_deg: of the camera, up positive. slides: along walls. latency_s: of poses.
        spread_m, spread_rad: standard deviations of an action's end, along its way and of its heading.
    """

    forward_m: float
    turn_rad: float
    tilt_deg: float
    slides: bool
    latency_s: float
    spread_m: float
    spread_rad: float

    @classmethod
    def draw(cls, random: np.random.Generator) -> Hidden:
        """Biases of 4 to 10 %, 1 to 4 degrees of tilt, and a coin for the walls."""

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
        """Of the simulated robot that plays the real one."""
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
