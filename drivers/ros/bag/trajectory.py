"""The motion of base and head in a bag of a foreign drive: the first of two passes, over all but images."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drivers.ros.bag.errors import MissingTopic, NotOneClock
from drivers.ros.bag.reader import BagMessage, BagReader
from drivers.ros.bag.stamped_series import LostSamples, Samples
from drivers.ros.connection.quantities import Sources
from drivers.ros.guard.safety_levels import Levels
from drivers.ros.guard.safety_sources import SAFETY_SOURCES, Reports, SafetySource, tracker_of
from drivers.ros.joints import has_joints, head_angles
from drivers.ros.localizer.messages import odometry_pose
from drivers.ros.options import RobotOptions
from drivers.ros.robot_variants import VARIANTS, head_limits, kobuki_charge, topics_of
from drivers.ros.topics import TOPICS
from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import BaseState, Halt, HeadState, Velocity, Zone

MAX_CLOCK_DIFFERENCE_S = 1.0
"""Largest difference between the delays of two topics, from stamp to recorder, that a busy network explains."""

YAML_REMEDY = "record it, or name the topic that the bag has in a YAML file for --robot"
STILL_RAD = math.radians(0.5)

_Handler = Callable[[BagMessage], None]


@dataclass(frozen=True)
class RecordedDrive:
    """Base and head over the complete bag, by stamps of the robot's clock.

    Attributes:
        base: Rows x_m, y_m, yaw_rad, linear_m_s, angular_rad_s, bumper, cliff, wheel_drop, battery_v, fraction; zones
            as values of ``Zone``.
        head: Rows pan_rad, tilt_rad (up positive); None if unknown: then the head looks straight ahead.
        delays_ns: The shortest delay of each topic from stamp to recorder.
        lost: Messages that are unusable.
    """

    base: Samples
    head: Samples | None
    delays_ns: dict[str, int]
    lost: tuple[LostSamples, ...] = ()

    @property
    def poses(self) -> NDArray[np.float64]:
        """Odometry, float64 (N, 3), yaw unwrapped."""
        poses: NDArray[np.float64] = self.base.rows[:, :3].copy()
        poses[:, 2] = np.unwrap(poses[:, 2])
        return poses

    def bumped(self, first: int, last: int) -> Zone:
        """Return the zones pressed in any of these rows of the base."""
        zone = Zone.NONE
        for value in np.unique(self.base.rows[first : last + 1, 5]):
            zone |= Zone(int(value))
        return zone

    def base_state(self, index: int) -> BaseState:
        """Return a row of the base. Bags do not contain the Guard's halt."""
        _, _, _, linear, angular, bumper, cliff, drop, volts, fraction = map(float, self.base.rows[index])
        return BaseState(
            int(self.base.stamps_ns[index]),
            self.base.pose(index),
            Velocity(linear, angular),
            Zone(int(bumper)),
            Zone(int(cliff)),
            Zone(int(drop)),
            Halt.NONE,
            volts,
            fraction,
        )

    def odom_at(self, stamp_ns: int) -> SE2 | None:
        """Return odometry interpolated at an instant; None before its first and after its last message."""
        bracket = self.base.bracket(stamp_ns)
        return None if bracket is None else self.base.pose_between(*bracket)

    def head_angles(self, stamps_ns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the newest (else the first) pan and tilt at each instant, radians, float64 (N, 2)."""
        if self.head is None:
            return np.zeros((len(stamps_ns), 2))
        newest = np.searchsorted(self.head.stamps_ns, stamps_ns, side="right") - 1
        angles: NDArray[np.float64] = self.head.rows[np.maximum(newest, 0)]
        return angles

    def head_state(self, stamp_ns: int) -> HeadState:
        """Return the newest (else the first) state of the head at an instant."""
        if self.head is None:
            return HeadState(stamp_ns, 0.0, 0.0, moving=False)
        index = max(0, self.head.newest_at(stamp_ns))
        pan_rad, tilt_rad = map(float, self.head.rows[index])
        before = self.head.rows[max(0, index - 1)]
        moving = float(np.abs(self.head.rows[index] - before).max()) > STILL_RAD
        return HeadState(int(self.head.stamps_ns[index]), pan_rad, tilt_rad, moving)


def read_drive(bag: BagReader, options: RobotOptions, without: Collection[str]) -> RecordedDrive:
    """Read base and head.

    Args:
        bag: The bag.
        options: Variant and topics.
        without: ``head`` or ``contact``, if the bag lacks them.

    Raises:
        MissingTopic: Names the topic.
        WrongDefinition: Names the topic.
        DamagedBag: Names the topic.
        NotOneClock: Names the topic.
        TwoSources: Names the topic and two nodes that publish it.
    """
    return _DriveReader(bag, options, without).read()


class _DriveReader:
    def __init__(self, bag: BagReader, options: RobotOptions, without: Collection[str]) -> None:
        self._bag = bag
        self._variant = VARIANTS[options.family]
        self._topics = topics = topics_of(options)
        self._family = options.family
        lacking = {source.field for source in SAFETY_SOURCES[options.family] if self._topic(source) not in bag.kinds}
        # A bag may have the diagnoses of other nodes alone.
        self._tracker = tracker_of(options.family, topics, without=lacking | {"diagnostics"}, events_alone_s=0.0)
        self._volts = self._fraction = math.nan
        self._base = Samples(topics.odom, 10)
        self._head = None if "head" in without or not topics.joints else Samples(topics.joints, 2)
        self._delays_ns: dict[str, int] = {}
        self._sources = Sources()
        self._lost: dict[str, LostSamples] = {}
        self._limits = head_limits(options)
        self._handlers: dict[str, _Handler] = {}
        self._require(topics.odom, "nav_msgs/Odometry", "odometry", self._odometry)
        if self._head is not None:
            remedy = f"{YAML_REMEDY}, or add --without head if it looked straight ahead"
            self._require(topics.joints, "sensor_msgs/JointState", "the head's joints", self._joints, remedy)
        if "contact" not in without:
            self._require_contact()

    def read(self) -> RecordedDrive:
        for message in self._bag.messages(tuple(self._handlers)):
            self._handlers[message.topic](message)
        for samples, what in ((self._base, "odometry"), (self._head, "the head")):
            if samples is not None and not len(samples) and (lost := self._lost.get(samples.topic)) is not None:
                raise MissingTopic(f"{self._bag.path}: {lost}: nothing of {what} is left", YAML_REMEDY)
        if self._head is not None and not len(self._head):
            names = ", ".join((self._variant.pan_joint, self._variant.tilt_joint))
            raise MissingTopic(
                f"{self._bag.path}: no message on topic {self._topics.joints} has the joints {names}", YAML_REMEDY
            )
        return RecordedDrive(self._base, self._head, self._delays_ns, tuple(self._lost.values()))

    def _require(
        self, topic: str, kind: str | tuple[str, ...], what: str, handler: _Handler, remedy: str = YAML_REMEDY
    ) -> None:
        self._bag.require(topic, (kind,) if isinstance(kind, str) else kind, what, remedy)
        self._handlers[topic] = handler

    def _require_contact(self) -> None:
        """Read the safety topics; those that report the bumper must be there, others may be missing."""
        topics, kinds, types = self._topics, self._bag.kinds, TOPICS[self._family]
        remedy = f"{YAML_REMEDY}, or add --without contact to log no contacts"
        sources = SAFETY_SOURCES[self._family]
        events = topics.bumper in kinds and topics.core not in kinds
        for source in sources:
            if (
                any(other.reports is Reports.EVENTS for other in sources)
                and (source.reports is Reports.EVENTS) != events
            ):
                continue  # Events count only without levels.
            topic = self._topic(source)
            if source.reports is Reports.LATCHED and (not topic or topic in self._bag.silent):
                continue  # Without a change there is no message.
            if topic in kinds or source.field in ("core", "bumper", "hazards"):
                self._require(topic, types[source.field].kinds, "contact", self._safety(source), remedy)
            if source.reports is Reports.LATCHED:
                self._tracker.latch(Levels(), 0, topic)  # nobody drives with a bumper that was pressed before
        if not any(map(self._topic, sources)):
            raise MissingTopic(f"{self._bag.path}: no topic of this robot reports contacts", remedy)
        batteries = {"voltage": self._voltage, "charge_ratio": self._charge}
        for field, handler in batteries.items():
            if getattr(topics, field) in kinds:
                self._require(getattr(topics, field), types[field].kinds, "the battery", handler)

    def _topic(self, source: SafetySource) -> str:
        return str(getattr(self._topics, source.field))

    # --- messages -----------------------------------------------------------------------------------------------------

    def _stamp_ns(self, message: BagMessage) -> int:
        stamp_ns = message.stamp_ns
        self._sources.check(f"topic {message.topic}", message.node)
        delay_ns = message.at_ns - stamp_ns
        self._delays_ns[message.topic] = min(delay_ns, self._delays_ns.get(message.topic, delay_ns))
        return stamp_ns

    def _odometry(self, message: BagMessage) -> None:
        stamp_ns, odometry = self._stamp_ns(message), message.decoded()
        pose, why = odometry_pose(odometry)
        if why:
            self._lose(message, why)
            return
        self._tracker.alive(stamp_ns)
        levels = self._tracker.feedback(stamp_ns)
        zones = (0, 0, 0)
        if levels is not None:
            zones = levels.bumper.value, levels.cliff.value, levels.wheel_drop.value
        speed = odometry.twist.twist
        row = (pose.x_m, pose.y_m, pose.yaw_rad, speed.linear.x, speed.angular.z, *zones, self._volts, self._fraction)
        self._base.add(stamp_ns, *row)

    def _joints(self, message: BagMessage) -> None:
        joints = message.decoded()
        assert self._head is not None
        if not has_joints(joints, self._variant.joints):
            return
        pan_rad, tilt_rad, why = head_angles(joints, self._variant.joints, self._limits)
        stamp_ns = self._stamp_ns(message)
        if why:
            self._lose(message, why)
        else:
            self._head.add(stamp_ns, pan_rad, tilt_rad)

    def _lose(self, message: BagMessage, why: str) -> None:
        self._lost.setdefault(message.topic, LostSamples(message.topic)).add(message.stamp_ns, why)

    def _safety(self, source: SafetySource) -> _Handler:
        def handle(message: BagMessage) -> None:
            # Events and pulses have no stamp: their arrival by the robot's clock.
            stamp_ns = message.at_ns - self._delays_ns.get(self._topics.odom, 0)
            if source.reports is Reports.LEVELS:
                stamp_ns = self._stamp_ns(message)
            decoded = message.decoded()
            source.take(self._tracker, message.topic, decoded, stamp_ns)
            if source.field == "core":
                self._volts = decoded.battery / 10
                self._fraction = kobuki_charge(self._volts, self._variant.full_v, self._variant.empty_v)

        return handle

    def _voltage(self, message: BagMessage) -> None:
        self._volts = float(message.decoded().data)

    def _charge(self, message: BagMessage) -> None:
        self._fraction = min(1.0, max(0.0, float(message.decoded().data)))


def check_clocks(delays_ns: Mapping[str, int]) -> None:
    """Check that all topics are stamped by one clock.

    Args:
        delays_ns: The shortest delay of each topic from its stamp to the recorder.

    Raises:
        NotOneClock: Names the two topics that differ most.
    """
    if not delays_ns:
        return
    first, last = (choose(delays_ns, key=lambda topic: delays_ns[topic]) for choose in (min, max))
    apart_s = ns_to_seconds(delays_ns[last] - delays_ns[first])
    if apart_s > MAX_CLOCK_DIFFERENCE_S:
        raise NotOneClock(
            f"topics {first} and {last} are stamped by clocks that differ by {apart_s:.3f} s",
            "synchronize the robot's computers (chrony) and set /use_sim_time alike everywhere, then record again",
        )
