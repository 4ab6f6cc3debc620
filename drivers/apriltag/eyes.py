"""Where images of tags come from: the robot's own camera, or one that stands in the room.

An eye hands every image to one receiver: at its own rate, and at once when somebody needs a pose of a certain instant.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.clock import Clock, seconds_to_ns, wait_for
from robot_runtime.errors import DeviceFault, RuntimeFault, StaleData
from robot_runtime.hal import Camera
from robot_runtime.imaging.lens import Lens

Image = NDArray[np.uint8]

Receiver = Callable[[int, Image], None]
"""Takes the middle of the exposure, Clock nanoseconds, and uint8 (H, W, 3), red first, or (H, W)."""

JOIN_S = 2.0
EXPOSURE_S = 0.5
"""An image that is looked for at the eye's own rate comes within this time, or that look is given up."""

POLL_S = 0.005


class Eye(ABC):
    """A source of images."""

    @property
    @abstractmethod
    def lens(self) -> Lens:
        """What its images were taken through."""

    @abstractmethod
    def open(self, receiver: Receiver) -> None:
        """Begin to look. Raises ``DeviceFault`` naming the camera and the remedy."""

    @abstractmethod
    def close(self) -> None:
        """Look no more; in any state, twice."""

    @abstractmethod
    def look(self, after_ns: int, timeout_s: float) -> None:
        """Have the receiver called with the first image exposed at or after an instant, before this returns.

        Raises:
            StaleData: there is none within ``timeout_s``.
            DeviceFault: the camera failed.
        """


class CameraEye(Eye):
    """The robot's own camera, whose frames the policy gets, too.

    A look for the instant of a frame that the policy has just got is that very frame, where the camera keeps it. Its
    ``capture`` is called from a thread of the eye's own as well.

    Args:
        rate_hz: how often to look by itself.
    """

    def __init__(self, camera: Camera, clock: Clock, rate_hz: float) -> None:
        self._camera, self._clock, self._rate_hz = camera, clock, rate_hz
        k = camera.info.intrinsics
        self._lens = Lens(k.width, k.height, k.fx, k.fy, k.cx, k.cy)
        self._receiver: Receiver | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def lens(self) -> Lens:
        return self._lens

    def open(self, receiver: Receiver) -> None:
        self.close()
        self._receiver = receiver
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(self._stop,), name="apriltag camera", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
            self._thread = None

    def look(self, after_ns: int, timeout_s: float) -> None:
        frame = self._camera.capture(after_ns, timeout_s)
        if self._receiver is not None:
            self._receiver(frame.stamp_ns, frame.rgb)

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(1 / self._rate_hz):
            # Whoever asks for a pose meanwhile looks for itself, and gets the error.
            with suppress(RuntimeFault):
                self.look(self._clock.now_ns(), EXPOSURE_S)


class VideoEye(Eye):
    """A webcam, network camera or file that OpenCV can read, in the room.

    Images are stamped on arrival; the time from exposure until then is ``latency_s``, which is to be measured once
    (film a clock): a robot at 0.3 m/s is 3 cm further after 0.1 s.

    Args:
        device: ``/dev/video0``, ``rtsp://...``, or a file.
        lens: of its calibration; images of another size are refused.
    """

    def __init__(self, device: str, lens: Lens, clock: Clock, rate_hz: float, latency_s: float) -> None:
        self._device, self._lens, self._clock = device, lens, clock
        self._period_ns, self._latency_ns = seconds_to_ns(1 / rate_hz), seconds_to_ns(latency_s)
        self._receiver: Receiver | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._newest: tuple[int, Image] | None = None
        self._fault: DeviceFault | None = None

    @property
    def lens(self) -> Lens:
        return self._lens

    def open(self, receiver: Receiver) -> None:
        self.close()
        video = cv2.VideoCapture(self._device)
        video.set(cv2.CAP_PROP_FRAME_WIDTH, self._lens.width)
        video.set(cv2.CAP_PROP_FRAME_HEIGHT, self._lens.height)
        if not video.isOpened():
            video.release()
            raise DeviceFault(
                f"static camera: {self._device} cannot be opened", "check its name, its cable, and that it is free"
            )
        self._receiver, self._newest, self._fault = receiver, None, None
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._read, args=(video, self._stop), name="apriltag static camera", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
            self._thread = None

    def look(self, after_ns: int, timeout_s: float) -> None:
        found = wait_for(self._clock, lambda: self._after(after_ns), timeout_s, POLL_S)
        if found is None:
            raise StaleData(
                f"static camera: no image of {self._device} came within {timeout_s:g} s", "check cable and network"
            )
        if self._receiver is not None:
            self._receiver(*found)

    def _after(self, after_ns: int) -> tuple[int, Image] | None:
        if self._fault is not None:
            raise self._fault
        newest = self._newest
        return newest if newest is not None and newest[0] >= after_ns else None

    def _read(self, video: cv2.VideoCapture, stop: threading.Event) -> None:
        shown_ns = -self._period_ns
        try:
            while not stop.is_set():
                there, image = video.read()
                if not there:
                    self._fault = DeviceFault(f"static camera: {self._device} ended", "plug it in again and reconnect")
                    return
                if image.shape[:2] != (self._lens.height, self._lens.width):
                    self._fault = DeviceFault(
                        f"static camera: {self._device} delivers {image.shape[1]}x{image.shape[0]}, and its "
                        f"calibration is of {self._lens.width}x{self._lens.height}",
                        "calibrate it in the mode that it delivers",
                    )
                    return
                stamp_ns = self._clock.now_ns() - self._latency_ns
                self._newest = stamp_ns, np.ascontiguousarray(image[:, :, ::-1])
                if stamp_ns - shown_ns >= self._period_ns and self._receiver is not None:
                    shown_ns = stamp_ns
                    self._receiver(*self._newest)
        finally:
            video.release()
