"""Source of raw pairs from an Azure Kinect, live or recorded."""

import math
from collections import deque
from pathlib import Path

from drivers.azure_kinect.calibration import FactoryCalibration
from drivers.azure_kinect.mkv import MkvWriter
from drivers.azure_kinect.nominal_calibration import factory_document
from drivers.azure_kinect.sdk import ImuSample, Sdk
from drivers.azure_kinect.streams import CaptureStream, Stamped
from robot_runtime.common.clock import Clock, ns_to_seconds, seconds_to_ns
from robot_runtime.errors import NotConnected, StaleData
from robot_runtime.imaging.rig import RgbdCalibration
from robot_runtime.imaging.source import RawRgbd, RgbdSource, SensorMode

MAX_IMU_SAMPLES = 8192
"""Stored samples, five seconds."""


class KinectSource(RgbdSource):
    """Source of image pairs, each from a single capture, paired by the SDK.

    ``record_to`` is a new file for a recording of all captures, in the SDK's format.
    """

    def __init__(self, sdk: Sdk, clock: Clock, stream: CaptureStream, record_to: Path | None = None) -> None:
        self._sdk, self._clock, self.stream, self._record_to = sdk, clock, stream, record_to
        self._factory = FactoryCalibration(sdk, factory_document(), "nominal calibration", "nominal")
        self._connected = False
        self._writer: MkvWriter | None = None
        self._imu: deque[ImuSample] = deque(maxlen=MAX_IMU_SAMPLES)
        self._calibration = self._for_modes()

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def calibration(self) -> RgbdCalibration:
        return self._calibration

    @property
    def color_mode(self) -> SensorMode:
        return self._factory.color_mode(self.stream.configuration.color)

    @property
    def depth_mode(self) -> SensorMode:
        return self._factory.depth_mode(self.stream.configuration.depth)

    @property
    def modes(self) -> tuple[SensorMode, ...]:
        return self._factory.modes

    @property
    def rate_hz(self) -> float:
        return float(self.stream.configuration.rate_hz)

    def connect(self) -> None:
        if self._connected:
            return
        self._factory = self.stream.open()
        self._connected = True
        try:
            self._calibration = self._for_modes()
            if self._record_to is not None:
                self._writer = MkvWriter(self._sdk, self._record_to, self.stream.configuration, self._factory.raw)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._connected = False
        self.stream.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def read(self, exposed_after_ns: int, timeout_s: float) -> RawRgbd:
        if not self._connected:
            raise NotConnected(f"{self.name}: is not connected", "call connect() before using it")
        deadline_ns = self._clock.now_ns() + seconds_to_ns(timeout_s)
        unpaired = stale = 0
        while True:
            left_s = max(0.0, ns_to_seconds(deadline_ns - self._clock.now_ns()))
            stamped = self.stream.next(exposed_after_ns, left_s)
            if stamped is None:
                raise self._no_pair_error(exposed_after_ns, timeout_s, unpaired, stale)
            self._record(stamped)
            if not stamped.paired:
                unpaired += 1
            elif min(stamped.color_ns, stamped.depth_ns) < exposed_after_ns:
                stale += 1
            else:
                break
        capture = stamped.capture
        assert capture.depth is not None
        return RawRgbd(
            stamped.color_ns,
            stamped.depth_ns,
            self.stream.color_of(stamped),
            capture.depth.data,
            None if capture.infrared is None else capture.infrared.data,
            None if math.isnan(capture.temperature_c) else capture.temperature_c,
        )

    def take_imu(self) -> tuple[ImuSample, ...]:
        """Return the inertial samples since the last call, at most of five seconds.

        Their stamps are on the device's clock; ``stream.to_clock_ns`` maps them to the robot's.
        """
        samples = tuple(self._imu)
        self._imu.clear()
        return samples

    def _record(self, stamped: Stamped) -> None:
        """Store the inertial samples of a capture, and write both to the recording, if there is one."""
        if self._writer is not None:
            self._writer.write(stamped.capture)
        while self.stream.imu:
            sample = self.stream.imu.popleft()
            self._imu.append(sample)
            if self._writer is not None:
                self._writer.write_imu(sample)

    def _for_modes(self) -> RgbdCalibration:
        return self._factory.of(self.stream.configuration.color, self.stream.configuration.depth)

    def _no_pair_error(self, after_ns: int, timeout_s: float, unpaired: int, stale: int) -> StaleData:
        asked = f"exposed at or after {ns_to_seconds(after_ns):.3f} s within {timeout_s:.2f} s"
        if unpaired:
            return StaleData(
                f"{self.name}: no pair {asked}: {unpaired} captures had color or depth alone",
                "use another USB controller for other devices, or a slower rate_hz",
            )
        came = f"; {stale} older ones came" if stale else ""
        return StaleData(f"{self.name}: no pair {asked}{came}", self.stream.late_remedy)
