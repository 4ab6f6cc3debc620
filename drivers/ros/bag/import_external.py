"""Import of a foreign drive's bag as an episode log: teleoperated, or driven by another stack.

With a task, the drive must be one of its episodes: between two stand-stills the robot executes one of its actions, as
measured by odometry and the head's angles. Any other motion is refused with its time; nothing is rounded to the nearest
action. Without a task, the log has a step without action after every ``every_m`` and ``every_deg``.

A bag does not contain the Guard's halts, commands without effect, and the driver's decision to stop.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from itertools import chain

import numpy as np

from drivers.ros.bag.action_segmentation import DrivenStep, DriveSection, segment_actions, waypoint_steps
from drivers.ros.bag.episode_header import ImportOptions, camera_info, episode_for, make_header, scene_for, task_for
from drivers.ros.bag.errors import NoOverlap
from drivers.ros.bag.images import BagImages
from drivers.ros.bag.motion_segments import ActionSegmenter
from drivers.ros.bag.poses import PoseTrack, odometry_track, read_poses
from drivers.ros.bag.reader import BagReader, Progress
from drivers.ros.bag.topic_layout import MAP_FRAME
from drivers.ros.bag.trajectory import RecordedDrive, check_clocks, read_drive
from drivers.ros.robot_variants import base_frame
from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import RgbdFrame
from robot_runtime.hal.events import Event
from robot_runtime.records import EndReason, EpisodeEnd, StepRecord, StepTimes, Subscriber
from robot_runtime.sensors import ObservationBuilder, observations_of


def import_drive(
    bag: BagReader,
    options: ImportOptions,
    into: Subscriber,
    on_step: Progress = lambda: None,
    on_note: Callable[[str], object] = lambda _: None,
) -> EpisodeEnd:
    """Pass the drive to a subscriber as an episode. Reads the bag twice, images one at a time.

    Args:
        bag: The bag.
        options: Of the import.
        into: Gets the records.
        on_step: Called after every step.
        on_note: Called with what was noticed in the data: lost samples, a robot that was lost, skewed images.

    Raises:
        RecordingError: A topic is missing, damaged or has another definition, stamps are of several clocks, or topics
            do not overlap; names topic and time.
        NotAnAction: Names the time and the motion.
        ConfigError: The task does not fit the camera.
        EpisodeError: The drive is not of that episode.
        DeviceFault: Images or poses cannot be used, such as depth in another unit than its encoding's, or a topic
            that two nodes publish.
    """
    images = BagImages(bag, options.ros, options.without)
    drive = read_drive(bag, options.ros, options.without)
    check_clocks(drive.delays_ns | images.delays_ns())
    for lost in drive.lost:
        on_note(str(lost))
    tracks = () if options.poses == "odometry" else _localizers(bag, options, drive)
    for track in dict.fromkeys(tracks):
        if track.losses:
            on_note(track.losses)
    section = _overlap(drive, images, tracks)
    if options.task is None:
        driven = waypoint_steps(section, options.every_m, math.radians(options.every_deg))
    else:
        segmenter = ActionSegmenter(options.task.actions, options.task.magnitudes, options.tolerance)
        driven = segment_actions(section, segmenter, options.min_rest_s, options.stop)

    frames = images.frames([step.window for step in driven])
    first = next(frames)
    pose, referee = tracks or _odometry_alone(options, drive, first.stamp_ns)
    camera = camera_info(options.ros, images)
    task = task_for(options, camera, len(driven) - 1)
    scene = scene_for(options, bag, referee)
    start, in_map = pose.at(first.stamp_ns).pose, referee.at(first.stamp_ns).pose
    episode = episode_for(options, task, scene, bag.path, in_map)
    builder = observations_of(task, scene, episode, start, in_map, astuple(camera.mount))
    start_ns = int(drive.base.stamps_ns[section.first])
    into.on_episode_start(make_header(options, task, scene, episode, camera, bag.path, start_ns))
    steps = _Steps(drive, pose, referee, builder, into, section.first)
    for index, (step, frame) in enumerate(zip(driven, chain([first], frames), strict=True)):
        last = steps.add(index, step, frame)
        on_step()
    for note in images.finish():
        into.on_event(Event(last.times.observed_ns, "import", "images", note))
        on_note(note)
    end = _end(options, section, last)
    into.on_episode_end(end)
    return end


def _localizers(bag: BagReader, options: ImportOptions, drive: RecordedDrive) -> tuple[PoseTrack, PoseTrack]:
    """Return the poses of the policy's localizer and of the referee."""
    frame = base_frame(options.ros)
    pose = read_poses(bag, options.ros.localizer, frame, drive)
    if options.ros.referee == options.ros.localizer:
        return pose, pose
    return pose, read_poses(bag, options.ros.referee, frame, drive)


