"""Streams of captures from a device or a recording."""

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
from robot_runtime.common import image_files
from robot_runtime.common.bounded import TooLarge
from robot_runtime.common.clock import Clock, SystemClock, ahead_ns, ns_to_seconds, seconds_to_ns
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal.clock_sync import ClockSync

NS_PER_US = 1000
CHECK_CABLES = "check its USB and power cables, and the other devices on the same controller"
STARTING_S = 3.0
"""Time limit of the first capture, during which the depth engine is loaded."""

DECODING_LIMIT_S = 30.0
"""Time limit of decoding an image; decoding takes 12 ms at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Stamped:
    """A capture, and the middle of its exposures on the robot's clock; 0 for a missing image."""

    capture: Capture
    color_ns: int
    depth_ns: int

    @property
    def paired(self) -> bool:
        """Whether both images exist."""
        return self.capture.color is not None and self.capture.depth is not None


class CaptureStream(ABC):
    """Sequence of captures.

    Attributes:
        imu: inertial samples of the last captures; the caller of :meth:`next` removes them.
        late_remedy: remedy of the error for a late capture.
        configuration: the configuration; the requested one until the stream is open.
    """

    late_remedy: str
    configuration: Configuration

    def __init__(self) -> None:
        self.imu: deque[ImuSample] = deque()

    @property
    @abstractmethod
    def name(self) -> str:
        """The device or file, for messages."""

    @abstractmethod
    def open(self) -> FactoryCalibration:
        """Open the stream and return the factory calibration. Raises ``DeviceFault``, with everything closed."""

    @abstractmethod
    def to_clock_ns(self, device_us: int) -> int:
        """Convert the device's time to the robot's clock. Raises ``ValueError`` before the first capture."""

    @abstractmethod
    def next(self, after_ns: int, timeout_s: float) -> Stamped | None:
        """Return the oldest unread capture, or the next one; None if none came in time.

        Raises:
            StaleData: the stream has ended.
            DeviceFault: the device was disconnected, or the file is damaged.
        """

    @abstractmethod
    def color_of(self, stamped: Stamped) -> NDArray[np.uint8]:
        """Return the color image of the last capture, uint8 (H, W, 3) RGB. Raises ``DeviceFault``."""

    @abstractmethod
    def close(self) -> None:
        """Close the stream; may be called twice."""


@dataclass(frozen=True, slots=True)
class Controls:
    """Settings of a live stream.

    Attributes:
        exposure_us: None for automatic.
        white_balance_k: None for automatic.
        warm_up: number of captures dropped at the start, while exposure and white balance adjust.
        latency_s: least delay from the middle of an exposure to its arrival at the host.
    """

    exposure_us: int | None
    white_balance_k: int | None
    warm_up: int
    latency_s: float


class LiveStream(CaptureStream):
    """Captures of a device."""

    late_remedy = "wait longer, or check the USB cable"

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
        self.configuration, self._controls = configuration, controls
        self._device: KinectDevice | None = None
        self._sync = ClockSync(controls.latency_s)

    @property
    def name(self) -> str:
        return "Azure Kinect" if self._device is None else f"Azure Kinect {self._device.serial}"

    @property
    def drift_ppm(self) -> float:
        """Estimated drift: how much slower the device's clock is than the robot's."""
        return self._sync.drift_ppm

    def open(self) -> FactoryCalibration:
        self._sync = ClockSync(self._controls.latency_s)
        device = self._device = self._open_device()
        try:
            calibration = FactoryCalibration(self._sdk, device.raw_calibration, f"{self.name}: factory calibration")
            device.set_control(ColorControl.EXPOSURE_TIME_ABSOLUTE, self._controls.exposure_us)
            device.set_control(ColorControl.WHITEBALANCE, self._controls.white_balance_k)
            device.start(self.configuration)
            for _ in range(self._controls.warm_up):
                if self.next(0, STARTING_S) is None:
                    raise DeviceFault(
                        f"{self.name}: delivers no pairs of color and depth, for {STARTING_S:g} s", CHECK_CABLES
                    )
        except BaseException:
            self.close()
            raise
        return calibration

    def next(self, after_ns: int, timeout_s: float) -> Stamped | None:
        device = self._device
        assert device is not None, "next() of a stream that is not open"
        capture = device.next_capture(timeout_s)
        while self.configuration.imu and (sample := device.next_imu()) is not None:
            self.imu.append(sample)
        if capture is None:
            return None
        # Depth determines the timing of exposure and transport.
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
        # The SDK stamps arrivals on the host's monotonic clock; it need not be the robot's.
        return image.received_ns + ahead_ns(self._clock.now_ns, SystemClock().now_ns)


class RecordedStream(CaptureStream):
    """Captures of a recording; a thread decodes the next image in advance.

    With ``real_time``, captures come at the original pace from the first request on; else each request yields the next
    capture, as if it had just been exposed.
    """

    late_remedy = "wait longer; or play it with 'real_time: false', if it was recorded with pauses"

    def __init__(self, sdk: Sdk, clock: Clock, path: Path, real_time: bool) -> None:
        super().__init__()
        self._sdk, self._clock, self._path, self._real_time = sdk, clock, path, real_time
        self._reader: MkvReader | None = None
        self._decoder: ThreadPoolExecutor | None = None
        self._prefetched: Future[tuple[Capture, NDArray[np.uint8] | None] | None] | None = None
        self._color: NDArray[np.uint8] | None = None
        self.configuration = Configuration("720p", "nfov", 30, imu=False)
        self._start_instants: tuple[int, int] | None = None
        self._sample: ImuSample | None = None

    @property
    def name(self) -> str:
        return f"Azure Kinect recording {self._path}"

    def open(self) -> FactoryCalibration:
        reader = self._reader = MkvReader(self._sdk, self._path)
        try:
            self.configuration = reader.configuration
            calibration = FactoryCalibration(self._sdk, reader.calibration, f"{self._path}: its calibration")
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
        """Read and decode the next capture, in the decoder's thread, the only one that uses the file."""
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
    """Return the color image of a capture, uint8 (H, W, 3) RGB. Raises ``DeviceFault`` for a damaged one."""
    assert capture.color is not None
    try:
        picture = image_files.decode_image(bytes(capture.color.data), cv2.IMREAD_COLOR_RGB)
    except TooLarge:
        picture = None
    if picture is None or picture.shape[1::-1] != capture.size:
        at_s = ns_to_seconds(capture.color.device_us * NS_PER_US)
        raise DeviceFault(f"{where}: the color image at {at_s:.3f} s is damaged", "check the USB cable, or the file")
    return np.asarray(picture, np.uint8)
