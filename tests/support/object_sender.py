"""Emulated motion-capture node: a sender of object poses."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from typing_extensions import Self

from drivers.object_tracker.protocol import Sighting, encode


class ObjectSender:
    """Sender of sightings to a :class:`~drivers.object_tracker.driver.UdpObjectTracker`."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._address = (host, port)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, sightings: Iterable[Sighting]) -> None:
        """Send sightings in one datagram."""
        self.send_bytes(b"".join(map(encode, sightings)))

    def send_bytes(self, datagram: bytes) -> None:
        """Send any bytes, as a broken sender would."""
        self._socket.sendto(datagram, self._address)
