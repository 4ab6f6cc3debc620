"""Source of raw pairs from the SDK's pipeline, shared by live devices and recordings."""

import dataclasses
from abc import abstractmethod
from typing import Any

import numpy as np

from drivers.realsense.capture import Capture, FramePair, filtered
from drivers.realsense.filters import FilterChain
from drivers.realsense.modes import lens_of, nominal_lens, nominal_mode, nominal_modes, size_of
from drivers.realsense.options import StreamOptions
from drivers.realsense.sdk import rs
from robot_runtime.common.clock import Clock
from robot_runtime.errors import NotConnected
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.rig import RgbdCalibration
from robot_runtime.imaging.source import RawRgbd, RgbdSource, SensorMode

NOMINAL_DEPTH_UNIT_M = 0.001
NOMINAL_BASELINE_M = 0.015
"""Offset of a D435's left imager, the origin of depth, to the right of its color sensor."""


class PipelineSource(RgbdSource):
    """Base class of live devices and recordings."""

    def __init__(self, clock: Clock, options: StreamOptions, where: str) -> None:
        self._clock, self._options, self._where = clock, options, where
        self._name = f"RealSense {options.serial}".rstrip()
        self._modes = nominal_modes()
        self._pipeline: Any = None
        self._capture: Capture | None = None
        self._calibration = _nominal_calibration(options)

    @property
    def name(self) -> str:
        return self._name

    @property
    def calibration(self) -> RgbdCalibration:
        return self._calibration

    @property
    def color_mode(self) -> SensorMode:
        return self._mode("color", self._options.color)

    @property
    def depth_mode(self) -> SensorMode:
        mode = self._mode("depth", self._options.depth)
        return dataclasses.replace(mode, lens=self._calibration.depth)

    @property
    def modes(self) -> tuple[SensorMode, ...]:
        return self._modes

    @property
    def rate_hz(self) -> float:
        return float(self._options.rate_hz)

    def connect(self) -> None:
        if self._capture is not None:
            return
        pipeline, profile = self._start()
        self._pipeline = pipeline
        try:
            device = profile.get_device()
            self._name = (
                f"{device_info(device, rs.camera_info.name)} {device_info(device, rs.camera_info.serial_number)}"
            )
            self._capture = Capture(pipeline, self._name, 1e3 / self.rate_hz)
            self._on_started()
            pair = self._first_pair()
            _, lens = filtered(FilterChain(self._options.filters), pair, self._options.filters.decimation)
            self._calibration = _calibration(profile, lens, pair.depth.get_units())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        pipeline, self._pipeline, self._capture = self._pipeline, None, None
        if pipeline is None:
            return
        try:
            if self._options.record_to:
                # The recorder discards unwritten frames unless it is paused first.
                pipeline.get_active_profile().get_device().as_recorder().pause()
            pipeline.stop()
        except RuntimeError:
            # A disconnected device has stopped already.
            return

    @abstractmethod
    def _start(self) -> tuple[Any, Any]:
        """Start a pipeline, set the modes, and return pipeline and profile. Raises ``DeviceFault``, ``ConfigError``."""

    def _on_started(self) -> None:
        """Reset the state of reading; called when the capture is ready."""

    @abstractmethod
    def _first_pair(self) -> FramePair:
        """Return the first pair. Raises ``DeviceFault``."""

    def _require_capture(self) -> Capture:
        if self._capture is None:
            raise NotConnected(f"{self._name}: is not connected", "call connect() before using it")
        return self._capture

    def _mode(self, sensor: Any, name: str) -> SensorMode:
        for mode in self._modes:
            if (mode.sensor, mode.name) == (sensor, name):
                return mode
        return nominal_mode(sensor, name, self.rate_hz)

    def _streams(self, streams: Any) -> None:
        """Enable both streams in the modes of the options."""
        options = self._options
        streams.enable_stream(rs.stream.color, *size_of(options.color), rs.format.rgb8, options.rate_hz)
        streams.enable_stream(rs.stream.depth, *size_of(options.depth), rs.format.z16, options.rate_hz)

    def _raw(self, chain: FilterChain, pair: FramePair, color_ns: int, depth_ns: int) -> RawRgbd:
        depth, _ = filtered(chain, pair, self._options.filters.decimation)
        return RawRgbd(color_ns, depth_ns, pair.color, depth)


def device_info(device: Any, field: Any) -> str:
    """Return a field of a device's information; empty if unsupported."""
    return str(device.get_info(field)) if device.supports(field) else ""


def _nominal_calibration(options: StreamOptions) -> RgbdCalibration:
    color_from_depth = np.eye(4)
    color_from_depth[0, 3] = NOMINAL_BASELINE_M
    color, depth = nominal_lens("color", options.color), nominal_lens("depth", options.depth)
    return RgbdCalibration(color, depth, color_from_depth, NOMINAL_DEPTH_UNIT_M, options.serial, "nominal")


def _calibration(profile: Any, depth: Lens, depth_unit_m: float) -> RgbdCalibration:
    """Return the device's calibration of the running streams; ``depth`` is the lens after the filters."""
    color_stream, depth_stream = profile.get_stream(rs.stream.color), profile.get_stream(rs.stream.depth)
    device = profile.get_device()
    extrinsics = depth_stream.get_extrinsics_to(color_stream)
    color_from_depth = np.eye(4)
    color_from_depth[:3, :3] = np.array(extrinsics.rotation).reshape(3, 3, order="F")  # the SDK's go by columns
    color_from_depth[:3, 3] = extrinsics.translation
    return RgbdCalibration(
        lens_of(color_stream.as_video_stream_profile().intrinsics),
        depth,
        color_from_depth,
        round(depth_unit_m, 9),  # a float32 of 0.001
        device_info(device, rs.camera_info.serial_number),
        "factory",
    )
