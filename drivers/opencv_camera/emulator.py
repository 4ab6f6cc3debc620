"""Emulated webcam on a simulated robot: an ideal lens at the robot's camera, one image per period."""

from collections.abc import Callable

import numpy as np

from drivers.opencv_camera.feed import OnImage
from drivers.opencv_camera.options import OpenCvOptions
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import Simulation, Subscription


class EmulatedFeed:
    """Images that are rendered only when decoded."""

    def __init__(self, simulation: Simulation, options: OpenCvOptions) -> None:
        self._simulation, self._options = simulation, options
        self._lens = Lens.of(Intrinsics.from_hfov(options.width, options.height, options.hfov_deg))
        self._ticks: Subscription | None = None

    def start(self, on_image: OnImage, on_disconnected: Callable[[], None]) -> None:
        """Start the images."""

        def decode() -> np.ndarray:
            rgb = self._simulation.render_color(self._lens, self._simulation.camera_pose())
            return np.ascontiguousarray(rgb[:, :, ::-1])

        self._ticks = self._simulation.every(self._options.rate_hz, lambda now_ns: on_image(now_ns, decode))

    def stop(self) -> None:
        """Stop the images."""
        ticks, self._ticks = self._ticks, None
        if ticks is not None:
            ticks.close()
