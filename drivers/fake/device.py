"""Base class of the fake robot's devices: connection, and its refusal by a fault."""

from drivers.fake.faults import RefusedConnection
from robot_runtime.common.clock import SimulatedClock
from robot_runtime.errors import DeviceFault, NotConnected
from robot_runtime.hal import Device
from robot_runtime.hal.fault_schedule import Script


class FakeDevice(Device):
    """A device that runs with the simulated clock, connected or not."""

    def __init__(self, name: str, clock: SimulatedClock, script: Script) -> None:
        self._name = name
        self._clock = clock
        self._script = script
        self._connected = False
        clock.add_listener(self._on_step)

    def connect(self) -> None:
        if self._connected:
            return
        for fault in self._script.active(RefusedConnection, self._clock.now_ns()):
            if fault.device == self._name:
                raise DeviceFault(
                    f"fake {self._name}: refuses to connect, as its script says",
                    "remove the fault 'refused_connection' from the robot's YAML",
                )
        self._connected = True
        self._on_connected()

    def close(self) -> None:
        self._connected = False
        self.clear()

    def _on_connected(self) -> None:
        """Read the sensors for the first time."""

    def clear(self) -> None:
        """Drop the data of this connection or this place."""

    def _on_step(self, now_ns: int) -> None:
        """Advance by one clock step."""

    def _require_connected(self) -> None:
        if not self._connected:
            raise NotConnected(f"fake {self._name}: is not connected", "call connect() before using it")
