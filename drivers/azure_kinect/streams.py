"""Where captures come from: a device, or a recording."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from drivers.azure_kinect.calibration import FactoryCalibration
from drivers.azure_kinect.device import Configuration, KinectDevice
from drivers.azure_kinect.mkv import MkvReader
from drivers.azure_kinect.sdk import Capture, Image, ImuSample, Sdk
from drivers.azure_kinect.sdk_types import ColorControl
from robot_runtime.common.clock import Clock, SystemClock, ahead_ns, ns_to_seconds, seconds_to_ns
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal.clock_sync import ClockSync

NS_PER_US = 1000
CABLES = "its USB and power cables, and at what else is plugged into the same controller"
STARTING_S = 3.0
"""Within which the first capture comes; the depth engine is loaded meanwhile."""

DECODING_LIMIT_S = 30.0
"""Of one picture; it takes 12 ms at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Stamped:
    """A capture, and when its pictures were exposed on the robot's clock, in the middle; 0 for one that is missing."""

    capture: Capture
    color_ns: int
    depth_ns: int

    @property
    def paired(self) -> bool:
        """Whether both pictures are there."""
        return self.capture.color is not None and self.capture.depth is not None


class CaptureStream(ABC):
    """Captures, one after the other.

    Attributes:
        imu: inertial samples that came with the last captures; whoever calls :meth:`next` takes them out.
        late_remedy: remedy where the next capture comes too late.
    """

    late_remedy: str

    def __init__(self) -> None:
        self.imu: deque[ImuSample] = deque()

    @property
    @abstractmethod
    def name(self) -> str:
        """The device or file, for messages."""

    @property
    @abstractmethod
    def configuration(self) -> Configuration:
        """What it delivers; as asked for until it is open."""

    @abstractmethod
    def open(self) -> FactoryCalibration:
        """Begin; what the factory measured of the device. Raises ``DeviceFault``, and nothing stays open."""

    @abstractmethod
    def to_clock_ns(self, device_us: int) -> int:
        """When an instant of the device's clock was, on the robot's. Raises ``ValueError`` before the first capture."""

    @abstractmethod
    def next(self, after_ns: int, timeout_s: float) -> Stamped | None:
        """The oldest capture not yet seen, or the next one; None if none came in time.

        Args:
            after_ns: nobody wants what was exposed before.

        Raises:
            StaleData: there will be no more. DeviceFault: the device is gone, or the file damaged.
        """

    @abstractmethod
    def color_of(self, stamped: Stamped) -> NDArray[np.uint8]:
        """The color picture of the last capture, uint8 (H, W, 3), red first. Raises ``DeviceFault``."""

    @abstractmethod
    def close(self) -> None:
        """End; may be called twice."""


@dataclass(frozen=True, slots=True)
class Controls:
    """Color controls that the device is given; None leaves one to the device itself.

    Attributes:
        warm_up: captures that are left out at the start, while exposure and white balance find their level.
        latency_s: from the middle of an exposure to its arrival at the host, at least.
    """

    exposure_us: int | None
    white_balance_k: int | None
    warm_up: int
    latency_s: float


class LiveStream(CaptureStream):
    """A device's captures, as they come.

    Args:
        open_device: opens it; raises ``DeviceFault``.
    """

    late_remedy = "wait longer, or look at the USB cable"

    def __init__(
        self,
        sdk: Sdk,
        clock: Clock,
        configuration: Configuration,
        controls: Controls,
        open_device: Callable[[], KinectDevice],
    ) -> None:
        super().__init__()
        self._sdk, self._clock, self._open_device = sdk, clock, open_device
        self._configuration, self._controls = configuration, controls
        self._device: KinectDevice | None = None
        self._sync = ClockSync(controls.latency_s)

    @property
    def name(self) -> str:
        return "Azure Kinect" if self._device is None else f"Azure Kinect {self._device.serial}"

    @property
    def configuration(self) -> Configuration:
        return self._configuration

    @property
    def drift_ppm(self) -> float:
        """How much slower than the robot's the device's clock goes, as far as is known yet."""
        return self._sync.drift_ppm

    def open(self) -> FactoryCalibration:
        self._sync = ClockSync(self._controls.latency_s)
        device = self._device = self._open_device()
        try:
            calibration = FactoryCalibration(self._sdk, device.raw_calibration, f"{self.name}: factory calibration")
            device.set_control(ColorControl.EXPOSURE_TIME_ABSOLUTE, self._controls.exposure_us)
            device.set_control(ColorControl.WHITEBALANCE, self._controls.white_balance_k)
            device.start(self._configuration)
            for _ in range(self._controls.warm_up):
                if self.next(0, STARTING_S) is None:
                    raise DeviceFault(
                        f"{self.name}: delivers no pairs of color and depth, for {STARTING_S:g} s", "look at " + CABLES
                    )
        except BaseException:
            self.close()
            raise
        return calibration

    def next(self, after_ns: int, timeout_s: float) -> Stamped | None:
        device = self._device
        assert device is not None, "next() of a stream that is not open"
        capture = device.next_capture(timeout_s)
        while self._configuration.imu and (sample := device.next_imu()) is not None:
            self.imu.append(sample)
        if capture is None:
            return None
        # Depth is what both the device's exposure and its transport are timed by.
        image = capture.depth or capture.color
        if image is not None:
            self._sync.add(image.device_us * NS_PER_US, self._arrived_ns(image))
        pictures = (capture.color, capture.depth)
        return Stamped(
            capture, *(0 if picture is None else self.to_clock_ns(picture.device_us) for picture in pictures)
        )

    def to_clock_ns(self, device_us: int) -> int:
        return self._sync.to_clock_ns(device_us * NS_PER_US)

    def color_of(self, stamped: Stamped) -> NDArray[np.uint8]:
        return decode(stamped.capture, self.name)

    def close(self) -> None:
        if self._device is not None:
            self._device.close()
            self._device = None

    def _arrived_ns(self, image: Image) -> int:
        if not image.received_ns:
            return self._clock.now_ns()
        # The SDK stamps arrivals on the host's monotonic clock, which need not be the robot's.
        return image.received_ns + ahead_ns(self._clock.now_ns, SystemClock().now_ns)


