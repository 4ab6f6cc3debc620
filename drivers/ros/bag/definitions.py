"""Message definitions of robots, for bags and for computers without ROS.

``rosbags`` has the distributions' own; those of the robots' packages are here. The md5 of ROS 1 depends on the
constants, but not on comments.
"""

from functools import cache

from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

_BUMPER = """Header header
bool is_left_pressed
bool is_right_pressed
bool is_light_left
bool is_light_front_left
bool is_light_center_left
bool is_light_center_right
bool is_light_front_right
bool is_light_right
uint16 light_signal_left
uint16 light_signal_front_left
uint16 light_signal_center_left
uint16 light_signal_center_right
uint16 light_signal_front_right
uint16 light_signal_right
"""

_TF = {"tf2_msgs/TFMessage": "geometry_msgs/TransformStamped[] transforms\n"}

ROS_1_DEFINITIONS: dict[str, str] = {
    **_TF,
    "ca_msgs/Bumper": _BUMPER,
    "create_msgs/Bumper": _BUMPER,
    "kobuki_msgs/BumperEvent": """uint8 LEFT = 0
uint8 CENTER = 1
uint8 RIGHT = 2
uint8 RELEASED = 0
uint8 PRESSED = 1
uint8 bumper
uint8 state
""",
    "kobuki_msgs/CliffEvent": """uint8 LEFT = 0
uint8 CENTER = 1
uint8 RIGHT = 2
uint8 FLOOR = 0
uint8 CLIFF = 1
uint8 sensor
uint8 state
uint16 bottom
""",
    "kobuki_msgs/WheelDropEvent": """uint8 LEFT = 0
uint8 RIGHT = 1
uint8 RAISED = 0
uint8 DROPPED = 1
uint8 wheel
uint8 state
""",
    "kobuki_msgs/SensorState": """uint8 BUMPER_RIGHT = 1
uint8 BUMPER_CENTRE = 2
uint8 BUMPER_LEFT = 4
uint8 WHEEL_DROP_RIGHT = 1
uint8 WHEEL_DROP_LEFT = 2
uint8 CLIFF_RIGHT = 1
uint8 CLIFF_CENTRE = 2
uint8 CLIFF_LEFT = 4
uint8 BUTTON0 = 1
uint8 BUTTON1 = 2
uint8 BUTTON2 = 4
uint8 DISCHARGING = 0
uint8 DOCKING_CHARGED = 2
uint8 DOCKING_CHARGING = 6
uint8 ADAPTER_CHARGED = 18
uint8 ADAPTER_CHARGING = 22
uint8 OVER_CURRENT_LEFT_WHEEL = 1
uint8 OVER_CURRENT_RIGHT_WHEEL = 2
uint8 OVER_CURRENT_BOTH_WHEELS = 3
uint8 DIGITAL_INPUT0 = 1
uint8 DIGITAL_INPUT1 = 2
uint8 DIGITAL_INPUT2 = 4
uint8 DIGITAL_INPUT3 = 8
uint8 DB25_TEST_BOARD_CONNECTED = 64
Header header
uint16 time_stamp
uint8 bumper
uint8 wheel_drop
uint8 cliff
uint16 left_encoder
uint16 right_encoder
int8 left_pwm
int8 right_pwm
uint8 buttons
uint8 charger
uint8 battery
uint16[] bottom
uint8[] current
uint8 over_current
uint16 digital_input
uint16[] analog_input
""",
}

ROS_2_DEFINITIONS: dict[str, str] = {
    **_TF,
    "irobot_create_msgs/HazardDetection": """uint8 BACKUP_LIMIT=0
uint8 BUMP=1
uint8 CLIFF=2
uint8 STALL=3
uint8 WHEEL_DROP=4
uint8 OBJECT_PROXIMITY=5
std_msgs/Header header
uint8 type
""",
    "irobot_create_msgs/HazardDetectionVector": """std_msgs/Header header
irobot_create_msgs/HazardDetection[] detections
""",
    "interbotix_xs_msgs/JointGroupCommand": "string name\nfloat32[] cmd\n",
    "interbotix_xs_msgs/JointSingleCommand": "string name\nfloat32 cmd\n",
}


@cache
def typestore(ros: int = 1) -> Typestore:
    """Return the type store of ROS 1 or 2 with all messages that can be written or read."""
    store = get_typestore(Stores.ROS1_NOETIC if ros == 1 else Stores.ROS2_JAZZY)
    for name, text in (ROS_1_DEFINITIONS if ros == 1 else ROS_2_DEFINITIONS).items():
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
