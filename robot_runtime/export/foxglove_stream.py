"""Log over Foxglove's WebSocket: with play, pause, seek and speed from the app, or live while it is written.

The messages are the log's own, byte for byte.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcap.records import Channel, Message, Schema

from robot_runtime.common.clock import NS_PER_S, Clock, SystemClock, seconds_to_ns
from robot_runtime.common.closing import Closing
from robot_runtime.errors import ConfigError, DriverMissing
from robot_runtime.recording.mcap_scan import ChunkSpan, LogFile

if TYPE_CHECKING:
    import foxglove

PORT = 8765
"""Foxglove's default."""

TICK_S = 0.05
"""Between two groups of messages."""

MAX_SPEED = 100.0


class LogMessages:
    """Messages of a log, chunk by chunk.

    Args:
        path: path of the log, complete or being written.

    Raises:
        RecordingError: from every method: no such file, no log, or damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = LogFile(path)
        self._read = 0
        self._channels: dict[int, Channel] = {}
        self._schemas: dict[int, Schema] = {}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def new_chunks(self) -> list[ChunkSpan]:
        """The chunks that were written since the last call."""
        self._file.close()
        self._file = LogFile(self._path)
        new = self._file.chunks[self._read :]
        self._read += len(new)
        return new

    def channels(self) -> list[tuple[Channel, Schema]]:
        """The channels of the chunks that were read; the first chunk defines most of them."""
        return [(channel, self._schemas[channel.schema_id]) for channel in self._channels.values()]

    def messages(self, chunk: ChunkSpan) -> list[Message]:
        """A chunk's messages."""
        found: list[Message] = []
        for record in self._file.chunk(chunk.span, schemas=True):
            if isinstance(record, Schema):
                self._schemas[record.id] = record
            elif isinstance(record, Channel):
                self._channels[record.id] = record
            elif isinstance(record, Message):
                found.append(record)
        return found


@dataclass(frozen=True, slots=True)
class Playback:
    """State of a playback.

    Attributes:
        time_ns: present time in the log.
        speed: log seconds per second.
        playing: False while paused.
    """

    time_ns: int
    speed: float = 1.0
    playing: bool = True

    def after(self, seconds: float, end_ns: int) -> Playback:
        """The state some seconds later; at ``end_ns`` it stops."""
        if not self.playing:
            return self
        time_ns = self.time_ns + seconds_to_ns(seconds * self.speed)
        return replace(self, time_ns=min(time_ns, end_ns), playing=time_ns < end_ns)


