"""Emulated devices at the other end of a pty: the pseudo terminal, and the pace of the line."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import termios
import tty
from abc import ABC, abstractmethod
from collections import deque
from pathlib import Path

from drivers.serial_wire.port import Port
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.errors import DeviceFault

BITS_PER_BYTE = 10
"""With start and stop bit."""

MAX_READS = 100
"""Reads of 0.1 s each within which written bytes must arrive, also on a busy computer."""


class Pty:
    """A raw pseudo terminal; the driver opens :attr:`path`.

    Args:
        link: symbolic link to keep to the present terminal, as udev does; None for none.

    Attributes:
        path: path of the terminal, or the link.
        baud_rate: baud rate of the device; at a rate other than the driver's, bytes are garbled. None for any, as over
            USB.
    """

    def __init__(self, link: Path | None = None) -> None:
        self.baud_rate: int | None = None
        self._link = link
        self._ends: tuple[int, int] | None = None
        self.path = ""
        self.plug()

    @property
    def plugged(self) -> bool:
        """Whether the device is plugged in."""
        return self._ends is not None

    def fileno(self) -> int:
        """File descriptor of the device's end, for ``select``; -1 while unplugged."""
        return -1 if self._ends is None else self._ends[0]

    def plug(self) -> None:
        """Plug the device in, as a new terminal."""
        if self._ends is not None:
            return
        main, far = pty.openpty()
        for end in (main, far):
            tty.setraw(end)
        os.set_blocking(main, False)  # a terminal without a reader takes about 20 kB
        self._ends = main, far
        self.path = os.ttyname(far)
        if self._link is not None:
            self._link.unlink(missing_ok=True)
            self._link.symlink_to(self.path)
            self.path = str(self._link)

    def unplug(self) -> None:
        """Pull the device out; safe to call twice."""
        if self._ends is None:
            return
        main, far = self._ends
        self._ends = None
        os.close(main)
        os.close(far)
        if self._link is not None:
            self._link.unlink(missing_ok=True)

    def write(self, data: bytes) -> None:
        """Send bytes to the driver; those that find no room are lost, as in a full buffer."""
        if self._ends is not None and data:
            with contextlib.suppress(BlockingIOError):
                os.write(self._ends[0], self._received(data))

    def read(self) -> bytes:
        """Return the bytes that the driver has sent."""
        if self._ends is None:
            return b""
        try:
            return self._received(os.read(self._ends[0], 65536))
        except BlockingIOError:
            return b""

    def _received(self, data: bytes) -> bytes:
        """Return bytes as the other end receives them."""
        if self._ends is None or self.baud_rate is None:
            return data
        if termios.tcgetattr(self._ends[0])[5] == getattr(termios, f"B{self.baud_rate}"):
            return data
        return bytes(byte ^ 0xA6 for byte in data)

    def read_exactly(self, count: int) -> bytes:
        """Return the next ``count`` bytes of the driver. Raises ``DeviceFault`` if they do not arrive."""
        data = b""
        for _ in range(MAX_READS):
            if len(data) >= count or self._ends is None:
                return data
            select.select([self._ends[0]], [], [], 0.1)
            data += self._received(os.read(self._ends[0], count - len(data)))
        raise _delayed(self.path, len(data), count)


def read_exactly(port: Port, count: int) -> bytes:
    """Return the next ``count`` bytes of a port: the kernel delivers bytes of a pty with a delay.

    Raises:
        DeviceFault: they do not arrive, or the port was disconnected.
    """
    received = b""
    for _ in range(MAX_READS):
        if len(received) >= count:
            return received
        received += port.read(count - len(received))
    raise _delayed(port.path, len(received), count)


def _delayed(path: str, count: int, expected: int) -> DeviceFault:
    return DeviceFault(
        f"port {path}: {count} of {expected} bytes arrived",
        "reduce the load of this computer: a pty was delayed for seconds",
    )


class PacedLine:
    """One direction of a serial line: bytes arrive at its baud rate, after its latency.

    Attributes:
        baud_rate: baud rate of the line; it may change.
    """

    def __init__(self, baud_rate: int, latency_s: float = 0.0) -> None:
        self.baud_rate = baud_rate
        self._latency_ns = latency_s * NS_PER_S
        self._queue: deque[tuple[float, bytes]] = deque()
        self._free_ns = 0.0

    @property
    def _byte_ns(self) -> float:
        return BITS_PER_BYTE * NS_PER_S / self.baud_rate

    def put(self, data: bytes, now_ns: int) -> None:
        """Send bytes, after those that are under way."""
        begin_ns = max(self._free_ns, now_ns)
        self._free_ns = begin_ns + len(data) * self._byte_ns
        if data:
            self._queue.append((begin_ns + self._latency_ns, data))

    def due(self, now_ns: int) -> bytes:
        """Return the bytes that have arrived by now."""
        arrived = b""
        while self._queue:
            begin_ns, data = self._queue[0]
            # Half a byte's tolerance: the ends of transmissions are sums of rounded numbers.
            count = min(len(data), int((now_ns - begin_ns) / self._byte_ns + 0.5))
            if count <= 0:
                break
            arrived += data[:count]
            if count < len(data):
                self._queue[0] = begin_ns + count * self._byte_ns, data[count:]
                break
            self._queue.popleft()
        return arrived

    @property
    def next_ns(self) -> int | None:
        """Arrival of the transmission in progress; None if nothing is under way."""
        if not self._queue:
            return None
        begin_ns, data = self._queue[0]
        return int(begin_ns + len(data) * self._byte_ns)

    def clear(self) -> None:
        """Drop everything under way."""
        self._queue.clear()
        self._free_ns = 0.0


class EmulatedDevice(ABC):
    """A device at the end of a serial line, driven by the instants at which it is called.

    Attributes:
        baud_rate: baud rate at which it talks now; None for any, as over USB.
    """

    baud_rate: int | None = None

    @abstractmethod
    def receive(self, data: bytes, now_ns: int) -> None:
        """Take bytes that the driver has sent."""

    @abstractmethod
    def transmit(self, now_ns: int) -> bytes:
        """Go on to ``now_ns`` and return the bytes that have arrived at the driver's end by then."""

    @abstractmethod
    def next_ns(self) -> int:
        """Instant of the next call of :meth:`transmit`."""

    @abstractmethod
    def unplugged(self, now_ns: int) -> bool:
        """Whether its cable is pulled out."""
