"""Bags of a drive through the synthetic flat, as a LoCoBot's own nodes would have filled them: no log, no runtime."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import synthetic

from drivers.ros.bag.export import BagMessages, BagWriter
from drivers.ros.bag.topic_layout import Layout, layout
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import BaseState, Halt, PoseEstimate, RgbdFrame, Velocity, Zone

MESSAGES = {1: BagMessages(), 2: BagMessages(2)}
messages = MESSAGES[1]

START_NS = 1_700_000_000 * 1_000_000_000
BASE_NS = 20_000_000
CAMERA_NS = 100_000_000
START = SE2(1.0, 1.9, 0.0)
"""In map."""
DRIFT = SE2(0.3, -0.2, 0.1)
"""odom in map."""

Change = Callable[[str, Any, int], tuple[Any, int] | None]
"""Gets topic, message and time of reception; gives what is recorded instead, None for nothing."""


@dataclass(frozen=True)
class Move:
    """A motion by so much in ``seconds``, without rest before or after."""

    forward_m: float = 0.0
    turn_deg: float = 0.0
    tilt_deg: float = 0.0
    seconds: float = 1.0
    bumped: Zone = Zone.NONE


REST = Move(seconds=0.6)
FORWARD, LEFT, UP = Move(forward_m=0.25), Move(turn_deg=30.0), Move(tilt_deg=30.0)


@dataclass
class Robot:
    """Pose in map, and the rest of its state."""

    pose: SE2 = START
    tilt_rad: float = 0.0
    velocity: Velocity = field(default_factory=Velocity)
    bumper: Zone = Zone.NONE


def record(
    path: Path,
    moves: Sequence[Move],
    where: Layout | None = None,
    change: Change | None = None,
    depth: str = "16UC1",
    storage: Any = "mcap",
) -> Path:
    """Drive and record.

    Args:
        change: what happens to messages on their way into the bag.
        depth: encoding.
        storage: of a bag of ROS 2.
    """
    where = where or layout("pyrobot-kobuki")
    bumper = Zone.NONE
    with BagWriter(path, where.ros, storage) as bag:

        def put(topic: str, message: Any, at_ns: int) -> None:
            changed = (message, at_ns) if change is None else change(topic, message, at_ns)
            if changed is not None:
                transport = {"CompressedImage": f"/compressed{'Depth' if 'depth' in topic else ''}"}
                bag.write(topic + transport.get(type(changed[0]).__name__.rsplit("__", 1)[-1], ""), *changed)

        for now_ns, robot in _ticks(moves):
            _publish_base(put, where, robot, now_ns, robot.bumper != bumper)
            bumper = robot.bumper
            if (now_ns - START_NS) % CAMERA_NS == 0:
                _publish_camera(put, where, robot, now_ns, depth)
    return path


def _ticks(moves: Sequence[Move]) -> Iterator[tuple[int, Robot]]:
    robot, now_ns = Robot(), START_NS
    yield now_ns, robot
    for move in moves:
        begun, tilt_rad = robot.pose, robot.tilt_rad
        ticks = round(move.seconds * 1e9 / BASE_NS)
        robot.bumper = move.bumped
        for tick in range(1, ticks + 1):
            now_ns += BASE_NS
            # Smooth from rest to rest.
            share = (1 - math.cos(math.pi * tick / ticks)) / 2
            turn_rad = math.radians(move.turn_deg) * share
            if move.forward_m and move.turn_deg:
                radius_m = move.forward_m / math.radians(move.turn_deg)
                step = SE2(radius_m * math.sin(turn_rad), radius_m * (1 - math.cos(turn_rad)), turn_rad)
            else:
                step = SE2(move.forward_m * share, 0.0, turn_rad)
            robot.pose = begun @ step
            robot.tilt_rad = tilt_rad + math.radians(move.tilt_deg) * share
            yield now_ns, robot
        robot.bumper = Zone.NONE


def _publish_base(put: Callable[[str, Any, int], None], where: Layout, robot: Robot, now_ns: int, new: bool) -> None:
    messages = MESSAGES[where.ros]
    odom, topics = DRIFT.inverse() @ robot.pose, where.topics
    state = BaseState(now_ns, odom, robot.velocity, robot.bumper, Zone.NONE, Zone.NONE, Halt.NONE, 15.8, 0.8)
    at_ns = now_ns + 3_000_000
    put(topics.odom, messages.odometry(now_ns, where.frames, odom, robot.velocity), at_ns)
    if topics.hazards:
        if new:
            put(topics.hazards, messages.create_hazards(state), at_ns)
    elif topics.core:
        put(topics.core, messages.kobuki_core(state), at_ns)
    elif topics.bumper:
        put(topics.bumper, messages.create_bumper(state), at_ns)
        put(topics.voltage, messages.make("std_msgs/Float32", data=15.8), at_ns)
    put("/tf", messages.tf(messages.planar_transform(now_ns, where.frames.odom, where.frames.base, odom)), at_ns)
    put("/tf", messages.tf(messages.planar_transform(now_ns, "map", where.frames.odom, DRIFT)), at_ns)
    if topics.joints:
        put(topics.joints, messages.joint_state(now_ns, where.joints, (0.0, -robot.tilt_rad)), at_ns)
        put(topics.joints, messages.joint_state(now_ns, ("wheel_left_joint",), (0.0,)), at_ns)
    estimate = PoseEstimate(now_ns, robot.pose, "map", np.diag([1e-4, 1e-4, 1e-4]))
    put("/amcl_pose", messages.pose_with_covariance(estimate), at_ns)


def _publish_camera(put: Callable[[str, Any, int], None], where: Layout, robot: Robot, now_ns: int, depth: str) -> None:
    messages = MESSAGES[where.ros]
    task, topics, frame = synthetic.pointnav_task(), where.topics, where.frames.optical
    intrinsics = task.camera.intrinsics
    seen = picture(robot.pose, robot.tilt_rad)
    millimetres = np.rint(seen.depth_m * 1000).astype(np.uint16)
    values = {"16UC1": millimetres, "32FC1": seen.depth_m, "metres as 16UC1": (millimetres // 1000).astype(np.uint16)}
    at_ns = now_ns + 50_000_000
    put(topics.color_info, messages.camera_info(now_ns, frame, intrinsics), at_ns)
    put(topics.color, messages.image(now_ns, frame, "rgb8", seen.rgb), at_ns)
    put(topics.depth, messages.image(now_ns, frame, depth.split()[-1], values[depth]), at_ns + 1_000_000)


@lru_cache(maxsize=64)
def picture(pose: SE2, tilt_rad: float) -> RgbdFrame:
    """Image of the camera, without a stamp."""
    return synthetic.render(synthetic.pointnav_task().camera.intrinsics, pose, tilt_rad)


def compressed(message: Any) -> Any:
    """A colour image as ``…/compressed`` has it: a PNG."""
    rgb = message.data.reshape(message.height, message.width, 3)
    _, png = cv2.imencode(".png", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR))
    return messages.make(
        "sensor_msgs/CompressedImage", header=message.header, format="rgb8; png compressed bgr8", data=png.ravel()
    )


def compressed_depth(message: Any) -> Any:
    """A depth image as ``…/compressedDepth`` has it."""
    pixels = message.data.view("<u2").reshape(message.height, message.width)
    _, png = cv2.imencode(".png", pixels)
    data = np.concatenate([np.zeros(12, np.uint8), png.ravel()])
    return messages.make(
        "sensor_msgs/CompressedImage", header=message.header, format="16UC1; compressedDepth png", data=data
    )


def without(*topics: str) -> Change:
    """A recorder that leaves topics out."""
    return lambda topic, message, at_ns: None if topic in topics else (message, at_ns)


def restamped(shift_ns: Callable[[str, int], int]) -> Change:
    """Stamps that lie ``shift_ns(topic, stamp)`` later; the recorder's time stays."""

    def change(topic: str, message: Any, at_ns: int) -> tuple[Any, int]:
        if hasattr(message, "header"):
            now_ns = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
            message.header.stamp = messages.time(now_ns + shift_ns(topic, now_ns))
        return message, at_ns

    return change
