"""Webcams: a capture that behaves like OpenCV's stands in for the device; threads and decoding are the driver's own."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest
from open_room import CAMERA, make_fake, make_scene, make_task
from raising import raises_naming

from drivers.opencv_camera import feed as webcam_feed
from drivers.opencv_camera.driver import WebcamSource, make_camera
from drivers.opencv_camera.feed import FAILURES, WebcamFeed
from drivers.opencv_camera.options import OpenCvOptions
from robot_runtime.common.clock import SimulatedClock, SystemClock, seconds_to_ns
from robot_runtime.errors import ConfigError, DeviceFault, NotConnected, StaleData
from robot_runtime.robots.loader import RobotContext

CLOCK = SystemClock()
LIMIT_S = 20.0
BLACK = np.zeros((36, 64, 3), np.uint8)
OPTIONS = OpenCvOptions(hfov_deg=95.0, width=64, height=36, start_timeout_s=LIMIT_S)


class Webcam:
    """Stand-in for ``cv2.VideoCapture``; ``grab`` waits for what a test hands over."""

    def __init__(self, **settings: float) -> None:
        self.settings: dict[int, float] = {}
        self.fixed = {getattr(cv2, name): value for name, value in settings.items()}
        self.images: queue.Queue[tuple[int, int] | None] = queue.Queue()
        self.refuses: set[int] = set()
        self.opened, self.released, self.value, self.stamp_ns, self.decoded = True, False, 0, 0, 0

    def __call__(self, device: object, backend: int) -> "Webcam":
        assert backend == cv2.CAP_V4L2
        return self

    def show(self, value: int, stamp_ns: int | None = None) -> None:
        self.images.put((value, CLOCK.now_ns() if stamp_ns is None else stamp_ns))

    def unplug(self) -> None:
        for _ in range(FAILURES):
            self.images.put(None)

    def isOpened(self) -> bool:  # noqa: N802
        return self.opened

    def set(self, option: int, value: float) -> bool:
        self.settings[option] = value
        return option not in self.refuses

    def get(self, option: int) -> float:
        if option == cv2.CAP_PROP_POS_MSEC:
            return self.stamp_ns / 1e6
        return self.fixed.get(option, self.settings.get(option, 0.0))

    def grab(self) -> bool:
        try:
            image = self.images.get(timeout=0.01)
        except queue.Empty:
            image = (0, 0)  # keeps coming, stamped long ago by the kernel's clock: arrival counts
            self.stamp_ns = 0
            self.value = 0
            return True
        if image is None:
            return False
        self.value, self.stamp_ns = image
        return True

    def retrieve(self) -> tuple[bool, Any]:
        self.decoded += 1
        if self.value < 0:
            return False, None
        return True, np.full((36, 64, 3), (self.value, 1, 2), np.uint8)

    def release(self) -> None:
        self.released = True


@contextmanager
def streaming(options: OpenCvOptions = OPTIONS) -> Iterator[tuple[WebcamSource, Webcam]]:
    webcam = Webcam()
    with WebcamSource(CLOCK, options, WebcamFeed(options, CLOCK, webcam)) as source:
        yield source, webcam


def read_on(source: WebcamSource) -> None:
    for _ in range(10_000):
        source.read(CLOCK.now_ns(), LIMIT_S)


def test_images_come_red_first_and_stamped_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webcam_feed, "PLAUSIBLE_AGE_S", 60.0)  # so long an image may lie there on a busy computer
    with streaming() as (source, webcam):
        stamp_ns = CLOCK.now_ns() + seconds_to_ns(-0.2)
        asked_ns = stamp_ns - 1
        webcam.show(9, stamp_ns)
        raw = source.read(asked_ns, LIMIT_S)
        while raw.color[0, 0, 2] != 9:  # one that was in the queue before
            webcam.show(9, stamp_ns)
            raw = source.read(asked_ns, LIMIT_S)
        assert raw.color.shape == (36, 64, 3)
        assert raw.color[0, 0].tolist() == [2, 1, 9]
        assert raw.color_stamp_ns == raw.depth_stamp_ns
        assert abs(raw.color_stamp_ns - stamp_ns) < 1000
    assert webcam.released


def test_latency_is_taken_off_and_older_images_are_passed_over() -> None:
    with streaming(replace(OPTIONS, latency_s=0.05)) as (source, _):
        asked_ns = CLOCK.now_ns()
        raw = source.read(asked_ns, LIMIT_S)
        assert raw.color_stamp_ns >= asked_ns
        assert CLOCK.now_ns() - raw.color_stamp_ns >= seconds_to_ns(0.05)


def test_only_what_somebody_waits_for_is_decoded() -> None:
    with streaming() as (source, webcam):
        for _ in range(3):
            source.read(CLOCK.now_ns(), LIMIT_S)
        assert webcam.decoded <= 4


def test_a_torn_image_is_passed_over() -> None:
    with streaming() as (source, webcam):
        webcam.show(-1)
        webcam.show(-1)
        assert source.read(CLOCK.now_ns(), LIMIT_S).color.shape == (36, 64, 3)


def test_unplugged_while_it_streams() -> None:
    with streaming() as (source, webcam):
        webcam.unplug()
        with raises_naming(DeviceFault, "webcam 0"):
            read_on(source)


class Ticking:
    """A feed of an image per step of simulated time, until it is silenced."""

    def __init__(self, clock: SimulatedClock) -> None:
        self.silent, self.on_image = False, None
        clock.add_listener(self.deliver)

    def start(self, on_image: Any, on_disconnected: Any) -> None:
        self.on_image = on_image
        on_image(0, lambda: BLACK)

    def stop(self) -> None:
        self.on_image = None

    def deliver(self, now_ns: int) -> None:
        if self.on_image is not None and not self.silent:
            self.on_image(now_ns, lambda: BLACK)


def test_silence_is_told_from_images_that_are_too_old() -> None:
    clock = SimulatedClock(seconds_to_ns(0.03))
    feed = Ticking(clock)
    source = WebcamSource(clock, OPTIONS, feed)
    with source:
        with raises_naming(StaleData, "webcam 0", "latency_s"):
            source.read(clock.now_ns() + seconds_to_ns(3600), 0.2)
        feed.silent = True
        with raises_naming(StaleData, "webcam 0", "cable"):
            source.read(clock.now_ns(), 0.2)
    with pytest.raises(NotConnected):
        source.read(0, 1.0)


def test_an_image_that_is_decoded_too_late_is_not_taken_for_a_later_one() -> None:
    clock = SimulatedClock(seconds_to_ns(0.03))
    feed = Ticking(clock)
    with WebcamSource(clock, OPTIONS, feed) as source:
        feed.silent = True
        decoding, go_on = threading.Event(), threading.Event()

        def decode() -> Any:
            decoding.set()
            assert go_on.wait(LIMIT_S)
            return BLACK

        def deliver(now_ns: int) -> None:
            """During the first wait it begins to be decoded, during the second one it is finished."""
            if not decoding.is_set():
                thread.start()
                assert decoding.wait(LIMIT_S)
            elif now_ns > later_ns:
                go_on.set()
                thread.join(LIMIT_S)

        later_ns = clock.now_ns() + seconds_to_ns(1.0)
        assert feed.on_image is not None
        thread = threading.Thread(target=feed.on_image, args=(clock.now_ns(), decode))
        clock.add_listener(deliver)
        with pytest.raises(StaleData):
            source.read(clock.now_ns(), 0.5)
        with pytest.raises(StaleData):
            source.read(later_ns, 1.0)
        assert go_on.is_set()


def test_settings_are_made_and_refusals_named() -> None:
    webcam = Webcam()
    options = replace(OPTIONS, exposure=50.0, gain=3.0)
    with WebcamSource(CLOCK, options, WebcamFeed(options, CLOCK, webcam)):
        assert webcam.settings[cv2.CAP_PROP_EXPOSURE] == 50.0
        assert webcam.settings[cv2.CAP_PROP_AUTO_EXPOSURE] == 1.0
        assert webcam.settings[cv2.CAP_PROP_AUTO_WB] == 1.0
        assert webcam.settings[cv2.CAP_PROP_FOURCC] == cv2.VideoWriter.fourcc(*"MJPG")
    webcam = Webcam()
    webcam.refuses = {cv2.CAP_PROP_GAIN}
    with raises_naming(DeviceFault, "webcam 0", "gain 3"):
        WebcamSource(CLOCK, options, WebcamFeed(options, CLOCK, webcam)).connect()
    assert webcam.released


def test_another_size_than_asked_for_is_refused() -> None:
    webcam = Webcam(CAP_PROP_FRAME_WIDTH=640, CAP_PROP_FRAME_HEIGHT=480)
    with raises_naming(DeviceFault, "webcam 0", "640x480", "64x36 MJPG"):
        WebcamSource(CLOCK, OPTIONS, WebcamFeed(OPTIONS, CLOCK, webcam)).connect()
    assert webcam.released


def test_a_device_that_is_not_there_or_busy_is_named(tmp_path: Any) -> None:
    absent = replace(OPTIONS, device="/dev/video-none")
    with raises_naming(DeviceFault, "webcam /dev/video-none", "found"):
        WebcamSource(CLOCK, absent, WebcamFeed(absent, CLOCK)).connect()
    node = tmp_path / "video0"
    node.touch()
    busy, webcam = replace(OPTIONS, device=str(node)), Webcam()
    webcam.opened = False
    with raises_naming(DeviceFault, "fuser"):
        WebcamSource(CLOCK, busy, WebcamFeed(busy, CLOCK, webcam)).connect()


def test_the_factory_makes_a_camera_of_color_alone() -> None:
    robot = make_fake(make_task())
    context = RobotContext(make_scene(), CAMERA, 0)
    camera = make_camera(robot, context, {"hfov_deg": 100.0, "width": 64, "height": 48}, "test")
    assert not camera.info.has_depth
    assert camera.info.intrinsics == CAMERA.intrinsics
    with raises_naming(ConfigError, "color mode 64x48"):
        make_camera(robot, context, {"hfov_deg": 50.0, "width": 64, "height": 48}, "test")
    with raises_naming(ConfigError, "test: field 'hfov_deg'"):
        make_camera(robot, context, {}, "test")