def _odometry_alone(options: ImportOptions, drive: RecordedDrive, start_ns: int) -> tuple[PoseTrack, PoseTrack]:
    """Return odometry in map: from the episode's start; without one, map is the origin of odometry."""
    origin = SE2()
    odom = drive.odom_at(start_ns)
    if options.episode is not None and odom is not None:
        origin = options.episode.start @ odom.inverse()
    track = odometry_track(drive, origin, MAP_FRAME)
    return track, track


def _overlap(drive: RecordedDrive, images: BagImages, tracks: Sequence[PoseTrack]) -> DriveSection:
    """Return the rows of odometry that overlap with images, head and poses. Raises ``NoOverlap``."""
    delay_ns = max(images.delays_ns().values())
    first_ns, last_ns = (at_ns - delay_ns for at_ns in images.span_ns())
    spans = {f"topic {drive.base.topic}": drive.base.span_ns, "images": (first_ns, last_ns)}
    if drive.head is not None:
        spans[f"topic {drive.head.topic}"] = drive.head.span_ns
    spans |= {track.source: track.samples.span_ns for track in tracks}
    latest = max(spans, key=lambda name: spans[name][0])
    earliest = min(spans, key=lambda name: spans[name][1])
    first_ns, last_ns = spans[latest][0], spans[earliest][1]
    stamps_ns = drive.base.stamps_ns
    first, last = int(np.searchsorted(stamps_ns, first_ns)), int(np.searchsorted(stamps_ns, last_ns, "right")) - 1
    if first >= last:
        raise NoOverlap(
            f"{latest} begins at {ns_to_seconds(first_ns):.3f} s, after {earliest} has ended "
            f"({ns_to_seconds(last_ns):.3f} s)",
            "record all topics at the same time",
        )
    return DriveSection(drive, first, last)


@dataclass
class _Steps:
    """Passes steps and the base states between them to a subscriber, in the order of their stamps."""

    drive: RecordedDrive
    pose: PoseTrack
    referee: PoseTrack
    builder: ObservationBuilder
    into: Subscriber
    row: int
    reported: int = 0

    def add(self, index: int, step: DrivenStep, frame: RgbdFrame) -> StepRecord:
        """Add the step whose image is ``frame``."""
        newest = self.drive.base.newest_at(frame.stamp_ns)
        events = sorted({*self.pose.events, *self.referee.events}, key=lambda event: event.stamp_ns)
        due = [event for event in events[self.reported :] if event.stamp_ns <= frame.stamp_ns]
        for event in due:
            self.into.on_event(event)
        self.reported += len(due)
        while self.row <= newest:
            self.into.on_base_state(self.drive.base_state(self.row))
            self.row += 1
        pose, head = self.pose.at(frame.stamp_ns), self.drive.head_state(frame.stamp_ns)
        start_ns, end_ns = (step.start_ns, step.end_ns) if index else (frame.stamp_ns, frame.stamp_ns)
        record = StepRecord(
            index=index,
            action=step.action,
            result=step.result,
            observation=self.builder.build(frame, pose.pose, None, head),
            frame=frame,
            pose=pose,
            referee=pose if self.referee is self.pose else self.referee.at(frame.stamp_ns),
            base=self.drive.base_state(newest),
            head=head,
            times=StepTimes(start_ns, end_ns, frame.stamp_ns, frame.stamp_ns),
        )
        self.into.on_step(record)
        return record


def _end(options: ImportOptions, section: DriveSection, last: StepRecord) -> EpisodeEnd:
    if options.stop:
        return EpisodeEnd(
            EndReason.STOP, last.index, last.times.observed_ns, "the driver's stop, by an option of the import"
        )
    first_s, until_s = (ns_to_seconds(int(stamp)) for stamp in (section.stamps_ns[0], section.stamps_ns[-1]))
    seen_s = ns_to_seconds(last.times.observed_ns)
    detail = f"the bag has everything from {first_s:.3f} s to {until_s:.3f} s; its last step is seen at {seen_s:.3f} s"
    return EpisodeEnd(EndReason.INTERRUPTED, last.index, last.times.observed_ns, detail)
