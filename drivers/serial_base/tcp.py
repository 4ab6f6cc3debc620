"""Transport over a socket: a base on the network, or behind a program of its vendor."""

import select
import socket
from contextlib import suppress

from drivers.serial_wire.port import write_within
from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import DeviceFault

CONNECT_S = 0.3
"""Time limit of a connection: below that of an answer to the runtime, which waits meanwhile."""

WRITE_S = 0.2
"""Time limit of a complete write: a device that takes no bytes for so long is gone."""

UNACKNOWLEDGED_MS = 500
"""Time limit of the system for bytes that the device does not acknowledge: a cable that was pulled out is noticed."""

DRAIN_S = 0.1
"""Time limit for the device to take what was sent and to close its end; the last command is a stop."""


class SocketTransport:
    """A connected socket of any family; on a socket of datagrams, one write is one datagram.

    Args:
        connection: connected socket; the transport closes it.
        name: name of the device and its address, for messages.
    """

    def __init__(self, connection: socket.socket, name: str) -> None:
        connection.setblocking(False)
        self._socket, self._name = connection, name

    def fileno(self) -> int:
        """File descriptor, for ``select``."""
        return self._socket.fileno()

    def read(self) -> bytes:
        """Return the bytes that have arrived. Raises ``DeviceFault`` if the connection is lost."""
        try:
            data = self._socket.recv(65536)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self._lost(error) from error
        if not data and self._socket.type == socket.SOCK_STREAM:
            raise self._lost("closed by the device")
        return data

    def write(self, data: bytes) -> None:
        """Write all bytes. Raises ``DeviceFault`` if the connection is lost, or does not take them in time."""
        try:
            write_within(self, self._socket.send, data, WRITE_S)
        except OSError as error:
            raise self._lost(error) from error

    def close(self) -> None:
        """Close the connection after the device has taken what was sent, or after :data:`DRAIN_S`.

        A socket that is closed with unread reports of the device resets the connection, and a last stop may be lost.
        """
        timer = Stopwatch()
        with self._socket, suppress(OSError):  # lost already
            if self._socket.type == socket.SOCK_STREAM:
                self._socket.shutdown(socket.SHUT_WR)
                while (left_s := DRAIN_S - timer.elapsed_s()) > 0:
                    if select.select([self._socket], [], [], left_s)[0] and not self._socket.recv(65536):
                        break

    def _lost(self, why: object) -> DeviceFault:
        return DeviceFault(f"{self._name}: connection lost: {why}", "check that the device is on, and its network")


def connect_tcp(address: str, device: str) -> SocketTransport:
    """Connect to a device.

    Args:
        address: numeric address and port, ``192.168.0.7:9000``; a name would be resolved at each attempt.
        device: name of the device, for messages.

    Raises:
        DeviceFault: no connection within :data:`CONNECT_S`.
    """
    host, _, port = address.rpartition(":")
    try:
        connection = socket.create_connection((host, int(port)), CONNECT_S)
    except (OSError, ValueError, OverflowError) as error:
        raise DeviceFault(
            f"{device} at {address!r}: no connection: {error}",
            "switch the device on, and check that the address is HOST:PORT and reachable from this computer",
        ) from error
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
    return SocketTransport(connection, f"{device} at {address}")
