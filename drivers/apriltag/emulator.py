"""A camera that looks at a simulated room: the images, with a lens's blur and a sensor's noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from drivers.apriltag.eyes import Eye, Image, Receiver
from robot_runtime import config
from robot_runtime.clock import seconds_to_ns
from robot_runtime.errors import StaleData
from robot_runtime.imaging.lens import Lens
from robot_runtime.simulation import Pose3, Simulation, Subscription


@dataclass(frozen=True)
class ImageNoise:
    """What a camera makes of a perfect image.

    Attributes:
        blur_px: standard deviation of lens and sensor together.
        read_levels: noise in the dark, grey levels. shot: noise of light: variance per grey level.
    """

    blur_px: float = 0.6
    read_levels: float = 1.5
    shot: float = 0.03

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if min(self.blur_px, self.read_levels, self.shot) < 0:
            raise ValueError("blur_px, read_levels and shot cannot be negative")

    def apply(self, image: Image, random: np.random.Generator) -> Image:
        """The image as a camera would deliver it; a copy."""
        seen: NDArray[np.float32] = image.astype(np.float32)
        if self.blur_px > 0:
            seen = np.asarray(cv2.GaussianBlur(seen, (0, 0), self.blur_px), np.float32)
        deviation = np.sqrt(self.read_levels**2 + self.shot * seen)
        seen += deviation * random.standard_normal(seen.shape, dtype=np.float32)
        return np.asarray(np.clip(np.rint(seen), 0, 255).astype(np.uint8))


class EmulatedEye(Eye):
    """Looks at the simulation through a lens, in the thread in which its clock is slept on.

    Args:
        name: of its stream of noise.
        pose: the optical frame in ``map`` now.
    """

    def __init__(
        self,
        name: str,
        simulation: Simulation,
        lens: Lens,
        pose: Callable[[], Pose3],
        rate_hz: float,
        noise: ImageNoise,
    ) -> None:
        self._name, self._simulation, self._lens, self._pose = name, simulation, lens, pose
        self._rate_hz, self._noise = rate_hz, noise
        self._random = simulation.random(name)
        self._receiver: Receiver | None = None
        self._subscriptions: list[Subscription] = []

    @property
    def lens(self) -> Lens:
        return self._lens

    def open(self, receiver: Receiver) -> None:
        self.close()
        self._receiver = receiver
        simulation = self._simulation
        self._subscriptions = [simulation.every(self._rate_hz, self._expose), simulation.on_placed(self._begin)]
        self._begin()

    def close(self) -> None:
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions = []

    def look(self, after_ns: int, timeout_s: float) -> None:
        clock = self._simulation.clock
        deadline_ns = clock.now_ns() + seconds_to_ns(timeout_s)
        clock.sleep_until(min(after_ns, deadline_ns))
        if clock.now_ns() < after_ns:
            raise StaleData(f"{self._name}: no image came within {timeout_s:g} s", "wait longer")
        self._expose(clock.now_ns())

    def _begin(self) -> None:
        self._random = self._simulation.random(self._name)

    def _expose(self, now_ns: int) -> None:
        image = self._simulation.render_color(self._lens, self._pose())
        if self._receiver is not None:
            self._receiver(now_ns, self._noise.apply(image, self._random))
