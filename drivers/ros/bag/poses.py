"""The robot's poses from a bag's localizer topics, with the checks of all localizers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drivers.ros.bag import topic_layout as at
from drivers.ros.bag.errors import MissingTopic, NoOverlap
from drivers.ros.bag.reader import BagMessage, BagReader
from drivers.ros.bag.stamped_series import Samples
from drivers.ros.bag.trajectory import YAML_REMEDY, RecordedDrive
from drivers.ros.connection.quantities import Sources, TfTree
from drivers.ros.localizer.alignment import aligned, read_alignment
from drivers.ros.localizer.messages import check_pose_frame, planar, planar_covariance, planar_pose
from drivers.ros.options import LocalizerOptions
from robot_runtime.common.clock import NS_PER_S, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import LocalizerInfo, PoseEstimate, PoseStatus
from robot_runtime.hal.events import Event
from robot_runtime.hal.pose_checks import PoseChecks

POSE_REMEDY = f"{YAML_REMEDY}, or add --poses odometry to use the wheels alone"
ODOM_FRAME = "odom"
HARMLESS = ("fix", "regained")
TF_TYPES = ("tf2_msgs/TFMessage",)


@dataclass(frozen=True)
class PoseTrack:
    """Poses of a source over the complete bag.

    Attributes:
        source: For messages.
        frame: Of the poses.
        samples: Rows x_m, y_m, yaw_rad, the nine numbers of the covariance, 1 where the robot counts as lost.
        max_gap_s: Longest gap across which poses are interpolated.
        events: When and why the robot was lost, and found again.
    """

    source: str
    frame: str
    samples: Samples
    max_gap_s: float
    events: tuple[Event, ...] = ()

    def at(self, stamp_ns: int) -> PoseEstimate:
        """Return the pose interpolated at an instant; it is lost if one of its neighbors is.

        Raises:
            NoOverlap: The instant is before the first pose, after the last, or in a gap longer than ``max_gap_s``.
        """
        samples = self.samples
        bracket = samples.bracket(stamp_ns)
        if bracket is None:
            raise self._no_pose(stamp_ns, "before the first or after the last")
        before, after, fraction = bracket
        gap_ns = int(samples.stamps_ns[after] - samples.stamps_ns[before])
        if gap_ns > seconds_to_ns(self.max_gap_s):
            raise self._no_pose(stamp_ns, f"within {ns_to_seconds(gap_ns):.3f} s without any")
        rows = samples.rows
        covariance = ((1 - fraction) * rows[before, 3:12] + fraction * rows[after, 3:12]).reshape(3, 3)
        status = PoseStatus.LOST if rows[before, 12] or rows[after, 12] else PoseStatus.OK
        pose = samples.pose(before).interpolate(samples.pose(after), fraction)
        return PoseEstimate(stamp_ns, pose, self.frame, covariance, status)

    @property
    def losses(self) -> str:
        """How many poses are lost, and why, for people; empty if none is."""
        lost = int(self.samples.rows[:, 12].sum())
        reasons = dict.fromkeys(event.detail for event in self.events if event.kind not in HARMLESS)
        if not lost:
            return ""
        return f"{self.source}: the robot is lost in {lost} of {len(self.samples)} poses: {'; '.join(reasons)}"

    def _no_pose(self, stamp_ns: int, where: str) -> NoOverlap:
        return NoOverlap(f"{self.source}: no pose at {ns_to_seconds(stamp_ns):.3f} s, which is {where}", POSE_REMEDY)


def odometry_track(drive: RecordedDrive, origin: SE2, frame: str) -> PoseTrack:
    """Return odometry in a frame in which the origin of odometry is at ``origin``."""
    samples = Samples(drive.base.topic, 13)
    no_covariance = (0.0,) * 10
    for stamp_ns, (x_m, y_m, yaw_rad) in zip(drive.base.stamps_ns.tolist(), drive.base.rows[:, :3], strict=True):
        pose = origin @ SE2(float(x_m), float(y_m), float(yaw_rad))
        samples.add(stamp_ns, pose.x_m, pose.y_m, pose.yaw_rad, *no_covariance)
    return PoseTrack(f"topic {drive.base.topic}", frame, samples, max_gap_s=0.5)


def read_poses(bag: BagReader, options: LocalizerOptions, base_frame: str, drive: RecordedDrive) -> PoseTrack:
    """Read a localizer's poses.

    Args:
        bag: The bag.
        options: Of the localizer.
        base_frame: The variant's.
        drive: Its odometry is used for the plausibility check.

    Raises:
        MissingTopic: Names the topic.
        WrongDefinition: Names the topic.
        DamagedBag: Names the topic.
        NotOneClock: Names the topic.
        TwoSources: Names two nodes, or two parents in tf.
        DeviceFault: Poses are in another frame than ``map_frame``.
    """
    if options.source == "odometry":
        return odometry_track(drive, SE2(), ODOM_FRAME)
    found = _tf_poses(bag, options, base_frame) if options.source == "tf" else _pose_topic(bag, options)
    topic = at.TF if options.source == "tf" else options.topic
    samples, source = Samples(topic, 13), f"topic {topic}"
    alignment = read_alignment(options.alignment, None) if options.alignment else None
    checks = PoseChecks(LocalizerInfo(source, at.MAP_FRAME, options.rate_hz, limits=options.limits))
    events: list[Event] = []
    frozen: list[tuple[int, int]] = []
    last = SE2()
    for estimate, why in found:
        if why:
            if not events or events[-1].detail != why:
                events.append(Event(estimate.stamp_ns, source, "no_fix", why))
            estimate = PoseEstimate(estimate.stamp_ns, last, at.MAP_FRAME, status=PoseStatus.LOST)
        elif alignment is not None:
            estimate = aligned(estimate, alignment)
        pose = drive.odom_at(estimate.stamp_ns)
        odom = None if pose is None else PoseEstimate(estimate.stamp_ns, pose, ODOM_FRAME)
        checked = checks.check(estimate, odom)
        events += [event for event in checks.events() if not why]
        if checks.frozen_since_ns is not None:
            frozen.append((checks.frozen_since_ns, checked.stamp_ns))
        last, lost = checked.pose, float(checked.status is PoseStatus.LOST)
        samples.add(checked.stamp_ns, last.x_m, last.y_m, last.yaw_rad, *checked.covariance.ravel(), lost)
    if not len(samples):
        raise MissingTopic(f"{bag.path}: topic {topic} has no pose of {base_frame} in {options.map_frame}", POSE_REMEDY)
    for since_ns, until_ns in frozen:
        # Poses are known to be frozen only after odometry has moved.
        samples.rows[samples.newest_at(since_ns) : samples.newest_at(until_ns) + 1, 12] = 1.0
    if checks.broken:
        samples.rows[:, 12] = 1.0
    return PoseTrack(source, at.MAP_FRAME, samples, options.max_gap_s, tuple(events))


def _pose_topic(bag: BagReader, options: LocalizerOptions) -> Iterator[tuple[PoseEstimate, str]]:
    """Yield poses, and why the robot is lost by the message alone."""
    with_covariance = options.source == "pose_with_covariance"
    kind = "geometry_msgs/PoseWithCovarianceStamped" if with_covariance else "geometry_msgs/PoseStamped"
    bag.require(options.topic, (kind,), "the robot's pose", POSE_REMEDY)
    sources = Sources()
    for message in bag.messages((options.topic,)):
        sources.check(f"topic {options.topic}", message.node)
        stamped = message.decoded()
        check_pose_frame(stamped.header.frame_id, options)
        on_floor, why = planar_pose(stamped.pose.pose if with_covariance else stamped.pose)
        estimate = PoseEstimate(message.stamp_ns, on_floor, at.MAP_FRAME)
        if with_covariance:
            estimate = replace(estimate, covariance=planar_covariance(stamped.pose.covariance))
        yield estimate, why


# --- tf ------------------------------------------------------------------------------------------------------------


def _tf_poses(bag: BagReader, options: LocalizerOptions, base_frame: str) -> Iterator[tuple[PoseEstimate, str]]:
    """Yield the base in the map whenever the transform of the base in its parent was published, and why it is lost."""
    base = options.base_frame or base_frame
    bag.require(at.TF, TF_TYPES, f"{base} in {options.map_frame}", POSE_REMEDY)
    if at.TF_STATIC in bag.kinds:
        bag.require(at.TF_STATIC, TF_TYPES, "static transforms", POSE_REMEDY)
    chain = _chain(bag, base, options.map_frame)
    links = {child: Samples(f"{at.TF} ({child})", 3) for child in chain}
    fixed: set[str] = set()
    lost: dict[int, str] = {}
    for message, child, _, stamp_ns, transform in _transforms(bag):
        if child in links and child not in fixed:
            pose, why = planar(transform.translation, transform.rotation)
            if why:
                lost[stamp_ns] = f"{child}: {why}"
                pose = links[child].pose(len(links[child]) - 1) if len(links[child]) else pose
            links[child].add(stamp_ns, pose.x_m, pose.y_m, pose.yaw_rad)
            if message.topic == at.TF_STATIC:
                fixed.add(child)
    moving = [child for child in chain if child not in fixed]
    for stamp_ns in links[moving[0]].stamps_ns.tolist() if moving else ():
        pose = SE2()
        for child in chain:
            samples = links[child]
            link = samples.pose(0) if child in fixed else _link_at(samples, stamp_ns, options.max_gap_s)
            if link is None:
                break
            pose = link @ pose
        else:
            yield PoseEstimate(stamp_ns, pose, at.MAP_FRAME), lost.get(stamp_ns, "")


def _chain(bag: BagReader, base_frame: str, map_frame: str) -> list[str]:
    """Return the frames from the base up to, but without, the map. Raises ``MissingTopic`` if tf has no such chain."""
    tree = TfTree()
    for message, child, parent, _, _ in _transforms(bag):
        tree.add(child, parent, message.node)
    chain = list(tree.chain(base_frame, map_frame))
    top = tree.parent(chain[-1]) if chain else base_frame
    if top != map_frame:
        raise MissingTopic(
            f"{bag.path}: topic {at.TF} does not lead from {base_frame} to {map_frame}: {top} has no parent",
            POSE_REMEDY,
        )
    return chain


def _transforms(bag: BagReader) -> Iterator[tuple[BagMessage, str, str, int, Any]]:
    """Yield message, child, parent, stamp and transform of all transforms."""
    for message in bag.messages((at.TF_STATIC, at.TF)):
        for item in message.decoded().transforms:
            stamp = item.header.stamp
            child, parent = item.child_frame_id.lstrip("/"), item.header.frame_id.lstrip("/")
            yield message, child, parent, stamp.sec * NS_PER_S + stamp.nanosec, item.transform


def _link_at(samples: Samples, stamp_ns: int, max_gap_s: float) -> SE2 | None:
    """Return one frame in its parent: interpolated, or the newest until it is ``max_gap_s`` old."""
    max_gap_ns, stamps_ns = seconds_to_ns(max_gap_s), samples.stamps_ns
    bracket = samples.bracket(stamp_ns)
    if bracket is not None and stamps_ns[bracket[1]] - stamps_ns[bracket[0]] <= max_gap_ns:
        return samples.pose_between(*bracket)
    index = samples.newest_at(stamp_ns)
    return samples.pose(index) if index >= 0 and stamp_ns - stamps_ns[index] <= max_gap_ns else None


def extent(track: PoseTrack) -> tuple[float, float, float, float]:
    """Return the smallest x and y, and the largest x and y of the poses."""
    places = track.samples.rows[:, :2]
    low, high = np.min(places, axis=0), np.max(places, axis=0)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])
