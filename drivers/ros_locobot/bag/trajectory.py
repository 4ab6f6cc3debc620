"""What base and head did in a bag of somebody else's drive: the first of two passes, over all but pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drivers.ros_locobot.bag.errors import MissingTopic, NotOneClock
from drivers.ros_locobot.bag.reader import BagReader, StampedMessage
from drivers.ros_locobot.bag.stamped_series import Samples
from drivers.ros_locobot.guard.safety_levels import LevelTracker, SafetySensor, create_levels, kobuki_levels
from drivers.ros_locobot.localizer.messages import planar_pose
from drivers.ros_locobot.options import RosOptions
from drivers.ros_locobot.robot_variants import VARIANTS, kobuki_charge, topics_of
from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import BaseState, Halt, HeadState, Velocity, Zone

MAX_CLOCK_DIFFERENCE_S = 1.0
"""Between the delays, from stamp to recorder, of two topics: a busy network explains less than this."""

YAML_REMEDY = "record it, or name the topic that the bag has in a YAML file for --robot"
STILL_RAD = math.radians(0.5)

_Take = Callable[[StampedMessage], None]


@dataclass(frozen=True)
class Drive:
    """Base and head over the whole bag, by stamps of the robot's clock.

    Attributes:
        base: rows x_m, y_m, yaw_rad, linear_m_s, angular_rad_s, bumper, cliff, wheel_drop, battery_v, fraction; the
            zones as the values of ``Zone``.
        head: rows pan_rad, tilt_rad (up positive); None if the bag does not say: then straight ahead.
        delays_ns: the shortest one from stamp to recorder, by topic.
    """

    base: Samples
    head: Samples | None
    delays_ns: dict[str, int]

    @property
    def poses(self) -> NDArray[np.float64]:
        """Odometry, float64 (N, 3), yaw without jumps at half a turn."""
        poses: NDArray[np.float64] = self.base.rows[:, :3].copy()
        poses[:, 2] = np.unwrap(poses[:, 2])
        return poses

    def bumped(self, first: int, last: int) -> Zone:
        """Zones that were pressed in any of these rows of the base."""
        zone = Zone.NONE
        for value in np.unique(self.base.rows[first : last + 1, 5]):
            zone |= Zone(int(value))
        return zone

    def base_state(self, index: int) -> BaseState:
        """A row of the base. What the Guard held the wheels for is not in any bag."""
        x, y, yaw, linear, angular, bumper, cliff, drop, volts, fraction = map(float, self.base.rows[index])
        return BaseState(
            int(self.base.stamps_ns[index]),
            SE2(x, y, yaw),
            Velocity(linear, angular),
            Zone(int(bumper)),
            Zone(int(cliff)),
            Zone(int(drop)),
            Halt.NONE,
            volts,
            fraction,
        )

    def odom_at(self, stamp_ns: int) -> SE2 | None:
        """Odometry at an instant, interpolated; None before its first and after its last message."""
        index = self.base.newest_at(stamp_ns)
        stamps_ns, rows = self.base.stamps_ns, self.base.rows
        if index < 0 or stamp_ns > stamps_ns[-1]:
            return None
        here = SE2(*map(float, rows[index, :3]))
        if stamps_ns[index] == stamp_ns:
            return here
        share = float((stamp_ns - stamps_ns[index]) / (stamps_ns[index + 1] - stamps_ns[index]))
        return here.interpolate(SE2(*map(float, rows[index + 1, :3])), share)

    def head_angles(self, stamps_ns: NDArray[np.int64]) -> NDArray[np.float64]:
        """The newest pan and tilt at each instant, radians, float64 (N, 2); before the first message, its angles."""
        if self.head is None:
            return np.zeros((len(stamps_ns), 2))
        newest = np.searchsorted(self.head.stamps_ns, stamps_ns, side="right") - 1
        angles: NDArray[np.float64] = self.head.rows[np.maximum(newest, 0)]
        return angles

    def head_state(self, stamp_ns: int) -> HeadState:
        """The newest angles at an instant; before the first message, its angles."""
        if self.head is None:
            return HeadState(stamp_ns, 0.0, 0.0, moving=False)
        index = max(0, self.head.newest_at(stamp_ns))
        pan_rad, tilt_rad = map(float, self.head.rows[index])
        before = self.head.rows[max(0, index - 1)]
        moving = float(np.abs(self.head.rows[index] - before).max()) > STILL_RAD
        return HeadState(int(self.head.stamps_ns[index]), pan_rad, tilt_rad, moving)


def read_drive(bag: BagReader, options: RosOptions, without: Collection[str]) -> Drive:
    """Read base and head.

    Args:
        without: ``head`` or ``contact``, which the caller knows the bag to lack.

    Raises:
        MissingTopic, WrongDefinition, DamagedBag, NotOneClock: naming the topic.
        DeviceFault: odometry that is not a pose.
    """
    return _FirstPass(bag, options, without).read()


class _FirstPass:
    def __init__(self, bag: BagReader, options: RosOptions, without: Collection[str]) -> None:
        self._bag, self._options = bag, options
        self._family = VARIANTS[options.family]
        self._topics = topics = topics_of(options)
        self._tracker = LevelTracker(events_alone_s=0.0)
        self._volts = self._fraction = math.nan
        self._base = Samples(topics.odom, 10)
        self._head = None if "head" in without else Samples(topics.joints, 2)
        self._delays_ns: dict[str, int] = {}
        self._take: dict[str, _Take] = {}
        self._require(topics.odom, ("nav_msgs/Odometry",), "odometry", self._odometry)
        if self._head is not None:
            remedy = f"{YAML_REMEDY}, or add --without head: then it looked straight ahead"
            self._require(topics.joints, ("sensor_msgs/JointState",), "the head's joints", self._joints, remedy)
        if "contact" not in without:
            self._require_contact()

    def read(self) -> Drive:
        for message in self._bag.messages(tuple(self._take)):
            self._take[message.topic](message)
        if self._head is not None and not len(self._head):
            names = ", ".join((self._family.pan_joint, self._family.tilt_joint))
            raise MissingTopic(
                f"{self._bag.path}: no message on topic {self._topics.joints} has the joints {names}", YAML_REMEDY
            )
        return Drive(self._base, self._head, self._delays_ns)

    def _require(self, topic: str, kinds: tuple[str, ...], what: str, take: _Take, remedy: str = YAML_REMEDY) -> None:
        self._bag.require(topic, kinds, what, remedy)
        self._take[topic] = take

    def _require_contact(self) -> None:
        topics, kinds = self._topics, self._bag.kinds
        remedy = f"{YAML_REMEDY}, or add --without contact: then nothing is said to have been touched"
        if self._options.family == "pyrobot-create":
            self._require(topics.bumper, ("ca_msgs/Bumper", "create_msgs/Bumper"), "contact", self._create, remedy)
            self._optional(topics.cliff, "std_msgs/Empty", self._pulse(SafetySensor.CLIFF))
            self._optional(topics.wheel_drop, "std_msgs/Empty", self._pulse(SafetySensor.WHEEL_DROP))
            self._optional(topics.voltage, "std_msgs/Float32", self._voltage)
            self._optional(topics.charge_ratio, "std_msgs/Float32", self._charge)
        elif topics.bumper in kinds and topics.core not in kinds:
            self._require(
                topics.bumper, ("kobuki_msgs/BumperEvent",), "contact", self._event(SafetySensor.BUMPER, "bumper")
            )
            self._optional(topics.cliff, "kobuki_msgs/CliffEvent", self._event(SafetySensor.CLIFF, "sensor"))
            self._optional(
                topics.wheel_drop, "kobuki_msgs/WheelDropEvent", self._event(SafetySensor.WHEEL_DROP, "wheel")
            )
        else:
            self._require(topics.core, ("kobuki_msgs/SensorState",), "contact", self._core, remedy)

    def _optional(self, topic: str, kind: str, take: _Take) -> None:
        if topic in self._bag.kinds:
            self._require(topic, (kind,), "the base's sensors", take)

    # --- messages -----------------------------------------------------------------------------------------------------

    def _stamp_ns(self, message: StampedMessage) -> int:
        stamp_ns = message.stamp_ns
        delay_ns = message.at_ns - stamp_ns
        self._delays_ns[message.topic] = min(delay_ns, self._delays_ns.get(message.topic, delay_ns))
        return stamp_ns

    def _arrived_ns(self, message: StampedMessage) -> int:
        """By the robot's clock, of a message without a stamp."""
        return message.at_ns - self._delays_ns.get(self._topics.odom, 0)

    def _odometry(self, message: StampedMessage) -> None:
        stamp_ns, said = self._stamp_ns(message), message.decoded()
        pose = planar_pose(said.pose.pose, message.topic)
        self._tracker.alive(stamp_ns)
        levels = self._tracker.feedback(stamp_ns)
        zones = (
            (0, 0, 0) if levels is None else tuple(z.value for z in (levels.bumper, levels.cliff, levels.wheel_drop))
        )
        speed = said.twist.twist
        row = (pose.x_m, pose.y_m, pose.yaw_rad, speed.linear.x, speed.angular.z, *zones, self._volts, self._fraction)
        self._base.add(stamp_ns, *row)

    def _joints(self, message: StampedMessage) -> None:
        said, family = message.decoded(), self._family
        assert self._head is not None
        if {family.pan_joint, family.tilt_joint} <= set(said.name) and len(said.position) == len(said.name):
            pan_rad = said.position[said.name.index(family.pan_joint)]
            # In both stacks a positive tilt of the joint looks down.
            tilt_rad = -said.position[said.name.index(family.tilt_joint)]
            self._head.add(self._stamp_ns(message), pan_rad, tilt_rad)

    def _core(self, message: StampedMessage) -> None:
        said = message.decoded()
        self._tracker.levels(kobuki_levels(said), self._stamp_ns(message))
        self._volts = said.battery / 10
        self._fraction = kobuki_charge(self._volts, self._family.full_v, self._family.empty_v)

    def _create(self, message: StampedMessage) -> None:
        self._tracker.levels(create_levels(message.decoded()), self._stamp_ns(message))

    def _event(self, kind: SafetySensor, sensor: str) -> _Take:
        def take(message: StampedMessage) -> None:
            said = message.decoded()
            self._tracker.event(kind, getattr(said, sensor), said.state)

        return take

    def _pulse(self, kind: SafetySensor) -> _Take:
        return lambda message: self._tracker.pulse(kind, self._arrived_ns(message))

    def _voltage(self, message: StampedMessage) -> None:
        self._volts = float(message.decoded().data)

    def _charge(self, message: StampedMessage) -> None:
        self._fraction = min(1.0, max(0.0, float(message.decoded().data)))


def check_clocks(delays_ns: Mapping[str, int]) -> None:
    """Whether topics are stamped by one clock.

    Args:
        delays_ns: the shortest delay of each topic from its stamp to the recorder.

    Raises:
        NotOneClock: naming the two that differ most.
    """
    if not delays_ns:
        return
    first, last = (choose(delays_ns, key=lambda topic: delays_ns[topic]) for choose in (min, max))
    apart_s = ns_to_seconds(delays_ns[last] - delays_ns[first])
    if apart_s > MAX_CLOCK_DIFFERENCE_S:
        raise NotOneClock(
            f"topics {first} and {last} are stamped by clocks that differ by {apart_s:.3f} s",
            "synchronise the robot's computers (chrony) and set /use_sim_time alike everywhere, then record again",
        )
