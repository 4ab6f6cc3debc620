"""Services that PyPI's rclpy has no types for: types of the same layout under other names."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, Structure, addressof, c_char_p, c_void_p
from typing import Any

_pointer_of = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_capsule_of = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_FIND = CFUNCTYPE(c_void_p, c_void_p, c_char_p)
_FAST = b"rosidl_typesupport_fastrtps_c"


class _Message(Structure):  # rosidl_message_type_support_t
    _fields_ = [(name, c_void_p) for name in ("identifier", "data", "find", "hash", "description", "sources")]


class _MessageNames(Structure):  # message_type_support_callbacks_t
    _fields_ = [("namespace", c_char_p), ("name", c_char_p), ("functions", c_void_p * 5)]


class _Service(Structure):  # rosidl_service_type_support_t
    _fields_ = [(name, c_void_p) for name in ("identifier", "data", "find", "request", "response", "event")]
    _fields_ += [(name, c_void_p) for name in ("create_event", "destroy_event", "hash", "description", "sources")]


class _ServiceNames(Structure):  # service_type_support_callbacks_t
    _fields_ = [("namespace", c_char_p), ("name", c_char_p), ("request", c_void_p), ("response", c_void_p)]


def _fast(kind: Any, structure: Any) -> Any:
    """A copy of a type's support for Fast DDS."""
    if kind._TYPE_SUPPORT is None:
        kind.__import_type_support__()
    address = _pointer_of(kind._TYPE_SUPPORT, None)
    found = _FIND(structure.from_address(address).find)(address, _FAST)
    return structure.from_buffer_copy(structure.from_address(found))


def renamed_service(model: Any, full: str, request: Any = None) -> Any:
    """Return the service type ``package/srv/Name``.

    Args:
        model: service of the same layout.
        full: name.
        request: message of the request's layout, instead of the model's.
    """
    package, _, name = full.split("/")
    service = _fast(model, _Service)
    names = _ServiceNames.from_buffer_copy(_ServiceNames.from_address(service.data))
    names.namespace, names.name = f"{package}::srv".encode(), name.encode()
    kept: list[Any] = [service, names]
    for part in ("request", "response"):
        made = _Message.from_buffer_copy(_Message.from_address(getattr(names, part)))
        if part == "request" and request is not None:
            made = _fast(request, _Message)
        part_names = _MessageNames.from_buffer_copy(_MessageNames.from_address(made.data))
        part_names.namespace, part_names.name = names.namespace, f"{name}_{part.title()}".encode()
        made.data = addressof(part_names)
        for holder in (names, service):
            setattr(holder, part, addressof(made))
        kept += [made, part_names]
    service.data = addressof(names)
    support = {"_TYPE_SUPPORT": _capsule_of(addressof(service), None, None), "_kept": kept}
    members = {"Request": request or model.Request, "Response": model.Response, "Event": model.Event}
    return type(f"Metaclass_{name}", (type,), support)(name, (), members)


def create3_services() -> dict[str, Any]:
    """The services of a Create 3, by name."""
    from geometry_msgs.msg import Pose
    from std_srvs.srv import Empty, SetBool, Trigger

    return {
        "e_stop": renamed_service(SetBool, "irobot_create_msgs/srv/EStop"),
        "robot_power": renamed_service(Trigger, "irobot_create_msgs/srv/RobotPower"),
        # A structure with one member has that member's layout.
        "reset_pose": renamed_service(Empty, "irobot_create_msgs/srv/ResetPose", request=Pose),
    }
