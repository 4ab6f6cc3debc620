"""The robot's poses from a bag's localizer topics, checked for plausibility as by the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drivers.ros_locobot.bag import topic_layout as at
from drivers.ros_locobot.bag.errors import MissingTopic, NoOverlap
from drivers.ros_locobot.bag.reader import BagReader
from drivers.ros_locobot.bag.stamped_series import Samples
from drivers.ros_locobot.bag.trajectory import YAML_REMEDY, RecordedDrive
from drivers.ros_locobot.localizer.alignment import aligned, read_alignment
from drivers.ros_locobot.localizer.messages import planar, planar_covariance, planar_pose
from drivers.ros_locobot.localizer.pose_gate import GateLimits, PoseGate
from drivers.ros_locobot.options import LocalizerOptions
from robot_runtime.common.clock import NS_PER_S, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import PoseEstimate, PoseStatus

POSE_REMEDY = f"{YAML_REMEDY}, or add --poses odometry to use the wheels alone"
ODOM_FRAME = "odom"
TF_TYPES = ("tf2_msgs/TFMessage",)


@dataclass(frozen=True)
class PoseTrack:
    """Poses of a source over the complete bag.

    Attributes:
        source: For messages.
        frame: Of the poses.
        samples: Rows x_m, y_m, yaw_rad, the nine numbers of the covariance, 1 where the robot counts as lost.
        max_gap_s: Longest gap across which poses are interpolated.
    """

    source: str
    frame: str
    samples: Samples
    max_gap_s: float

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
        DeviceFault: A message is not a pose; names the topic.
    """
    if options.source == "odometry":
        return odometry_track(drive, SE2(), ODOM_FRAME)
    estimates = _tf_poses(bag, options, base_frame) if options.source == "tf" else _pose_topic(bag, options)
    topic = at.TF if options.source == "tf" else options.topic
    samples = Samples(topic, 13)
    alignment = read_alignment(options.alignment, None) if options.alignment else None

    def odom_at(stamp_ns: int) -> PoseEstimate | None:
        pose = drive.odom_at(stamp_ns)
        return None if pose is None else PoseEstimate(stamp_ns, pose, ODOM_FRAME)

    gate = PoseGate(GateLimits.of(options), odom_at)
    for estimate in estimates:
        checked = gate.check(estimate if alignment is None else aligned(estimate, alignment))
        pose, lost = checked.pose, float(checked.status is PoseStatus.LOST)
        samples.add(checked.stamp_ns, pose.x_m, pose.y_m, pose.yaw_rad, *checked.covariance.ravel(), lost)
    if not len(samples):
        raise MissingTopic(f"{bag.path}: topic {topic} has no pose of {base_frame} in {options.map_frame}", POSE_REMEDY)
    return PoseTrack(f"topic {topic}", at.MAP_FRAME, samples, options.max_gap_s)


def _pose_topic(bag: BagReader, options: LocalizerOptions) -> Iterator[PoseEstimate]:
    with_covariance = options.source == "pose_with_covariance"
    kind = "geometry_msgs/PoseWithCovarianceStamped" if with_covariance else "geometry_msgs/PoseStamped"
    bag.require(options.topic, (kind,), "the robot's pose", POSE_REMEDY)
    for message in bag.messages((options.topic,)):
        stamped = message.decoded()
        pose = stamped.pose.pose if with_covariance else stamped.pose
        estimate = PoseEstimate(message.stamp_ns, planar_pose(pose, options.topic), at.MAP_FRAME)
        yield replace(estimate, covariance=planar_covariance(stamped.pose.covariance)) if with_covariance else estimate


# --- tf ------------------------------------------------------------------------------------------------------------


def _tf_poses(bag: BagReader, options: LocalizerOptions, base_frame: str) -> Iterator[PoseEstimate]:
    """Yield the base in the map whenever the transform of the base in its parent was published."""
    base = options.base_frame or base_frame
    bag.require(at.TF, TF_TYPES, f"{base} in {options.map_frame}", POSE_REMEDY)
    if at.TF_STATIC in bag.kinds:
        bag.require(at.TF_STATIC, TF_TYPES, "static transforms", POSE_REMEDY)
    chain = _chain(bag, base, options.map_frame)
    links = {child: Samples(f"{at.TF} ({child})", 3) for child in chain}
    fixed: set[str] = set()
    for topic, child, _, stamp_ns, transform in _transforms(bag):
        if child in links and child not in fixed:
            pose = planar(transform.translation, transform.rotation, topic)
            links[child].add(stamp_ns, pose.x_m, pose.y_m, pose.yaw_rad)
            if topic == at.TF_STATIC:
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
            yield PoseEstimate(stamp_ns, pose, at.MAP_FRAME)


def _chain(bag: BagReader, base_frame: str, map_frame: str) -> list[str]:
    """Return the frames from the base up to, but without, the map. Raises ``MissingTopic`` if tf has no such chain."""
    parents: dict[str, str] = {}
    for _, child, parent, _, _ in _transforms(bag):
        parents.setdefault(child, parent)
    chain, frame = [], base_frame
    while frame != map_frame:
        if frame not in parents or frame in chain:
            raise MissingTopic(
                f"{bag.path}: topic {at.TF} does not lead from {base_frame} to {map_frame}: {frame} has no parent",
                POSE_REMEDY,
            )
        chain.append(frame)
        frame = parents[frame]
    return chain


def _transforms(bag: BagReader) -> Iterator[tuple[str, str, str, int, Any]]:
    """Yield topic, child, parent, stamp and transform of all transforms."""
    for message in bag.messages((at.TF_STATIC, at.TF)):
        for item in message.decoded().transforms:
            stamp = item.header.stamp
            child, parent = item.child_frame_id.lstrip("/"), item.header.frame_id.lstrip("/")
            yield message.topic, child, parent, stamp.sec * NS_PER_S + stamp.nanosec, item.transform


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