class RecordedStream(CaptureStream):
    """A recording's captures; while one is used, the next one's picture is decoded in a thread of its own.

    Args:
        real_time: captures come at the pace in which they were recorded, from the first that is asked for on; else each
            time that one is asked for the next comes, as if it had just been exposed.
    """

    late_remedy = "wait longer; or play it with 'real_time: false', if it was recorded with pauses"

    def __init__(self, sdk: Sdk, clock: Clock, path: Path, real_time: bool) -> None:
        super().__init__()
        self._sdk, self._clock, self._path, self._real_time = sdk, clock, path, real_time
        self._reader: MkvReader | None = None
        self._decoder: ThreadPoolExecutor | None = None
        self._prefetched: Future[tuple[Capture, NDArray[np.uint8] | None] | None] | None = None
        self._color: NDArray[np.uint8] | None = None
        self._configuration = Configuration("720p", "nfov", 30, imu=False)
        self._start_instants: tuple[int, int] | None = None
        self._sample: ImuSample | None = None

    @property
    def name(self) -> str:
        return f"Azure Kinect recording {self._path}"

    @property
    def configuration(self) -> Configuration:
        return self._configuration

    def open(self) -> FactoryCalibration:
        reader = self._reader = MkvReader(self._sdk, self._path)
        try:
            self._configuration = reader.recorded.configuration
            calibration = FactoryCalibration(self._sdk, reader.recorded.calibration, f"{self._path}: its calibration")
        except BaseException:
            self.close()
            raise
        self._sample = reader.next_imu()
        self._decoder = ThreadPoolExecutor(1, thread_name_prefix="kinect decoder")
        self._prefetched = self._decoder.submit(self._read, reader)
        self._start_instants = None
        return calibration

    def next(self, after_ns: int, timeout_s: float) -> Stamped | None:
        reader, decoder, ahead = self._reader, self._decoder, self._prefetched
        assert reader is not None, "next() of a stream that is not open"
        assert decoder is not None
        assert ahead is not None
        found = ahead.result(DECODING_LIMIT_S)
        if found is None:
            raise StaleData(f"{self.name}: has ended", "record for longer, or run fewer steps")
        capture, color = found
        stamped = self._stamp(capture, after_ns)
        if self._real_time:
            deadline_ns = self._clock.now_ns() + seconds_to_ns(timeout_s)
            exposed_ns = max(stamped.color_ns, stamped.depth_ns)
            self._clock.sleep_until(min(exposed_ns, deadline_ns))
            if exposed_ns > deadline_ns:
                return None
        self._color = color
        self._prefetched = decoder.submit(self._read, reader)
        return stamped

    def to_clock_ns(self, device_us: int) -> int:
        if self._start_instants is None:
            raise ValueError("no capture has been played yet")
        begun_ns, begun_us = self._start_instants
        return begun_ns + (device_us - begun_us) * NS_PER_US

    def color_of(self, stamped: Stamped) -> NDArray[np.uint8]:
        assert self._color is not None, "the capture has no color"
        return self._color

    def close(self) -> None:
        if self._decoder is not None:
            self._decoder.shutdown(wait=True)
            self._decoder = self._prefetched = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _stamp(self, capture: Capture, after_ns: int) -> Stamped:
        pictures = (capture.color, capture.depth)
        first_us = min(picture.device_us for picture in pictures if picture is not None)
        if self._start_instants is None or not self._real_time:
            self._start_instants = max(after_ns, self._clock.now_ns()), first_us
        return Stamped(capture, *(0 if image is None else self.to_clock_ns(image.device_us) for image in pictures))

    def _read(self, reader: MkvReader) -> tuple[Capture, NDArray[np.uint8] | None] | None:
        """In the decoder's thread, which alone uses the file."""
        capture = reader.next_capture()
        while capture is not None and capture.color is None and capture.depth is None:
            capture = reader.next_capture()
        if capture is None:
            return None
        until_us = max(0 if image is None else image.device_us for image in (capture.color, capture.depth))
        while self._sample is not None and self._sample.acceleration_us <= until_us:
            self.imu.append(self._sample)
            self._sample = reader.next_imu()
        return capture, None if capture.color is None else decode(capture, self.name)


def decode(capture: Capture, where: str) -> NDArray[np.uint8]:
    """The color picture of a capture, uint8 (H, W, 3), red first. Raises ``DeviceFault`` for a damaged one."""
    assert capture.color is not None
    picture = cv2.imdecode(capture.color.data, cv2.IMREAD_COLOR_RGB)
    if picture is None or picture.shape[1::-1] != capture.size:
        at_s = ns_to_seconds(capture.color.device_us * NS_PER_US)
        raise DeviceFault(
            f"{where}: the color picture at {at_s:.3f} s is damaged", "look at the USB cable, or the file"
        )
    return np.asarray(picture, np.uint8)
