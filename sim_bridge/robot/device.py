"""Connection state of the simulated devices."""

from robot_runtime.errors import NotConnected
from robot_runtime.hal import Device


class SimDevice(Device):
    """A device that can be used between :meth:`connect` and :meth:`close`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._connected = False

    def connect(self) -> None:
        self._connected = True

    def close(self) -> None:
        self._connected = False

    def _require_connected(self) -> None:
        if not self._connected:
            raise NotConnected(f"simulated {self._name}: not connected", "call connect() first, or use `with robot:`")
