"""Export of a log as a bag of ROS 1 or 2 for other tools such as rviz: the robot's own topics, poses and actions.

Fields that a log does not have (encoder ticks, covariances) are zero. The log stays the record of the episode: a bag
has neither its header nor its exact values.
"""

import heapq
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
from foxglove_schemas_protobuf.RawImage_pb2 import RawImage
from numpy.typing import NDArray
from rosbags import rosbag1, rosbag2
from rosbags.interfaces import Connection, Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from typing_extensions import Self

from drivers.ros import safety_fields
from drivers.ros.bag import topic_layout as at
from drivers.ros.bag.definitions import stored_name, typestore
from drivers.ros.bag.topic_layout import Layout
from drivers.ros.protocol import MessageFactory, bits_of, create_safety_diagnosis
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.creating import creating
from robot_runtime.common.geometry import SE2
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, quaternion_rpy
from robot_runtime.hal import BaseState, Zone
from robot_runtime.recording import json_output
from robot_runtime.recording.images import encode_depth, encode_semantic
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.ros2_messages import Image
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

CALLER = "/robot_runtime"


Storage = Literal["mcap", "sqlite3"]
"""Format of a bag of ROS 2."""

_NO_LIMIT = QosTime(2147483647, 4294967295)
_LATCHED = Qos(
    QosHistory.KEEP_LAST,
    1,
    QosReliability.RELIABLE,
    QosDurability.TRANSIENT_LOCAL,
    _NO_LIMIT,
    _NO_LIMIT,
    QosLiveliness.AUTOMATIC,
    _NO_LIMIT,
    False,
)


class BagWriter:
    """One bag, uncompressed: Debian's reader fails on the lz4 of ``rosbags``, and bz2 is slower than a camera.

    Args:
        path: path of the bag, which must not exist: a file of ROS 1, or a folder of ROS 2.
        ros: 1 or 2.
        storage: format of a bag of ROS 2.

    Raises:
        OSError: it cannot be written; also from its methods, except after an error in a ``with`` block.
    """

    def __init__(self, path: Path, ros: int = 1, storage: Storage = "mcap") -> None:
        self._ros = ros
        self._topics: dict[str, tuple[Connection, int]] = {}
        if ros == 1:
            self._writer: Any = rosbag1.Writer(path)
        else:
            plugin = rosbag2.StoragePlugin[storage.upper()]
            self._writer = rosbag2.Writer(path, version=8, storage_plugin=plugin)  # Iron and later read it.
        self._writer.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if exc is None:
            self._writer.close()
        else:
            with suppress(OSError):  # of a full disk
                self._writer.abort()

    def write(self, topic: str, message: Any, stamp_ns: int, latched: bool = False) -> None:
        """Add a message received at ``stamp_ns``."""
        if topic not in self._topics:
            more: dict[str, Any] = {"callerid": CALLER, "latching": int(latched)}
            if self._ros == 2:
                more = {"offered_qos_profiles": [_LATCHED] if latched else []}
            kind, store = message.__msgtype__, typestore(self._ros)
            self._topics[topic] = (self._writer.add_connection(topic, kind, typestore=store, **more), 0)
        connection, count = self._topics[topic]
        if self._ros == 1 and hasattr(message, "header"):
            message.header.seq = count
        store = typestore(self._ros)
        data = (store.serialize_ros1 if self._ros == 1 else store.serialize_cdr)(message, message.__msgtype__)
        # Time 0 means "not set" to ROS, and its recorder refuses it.
        self._writer.write(connection, max(1, stamp_ns), data)
        self._topics[topic] = (connection, count + 1)


_OCCUPANCY = {Cell.FREE: 0, Cell.OCCUPIED: 100, Cell.UNKNOWN: -1}
_CREATE_LIGHTS = ("left", "front_left", "center_left", "center_right", "front_right", "right")


