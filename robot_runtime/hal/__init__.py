"""The contract between the runtime and a robot, real or simulated.

Small interfaces and the frozen data that crosses them. Nothing here depends on ROS, a serial port or a simulator.
``robot_runtime.conformance`` is this contract as a test suite; a driver is done when it passes.

Rules that hold for every method:

* Properties (``info``, ``limits``) may be read while disconnected; everything else raises ``NotConnected`` then.
* Reading has an age. ``max_age_s`` is what the caller allows; older data raises ``StaleData`` naming stream and age.
  Nothing returns an old value silently.
* Waiting has a limit. ``timeout_s`` is never infinite.
* Stamps are ``Clock`` nanoseconds: when the thing was measured, not when it arrived.
* ``close()`` never raises, may be called twice, and leaves the wheels at zero.

The names below are imported from their modules when they are first used: the guard process of a base needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robot_runtime.hal.base import Base, BaseState
    from robot_runtime.hal.camera import Camera, CameraInfo, Intrinsics, Mount, RgbdFrame
    from robot_runtime.hal.device import Device
    from robot_runtime.hal.events import Event
    from robot_runtime.hal.head import Head, HeadLimits, HeadState
    from robot_runtime.hal.lens import Lens
    from robot_runtime.hal.localizer import Arrivals, Localizer, LocalizerInfo, PoseEstimate, PoseStatus
    from robot_runtime.hal.manipulation import Manipulator, ObjectTracker, TrackerInfo
    from robot_runtime.hal.motors import KnownMotors, MotorModel
    from robot_runtime.hal.pose_history import BufferedLocalizer, PoseHistory
    from robot_runtime.hal.robot import Placer, Robot
    from robot_runtime.hal.streams import STREAMS, fresh
    from robot_runtime.hal.wheels import BaseInfo, Halt, Velocity, Zone

__all__ = [
    "STREAMS",
    "Arrivals",
    "Base",
    "BaseInfo",
    "BaseState",
    "BufferedLocalizer",
    "Camera",
    "CameraInfo",
    "Device",
    "Event",
    "Halt",
    "Head",
    "HeadLimits",
    "HeadState",
    "Intrinsics",
    "KnownMotors",
    "Lens",
    "Localizer",
    "LocalizerInfo",
    "Manipulator",
    "MotorModel",
    "Mount",
    "ObjectTracker",
    "Placer",
    "PoseEstimate",
    "PoseHistory",
    "PoseStatus",
    "RgbdFrame",
    "Robot",
    "TrackerInfo",
    "Velocity",
    "Zone",
    "fresh",
]

_EXPORTS = {
    "base": ("Base", "BaseState"),
    "camera": ("Camera", "CameraInfo", "Intrinsics", "Mount", "RgbdFrame"),
    "device": ("Device",),
    "events": ("Event",),
    "head": ("Head", "HeadLimits", "HeadState"),
    "lens": ("Lens",),
    "localizer": ("Arrivals", "Localizer", "LocalizerInfo", "PoseEstimate", "PoseStatus"),
    "manipulation": ("Manipulator", "ObjectTracker", "TrackerInfo"),
    "motors": ("KnownMotors", "MotorModel"),
    "pose_history": ("BufferedLocalizer", "PoseHistory"),
    "robot": ("Placer", "Robot"),
    "streams": ("STREAMS", "fresh"),
    "wheels": ("BaseInfo", "Halt", "Velocity", "Zone"),
}
_MODULES = {name: module for module, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
