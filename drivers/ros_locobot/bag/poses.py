"""Where the robot was, from a bag's localizer topics: read once, judged as the driver judges, asked by stamp."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drivers.ros_locobot.bag import topic_layout as at
from drivers.ros_locobot.bag.errors import MissingTopic, NoOverlap
from drivers.ros_locobot.bag.reader import BagReader
from drivers.ros_locobot.bag.stamped_series import Samples
from drivers.ros_locobot.bag.trajectory import YAML_REMEDY, Drive
from drivers.ros_locobot.localizer.alignment import aligned, read_alignment
from drivers.ros_locobot.localizer.messages import planar, planar_covariance, planar_pose
from drivers.ros_locobot.localizer.pose_gate import GateLimits, PoseGate
from drivers.ros_locobot.options import LocalizerOptions
from robot_runtime.common.clock import NS_PER_S, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import PoseEstimate, PoseStatus

POSE_REMEDY = f"{YAML_REMEDY}, or add --poses odometry: then the wheels alone say where it was"
ODOM_FRAME = "odom"


@dataclass(frozen=True)
class PoseTrack:
    """Poses of one source over the whole bag.

    Attributes:
        samples: rows x_m, y_m, yaw_rad, the nine numbers of the covariance, 1 where the robot counts as lost.
    """

    source: str
    frame: str
    samples: Samples
    max_gap_s: float

    @property
    def span_ns(self) -> tuple[int, int]:
        """Stamps of the first and the last pose."""
        return int(self.samples.stamps_ns[0]), int(self.samples.stamps_ns[-1])

    def at(self, stamp_ns: int) -> PoseEstimate:
        """Interpolated between the two poses around that instant; lost if one of them is.

        Raises:
            NoOverlap: before the first, after the last, or in a gap longer than ``max_gap_s``.
        """
        stamps_ns, rows = self.samples.stamps_ns, self.samples.rows
        index = self.samples.newest_at(stamp_ns)
        if index >= 0 and stamps_ns[index] == stamp_ns:
            return _estimate(stamp_ns, self.frame, rows[index], rows[index], 0.0)
        if not 0 <= index < len(stamps_ns) - 1:
            raise self._silent(stamp_ns, "before the first or after the last")
        gap_ns = int(stamps_ns[index + 1] - stamps_ns[index])
        if gap_ns > seconds_to_ns(self.max_gap_s):
            raise self._silent(stamp_ns, f"within {ns_to_seconds(gap_ns):.3f} s without any")
        return _estimate(
            stamp_ns, self.frame, rows[index], rows[index + 1], float((stamp_ns - stamps_ns[index]) / gap_ns)
        )

    def _silent(self, stamp_ns: int, why: str) -> NoOverlap:
        return NoOverlap(
            f"{self.source}: there is no pose at {ns_to_seconds(stamp_ns):.3f} s: that is {why}", POSE_REMEDY
        )


def _estimate(stamp_ns: int, frame: str, before: Any, after: Any, share: float) -> PoseEstimate:
    pose = SE2(*map(float, before[:3])).interpolate(SE2(*map(float, after[:3])), share)
    covariance = ((1 - share) * before[3:12] + share * after[3:12]).reshape(3, 3)
    status = PoseStatus.LOST if before[12] or after[12] else PoseStatus.OK
    return PoseEstimate(stamp_ns, pose, frame, covariance, status)


def odometry_track(drive: Drive, origin: SE2, frame: str) -> PoseTrack:
    """Odometry as seen from a frame in which its own origin lies at ``origin``."""
    samples = Samples(drive.base.topic, 13)
    still = (0.0,) * 10
    for stamp_ns, (x_m, y_m, yaw_rad) in zip(drive.base.stamps_ns.tolist(), drive.base.rows[:, :3], strict=True):
        pose = origin @ SE2(float(x_m), float(y_m), float(yaw_rad))
        samples.add(stamp_ns, pose.x_m, pose.y_m, pose.yaw_rad, *still)
    return PoseTrack(f"topic {drive.base.topic}", frame, samples, max_gap_s=0.5)


def read_poses(bag: BagReader, options: LocalizerOptions, base_frame: str, drive: Drive) -> PoseTrack:
    """Read the localizer that ``options`` describe.

    Args:
        base_frame: the family's.

    Raises:
        MissingTopic, WrongDefinition, DamagedBag, NotOneClock: naming the topic.
        DeviceFault: naming the topic, for something that is not a pose.
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

    gate = PoseGate(_limits(options), odom_at)
    for estimate in estimates:
        judged = gate.check(estimate if alignment is None else aligned(estimate, alignment))
        pose, covariance = judged.pose, judged.covariance.ravel()
        samples.add(
            judged.stamp_ns, pose.x_m, pose.y_m, pose.yaw_rad, *covariance, float(judged.status is PoseStatus.LOST)
        )
    if not len(samples):
        raise MissingTopic(f"{bag.path}: topic {topic} has no pose of {base_frame} in {options.map_frame}", POSE_REMEDY)
    return PoseTrack(f"topic {topic}", at.MAP_FRAME, samples, options.max_gap_s)


