"""What the devices of one ROS robot share: the session, being connected or not, and their subscriptions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.connection.topic_cache import TopicCache
from robot_runtime.errors import NotConnected
from robot_runtime.hal import Device


class RosDevice(Device):
    """A device that is a handful of topics. Subclasses subscribe in :meth:`_opened` and forget in :meth:`_closed`."""

    def __init__(self, name: str, session: Session) -> None:
        self._name = name
        self._session = session
        self._clock = session.clock
        self._connected = False
        self._endpoints: list[Any] = []
        self._channels: list[TopicCache] = []

    def connect(self) -> None:
        if self._connected:
            return
        self._session.open(self)
        try:
            self._opened()
        except BaseException:
            self.close()
            raise
        self._connected = True

    def close(self) -> None:
        self._closed()
        self._connected = False
        endpoints, self._endpoints = self._endpoints, []
        self._session.unsubscribe(*endpoints)
        for channel in self._channels:
            channel.forget()
        self._session.close(self)

    @abstractmethod
    def _opened(self) -> None:
        """Subscribe and advertise, leaving everything made in ``_endpoints``. Raises ``DeviceFault``."""

    def _closed(self) -> None:
        """Before the topics go: leave the device safe and forget what belongs to this connection. Never raises."""

    def _channel(self, topic: str) -> TopicCache:
        """A channel of ``topic`` that is emptied on closing."""
        channel = TopicCache(topic, self._clock)
        self._channels.append(channel)
        return channel

    def _require_connected(self) -> None:
        if not self._connected:
            raise NotConnected(f"ROS {self._name}: is not connected", "call connect() before using it")

    def _require_working(self) -> None:
        """As :meth:`_require_connected`; also raises what has broken the connection."""
        self._require_connected()
        self._session.check()
