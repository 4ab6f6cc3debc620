"""Message definitions of robots, for bags and for computers without ROS.

``rosbags`` has the distributions' own; those of the robots' packages are in ``msg``. The md5 of ROS 1 depends on the
constants, but not on comments.
"""

from functools import cache
from pathlib import Path

from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore


@cache
def definitions(ros: int) -> dict[str, str]:
    """Return the definitions of the robots' packages in ROS 1 or 2, by type such as ``std_msgs/String``."""
    folder = Path(__file__).with_name("msg") / f"ros{ros}"
    return {f"{file.parent.name}/{file.stem}": file.read_text("utf-8") for file in sorted(folder.glob("*/*.msg"))}


@cache
def typestore(ros: int = 1) -> Typestore:
    """Return the type store of ROS 1 or 2 with all messages that can be written or read."""
    store = get_typestore(Stores.ROS1_NOETIC if ros == 1 else Stores.ROS2_JAZZY)
    for name, text in definitions(ros).items():
        store.register(get_types_from_msg(text, stored_name(name)))
    return store


def stored_name(kind: str) -> str:
    """Return the type store's name of a type such as ``std_msgs/String``."""
    return kind.replace("/", "/msg/", 1)


@cache
def md5_of(kind: str) -> str:
    """Return the md5 of a type's definition. Raises ``KeyError`` for an unknown type."""
    if stored_name(kind) not in typestore().types:
        raise KeyError(kind)
    return typestore().generate_msgdef(stored_name(kind))[1]


def other_definition(connection: Connection, kind: str, ros: int) -> str:
    """Return what differs between a bag's definition of a type and ours; empty if they are equal, or if it has none."""
    store, name, digest = typestore(ros), stored_name(kind), connection.digest
    ours = md5_of(kind) if ros == 1 else store.hash_rihs01(name)
    if digest == ours:
        return ""
    text, form = connection.msgdef.data, connection.msgdef.format
    if ros == 1 or form is MessageDefinitionFormat.NONE:
        return f"{'md5' if ros == 1 else 'hash'} {digest} of {kind} is not {ours}" if digest else ""
    # The hash is missing before Iron. Constants change between distributions, and the bytes do not depend on them.
    types = get_types_from_idl(text) if form is MessageDefinitionFormat.IDL else get_types_from_msg(text, name)
    other = [part for part, (_, fields) in types.items() if store.fielddefs.get(part, ((), ()))[1] != fields]
    return f"{', '.join(other)} has other fields" if other else ""
