"""A base whose Guard runs in the runtime's process, behind one lock."""

import threading
from abc import abstractmethod

from typing_extensions import override

from robot_runtime.common.clock import Clock
from robot_runtime.hal.base import Base
from robot_runtime.hal.wheels import BaseInfo, Velocity
from robot_runtime.safety.guard import GuardLimits
from robot_runtime.safety.guarded_wheels import GuardedWheels


class GuardedBase(Base):
    """A base with the commands and stops of :class:`~robot_runtime.safety.guarded_wheels.GuardedWheels`.

    A driver adds the connection and the state. Under ``_lock``, it hands reports to ``_guard.feedback`` and calls
    ``_guard.poll`` as described there.

    Nothing stops the wheels when the runtime's process is killed. So this is the base class for simulated bases and for
    those with a guard of their own behind it, such as the ROS guard node; every other base belongs behind a guard
    process (``drivers/serial_base``).

    Args:
        info: properties of the base.
        clock: clock of the robot.
        interval_s: longest time between two decisions of the Guard; 0 decides at every poll.
    """

    def __init__(self, info: BaseInfo, clock: Clock, interval_s: float = 0.0) -> None:
        self._info, self._now_ns = info, clock.now_ns
        # Reentrant; of the Guard and all that a driver shares with it: an emergency stop comes from any thread.
        self._lock = threading.RLock()
        limits = GuardLimits.of(info)
        self._guard = GuardedWheels(limits, clock.now_ns(), self._send, self._held, interval_s)

    @property
    @override
    def info(self) -> BaseInfo:
        return self._info

    @override
    def command(self, velocity: Velocity) -> Velocity:
        self._require_connected()
        with self._lock:
            return self._guard.command(velocity, self._now_ns())

    @override
    def stop(self) -> None:
        self._require_connected()
        with self._lock:
            self._guard.stop(self._now_ns())

    @override
    def emergency_stop(self) -> None:
        self._require_connected()
        with self._lock:
            self._guard.emergency_stop(self._now_ns())
            self._emergency_stop_changed()

    @override
    def release_emergency_stop(self) -> None:
        self._require_connected()
        with self._lock:
            self._guard.release_emergency_stop(self._now_ns())
            self._emergency_stop_changed()

    @abstractmethod
    def _require_connected(self) -> None:
        """Raise ``NotConnected`` unless the base is connected."""

    def _send(self, velocity: Velocity) -> None:
        """Send a decided velocity to the wheels; the default is for a driver that reads ``_guard.velocity``."""

    def _held(self) -> bool:
        """Return whether the driver has a reason of its own to stand still."""
        return False

    def _emergency_stop_changed(self) -> None:
        """Tell readers of the state at once; the default is for a base that reports as time passes."""
