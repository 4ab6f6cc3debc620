"""Export of a log as a ROS 1 bag: the robot's own topics, and beside them the whole log.

The robot's topics are for other tools such as rviz and rqt. Fields that a log does not have (encoder ticks,
covariances) are zero. :mod:`~drivers.ros_locobot.bag.import_own` restores the same log from the images and from the
topics in ``/robot_runtime``.
"""

from __future__ import annotations

import base64
import heapq
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from foxglove_schemas_protobuf.RawImage_pb2 import RawImage

from drivers.ros_locobot.bag import topic_layout as at
from drivers.ros_locobot.bag.messages import messages
from drivers.ros_locobot.bag.topic_layout import Layout
from drivers.ros_locobot.bag.writer import BagWriter
from robot_runtime.common.geometry import SE2
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, quaternion_rpy
from robot_runtime.hal import BaseState
from robot_runtime.recording import json_records
from robot_runtime.recording.header import header_to_json, provenance_to_text, scene_files
from robot_runtime.recording.images import encode_depth, encode_semantic
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader, StepRecord


def export_log(log: LogReader, path: Path, where: Layout, on_step: Callable[[], None] = lambda: None) -> int:
    """Write a log, complete or truncated, as a bag, one step at a time.

    Args:
        log: The log.
        path: Of the bag; must not exist.
        where: Topics and frames.
        on_step: Called after every step.

    Returns:
        The number of steps.

    Raises:
        RecordingError: The log is damaged, or the bag cannot be written; then there is no bag.
    """
    steps = 0
    with BagWriter(path) as bag:
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
            bag.write(at.END, messages.text(_json(log.end)), log.end.stamp_ns)
    return steps


def _in_order(log: LogReader) -> Iterator[BaseState | StepRecord]:
    """Yield base states and steps in the order of their stamps."""

    def stamp_ns(record: BaseState | StepRecord) -> int:
        return record.stamp_ns if isinstance(record, BaseState) else record.times.observed_ns

    return heapq.merge(log.base_states(), log.steps(), key=stamp_ns)


class _Topics:
    """Writes the records of one log to the topics of one robot."""

    def __init__(self, bag: BagWriter, where: Layout, header: EpisodeHeader) -> None:
        self._bag, self._at, self._header = bag, where, header
        self._odometry_ns = -1

    def start(self) -> None:
        """Write the header's content, map and static transform."""
        header, stamp_ns = self._header, self._header.start_ns
        self._write_json(at.PROVENANCE, provenance_to_text(header), stamp_ns, latched=True)
        for name, media_type, data in scene_files(header):
            file = {"name": name, "media_type": media_type, "base64": base64.b64encode(data).decode()}
            self._write_json(at.FILE, file, stamp_ns, latched=True)
        self._write_json(at.EPISODE, header_to_json(header), stamp_ns, latched=True)
        self._bag.write(
            at.MAP, messages.occupancy_grid(stamp_ns, header.scene.map, at.MAP_FRAME), stamp_ns, latched=True
        )
        optical = messages.transform(
            stamp_ns, self._at.frames.camera, self._at.frames.optical, (0.0, 0.0, 0.0), quaternion_rpy(*OPTICAL_RPY_RAD)
        )
        self._bag.write(at.TF_STATIC, messages.tf(optical), stamp_ns, latched=True)

    def base_state(self, state: BaseState) -> None:
        """Write a state between two steps."""
        self._write_json(at.BASE, state, state.stamp_ns)
        self._base_topics(state)

    def step(self, record: StepRecord) -> None:
        """Write a step, its images first, so that a reader has them when it reads the step."""
        self._images(record)
        self._base_topics(record.base)
        self._poses(record)
        data = {
            "step": json_records.step_to_json(record, record.index if record.objects else None),
            "objects": json_records.plain(record.objects),
            "phase_s": record.phase_s,
        }
        self._write_json(at.STEP, data, record.times.observed_ns)

    def _images(self, record: StepRecord) -> None:
        frame, topics, stamp_ns = record.frame, self._at.topics, record.frame.stamp_ns
        optical = self._at.frames.optical
        self._bag.write(topics.color_info, messages.camera_info(stamp_ns, optical, self._header.intrinsics), stamp_ns)
        self._bag.write(topics.color, messages.image(stamp_ns, optical, "rgb8", frame.rgb), stamp_ns)
        self._raw(topics.depth, encode_depth(frame, self._header.depth_unit_m), stamp_ns)
        if frame.semantic is not None:
            self._raw(at.SEMANTIC, encode_semantic(stamp_ns, frame.semantic), stamp_ns)

    def _raw(self, topic: str, encoded: RawImage, stamp_ns: int) -> None:
        pixels = np.frombuffer(encoded.data, np.uint8).reshape(encoded.height, encoded.step)
        image = messages.image(stamp_ns, self._at.frames.optical, encoded.encoding, pixels)
        image.width = encoded.width
        self._bag.write(topic, image, stamp_ns)

    def _base_topics(self, state: BaseState) -> None:
        """Write odometry, tf and sensors, unless a newer state was written already."""
        if state.stamp_ns <= self._odometry_ns:
            return
        self._odometry_ns = stamp_ns = state.stamp_ns
        where, topics, bag = self._at, self._at.topics, self._bag
        bag.write(topics.odom, messages.odometry(stamp_ns, where.frames, state.odom, state.velocity), stamp_ns)
        moved = messages.planar_transform(stamp_ns, where.frames.odom, where.frames.base, state.odom)
        bag.write(at.TF, messages.tf(moved), stamp_ns)
        if topics.core:
            bag.write(topics.core, messages.kobuki_core(state), stamp_ns)
            return
        bag.write(topics.bumper, messages.create_bumper(state), stamp_ns)
        for topic, level in ((topics.cliff, state.cliff), (topics.wheel_drop, state.wheel_drop)):
            if level:
                bag.write(topic, messages.make("std_msgs/Empty"), stamp_ns)
        for topic, value in ((topics.voltage, state.battery_v), (topics.charge_ratio, state.battery_fraction)):
            bag.write(topic, messages.make("std_msgs/Float32", data=value), stamp_ns)

    def _poses(self, record: StepRecord) -> None:
        where, head, stamp_ns = self._at, record.head, record.frame.stamp_ns
        self._bag.write(at.POSE, messages.pose_with_covariance(record.pose), record.pose.stamp_ns)
        self._bag.write(at.REFEREE, messages.pose_with_covariance(record.referee), record.referee.stamp_ns)
        # In both stacks a positive tilt of the joint looks down.
        joints = messages.joint_state(head.stamp_ns, where.joints, (head.pan_rad, -head.tilt_rad))
        self._bag.write(where.topics.joints, joints, head.stamp_ns)
        in_map = record.pose if record.pose.frame == at.MAP_FRAME else record.referee
        drift: SE2 = in_map.pose @ record.base.odom.inverse()
        turned = quaternion_rpy(0.0, -head.tilt_rad, head.pan_rad)
        transforms = (
            messages.planar_transform(stamp_ns, at.MAP_FRAME, where.frames.odom, drift),
            messages.transform(stamp_ns, where.frames.base, where.frames.camera, self._header.mount, turned),
        )
        self._bag.write(at.TF, messages.tf(*transforms), stamp_ns)

    def _write_json(self, topic: str, value: Any, stamp_ns: int, latched: bool = False) -> None:
        self._bag.write(topic, messages.text(_json(value)), stamp_ns, latched)


def _json(value: Any) -> str:
    return json.dumps(json_records.plain(value), allow_nan=False, separators=(",", ":"))
