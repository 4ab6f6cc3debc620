"""Sources of images on a real robot: its own camera, and a webcam in the room."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from raising import raises_naming

from drivers.apriltag.image_sources import CameraImageSource, WebcamImageSource
from robot_runtime.common.clock import SimulatedClock, SystemClock
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal import Camera, CameraInfo, Intrinsics, Mount, RgbdFrame
from robot_runtime.hal.lens import Lens

LENS = Lens(8, 6, 5.0, 5.0, 3.5, 2.5)
LIMIT_S = 20.0


class Watched:
    """A receiver that tells when enough images came."""

    def __init__(self, enough: int = 1) -> None:
        self.stamps_ns: list[int] = []
        self.enough, self.done = enough, threading.Event()

    def __call__(self, stamp_ns: int, image: NDArray[np.uint8]) -> None:
        assert image.shape == (6, 8, 3)
        self.stamps_ns.append(stamp_ns)
        if len(self.stamps_ns) >= self.enough:
            self.done.set()


class StillCamera:
    """A camera whose frames are exposed at the very instant that is asked for; now and then one fails."""

    info = CameraInfo(Intrinsics.from_hfov(8, 6, 79.0), Mount(0, 0, 1), 30.0, 0.1, 10.0, 0.001, False)

    def __init__(self, failing: int = 0) -> None:
        self.failing = failing

    def capture(self, exposed_after_ns: int, timeout_s: float, semantic: bool = False) -> RgbdFrame:
        if self.failing:
            self.failing -= 1
            raise StaleData("no frame", "look at the cable")
        return RgbdFrame(exposed_after_ns, np.zeros((6, 8, 3), np.uint8), np.zeros((6, 8), np.float32))


class Feed:
    """A webcam's images, handed over by the test."""

    on_image: Callable[[int, Callable[[], Any]], None]
    on_disconnected: Callable[[], None]
    stopped = 0

    def start(self, on_image: Any, on_disconnected: Any) -> None:
        self.on_image, self.on_disconnected = on_image, on_disconnected

    def stop(self) -> None:
        self.stopped += 1


def test_the_robots_camera_is_looked_through_at_a_rate_and_when_asked() -> None:
    seen = Watched(enough=3)
    source = CameraImageSource(cast(Camera, StillCamera(failing=2)), SystemClock(), rate_hz=200.0)
    assert source.lens.width == 8
    source.open(seen)
    assert seen.done.wait(LIMIT_S), "a failed look is followed by others"
    source.capture(123, 1.0)
    assert 123 in seen.stamps_ns
    source.close()
    source.close()
    count = len(seen.stamps_ns)
    assert not [thread for thread in threading.enumerate() if thread.name == "apriltag camera"]
    assert len(seen.stamps_ns) == count


def test_who_asks_gets_the_cameras_error() -> None:
    source = CameraImageSource(cast(Camera, StillCamera(failing=1)), SystemClock(), rate_hz=1.0)
    with raises_naming(StaleData, "frame"):
        source.capture(0, 1.0)


def test_a_webcam_is_decoded_at_the_rate_or_when_asked() -> None:
    clock, feed, seen, decoded = SimulatedClock(1_000_000), Feed(), Watched(), []

    def image() -> NDArray[np.uint8]:
        decoded.append(1)
        return np.zeros((6, 8, 3), np.uint8)

    source = WebcamImageSource("webcam", feed, LENS, clock, rate_hz=2.0, latency_s=0.02)
    source.open(seen)
    # At 30 Hz: two of a second are wanted.
    for tick in range(30):
        feed.on_image(tick * 33_333_333, image)
    assert len(decoded) == 2
    assert seen.stamps_ns[0] == -20_000_000
    clock.add_listener(lambda now_ns: feed.on_image(1_000_000_000 + now_ns, image))
    source.capture(1_005_000_000, 0.5)
    assert seen.stamps_ns[-1] >= 1_005_000_000
    source.close()
    assert feed.stopped


def test_a_webcam_without_images_is_stale_and_one_that_is_gone_is_a_fault() -> None:
    feed = Feed()
    source = WebcamImageSource("webcam /dev/video7", feed, LENS, SimulatedClock(1_000_000), rate_hz=2.0, latency_s=0.0)
    source.open(Watched())
    with raises_naming(StaleData, "webcam /dev/video7", "0.1 s"):
        source.capture(0, 0.1)
    feed.on_disconnected()
    with raises_naming(DeviceFault, "webcam /dev/video7"):
        source.capture(0, 0.1)


def test_images_of_another_size_than_the_calibration_are_a_fault() -> None:
    feed, seen = Feed(), Watched()
    source = WebcamImageSource("webcam", feed, LENS, SimulatedClock(1_000_000), rate_hz=2.0, latency_s=0.0)
    source.open(seen)
    feed.on_image(0, lambda: np.zeros((12, 16, 3), np.uint8))
    with raises_naming(DeviceFault, "16x12", "8x6"):
        source.capture(0, 0.1)
    assert seen.stamps_ns == []
    feed.on_image(1, lambda: None)
