"""A webcam as the camera of a robot: ``driver: drivers.opencv_camera.driver.make_camera``."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from drivers.opencv_camera.feed import Feed, OnImage, WebcamFeed
from drivers.opencv_camera.options import OpenCvOptions
from robot_runtime.common import config
from robot_runtime.common.clock import Clock, seconds_to_ns, wait_for
from robot_runtime.errors import DeviceFault, NotConnected, StaleData
from robot_runtime.hal import Intrinsics, Lens, Robot
from robot_runtime.hal.simulation import Simulation, Subscription
from robot_runtime.imaging.camera import SourceCamera, source_camera
from robot_runtime.imaging.rig import RgbdCalibration
from robot_runtime.imaging.source import RawRgbd, RgbdSource, SensorMode
from robot_runtime.robots.loader import RobotContext

POLL_S = 0.002


class EmulatedFeed:
    """Emulated webcam on a simulated robot: an ideal lens at its camera; images are rendered only when decoded."""

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


class WebcamSource(RgbdSource):
    """Color from a :class:`Feed`, decoded on request only."""

    def __init__(self, clock: Clock, options: OpenCvOptions, feed: Feed) -> None:
        self._clock, self._options, self._feed = clock, options, feed
        lens = Lens.of(Intrinsics.from_hfov(options.width, options.height, options.hfov_deg))
        self._rig = RgbdCalibration(lens, lens, np.eye(4), 0.001, str(options.device), "nominal")
        self._lock = threading.Lock()
        self._connected = self._disconnected = False
        self._requested_ns: int | None = None
        self._found: RawRgbd | None = None
        self._arrived = 0

    @property
    def name(self) -> str:
        return f"webcam {self._options.device}"

    @property
    def calibration(self) -> RgbdCalibration:
        return self._rig

    @property
    def color_mode(self) -> SensorMode:
        return SensorMode("color", f"{self._options.width}x{self._options.height}", self._rig.color, self.rate_hz)

    @property
    def depth_mode(self) -> SensorMode:
        return self.color_mode

    @property
    def modes(self) -> tuple[SensorMode, ...]:
        return (self.color_mode,)

    @property
    def has_depth(self) -> bool:
        return False

    @property
    def rate_hz(self) -> float:
        return self._options.rate_hz

    def connect(self) -> None:
        if self._connected:
            return
        self._disconnected, self._arrived = False, 0
        self._feed.start(self._on_image, self._on_disconnected)
        self._connected = True
        try:
            self.read(0, self._options.start_timeout_s)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._connected = False
        self._feed.stop()

    def read(self, exposed_after_ns: int, timeout_s: float) -> RawRgbd:
        if not self._connected:
            raise NotConnected(f"{self.name}: is not connected", "call connect() before using it")
        with self._lock:
            self._requested_ns, self._found = exposed_after_ns, None
            before = self._arrived
        raw = wait_for(self._clock, self._probe, timeout_s, POLL_S)
        with self._lock:
            self._requested_ns = None
        if raw is not None:
            return raw
        if self._arrived > before:
            raise StaleData(
                f"{self.name}: no image exposed after the requested instant came within {timeout_s:.2f} s",
                "wait longer, or lower 'latency_s' if it is more than `robot-runtime calibrate latency` finds",
            )
        raise StaleData(f"{self.name}: delivered nothing within {timeout_s:.2f} s", "check its cable and its USB port")

    def _probe(self) -> RawRgbd | None:
        with self._lock:
            if self._disconnected:
                raise DeviceFault(f"{self.name}: was disconnected", "plug it in again and restart")
            return self._found

    def _on_image(self, stamp_ns: int, decode: Callable[[], NDArray[np.uint8] | None]) -> None:
        """Decode a requested image, in the feed's thread."""
        exposed_ns = stamp_ns - seconds_to_ns(self._options.latency_s)
        with self._lock:
            self._arrived += 1
            wanted = self._requested_ns is not None and self._found is None and exposed_ns >= self._requested_ns
        if not wanted:
            return
        image = decode()
        if image is None or image.shape != (self._options.height, self._options.width, 3):
            return  # damaged in transit; the next one may be valid
        rgb = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)
        raw = RawRgbd(exposed_ns, exposed_ns, rgb, np.zeros((0, 0), np.uint16))
        with self._lock:
            # The request may have timed out, and another one wait for a later image.
            if self._requested_ns is not None and exposed_ns >= self._requested_ns:
                self._found = raw

    def _on_disconnected(self) -> None:
        with self._lock:
            self._disconnected = True


def make_camera(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> SourceCamera:
    """Return the camera, disconnected; emulated on a simulated robot.

    Raises:
        ConfigError: a bad option, or a lens that cannot fill the training camera's image.
    """
    chosen = config.parse(dict(options), OpenCvOptions, where)
    feed: Feed = WebcamFeed(chosen, robot.clock)
    if robot.simulation is not None:
        feed = EmulatedFeed(robot.simulation, chosen)
    return source_camera(WebcamSource(robot.clock, chosen, feed), robot, context, chosen.imaging)
