"""Types that rclpy's wheels lack: serialized messages of rclpy under the type's own name and hash.

A robot's own ROS has these types; PyPI has neither ``irobot_create_msgs`` nor ``tf2_msgs`` nor ``interbotix_xs_msgs``,
and no headers to compile them. rclpy hands serialized messages through without looking into them: from a type's support
it takes the name alone. ``rosbags`` converts the bytes.
"""

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_uint8, c_void_p, cast
from functools import cache
from typing import Any

from drivers.ros.bag.definitions import stored_name, typestore


class _Handle(Structure):  # rosidl_message_type_support_t since Iron
    _fields_ = [(name, c_void_p) for name in ("identifier", "data", "function", "hash", "description", "sources")]


class _Callbacks(Structure):  # message_type_support_callbacks_t of rosidl_typesupport_fastrtps_cpp
    _fields_ = [("namespace", c_char_p), ("name", c_char_p), ("functions", c_void_p * 5)]


class _Hash(Structure):  # rosidl_type_hash_t
    _fields_ = [("version", c_uint8), ("value", c_uint8 * 32)]


_FIND = CFUNCTYPE(c_void_p, c_void_p, c_char_p)
_GET_HASH = CFUNCTYPE(c_void_p, c_void_p)
_pointer_of = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_capsule_of = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))


@cache
def stand_in(kind: str) -> Any:
    """Return a class for ``create_publisher``, and for ``create_subscription`` with ``raw=True``."""
    from std_msgs.msg import Header  # a type without fixed size, as serialized messages need

    model: Any = type(Header)
    if model._TYPE_SUPPORT is None:
        model.__import_type_support__()
    address = _pointer_of(model._TYPE_SUPPORT, None)
    found = _FIND(cast(address, POINTER(_Handle)).contents.function)(address, b"rosidl_typesupport_fastrtps_c")
    handle = _Handle.from_buffer_copy(cast(found, POINTER(_Handle)).contents)
    callbacks = _Callbacks.from_buffer_copy(cast(handle.data, POINTER(_Callbacks)).contents)
    package, name = kind.split("/")
    callbacks.namespace, callbacks.name = f"{package}::msg".encode(), name.encode()
    value = bytes.fromhex(typestore(2).hash_rihs01(stored_name(kind)).removeprefix("RIHS01_"))
    type_hash = _Hash(1, (c_uint8 * 32)(*value))
    get_hash = _GET_HASH(lambda _: ctypes.addressof(type_hash))
    handle.data, handle.hash = ctypes.addressof(callbacks), cast(get_hash, c_void_p)
    fields = {
        "_TYPE_SUPPORT": _capsule_of(ctypes.addressof(handle), None, None),
        "_kept": (handle, callbacks, type_hash, get_hash),
        **{
            part: getattr(model, part)
            for part in ("_CREATE_ROS_MESSAGE", "_CONVERT_FROM_PY", "_CONVERT_TO_PY", "_DESTROY_ROS_MESSAGE")
        },
    }
    return type(f"Metaclass_{name}", (type,), fields)(name, (), {"kind": kind})


def make(kind: str, **fields: Any) -> Any:
    """Return a message; every field must be given, nested ones as messages of any library."""
    return typestore(2).types[stored_name(kind)](**fields)


def decode(kind: str, data: bytes) -> Any:
    """Return the message that a raw subscription received. Raises ``rosbags.serde.SerdeError``."""
    return typestore(2).deserialize_cdr(data, stored_name(kind))


class Publisher:
    """A publisher of messages of :func:`make`.

    Args:
        publisher: rclpy's, of a :func:`stand_in`.
    """

    def __init__(self, publisher: Any) -> None:
        self.rclpy, self.topic_name = publisher, publisher.topic_name
        self.get_subscription_count = publisher.get_subscription_count

    def publish(self, message: Any) -> None:
        """Send a message."""
        self.rclpy.publish(bytes(typestore(2).serialize_cdr(message, message.__msgtype__)))