class FoxgloveServer(Closing):
    """Server of a log for any number of viewers. :meth:`update` sends what is due.

    Args:
        path: path of the log.
        host: address to listen on.
        port: port to listen on; 0 for any free port.
        live: whether the log is being written: messages are sent as they arrive, without playback control.
        clock: paces the playback.

    Attributes:
        port: port on which it listens.
        url: address that opens Foxglove's app on this server.

    Raises:
        DriverMissing: foxglove-sdk is not installed.
        ConfigError: the port is taken.
        RecordingError: the log cannot be read.
    """

    def __init__(
        self, path: Path, host: str = "127.0.0.1", port: int = PORT, live: bool = False, clock: Clock | None = None
    ) -> None:
        try:
            import foxglove
        except ImportError as error:
            raise DriverMissing("this view needs the package 'foxglove-sdk'", _INSTALL) from error
        self._clock = clock or SystemClock()
        self._now_ns = self._clock.now_ns()
        self._live = live
        self._log = LogMessages(path)
        self._context = foxglove.Context()
        self._channels: dict[int, foxglove.Channel] = {}
        self._chunks = [] if live else self._index()
        times = [stamp_ns for _, stamps in self._chunks for stamp_ns in stamps]
        self._span_ns = (min(times, default=0), max(times, default=0))
        self._sent = 0
        self._shown: dict[frozenset[int], ChunkSpan] = {}
        self._advertise()
        self._playback = Playback(self._span_ns[0])
        self._lock = threading.Lock()
        self._requests: list[Any] = []
        self._joined = False
        try:
            self._server = foxglove.start_server(
                name=f"robot_runtime {path.name}",
                host=host,
                port=port,
                context=self._context,
                capabilities=[] if live else [foxglove.websocket.Capability.Time],
                server_listener=self._listener(),
                playback_time_range=None if live else self._span_ns,
            )
        except (RuntimeError, OSError) as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error}", "choose another --port") from error
        self.port = int(self._server.port)
        self.url = str(self._server.app_url() or "")

    def close(self) -> None:
        """Disconnect the viewers and stop listening."""
        self._server.stop()
        self._log.close()

    def update(self) -> None:
        """Send the messages that are due: new ones of a live log, else those up to the playback's time."""
        now_ns = self._clock.now_ns()
        elapsed_s, self._now_ns = (now_ns - self._now_ns) / NS_PER_S, now_ns
        with self._lock:
            requests, self._requests = self._requests, []
            joined, self._joined = self._joined, False
        if self._live:
            for chunk in self._log.new_chunks():
                self._send(chunk)
        else:
            self._play(elapsed_s)  # before the requests, which hold from now on
        for request in requests:
            self._follow(request)
        if joined:
            self._send_shown()

    def _play(self, elapsed_s: float) -> None:
        was = self._playback
        self._playback = was.after(elapsed_s, self._span_ns[1])
        while self._sent < self._due():
            self._send(self._chunks[self._sent][0])
            self._sent += 1
        if was.playing:
            self._server.broadcast_time(self._playback.time_ns)
            if not self._playback.playing:
                self._report(did_seek=False)

    def _index(self) -> list[tuple[ChunkSpan, tuple[int, int]]]:
        """The first chunk, then the others by their first stamp, with first and last stamp; empty ones are left out."""
        found: list[tuple[ChunkSpan, tuple[int, int]]] = []
        for chunk in self._log.new_chunks():
            stamps = [message.log_time for message in self._log.messages(chunk)]
            if stamps:
                found.append((chunk, (min(stamps), max(stamps))))
        found[1:] = sorted(found[1:], key=lambda item: (item[1][0], item[0].span.offset))
        return found

    def _send(self, chunk: ChunkSpan) -> None:
        messages = self._log.messages(chunk)
        self._advertise()
        for message in messages:
            self._channels[message.channel_id].log(message.data, log_time=message.log_time)
        self._shown[chunk.channels or frozenset()] = chunk

    def _advertise(self) -> None:
        """Offer the known channels, so that a viewer has subscribed before their messages come."""
        import foxglove

        for channel, schema in self._log.channels():
            if channel.id not in self._channels:
                described = foxglove.Schema(name=schema.name, encoding=schema.encoding, data=schema.data)
                self._channels[channel.id] = foxglove.Channel(
                    channel.topic, schema=described, message_encoding=channel.message_encoding, context=self._context
                )

    def _send_shown(self) -> None:
        """Send map, scene and the newest message of each kind again, for a viewer that has nothing yet."""
        for chunk in tuple(self._shown.values()):
            self._send(chunk)

    def _follow(self, request: Any) -> None:
        """Carry out a viewer's play, pause, speed or seek."""
        from foxglove.websocket import PlaybackCommand

        speed = request.playback_speed if math.isfinite(request.playback_speed) else 1.0
        self._playback = replace(
            self._playback,
            speed=min(max(speed, 0.0), MAX_SPEED),
            playing=request.playback_command == PlaybackCommand.Play,
        )
        if request.seek_time is not None:
            self._seek(min(max(request.seek_time, self._span_ns[0]), self._span_ns[1]))
        self._report(request.seek_time is not None, request.request_id)

    def _seek(self, time_ns: int) -> None:
        self._playback = replace(self._playback, time_ns=time_ns)
        self._sent = self._due()
        self._shown = {chunk.channels or frozenset(): chunk for chunk, _ in self._chunks[: self._sent]}
        self._send_shown()

    def _due(self) -> int:
        """Number of chunks up to the playback's time; the first, which has map and scene, always is."""
        return sum(not index or first <= self._playback.time_ns for index, (_, (first, _)) in enumerate(self._chunks))

    def _report(self, did_seek: bool, request_id: str | None = None) -> None:
        from foxglove.websocket import PlaybackState, PlaybackStatus

        state, ended = self._playback, self._playback.time_ns >= self._span_ns[1]
        status = PlaybackStatus.Playing if state.playing else PlaybackStatus.Ended if ended else PlaybackStatus.Paused
        self._server.broadcast_playback_state(PlaybackState(status, state.time_ns, state.speed, did_seek, request_id))

    def _listener(self) -> Any:
        """Listener whose calls come from the server's own thread: requests wait for :meth:`update`."""
        from foxglove.websocket import ServerListener

        server = self

        class Listener(ServerListener):
            def on_playback_control_request(self, playback_control_request: Any) -> None:
                with server._lock:
                    server._requests.append(playback_control_request)

            def on_subscribe(self, client: Any, channel: Any) -> None:
                with server._lock:
                    server._joined = True

        return Listener()


_INSTALL = "pip install 'robot-runtime[view]'"
