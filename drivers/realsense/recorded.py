"""Source of pairs from a recording, at the pace of the robot's clock."""

import dataclasses
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from drivers.realsense.capture import FramePair
from drivers.realsense.filters import FilterChain
from drivers.realsense.modes import device_modes
from drivers.realsense.options import StreamOptions
from drivers.realsense.probe import check_topics, probe
from drivers.realsense.sdk import rs
from drivers.realsense.source import PipelineSource
from robot_runtime.common.clock import Clock, Stopwatch, ns_to_seconds, seconds_to_ns
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.imaging.source import RawRgbd

PULL_MS = 100
"""Host time for decoding one pair, independent of the robot's clock."""

DRAIN_MS = 10
PAUSE_S = 10.0
"""Time limit for the player to pause; pausing takes milliseconds, and the SDK has the same limit."""


class RecordedSource(PipelineSource):
    """A recording, played at the pace of the robot's clock: its first pair is exposed when it is opened.

    With ``real_time: false`` each pair is exposed when it is requested.
    """

    def __init__(self, clock: Clock, options: StreamOptions, where: str) -> None:
        super().__init__(clock, options, where)
        self._name = f"RealSense recording {options.file}"
        self._playback: Any = None
        self._next: FramePair | None = None
        self._begin_ns = self._before_ns = 0
        self._pairs = 0

    def read(self, exposed_after_ns: int, timeout_s: float) -> RawRgbd:
        self._require_capture()
        chain, seen = FilterChain(self._options.filters), 0
        deadline_ns = self._clock.now_ns() + seconds_to_ns(timeout_s)
        while True:
            pair = self._next if self._next is not None else self._pull()
            self._next = None
            if not self._options.real_time:
                asked_ns = max(exposed_after_ns, self._clock.now_ns())
                self._begin_ns = asked_ns - min(pair.color_ns, pair.depth_ns)
            color_ns, depth_ns = pair.color_ns + self._begin_ns, pair.depth_ns + self._begin_ns
            if max(color_ns, depth_ns) > deadline_ns:
                self._next = pair
                self._clock.sleep_until(deadline_ns)
                raise StaleData(
                    f"{self._name}: has no pair exposed at or after {ns_to_seconds(exposed_after_ns):.3f} s within "
                    f"{timeout_s:.2f} s",
                    "wait longer; or play it with 'real_time: false', if it was recorded with pauses",
                )
            if min(color_ns, depth_ns) < exposed_after_ns:
                continue
            self._clock.sleep_until(max(color_ns, depth_ns))
            raw = self._raw(chain, pair, color_ns, depth_ns)
            seen += 1
            if seen >= self._options.filters.frames:
                return raw

    def close(self) -> None:
        playback, self._playback, self._next = self._playback, None, None
        if playback is not None and self._pipeline is not None:
            _pause_playback(playback, self._pipeline)
        super().close()

    def _start(self) -> tuple[Any, Any]:
        check_topics(Path(self._options.file))
        probe(Path(self._options.file))
        pipeline, streams = rs.pipeline(rs.context()), rs.config()
        try:
            streams.enable_device_from_file(self._options.file, repeat_playback=self._options.repeat)
            playback = streams.resolve(rs.pipeline_wrapper(pipeline)).get_device().as_playback()
            # Before the start, because a player in real time would drop frames until then.
            playback.set_real_time(False)
            # The sensors start one after the other; frames read in between would be lost to the later one.
            playback.pause()
            profile = pipeline.start(streams)
            playback.resume()
        except RuntimeError as error:
            raise DeviceFault(
                f"{self._name}: cannot be played: {error}",
                "name a complete .db3 or .bag file with color and depth in 'file'; a truncated file cannot be repaired",
            ) from error
        self._playback = playback
        self._read_modes(profile)
        return pipeline, profile

    def _read_modes(self, profile: Any) -> None:
        """Take modes and rate from the file instead of the options."""
        self._modes = device_modes(profile.get_device().query_sensors())
        names = {mode.sensor: mode.name for mode in self._modes}
        if set(names) != {"color", "depth"}:
            raise DeviceFault(
                f"{self._name}: holds {' and '.join(names) or 'neither color'}, and a pair is color and depth",
                "record both streams, color as rgb8 and depth as z16",
            )
        rate_hz = min(round(mode.rate_hz) for mode in self._modes)
        self._options = dataclasses.replace(
            self._options, color=names["color"], depth=names["depth"], rate_hz=max(1, rate_hz)
        )

    def _on_started(self) -> None:
        self._pairs = 0
        self._before_ns = -1

    def _first_pair(self) -> FramePair:
        self._next = self._pull()
        self._begin_ns = self._clock.now_ns() - min(self._next.color_ns, self._next.depth_ns)
        return self._next

    def _pull(self) -> FramePair:
        """Return the recording's next pair, from the start again if it is repeated."""
        capture = self._require_capture()
        for _ in range(round(self._options.start_timeout_s * 1e3 / PULL_MS)):
            # Read before taking a pair, because the last pairs come before the player stops. A repeating player stops
            # for a moment as well.
            stopped = not self._options.repeat and self._playback.current_status() == rs.playback_status.stopped
            sets = capture.sets
            pair = capture.take(PULL_MS)
            if pair is not None:
                self._keep_order(pair)
                self._pairs += 1
                return pair
            if stopped and capture.sets == sets:
                break
        if self._pairs == 0:
            raise DeviceFault(
                f"{self._name}: contains no pair of color and depth; {capture.unpaired} sets of other images",
                "record both streams at the same rate",
            )
        raise DeviceFault(
            f"{self._name}: ended after {self._pairs} pairs",
            "check the file" if self._options.repeat else "set 'repeat: true', or play a longer recording",
        )

    def _keep_order(self, pair: FramePair) -> None:
        first_ns, last_ns = min(pair.color_ns, pair.depth_ns), max(pair.color_ns, pair.depth_ns)
        if first_ns < self._before_ns:
            # The recording restarted: one period after its last pair, by the robot's clock.
            self._begin_ns += self._before_ns - first_ns + round(1e9 / self.rate_hz)
        self._before_ns = last_ns


def _pause_playback(playback: Any, pipeline: Any) -> None:
    """Pause the SDK's player; it may abort the process if it is stopped while it ends its file."""

    def pause() -> None:
        with suppress(RuntimeError):  # already stopped
            playback.pause()

    pausing = threading.Thread(target=pause, name="RealSense pause", daemon=True)
    pausing.start()
    timer = Stopwatch()
    with suppress(RuntimeError):  # the pipeline is not running
        while pausing.is_alive() and timer.elapsed_s() < PAUSE_S:
            pipeline.try_wait_for_frames(DRAIN_MS)  # the player cannot pause while its queue is full
