"""Stand-ins for parts that a robot does not have.

A head that does not move, a base and a camera to be named by the robot's file, and a localizer over a history of poses
that another device fills.
"""

from typing import NoReturn

from typing_extensions import override

from robot_runtime.common.clock import Clock
from robot_runtime.errors import DeviceFault, NotConnected
from robot_runtime.hal.base import Base
from robot_runtime.hal.camera import Camera
from robot_runtime.hal.device import Device
from robot_runtime.hal.head import Head, HeadLimits, HeadState
from robot_runtime.hal.localizer import LocalizerInfo
from robot_runtime.hal.pose_history import BufferedLocalizer, PoseHistory
from robot_runtime.hal.streams import fresh


class _ConnectedFlag(Device):
    """A device without hardware: it only remembers whether it is connected."""

    _connected = False

    @override
    def connect(self) -> None:
        self._connected = True

    @override
    def close(self) -> None:
        self._connected = False

    def _require_connected(self) -> None:
        if not self._connected:
            raise NotConnected(f"{type(self).__name__} is not connected", "call connect() first")


class FixedHead(_ConnectedFlag, Head):
    """A camera mount that does not move: it accepts every command, and stays at its angle.

    Args:
        clock: the robot's.
        tilt_rad: angle of the camera above the horizon.
    """

    def __init__(self, clock: Clock, tilt_rad: float = 0.0) -> None:
        self._clock, self._tilt_rad = clock, tilt_rad

    @property
    @override
    def limits(self) -> HeadLimits:
        return HeadLimits(0.0, 0.0, self._tilt_rad, self._tilt_rad, max_speed_rad_s=1.0, settle_s=0.0)

    @override
    def state(self, max_age_s: float) -> HeadState:
        self._require_connected()
        now_ns = self._clock.now_ns()
        return fresh("head", HeadState(now_ns, 0.0, self._tilt_rad, moving=False), now_ns, max_age_s)

    @override
    def command(self, pan_rad: float, tilt_rad: float) -> tuple[float, float]:
        self._require_connected()
        return self.limits.clip(pan_rad, tilt_rad)


class MissingBase(Base):
    """The base of a driver that has none: the robot's file must name one."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise DeviceFault("the robot has no base", "name one in the robot's file under 'base'")

    info = property(_refuse)
    connect = state = command = stop = emergency_stop = release_emergency_stop = _refuse

    @override
    def close(self) -> None:
        pass


class MissingCamera(_ConnectedFlag, Camera):
    """The camera of a driver that has none: the robot's file or the command line must name one."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise DeviceFault("the robot has no camera", "name one in the robot's file under 'camera', or with --camera")

    info = property(_refuse)
    capture = _refuse

    @override
    def connect(self) -> None:
        self._refuse()


class UnusedCamera(MissingCamera):
    """The camera of a robot of which only base and head are used: it connects, and delivers nothing."""

    @override
    def connect(self) -> None:
        self._connected = True


class HistoryLocalizer(_ConnectedFlag, BufferedLocalizer):
    """A localizer over a history of poses that another device fills, for instance a base its odometry."""

    def __init__(self, info: LocalizerInfo, clock: Clock, history: PoseHistory) -> None:
        super().__init__(info, clock, history, poll_s=1 / (2 * info.rate_hz))
