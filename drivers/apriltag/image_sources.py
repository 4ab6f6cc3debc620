"""Sources of images with tags: the robot's own camera, or a webcam in the room.

A source passes every image to one receiver: periodically, and on request for an image of a certain instant.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack, suppress

import numpy as np
from numpy.typing import NDArray

from drivers.opencv_camera.feed import Feed
from robot_runtime.common.clock import Clock, seconds_to_ns, wait_for
from robot_runtime.common.threads import background
from robot_runtime.errors import DeviceFault, RuntimeFault, StaleData
from robot_runtime.hal import Camera, Lens

Image = NDArray[np.uint8]

Receiver = Callable[[int, Image], None]
"""Function of the middle of the exposure, Clock nanoseconds, and the image, uint8 (H, W, 3) RGB or (H, W)."""

JOIN_S = 2.0
EXPOSURE_S = 0.5
"""Time limit of a periodic image; a late one is skipped."""

POLL_S = 0.005


class ImageSource(ABC):
    """A source of images."""

    lens: Lens

    @abstractmethod
    def open(self, receiver: Receiver) -> None:
        """Start the periodic images. Raises ``DeviceFault`` if the camera cannot be opened."""

    @abstractmethod
    def close(self) -> None:
        """Stop the images; allowed in any state and more than once."""

    @abstractmethod
    def capture(self, after_ns: int, timeout_s: float) -> None:
        """Pass the first image exposed at or after an instant to the receiver, and return.

        Args:
            after_ns: earliest exposure, Clock nanoseconds.
            timeout_s: time limit.

        Raises:
            StaleData: no such image came in time.
            DeviceFault: the camera failed.
        """


class CameraImageSource(ImageSource):
    """The robot's own camera, shared with the policy.

    A request for the instant of the policy's newest frame yields that frame, if the camera keeps it. Periodic images
    are captured in another thread, so the camera's ``capture`` must be thread-safe.
    """

    def __init__(self, camera: Camera, clock: Clock, rate_hz: float) -> None:
        self._camera, self._clock, self._rate_hz = camera, clock, rate_hz
        k = camera.info.intrinsics
        self.lens = Lens(k.width, k.height, k.fx, k.fy, k.cx, k.cy)
        self._receiver: Receiver | None = None
        self._ends = ExitStack()

    def open(self, receiver: Receiver) -> None:
        self.close()
        self._receiver = receiver
        self._ends.enter_context(background(self._watch, "apriltag camera", JOIN_S))

    def close(self) -> None:
        self._ends.close()

    def capture(self, after_ns: int, timeout_s: float) -> None:
        frame = self._camera.capture(after_ns, timeout_s)
        if self._receiver is not None:
            self._receiver(frame.stamp_ns, frame.rgb)

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(1 / self._rate_hz):
            # A request for a pose captures an image of its own and raises the error there.
            with suppress(RuntimeFault):
                self.capture(self._clock.now_ns(), EXPOSURE_S)


class WebcamImageSource(ImageSource):
    """A webcam in the room.

    Images of another size than the lens's are a fault. Stamps are ``latency_s`` later than the middle of an exposure.
    """

    def __init__(self, name: str, feed: Feed, lens: Lens, clock: Clock, rate_hz: float, latency_s: float) -> None:
        self._name, self._feed, self.lens, self._clock = name, feed, lens, clock
        self._period_ns, self._latency_ns = seconds_to_ns(1 / rate_hz), seconds_to_ns(latency_s)
        self._receiver: Receiver | None = None
        self._reset()

    def _reset(self) -> None:
        self._seen_ns: int | None = None
        """Stamp of the last image passed to the receiver."""
        self._requested_ns: int | None = None
        self._fault: DeviceFault | None = None

    def open(self, receiver: Receiver) -> None:
        self.close()
        self._reset()
        self._receiver = receiver
        self._feed.start(self._take, self._end)

    def close(self) -> None:
        self._feed.stop()

    def capture(self, after_ns: int, timeout_s: float) -> None:
        self._requested_ns = after_ns
        if wait_for(self._clock, lambda: self._seen_since(after_ns), timeout_s, POLL_S) is None:
            raise StaleData(f"{self._name}: no image came within {timeout_s:g} s", "check its cable")

    def _seen_since(self, after_ns: int) -> bool | None:
        if self._fault is not None:
            raise self._fault
        return True if self._seen_ns is not None and self._seen_ns >= after_ns else None

    # --- the feed's thread ---

    def _take(self, arrived_ns: int, decode: Callable[[], Image | None]) -> None:
        stamp_ns, wanted_ns = arrived_ns - self._latency_ns, self._requested_ns
        due = self._seen_ns is None or stamp_ns - self._seen_ns >= self._period_ns
        if not due and (wanted_ns is None or stamp_ns < wanted_ns):
            return
        image = decode()
        if image is None or self._receiver is None:
            return
        if image.shape[:2] != (self.lens.height, self.lens.width):
            self._fault = DeviceFault(
                f"{self._name}: delivers {image.shape[1]}x{image.shape[0]}, and its calibration is of "
                f"{self.lens.width}x{self.lens.height}",
                "calibrate it in the mode that it delivers",
            )
            return
        self._receiver(stamp_ns, np.ascontiguousarray(image[:, :, ::-1]))
        self._seen_ns = stamp_ns
        if wanted_ns is not None and stamp_ns >= wanted_ns:
            self._requested_ns = None

    def _end(self) -> None:
        self._fault = DeviceFault(f"{self._name}: was disconnected", "plug it in again and restart")
