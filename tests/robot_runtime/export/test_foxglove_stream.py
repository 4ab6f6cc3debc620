"""Foxglove's own protocol over a real WebSocket: messages byte for byte, play, pause, seek, and a log that grows."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import synthetic
from mcap.reader import make_reader
from recorded_drive import recorded_drive
from synthetic import FORWARD
from websockets.sync.client import ClientConnection, connect

from robot_runtime.common.clock import SimulatedClock, SystemClock, seconds_to_ns, wait_for
from robot_runtime.export.foxglove_stream import FoxgloveServer
from robot_runtime.recording.log_writer import LogWriter

PATIENCE_S = 60.0
MESSAGE = struct.Struct("<BIQ")
PROTOCOL = "foxglove.sdk.v1"
PLAYBACK_REQUEST, PLAYBACK_STATE = 3, 5
PLAY, PAUSE = 0, 1
STATE = struct.Struct("<BBQ")
PLAYING, PAUSED = 0, 1


class Viewer:
    """A client that subscribes to every channel, and keeps messages and reports of the playback."""

    def __init__(self, connection: ClientConnection, update: Callable[[], None]) -> None:
        self._connection, self._update = connection, update
        self._topics: dict[int, str] = {}
        self.info: dict[str, Any] = {}
        self.messages: list[tuple[str, int, bytes]] = []
        self.states: list[tuple[int, int]] = []

    def until(self, done: Callable[[], bool]) -> None:
        """Read, and let the server work, until a condition holds."""

        def probe() -> bool | None:
            self._update()
            with suppress(TimeoutError):
                while True:
                    self._take(self._connection.recv(timeout=0.02))
            return done() or None

        assert wait_for(SystemClock(), probe, PATIENCE_S, 0.001), "the viewer did not get it"

    def topics(self, name: str) -> list[bytes]:
        """Messages of one topic."""
        return [data for topic, _, data in self.messages if topic == name]

    def _take(self, frame: str | bytes) -> None:
        if isinstance(frame, str):
            said = json.loads(frame)
            if said["op"] == "serverInfo":
                self.info = said
            elif said["op"] == "advertise":
                found = {channel["id"]: channel["topic"] for channel in said["channels"]}
                self._topics |= found
                wanted = [{"id": number, "channelId": number} for number in found]
                self._connection.send(json.dumps({"op": "subscribe", "subscriptions": wanted}))
        elif frame[0] == 1:
            _, number, stamp_ns = MESSAGE.unpack_from(frame)
            self.messages.append((self._topics[number], stamp_ns, frame[MESSAGE.size :]))
        elif frame[0] == PLAYBACK_STATE:
            _, status, time_ns = STATE.unpack_from(frame)
            self.states.append((status, time_ns))

    def control(self, command: int, speed: float = 1.0, seek_ns: int | None = None) -> None:
        """Send a playback control as the app does."""
        fields = struct.pack("<BBfBQ", PLAYBACK_REQUEST, command, speed, seek_ns is not None, seek_ns or 0)
        self._connection.send(fields + struct.pack("<I", 1) + b"a")


@contextmanager
def viewed(path: Path, live: bool = False) -> Iterator[tuple[FoxgloveServer, Viewer, SimulatedClock]]:
    clock = SimulatedClock(seconds_to_ns(0.01))
    with (
        FoxgloveServer(path, port=0, live=live, clock=clock) as server,
        connect(f"ws://127.0.0.1:{server.port}", subprotocols=[PROTOCOL]) as connection,
    ):
        yield server, Viewer(connection, server.update), clock


def logged(path: Path, topic: str) -> list[bytes]:
    with path.open("rb") as file:
        return [message.data for _, _, message in make_reader(file).iter_messages(topics=[topic])]


def test_a_log_is_played_byte_for_byte_at_its_own_pace(tmp_path: Path) -> None:
    log = recorded_drive(tmp_path)
    with viewed(log) as (_, viewer, clock):
        viewer.until(lambda: bool(viewer.topics("/episode")))
        assert "playbackControl" in viewer.info["capabilities"]
        assert set(viewer.topics("/step")) <= set(logged(log, "/step")[:1]), "the second step is a second away"
        clock.sleep(10.0)
        viewer.until(lambda: bool(viewer.topics("/end")))
        for topic in ("/step", "/camera/rgb", "/camera/depth"):
            assert list(dict.fromkeys(viewer.topics(topic))) == list(dict.fromkeys(logged(log, topic)))


@pytest.mark.slow
def test_a_viewer_pauses_and_goes_back(tmp_path: Path) -> None:
    log = recorded_drive(tmp_path)
    with viewed(log) as (_, viewer, clock):

        def play_until(topic: str, data: bytes) -> None:
            viewer.until(lambda: data in viewer.topics(topic) or clock.sleep(0.1) or False)

        second, end = logged(log, "/step")[1], logged(log, "/end")[0]
        play_until("/step", second)
        start_ns = min(stamp_ns for _, stamp_ns, _ in viewer.messages)
        viewer.control(PAUSE, seek_ns=start_ns)
        viewer.until(lambda: (PAUSED, start_ns) in viewer.states)
        clock.sleep(10.0)
        viewer.messages.clear()
        viewer.control(PLAY)
        play_until("/step", second)
        assert viewer.topics("/end") == [], "time that passed while it was paused is not played"
        play_until("/end", end)
        viewer.control(PLAY, seek_ns=start_ns)
        viewer.until(lambda: (PLAYING, start_ns) in viewer.states)


def test_a_log_that_is_being_written_is_shown_as_it_grows(tmp_path: Path) -> None:
    header, path = synthetic.header(), tmp_path / "live.mcap"
    writer = LogWriter(path, header)
    writer.write_header()
    with viewed(path, live=True) as (_, viewer, _clock):
        viewer.until(lambda: bool(viewer.topics("/episode")))
        for index, record in enumerate(synthetic.drive(header, [FORWARD])):
            writer.write_step(record)
            viewer.until(lambda count=index + 1: len(set(viewer.topics("/step"))) == count)
    writer.close()
