"""ROS 2's topics in Cyclone DDS: message types as dataclasses, readers and writers with ROS's names and qualities."""

import time
import types
from dataclasses import dataclass, field
from typing import Any

from cyclonedds.core import InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, float32, float64, int16, int32, sequence, uint8, uint32
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

NS_PER_S = 1_000_000_000
BEST_EFFORT = Policy.Reliability.BestEffort
RELIABLE = Policy.Reliability.Reliable(0)
TYPES: dict[str, Any] = {}
"""By ROS's names, such as ``nav_msgs/msg/Odometry``."""


def message(package: str) -> Any:
    """Make a class the dataclass of a message of that package."""

    def made(cls: type) -> Any:
        fields = {name: value for name, value in vars(cls).items() if not name.startswith("__")}
        fields |= {"__annotations__": cls.__annotations__, "__module__": cls.__module__}
        named = {"typename": f"{package}::msg::dds_::{cls.__name__}_"}
        result = dataclass(types.new_class(cls.__name__, (IdlStruct,), named, lambda space: space.update(fields)))
        TYPES[f"{package}/msg/{cls.__name__}"] = result
        return result

    return made


@message("builtin_interfaces")
class Time:
    sec: int32 = 0
    nanosec: uint32 = 0


@message("std_msgs")
class Header:
    stamp: Time = field(default_factory=Time)
    frame_id: str = ""


@message("std_msgs")
class Bool:
    data: bool = False


@message("geometry_msgs")
class Vector3:
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0


@message("geometry_msgs")
class Point:
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0


@message("geometry_msgs")
class Quaternion:
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0
    w: float64 = 1.0


@message("geometry_msgs")
class Pose:
    position: Point = field(default_factory=Point)
    orientation: Quaternion = field(default_factory=Quaternion)


@message("geometry_msgs")
class PoseWithCovariance:
    pose: Pose = field(default_factory=Pose)
    covariance: array[float64, 36] = field(default_factory=lambda: [0.0] * 36)


@message("geometry_msgs")
class Twist:
    linear: Vector3 = field(default_factory=Vector3)
    angular: Vector3 = field(default_factory=Vector3)


@message("geometry_msgs")
class TwistStamped:
    header: Header = field(default_factory=Header)
    twist: Twist = field(default_factory=Twist)


@message("geometry_msgs")
class TwistWithCovariance:
    twist: Twist = field(default_factory=Twist)
    covariance: array[float64, 36] = field(default_factory=lambda: [0.0] * 36)


@message("geometry_msgs")
class Transform:
    translation: Vector3 = field(default_factory=Vector3)
    rotation: Quaternion = field(default_factory=Quaternion)


@message("geometry_msgs")
class TransformStamped:
    header: Header = field(default_factory=Header)
    child_frame_id: str = ""
    transform: Transform = field(default_factory=Transform)


@message("tf2_msgs")
class TFMessage:
    transforms: sequence[TransformStamped] = field(default_factory=list)


@message("nav_msgs")
class Odometry:
    header: Header = field(default_factory=Header)
    child_frame_id: str = ""
    pose: PoseWithCovariance = field(default_factory=PoseWithCovariance)
    twist: TwistWithCovariance = field(default_factory=TwistWithCovariance)


@message("sensor_msgs")
class JointState:
    header: Header = field(default_factory=Header)
    name: sequence[str] = field(default_factory=list)
    position: sequence[float64] = field(default_factory=list)
    velocity: sequence[float64] = field(default_factory=list)
    effort: sequence[float64] = field(default_factory=list)


@message("sensor_msgs")
class BatteryState:
    header: Header = field(default_factory=Header)
    voltage: float32 = 0.0
    temperature: float32 = 0.0
    current: float32 = 0.0
    charge: float32 = 0.0
    capacity: float32 = 0.0
    design_capacity: float32 = 0.0
    percentage: float32 = 0.0
    power_supply_status: uint8 = 0
    power_supply_health: uint8 = 0
    power_supply_technology: uint8 = 0
    present: bool = True
    cell_voltage: sequence[float32] = field(default_factory=list)
    cell_temperature: sequence[float32] = field(default_factory=list)
    location: str = ""
    serial_number: str = ""


@message("irobot_create_msgs")
class HazardDetection:
    header: Header = field(default_factory=Header)
    type: uint8 = 0


@message("irobot_create_msgs")
class HazardDetectionVector:
    header: Header = field(default_factory=Header)
    detections: sequence[HazardDetection] = field(default_factory=list)


