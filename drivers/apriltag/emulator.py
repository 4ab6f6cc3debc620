"""Emulated camera in a simulated room."""

from collections.abc import Callable

from drivers.apriltag.image_sources import ImageSource, Receiver
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.errors import StaleData
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import CameraMotion, ColorNoise, Pose3, Simulation, Subscription


class EmulatedImageSource(ImageSource):
    """Images rendered by the simulation, in the thread that advances its clock."""

    def __init__(
        self,
        name: str,
        simulation: Simulation,
        lens: Lens,
        rate_hz: float,
        noise: ColorNoise,
        pose: Callable[[], Pose3],
        motion: Callable[[], CameraMotion],
    ) -> None:
        self._name, self._simulation, self.lens = name, simulation, lens
        self._rate_hz, self._noise, self._pose, self._motion = rate_hz, noise, pose, motion
        self._random = simulation.random(name)
        self._receiver: Receiver | None = None
        self._subscriptions: list[Subscription] = []

    def open(self, receiver: Receiver) -> None:
        self.close()
        self._receiver = receiver
        simulation = self._simulation
        self._subscriptions = [simulation.every(self._rate_hz, self._expose), simulation.on_placed(self._reset)]
        self._reset()

    def close(self) -> None:
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions = []

    def capture(self, after_ns: int, timeout_s: float) -> None:
        clock = self._simulation.clock
        deadline_ns = clock.now_ns() + seconds_to_ns(timeout_s)
        clock.sleep_until(min(after_ns, deadline_ns))
        if clock.now_ns() < after_ns:
            raise StaleData(f"{self._name}: no image came within {timeout_s:g} s", "wait longer")
        self._expose(clock.now_ns())

    def _reset(self) -> None:
        self._random = self._simulation.random(self._name)

    def _expose(self, now_ns: int) -> None:
        motion, depth_m = self._motion(), None
        if motion.still:
            image = self._simulation.render_color(self.lens, self._pose())
        else:
            image, depth_m = self._simulation.render(self.lens, self._pose())
        if self._receiver is not None:
            self._receiver(now_ns, self._noise.expose(image, depth_m, self.lens, motion, self._random))
