"""Source of pairs from a connected device, real or emulated."""

from pathlib import Path
from typing import Any

from drivers.realsense.bus import Bus, find_device
from drivers.realsense.capture import Capture, FramePair
from drivers.realsense.filters import FilterChain
from drivers.realsense.modes import device_modes, size_of
from drivers.realsense.options import StreamOptions, apply_settings
from drivers.realsense.sdk import rs
from drivers.realsense.source import PipelineSource, device_info
from robot_runtime.common.clock import Clock, ahead_ns, ns_to_seconds, seconds_to_ns, unix_now_ns, wait_for
from robot_runtime.errors import DeviceFault, RecordingError, StaleData, UnpairedImages
from robot_runtime.hal.clock_sync import ClockSync
from robot_runtime.imaging.source import RawRgbd

POLL_S = 0.002
"""Interval of polls; a poll takes microseconds."""

_BUSY = ("busy", "errno=16", "is streaming", "already opened")
"""Words in the SDK's messages when another program uses the device."""


class HostStamps:
    """Map from one device's stamps, in the SDK's time domains, to the robot's clock.

    ==================  ============================================================================================
    domain              meaning and mapping of the stamp
    ==================  ============================================================================================
    ``hardware_clock``  the device's counter: offset and drift are estimated from arrivals. The fastest transport
                        remains in the offset; ``latency_s`` corrects it.
    ``global_time``     the host's wall clock, to which the SDK has mapped the counter: nothing remains.
    ``system_time``     the host's wall clock at arrival: ``latency_s`` is the total delay from the exposure.
    ==================  ============================================================================================
    """

    def __init__(self, clock: Clock, latency_s: float) -> None:
        self._clock = clock
        self._latency_ns = seconds_to_ns(latency_s)
        self._sync = ClockSync(latency_s)

    def add_arrival(self, stamp_ns: int, domain: Any) -> None:
        """Record the arrival of a frame at this moment; frames that waited in a queue do not count."""
        if domain == rs.timestamp_domain.hardware_clock:
            self._sync.add(stamp_ns, self._clock.now_ns())

    def host_ns(self, stamp_ns: int, domain: Any) -> int:
        """Return a stamp on the robot's clock; in ``hardware_clock`` only after :meth:`add_arrival`."""
        if domain == rs.timestamp_domain.hardware_clock:
            return self._sync.to_clock_ns(stamp_ns)
        return stamp_ns + ahead_ns(self._clock.now_ns, unix_now_ns) - self._latency_ns