@message("irobot_create_msgs")
class StopStatus:
    header: Header = field(default_factory=Header)
    is_stopped: bool = True


@message("irobot_create_msgs")
class KidnapStatus:
    header: Header = field(default_factory=Header)
    is_kidnapped: bool = False


@message("irobot_create_msgs")
class SlipStatus:
    header: Header = field(default_factory=Header)
    is_slipping: bool = False


@message("irobot_create_msgs")
class WheelStatus:
    header: Header = field(default_factory=Header)
    current_ma_left: int16 = 0
    current_ma_right: int16 = 0
    pwm_left: int16 = 0
    pwm_right: int16 = 0
    wheels_enabled: bool = True


@message("irobot_create_msgs")
class WheelVels:
    header: Header = field(default_factory=Header)
    velocity_left: float32 = 0.0
    velocity_right: float32 = 0.0


@message("sensor_msgs")
class CompressedImage:
    header: Header = field(default_factory=Header)
    format: str = ""
    data: sequence[uint8] = field(default_factory=list)


@message("sensor_msgs")
class RegionOfInterest:
    x_offset: uint32 = 0
    y_offset: uint32 = 0
    height: uint32 = 0
    width: uint32 = 0
    do_rectify: bool = False


@message("sensor_msgs")
class CameraInfo:
    header: Header = field(default_factory=Header)
    height: uint32 = 0
    width: uint32 = 0
    distortion_model: str = ""
    d: sequence[float64] = field(default_factory=list)
    k: array[float64, 9] = field(default_factory=lambda: [0.0] * 9)
    r: array[float64, 9] = field(default_factory=lambda: [0.0] * 9)
    p: array[float64, 12] = field(default_factory=lambda: [0.0] * 12)
    binning_x: uint32 = 0
    binning_y: uint32 = 0
    roi: RegionOfInterest = field(default_factory=RegionOfInterest)


def stamp(offset_s: float = 0.0) -> Time:
    """The computer's time plus an offset, as a message's stamp."""
    return Time(*divmod(time.time_ns() + round(offset_s * NS_PER_S), NS_PER_S))


class Network:
    """A participant.

    Args:
        domain: of the network.
        namespace: in front of all names, empty or such as ``/_do_not_use``.
        reliability: of the writers.
    """

    def __init__(self, domain: int, namespace: str = "", reliability: Any = RELIABLE) -> None:
        self.namespace = namespace.rstrip("/")
        self._reliability = reliability
        self._participant = DomainParticipant(domain)
        self._topics: dict[str, Topic] = {}
        self._waitset = WaitSet(self._participant)

    def close(self) -> None:
        """Leave the network, with all readers and writers."""
        self._waitset.__del__()
        self._participant.__del__()

    def writer(self, name: str, kind: str, depth: int = 5, is_latched: bool = False) -> DataWriter:
        """A publisher: reliable, unless the network's reliability says otherwise."""
        durability = Policy.Durability.TransientLocal if is_latched else Policy.Durability.Volatile
        qos = Qos(Policy.History.KeepLast(depth), self._reliability, durability)
        return DataWriter(self._participant, self._topic(name, kind), qos)

    def reader(
        self, name: str, kind: str, reliability: Any = BEST_EFFORT, depth: int = 5, is_latched: bool = False
    ) -> DataReader:
        """A subscription, whose messages end :meth:`wait`."""
        durability = Policy.Durability.TransientLocal if is_latched else Policy.Durability.Volatile
        qos = Qos(Policy.History.KeepLast(depth), reliability, durability)
        reader = DataReader(self._participant, self._topic(name, kind), qos)
        self._waitset.attach(ReadCondition(reader, SampleState.NotRead | ViewState.Any | InstanceState.Any))
        return reader

    def wait(self, limit_s: float) -> None:
        """Wait until a reader has a message, for a limited time."""
        self._waitset.wait(max(1, int(limit_s * NS_PER_S)))

    def _topic(self, name: str, kind: str) -> Topic:
        full = name if name.startswith("/") else f"{self.namespace}/{name}"
        if full not in self._topics:
            self._topics[full] = Topic(self._participant, f"rt{full}", TYPES[kind])
        return self._topics[full]


def taken(reader: DataReader) -> list[Any]:
    """The messages that have come."""
    return [sample for sample in reader.take(N=100) if sample.sample_info.valid_data]
