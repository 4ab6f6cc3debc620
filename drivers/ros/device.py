"""The common part of all devices of a ROS robot: the session, the connection state and the subscriptions."""

from abc import abstractmethod

from drivers.ros.connection.session import Endpoint, Session
from drivers.ros.connection.topic_cache import TopicCache
from robot_runtime.errors import NotConnected, StaleData
from robot_runtime.hal import Device


class RosDevice(Device):
    """A device that consists of topics. Subclasses subscribe in :meth:`_opened` and clean up in :meth:`_closed`.

    Args:
        name: Of the device, for messages.
        session: The connection to the ROS network.
    """

    def __init__(self, name: str, session: Session) -> None:
        self._name = name
        self._session = session
        self._clock = session.clock
        self._connected = False
        self._endpoints: list[Endpoint] = []
        self._caches: list[TopicCache] = []

    def connect(self) -> None:
        if self._connected:
            return
        self._session.open(self)
        try:
            self._opened()
        except BaseException as error:  # noqa: BLE001 - raised again
            broken = self._session.fault if isinstance(error, StaleData) else None
            self.close()
            raise broken or error from None  # a broken connection is why topics are silent
        self._connected = True

    def close(self) -> None:
        self._closed()
        self._connected = False
        endpoints, self._endpoints = self._endpoints, []
        self._session.unsubscribe(*endpoints)
        for cache in self._caches:
            cache.clear()
        self._session.close(self)

    @abstractmethod
    def _opened(self) -> None:
        """Subscribe and advertise, adding all endpoints to ``_endpoints``. Raises ``DeviceFault``."""

    def _closed(self) -> None:
        """Make the device safe and discard the connection's state, before the endpoints are removed. Never raises."""

    def _cache(self, topic: str) -> TopicCache:
        """Return a cache of ``topic`` that is cleared on closing."""
        cache = TopicCache(topic, self._clock)
        self._caches.append(cache)
        return cache

    def _require_connected(self) -> None:
        if not self._connected:
            raise NotConnected(f"ROS {self._name}: is not connected", "call connect() before using it")

    def _require_working(self) -> None:
        """Raise if the device is not connected, or the fault that has broken the connection."""
        self._require_connected()
        self._session.check()
