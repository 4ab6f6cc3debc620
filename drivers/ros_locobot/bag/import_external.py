"""A bag of somebody else's drive as an episode log: teleoperated, or driven by another stack.

With a task, the drive must be one of its episodes: between two rests lies one of its actions, told by odometry and the
head's angles. What else lies there is refused by name and time; nothing is rounded to the nearest action. Without a
task, the log says where the robot was and what it saw, at every ``every_m`` and ``every_deg``, and no actions.

What a bag does not say: what the Guard held the wheels for, an attempt to drive that moved nothing, and whether the
driver meant to stop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from drivers.ros_locobot.bag.action_segmentation import DrivenStep, DriveSection, segment_actions, waypoint_steps
from drivers.ros_locobot.bag.episode_header import (
    ImportOptions,
    camera_info,
    episode_for,
    make_header,
    scene_for,
    task_for,
)
from drivers.ros_locobot.bag.errors import NoOverlap
from drivers.ros_locobot.bag.images import BagImages
from drivers.ros_locobot.bag.motion_segments import ActionSegmenter
from drivers.ros_locobot.bag.poses import PoseTrack, odometry_track, read_poses
from drivers.ros_locobot.bag.reader import BagReader, Progress
from drivers.ros_locobot.bag.topic_layout import MAP_FRAME
from drivers.ros_locobot.bag.trajectory import Drive, check_clocks, read_drive
from drivers.ros_locobot.robot_variants import base_frame
from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import RgbdFrame
from robot_runtime.records import EndReason, EpisodeEnd, StepRecord, StepTimes, Subscriber
from robot_runtime.sensors import ObservationBuilder, observations_of


def import_drive(bag: BagReader, said: ImportOptions, into: Subscriber, on_step: Progress = lambda: None) -> EpisodeEnd:
    """Tell ``into`` of the drive as of an episode. Reads the bag twice; pictures one at a time.

    Raises:
        MissingTopic, WrongDefinition, DamagedBag, NotOneClock, NoOverlap: naming topic and time.
        NotAnAction: naming the time and what the robot did.
        ConfigError: the task does not fit the camera. EpisodeError: the drive is not of that episode.
        DeviceFault: pictures or poses that cannot be used, such as depth in another unit than its encoding's.
    """
    pictures = BagImages(bag, said.ros, said.without)
    drive = read_drive(bag, said.ros, said.without)
    check_clocks(drive.delays_ns | pictures.delays_ns())
    tracks = () if said.poses == "odometry" else _localizers(bag, said, drive)
    window = _overlap(drive, pictures, tracks)
    if said.task is None:
        acts = waypoint_steps(window, said.every_m, math.radians(said.every_deg))
    else:
        recogniser = ActionSegmenter(said.task.actions, said.task.magnitudes, said.tolerance)
        acts = segment_actions(window, recogniser, said.min_rest_s, said.stop)

    frames = pictures.frames([act.look for act in acts])
    first = next(frames)
    pose, referee = tracks or _odometry_alone(said, drive, first.stamp_ns)
    camera = camera_info(said.ros, pictures)
    task = task_for(said, camera, len(acts) - 1)
    scene = scene_for(said, bag, referee)
    start, in_map = pose.at(first.stamp_ns).pose, referee.at(first.stamp_ns).pose
    episode = episode_for(said, task, scene, bag.path, in_map)
    builder = observations_of(task, scene, episode, start, in_map)
    start_ns = int(drive.base.stamps_ns[window.first])
    into.on_episode_start(make_header(said, task, scene, episode, camera, bag.path, start_ns))
    steps = _Steps(drive, pose, referee, builder, into, window.first)
    for index, (act, frame) in enumerate(zip(acts, chain([first], frames), strict=True)):
        last = steps.add(index, act, frame)
        on_step()
    end = _end(said, window, last)
    into.on_episode_end(end)
    return end


def _localizers(bag: BagReader, said: ImportOptions, drive: Drive) -> tuple[PoseTrack, PoseTrack]:
    """The policy's localizer and the referee, as the robot's YAML has them."""
    frame = base_frame(said.ros)
    pose = read_poses(bag, said.ros.localizer, frame, drive)
    if said.ros.referee == said.ros.localizer:
        return pose, pose
    return pose, read_poses(bag, said.ros.referee, frame, drive)


def _odometry_alone(said: ImportOptions, drive: Drive, start_ns: int) -> tuple[PoseTrack, PoseTrack]:
    """Odometry in map: from where the episode starts; without one, map is where odometry began."""
    origin = SE2()
    odom = drive.odom_at(start_ns)
    if said.episode is not None and odom is not None:
        origin = said.episode.start @ odom.inverse()
    track = odometry_track(drive, origin, MAP_FRAME)
    return track, track


def _overlap(drive: Drive, pictures: BagImages, tracks: Sequence[PoseTrack]) -> DriveSection:
    """The rows of odometry for which there are pictures, head and poses, too. Raises ``NoOverlap``."""
    delay_ns = max(pictures.delays_ns().values())
    first_ns, last_ns = (at_ns - delay_ns for at_ns in pictures.span_ns())
    spans = {f"topic {drive.base.topic}": (int(drive.base.stamps_ns[0]), int(drive.base.stamps_ns[-1]))}
    spans["pictures"] = (first_ns, last_ns)
    if drive.head is not None:
        spans[f"topic {drive.head.topic}"] = (int(drive.head.stamps_ns[0]), int(drive.head.stamps_ns[-1]))
    spans |= {track.source: track.span_ns for track in tracks}
    latest = max(spans, key=lambda name: spans[name][0])
    earliest = min(spans, key=lambda name: spans[name][1])
    first_ns, last_ns = spans[latest][0], spans[earliest][1]
    stamps_ns = drive.base.stamps_ns
    first, last = int(np.searchsorted(stamps_ns, first_ns)), int(np.searchsorted(stamps_ns, last_ns, "right")) - 1
    if first >= last:
        raise NoOverlap(
            f"{latest} begins at {ns_to_seconds(first_ns):.3f} s, when {earliest} has ended "
            f"({ns_to_seconds(last_ns):.3f} s)",
            "record all topics at the same time",
        )
    return DriveSection(drive, first, last)


@dataclass
class _Steps:
    """Steps, and the base states between them, told in the order of their stamps."""

    drive: Drive
    pose: PoseTrack
    referee: PoseTrack
    builder: ObservationBuilder
    into: Subscriber
    row: int

    def add(self, index: int, act: DrivenStep, frame: RgbdFrame) -> StepRecord:
        """The step whose picture is ``frame``."""
        seen = self.drive.base.newest_at(frame.stamp_ns)
        while self.row <= seen:
            self.into.on_base_state(self.drive.base_state(self.row))
            self.row += 1
        pose = self.pose.at(frame.stamp_ns)
        start_ns, end_ns = (act.start_ns, act.end_ns) if index else (frame.stamp_ns, frame.stamp_ns)
        record = StepRecord(
            index=index,
            action=act.action,
            result=act.result,
            observation=self.builder.build(frame, pose.pose),
            frame=frame,
            pose=pose,
            referee=pose if self.referee is self.pose else self.referee.at(frame.stamp_ns),
            base=self.drive.base_state(seen),
            head=self.drive.head_state(frame.stamp_ns),
            times=StepTimes(start_ns, end_ns, frame.stamp_ns, frame.stamp_ns),
        )
        self.into.on_step(record)
        return record


def _end(said: ImportOptions, window: DriveSection, last: StepRecord) -> EpisodeEnd:
    if said.stop:
        return EpisodeEnd(
            EndReason.STOP, last.index, last.times.observed_ns, "the driver's stop, as the import was told"
        )
    first_s, until_s = (ns_to_seconds(int(stamp)) for stamp in (window.stamps_ns[0], window.stamps_ns[-1]))
    seen_s = ns_to_seconds(last.times.observed_ns)
    detail = f"the bag has everything from {first_s:.3f} s to {until_s:.3f} s; its last step is seen at {seen_s:.3f} s"
    return EpisodeEnd(EndReason.INTERRUPTED, last.index, last.times.observed_ns, detail)