def _limits(options: LocalizerOptions) -> GateLimits:
    return GateLimits(
        options.max_std_m,
        math.radians(options.max_std_deg),
        options.max_jump_m,
        math.radians(options.max_jump_deg),
        options.recover_s,
    )


def _pose_topic(bag: BagReader, options: LocalizerOptions) -> Iterator[PoseEstimate]:
    with_covariance = options.source == "pose_with_covariance"
    kind = "geometry_msgs/PoseWithCovarianceStamped" if with_covariance else "geometry_msgs/PoseStamped"
    bag.require(options.topic, (kind,), "where the robot is", POSE_REMEDY)
    for message in bag.messages((options.topic,)):
        said = message.decoded()
        pose = said.pose.pose if with_covariance else said.pose
        estimate = PoseEstimate(message.stamp_ns, planar_pose(pose, options.topic), at.MAP_FRAME)
        yield replace(estimate, covariance=planar_covariance(said.pose.covariance)) if with_covariance else estimate


# --- tf ------------------------------------------------------------------------------------------------------------


def _tf_poses(bag: BagReader, options: LocalizerOptions, base_frame: str) -> Iterator[PoseEstimate]:
    """base_frame in map_frame, each time that the link next to the base was published."""
    wanted = options.base_frame or base_frame
    bag.require(at.TF, ("tf2_msgs/TFMessage",), f"{wanted} in {options.map_frame}", POSE_REMEDY)
    if at.TF_STATIC in bag.kinds:
        bag.require(at.TF_STATIC, ("tf2_msgs/TFMessage",), "static transforms", POSE_REMEDY)
    chain = _chain(bag, wanted, options.map_frame)
    links = {child: Samples(f"{at.TF} ({child})", 3) for child in chain}
    fixed: set[str] = set()

    def keep(topic: str, child: str, parent: str, stamp_ns: int, transform: Any) -> None:
        if child in links and child not in fixed:
            pose = planar(transform.translation, transform.rotation, topic)
            links[child].add(stamp_ns, pose.x_m, pose.y_m, pose.yaw_rad)
            if topic == at.TF_STATIC:
                fixed.add(child)

    _each_transform(bag, keep)
    moving = [child for child in chain if child not in fixed]
    lookups = [_Link(links[child], child in fixed, options.max_gap_s) for child in chain]
    for stamp_ns in links[moving[0]].stamps_ns.tolist() if moving else ():
        found = [lookup.at(stamp_ns) for lookup in lookups]
        pose = SE2()
        for link in found:
            if link is None:
                break
            pose = link @ pose
        else:
            yield PoseEstimate(stamp_ns, pose, at.MAP_FRAME)


def _chain(bag: BagReader, base_frame: str, map_frame: str) -> list[str]:
    """Frames from the base up to, and without, the map. Raises ``MissingTopic`` if tf does not lead there."""
    parents: dict[str, str] = {}

    def note(topic: str, child: str, parent: str, stamp_ns: int, transform: Any) -> None:
        parents.setdefault(child, parent)

    _each_transform(bag, note)
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


def _each_transform(bag: BagReader, take: Callable[[str, str, str, int, Any], None]) -> None:
    for message in bag.messages((at.TF_STATIC, at.TF)):
        for item in message.decoded().transforms:
            stamp = item.header.stamp
            child, parent = item.child_frame_id.lstrip("/"), item.header.frame_id.lstrip("/")
            take(message.topic, child, parent, stamp.sec * NS_PER_S + stamp.nanosec, item.transform)


@dataclass(frozen=True)
class _Link:
    """One frame in its parent."""

    samples: Samples
    fixed: bool
    max_gap_s: float

    def at(self, stamp_ns: int) -> SE2 | None:
        """Interpolated; the newest one, where the next is not published yet, until it is ``max_gap_s`` old."""
        stamps_ns, rows = self.samples.stamps_ns, self.samples.rows
        index = 0 if self.fixed else self.samples.newest_at(stamp_ns)
        if index < 0:
            return None
        here = SE2(*map(float, rows[index]))
        age_ns = stamp_ns - int(stamps_ns[index])
        if self.fixed or age_ns == 0:
            return here
        if index + 1 < len(stamps_ns):
            gap_ns = int(stamps_ns[index + 1] - stamps_ns[index])
            if gap_ns <= seconds_to_ns(self.max_gap_s):
                return here.interpolate(SE2(*map(float, rows[index + 1])), age_ns / gap_ns)
        return here if age_ns <= seconds_to_ns(self.max_gap_s) else None


def extent(track: PoseTrack) -> tuple[float, float, float, float]:
    """Smallest x and y, largest x and y of the poses."""
    places = track.samples.rows[:, :2]
    low, high = np.min(places, axis=0), np.max(places, axis=0)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])