class BagMessages(MessageFactory):
    """Messages of the robots' topics. Fields that no log has are zero.

    Args:
        ros: 1 or 2.
    """

    def __init__(self, ros: int = 1) -> None:
        self._store, self._ros = typestore(ros), ros

    def make(self, kind: str, **fields: Any) -> Any:
        if self._ros == 2:  # no sequence numbers, no capitals
            fields = {name.lower(): value for name, value in fields.items() if name != "seq"}
        return self._store.types[stored_name(kind)](**fields)

    def time(self, stamp_ns: int) -> Any:
        return self._store.types["builtin_interfaces/msg/Time"](*divmod(stamp_ns, NS_PER_S))

    def numbers(self, values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(values, float)

    def buffer(self, data: bytes) -> NDArray[np.uint8]:
        return np.frombuffer(data, np.uint8)

    def text(self, data: str) -> Any:
        """Build a std_msgs/String."""
        return self.make("std_msgs/String", data=data)

    def kobuki_core(self, state: BaseState) -> Any:
        """Build a Kobuki's kobuki_msgs/SensorState without encoders, currents, buttons and charger."""
        # A base that does not know its battery reports 0.
        battery = min(255, max(0, round(state.battery_v * 10))) if math.isfinite(state.battery_v) else 0
        zero = ("left_encoder", "right_encoder", "left_pwm", "right_pwm", "buttons", "charger", "over_current")
        return self.make(
            "kobuki_msgs/SensorState",
            header=self.header(state.stamp_ns),
            time_stamp=state.stamp_ns // 1_000_000 % 65536,
            bumper=bits_of(state.bumper, safety_fields.KOBUKI_BITS),
            wheel_drop=bits_of(state.wheel_drop, safety_fields.KOBUKI_WHEEL_BITS),
            cliff=bits_of(state.cliff, safety_fields.KOBUKI_BITS),
            battery=battery,
            bottom=np.zeros(3, np.uint16),
            current=np.zeros(2, np.uint8),
            digital_input=0,
            analog_input=np.zeros(4, np.uint16),
            **dict.fromkeys(zero, 0),
        )

    def create_bumper(self, state: BaseState) -> Any:
        """Build a Create's ca_msgs/Bumper without light sensors; a contact in the middle closes both switches."""
        middle = Zone.CENTER in state.bumper
        return self.make(
            "ca_msgs/Bumper",
            header=self.header(state.stamp_ns),
            is_left_pressed=middle or Zone.LEFT in state.bumper,
            is_right_pressed=middle or Zone.RIGHT in state.bumper,
            **{f"is_light_{name}": False for name in _CREATE_LIGHTS},
            **{f"light_signal_{name}": 0 for name in _CREATE_LIGHTS},
        )

    def create_diagnostics(self, state: BaseState) -> Any:
        """Build the diagnostic_msgs/DiagnosticArray of a Create's driver with the cliff and wheel-drop sensors."""
        diagnosis = create_safety_diagnosis(bool(state.cliff), bool(state.wheel_drop))
        return self.diagnostics(state.stamp_ns, {f"ca_driver: {safety_fields.CREATE_SAFETY_STATUS}": diagnosis})

    def create_hazards(self, state: BaseState) -> Any:
        """Build a Create 3's irobot_create_msgs/HazardDetectionVector."""
        parts = (
            (safety_fields.HAZARD_BUMP, "bump_front", state.bumper),
            (safety_fields.HAZARD_CLIFF, "cliff_front", state.cliff),
            (safety_fields.HAZARD_WHEEL_DROP, "wheel", state.wheel_drop),
        )
        header = self.header(state.stamp_ns, "base_link")
        detections = [
            self.make("irobot_create_msgs/HazardDetection", header=self.header(state.stamp_ns, frame), type=kind)
            for kind, part, zones in parts
            for frame, zone in safety_fields.HAZARD_FRAMES.items()
            if part in frame and zone in zones
        ]
        return self.make("irobot_create_msgs/HazardDetectionVector", header=header, detections=detections)

    def occupancy_grid(self, stamp_ns: int, map_: OccupancyMap, frame: str) -> Any:
        """Build a nav_msgs/OccupancyGrid as map_server publishes it."""
        lookup = np.array([_OCCUPANCY[Cell(i)] for i in range(len(Cell))], np.int8)
        rows, columns = map_.cells.shape
        info = self.make(
            "nav_msgs/MapMetaData",
            map_load_time=self.time(0),
            resolution=map_.resolution_m,
            width=columns,
            height=rows,
            origin=self.pose(SE2(map_.origin_x_m, map_.origin_y_m)),
        )
        data = lookup[map_.cells].ravel()
        return self.make("nav_msgs/OccupancyGrid", header=self.header(stamp_ns, frame), info=info, data=data)


def export_log(
    log: LogReader, path: Path, where: Layout, on_step: Callable[[], None] = lambda: None, storage: Storage = "mcap"
) -> int:
    """Write a log, complete or truncated, as a bag, one step at a time.

    Args:
        log: The log.
        path: Of the bag; must not exist.
        where: Topics and frames.
        on_step: Called after every step.
        storage: Format of a bag of ROS 2.

    Returns:
        The number of steps.

    Raises:
        RecordingError: The log is damaged, or the bag cannot be written; then there is no bag.
    """
    steps = 0
    remedy = "give another name, or free the disk"
    with creating(path, remedy, fresh=True) as draft, BagWriter(draft, where.ros, storage) as bag:
        topics = _Topics(bag, where, log.header)
        topics.start()
        for record in _in_order(log):
            if isinstance(record, BaseState):
                topics.base_state(record)
            else:
                topics.step(record)
                steps += 1
                on_step()
        if log.end is not None:
            bag.write(at.END, topics.messages.text(_json(log.end)), log.end.stamp_ns)
    return steps


def _in_order(log: LogReader) -> Iterator[BaseState | StepRecord]:
    """Yield base states and steps in the order of their stamps."""

    def stamp_ns(record: BaseState | StepRecord) -> int:
        return record.stamp_ns if isinstance(record, BaseState) else record.times.observed_ns

    return heapq.merge(log.base_states(), log.steps(), key=stamp_ns)


class _Topics:
    """Writes the records of a log to the topics of a robot."""

    def __init__(self, bag: BagWriter, where: Layout, header: EpisodeHeader) -> None:
        self._bag, self._at, self._header = bag, where, header
        self.messages = BagMessages(where.ros)
        self._odometry_ns = -1
        self._zones: tuple[Zone, Zone, Zone] | None = None

    def start(self) -> None:
        """Write map and static transform."""
        header, stamp_ns = self._header, self._header.start_ns
        self._bag.write(
            at.MAP, self.messages.occupancy_grid(stamp_ns, header.scene.map, at.MAP_FRAME), stamp_ns, latched=True
        )
        optical = self.messages.transform(
            stamp_ns, self._at.frames.camera, self._at.frames.optical, (0.0, 0.0, 0.0), quaternion_rpy(*OPTICAL_RPY_RAD)
        )
        self._bag.write(at.TF_STATIC, self.messages.tf(optical), stamp_ns, latched=True)

    def step(self, record: StepRecord) -> None:
        """Write a step: what was seen, where, and after which action."""
        self._images(record)
        self.base_state(record.base)
        self._poses(record)
        step = {name: getattr(record, name) for name in ("index", "action", "command", "result")}
        self._bag.write(at.STEP, self.messages.text(_json(step)), record.times.observed_ns)

    def _images(self, record: StepRecord) -> None:
        frame, topics, stamp_ns = record.frame, self._at.topics, record.frame.stamp_ns
        optical = self._at.frames.optical
        self._bag.write(
            topics.color_info, self.messages.camera_info(stamp_ns, optical, self._header.intrinsics), stamp_ns
        )
        self._bag.write(topics.color, self.messages.image(stamp_ns, optical, "rgb8", frame.rgb), stamp_ns)
        self._raw(topics.depth, encode_depth(frame, self._header.depth_unit_m), stamp_ns)
        if frame.semantic is not None:
            self._raw(at.SEMANTIC, encode_semantic(stamp_ns, frame.semantic), stamp_ns)

    def _raw(self, topic: str, encoded: Image | RawImage, stamp_ns: int) -> None:
        pixels = np.frombuffer(encoded.data, np.uint8).reshape(encoded.height, encoded.step)
        image = self.messages.image(stamp_ns, self._at.frames.optical, encoded.encoding, pixels)
        image.width = encoded.width
        self._bag.write(topic, image, stamp_ns)

    def base_state(self, state: BaseState) -> None:
        """Write odometry, tf and sensors, unless a newer state was written already."""
        if state.stamp_ns <= self._odometry_ns:
            return
        self._odometry_ns = stamp_ns = state.stamp_ns
        where, topics, bag = self._at, self._at.topics, self._bag
        bag.write(topics.odom, self.messages.odometry(stamp_ns, where.frames, state.odom, state.velocity), stamp_ns)
        moved = self.messages.planar_transform(stamp_ns, where.frames.odom, where.frames.base, state.odom)
        bag.write(at.TF, self.messages.tf(moved), stamp_ns)
        if topics.hazards:
            # As the robot does: its set at each change.
            zones = state.bumper, state.cliff, state.wheel_drop
            if zones != self._zones:
                bag.write(topics.hazards, self.messages.create_hazards(state), stamp_ns)
            self._zones = zones
        if where.ros == 2:
            return
        if topics.core:
            bag.write(topics.core, self.messages.kobuki_core(state), stamp_ns)
            return
        bag.write(topics.bumper, self.messages.create_bumper(state), stamp_ns)
        bag.write(topics.diagnostics, self.messages.create_diagnostics(state), stamp_ns)
        if state.wheel_drop:
            bag.write(topics.wheel_drop, self.messages.make("std_msgs/Empty"), stamp_ns)
        for topic, value in ((topics.voltage, state.battery_v), (topics.charge_ratio, state.battery_fraction)):
            bag.write(topic, self.messages.make("std_msgs/Float32", data=value), stamp_ns)

    def _poses(self, record: StepRecord) -> None:
        where, head, stamp_ns = self._at, record.head, record.frame.stamp_ns
        self._bag.write(at.POSE, self.messages.pose_with_covariance(record.pose), record.pose.stamp_ns)
        self._bag.write(at.REFEREE, self.messages.pose_with_covariance(record.referee), record.referee.stamp_ns)
        # In both stacks a positive tilt of the joint looks down.
        if where.topics.joints:
            joints = self.messages.joint_state(head.stamp_ns, where.joints, (head.pan_rad, -head.tilt_rad))
            self._bag.write(where.topics.joints, joints, head.stamp_ns)
        in_map = record.pose if record.pose.frame == at.MAP_FRAME else record.referee
        drift: SE2 = in_map.pose @ record.base.odom.inverse()
        turned = quaternion_rpy(0.0, -head.tilt_rad, head.pan_rad)
        transforms = (
            self.messages.planar_transform(stamp_ns, at.MAP_FRAME, where.frames.odom, drift),
            self.messages.transform(stamp_ns, where.frames.base, where.frames.camera, self._header.mount, turned),
        )
        self._bag.write(at.TF, self.messages.tf(*transforms), stamp_ns)


def _json(value: Any) -> str:
    return json.dumps(json_output.plain(value), allow_nan=False, separators=(",", ":"))
