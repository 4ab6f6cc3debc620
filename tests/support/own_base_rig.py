"""Made-up bases at the other end of a wire: ideal wheels without any watchdog, which keep the last command for ever."""

from __future__ import annotations

import contextlib
import math
import os
import pty
import socket
import struct
import threading
import time
import tty
from abc import ABC, abstractmethod
from binascii import crc_hqx

from robot_runtime.common.clock import SystemClock
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import PoseEstimate, Zone
from robot_runtime.hal.pose_history import PoseHistory


class Cart(ABC):
    """Two wheels and a body that a wall across the x axis may stop; a thread moves, reads commands and reports.

    Attributes:
        track_m: distance between the wheels.
        period_s: time between two reports.
        wheels_m_s: commanded speed of the left and the right wheel.
        travel_m: way of the left and the right wheel so far.
        wall_x_m: position of the wall's front where the body stops; infinite for none.
        bumper, cliff, wheel_drop: levels beside the wall's.
        silent: whether it sends no reports.
        garbage: bytes that it sends before each report.
        truth: poses of the body, as by an external tracker.
    """

    track_m: float
    period_s: float

    def __init__(self) -> None:
        self.wheels_m_s, self.travel_m = (0.0, 0.0), (0.0, 0.0)
        self.wall_x_m = math.inf
        self.bumper = self.cliff = self.wheel_drop = Zone.NONE
        self.silent, self.garbage = False, b""
        self.truth = PoseHistory("tracker", "odom")
        self._clock, self._pose = SystemClock(), SE2()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    @abstractmethod
    def port(self) -> str:
        """Address for the driver."""

    @abstractmethod
    def receive(self) -> None:
        """Take commands, if any have come."""

    @abstractmethod
    def send(self, bumper: Zone) -> None:
        """Send a report, unless nobody listens."""

    def unplug(self) -> None:
        """Cut the connection."""

    def close(self) -> None:
        """End the thread and the connection."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join(2.0)
            self.unplug()

    def stands_within_s(self, limit_s: float) -> float:
        """Time until the wheels are commanded to stand; infinite if not within the limit."""
        begin_s = time.monotonic()
        while any(self.wheels_m_s):
            if time.monotonic() - begin_s > limit_s:
                return math.inf
            time.sleep(0.001)
        return time.monotonic() - begin_s

    def _run(self) -> None:
        then_s = due_s = time.monotonic()
        while not self._over.wait(0.002):
            self.receive()
            now_s = time.monotonic()
            touching = self._move(now_s - then_s)
            then_s = now_s
            self.truth.add(PoseEstimate(self._clock.now_ns(), self._pose, "odom"))
            if now_s >= due_s:
                due_s = max(due_s + self.period_s, now_s)
                self.send(self.bumper | (Zone.CENTER if touching else Zone.NONE))

    def _move(self, seconds: float) -> bool:
        """Move, and return whether the body touches the wall."""
        left_m, right_m = (speed * seconds for speed in self.wheels_m_s)
        moved = self._pose @ SE2.arc((left_m + right_m) / 2, (right_m - left_m) / self.track_m)
        if moved.x_m > self.wall_x_m:  # the wheels are held, but for turning on the spot
            half_m = (right_m - left_m) / 2
            left_m, right_m = -half_m, half_m
            moved = self._pose @ SE2.arc(0.0, 2 * half_m / self.track_m)
        self._pose = moved
        self.travel_m = self.travel_m[0] + left_m, self.travel_m[1] + right_m
        return moved.x_m >= self.wall_x_m - 0.001


class Pebble(Cart):
    """The base of ``docs/examples/own_base.py``, on a pseudo terminal."""

    track_m, period_s = 0.28, 0.02

    def __init__(self) -> None:
        self._main, self._far = pty.openpty()
        for end in (self._main, self._far):
            tty.setraw(end)
        os.set_blocking(self._main, False)
        self._received = b""
        super().__init__()

    @property
    def port(self) -> str:
        return os.ttyname(self._far)

    def receive(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._received += os.read(self._main, 4096)
        while len(command := self._received[:7]) == 7:
            intact = command[:1] == b"V" and not crc_hqx(command, 0)
            self._received = self._received[7 if intact else 1 :]
            if intact:
                left, right = struct.unpack("<hh", command[1:5])
                self.wheels_m_s = left / 1000, right / 1000

    def send(self, bumper: Zone) -> None:
        report = struct.pack("<cBii", b"R", bumper.value, *(round(1e4 * way_m) for way_m in self.travel_m))
        with contextlib.suppress(BlockingIOError):
            os.write(
                self._main, self.garbage + (b"" if self.silent else report + crc_hqx(report, 0).to_bytes(2, "big"))
            )

    def unplug(self) -> None:
        os.close(self._main)
        os.close(self._far)


class Brook(Cart):
    """The base of ``tests/support/brook_base.py``: a TCP server with text lines and encoders that wrap around."""

    track_m, period_s = 0.25, 0.04
    ticks_per_m = 5000

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.setblocking(False)
        self._peer: socket.socket | None = None
        self._received = b""
        super().__init__()

    @property
    def port(self) -> str:
        return "{}:{}".format(*self._server.getsockname())

    def receive(self) -> None:
        with contextlib.suppress(BlockingIOError):
            peer, _ = self._server.accept()  # the newest caller commands
            peer.setblocking(False)
            self._hang_up()
            self._peer, self._received = peer, b""
        if self._peer is None:
            return
        with contextlib.suppress(OSError):
            self._received += self._peer.recv(4096)
        *lines, self._received = self._received.split(b"\n")
        for line in lines:
            left, right = line.removeprefix(b"wheels ").split()
            self.wheels_m_s = float(left), float(right)

    def send(self, bumper: Zone) -> None:
        if self._peer is None:
            return
        left, right = (round(65_000 + self.ticks_per_m * way_m) % 65536 for way_m in self.travel_m)
        levels = (bumper, self.cliff, self.wheel_drop)
        letters = ("".join(zone.name[0] for zone in Zone if zone and zone in level and zone.name) for level in levels)
        line = " ".join(("state", str(left), str(right), *(text or "-" for text in letters))) + "\n"
        with contextlib.suppress(OSError):
            self._peer.sendall(self.garbage + (b"" if self.silent else line.encode()))

    def unplug(self) -> None:
        self._server.close()
        self._hang_up()

    def _hang_up(self) -> None:
        if self._peer is not None:
            self._peer.close()