class LiveSource(PipelineSource):
    """Source of pairs from a device on a bus."""

    def __init__(self, clock: Clock, options: StreamOptions, bus: Bus, where: str) -> None:
        super().__init__(clock, options, where)
        self._bus = bus
        self._serial = options.serial
        self._stamps = HostStamps(clock, options.latency_s)

    def read(self, exposed_after_ns: int, timeout_s: float) -> RawRgbd:
        capture = self._require_capture()
        chain, seen = FilterChain(self._options.filters), 0
        sets, unpaired = capture.sets, capture.unpaired
        looked_ns = -1

        def look() -> RawRgbd | None:
            nonlocal seen, looked_ns
            waited, looked_ns = looked_ns >= 0, self._clock.now_ns()
            pair = self._poll(capture, is_fresh=waited)
            if pair is None:
                return None
            color_ns = self._stamps.host_ns(pair.color_ns, pair.domain)
            depth_ns = self._stamps.host_ns(pair.depth_ns, pair.domain)
            if min(color_ns, depth_ns) < exposed_after_ns:
                return None
            seen += 1
            raw = self._raw(chain, pair, color_ns, depth_ns)
            return raw if seen >= self._options.filters.frames else None

        try:
            raw = wait_for(self._clock, look, timeout_s, POLL_S)
        finally:
            self._bus.end_wait()
        if raw is None:
            raise self._no_pair_error(capture.sets - sets, capture.unpaired - unpaired, exposed_after_ns, timeout_s)
        return raw

    def _start(self) -> tuple[Any, Any]:
        options, context = self._options, self._bus.context
        if options.record_to and Path(options.record_to).exists():
            raise RecordingError(f"{options.record_to}: exists already", "delete it, or name another 'record_to'")
        device = find_device(context, options.serial)
        self._serial = device_info(device, rs.camera_info.serial_number)
        self._name = f"{device_info(device, rs.camera_info.name)} {self._serial}"
        sensors = device.query_sensors()
        self._modes = device_modes(sensors)
        self._require_modes(sensors, device_info(device, rs.camera_info.usb_type_descriptor))
        self._apply_settings(sensors)
        pipeline, streams = rs.pipeline(context), rs.config()
        streams.enable_device(self._serial)
        self._streams(streams)
        if options.record_to:
            streams.enable_record_to_file(options.record_to)
        self._stamps = HostStamps(self._clock, options.latency_s)
        try:
            return pipeline, pipeline.start(streams)
        except RuntimeError as error:
            raise self._start_error(error) from error

    def _first_pair(self) -> FramePair:
        capture = self._require_capture()
        limit_s = self._options.start_timeout_s
        try:
            pair = wait_for(self._clock, lambda: self._poll(capture, is_fresh=True), limit_s, POLL_S)
        finally:
            self._bus.end_wait()
        if pair is None:
            raise self._no_pair_error(capture.sets, capture.unpaired, self._clock.now_ns(), limit_s)
        return pair

    def _poll(self, capture: Capture, is_fresh: bool) -> FramePair | None:
        self._bus.begin_wait()
        pair = capture.take()
        if pair is not None and is_fresh:
            self._stamps.add_arrival(max(pair.color_ns, pair.depth_ns), pair.domain)
        return pair

    def _no_pair_error(self, sets: int, unpaired: int, exposed_after_ns: int, timeout_s: float) -> DeviceFault:
        """Return the error that explains why no pair came."""
        if not self._bus.is_connected(self._serial):
            return DeviceFault(f"{self._name}: was unplugged", "plug it in again, and start again")
        if sets == 0:
            return StaleData(
                f"{self._name}: delivered nothing, or images of one sensor only, within {timeout_s:.2f} s",
                "check its cable, and that it hangs on a USB 3 port without a hub; lower the modes or 'rate_hz'",
            )
        if unpaired == sets:
            return UnpairedImages(
                f"{self._name}: {sets} sets of images came within {timeout_s:.2f} s, and in none do color and depth "
                "belong together",
                "lower 'rate_hz' or the modes: the USB port loses the images of a single sensor",
            )
        return StaleData(
            f"{self._name}: no pair exposed at or after {ns_to_seconds(exposed_after_ns):.3f} s came within "
            f"{timeout_s:.2f} s",
            "wait longer, or raise 'rate_hz'",
        )

    def _require_modes(self, sensors: Any, usb: str) -> None:
        options = self._options
        for kind, name in (("color", options.color), ("depth", options.depth)):
            found = sorted(mode.name for mode in self._modes if mode.sensor == kind)
            if name not in found:
                raise DeviceFault(
                    f"{self._name}: has no {kind} mode {name!r} on USB {usb or '?'}",
                    f"set {kind!r} in the camera's YAML to one of {', '.join(found) or 'none: it has no such sensor'}",
                )
            rates = _rates(sensors, kind, name)
            if options.rate_hz not in rates:
                raise DeviceFault(
                    f"{self._name}: cannot run {kind} {name} at {options.rate_hz} Hz on USB {usb or '?'}",
                    f"set 'rate_hz' in the camera's YAML to one of {', '.join(map(str, rates))}",
                )

    def _apply_settings(self, sensors: Any) -> None:
        try:
            for sensor in sensors:
                kinds = {profile.stream_type() for profile in sensor.get_stream_profiles()}
                if rs.stream.color in kinds:
                    apply_settings(sensor, self._options.color_sensor.settings(), self._where)
                if rs.stream.depth in kinds:
                    apply_settings(sensor, self._options.depth_sensor.settings(), self._where)
        except RuntimeError as error:
            raise self._start_error(error) from error

    def _start_error(self, error: RuntimeError) -> DeviceFault:
        if any(word in str(error).lower() for word in _BUSY):
            return DeviceFault(
                f"{self._name}: is in use by another program: {error}",
                "end it (realsense-viewer, a ROS camera node, another run), then start again",
            )
        options = self._options
        modes = f"color {options.color} with depth {options.depth} at {options.rate_hz} Hz"
        return DeviceFault(
            f"{self._name}: cannot run {modes}: {error}",
            "choose smaller modes or a lower rate_hz, or plug the camera in again",
        )


def _rates(sensors: Any, kind: str, name: str) -> list[int]:
    stream, form = (rs.stream.color, rs.format.rgb8) if kind == "color" else (rs.stream.depth, rs.format.z16)
    size = size_of(name)
    profiles = [profile for sensor in sensors for profile in sensor.get_stream_profiles()]
    matching = [p.as_video_stream_profile() for p in profiles if (p.stream_type(), p.format()) == (stream, form)]
    return sorted({video.fps() for video in matching if (video.width(), video.height()) == size})
