"""Pose replay: recorded images compared with those that the simulator renders from the recorded poses."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import RecordingError
from robot_runtime.hal.lens import Lens
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import StepRecord
from robot_runtime.scoring.reference_poses import MAP_FRAME
from sim_bridge.replay.backends.base import SimulatorBackend
from sim_bridge.replay.camera_offset import Surfaces, camera_offset, surfaces
from sim_bridge.replay.camera_pose import logged_camera, measured_by
from sim_bridge.replay.image_error import color_error, depth_error
from sim_bridge.replay.results import FrameDifference, Note, PoseReplay
from sim_bridge.robot.camera import quantized

MOST_FOR_OFFSET = 40
"""Frames, spaced evenly, that the camera's offset is estimated from; more do not improve it."""


@dataclass(frozen=True, eq=False)
class FramePair:
    """A recorded and a simulated image from one pose.

    Both depths lie on the log's lattice and within its depth camera's range.

    Attributes:
        recorded_rgb: uint8 (H, W, 3).
        recorded_depth_m: float32 (H, W), 0 where nothing was measured.
        simulated_rgb: uint8 (H, W, 3).
        simulated_depth_m: float32 (H, W), 0 where there is nothing.
    """

    index: int
    recorded_rgb: NDArray[np.uint8]
    recorded_depth_m: NDArray[np.float32]
    simulated_rgb: NDArray[np.uint8]
    simulated_depth_m: NDArray[np.float32]


FrameCallback = Callable[[FramePair], None]
"""Called with each pair as it is made; the images of an episode are not stored."""


def pose_replay(
    log: LogReader, records: Iterable[StepRecord], simulator: SimulatorBackend, on_frame: FrameCallback | None = None
) -> tuple[PoseReplay | None, tuple[Note, ...]]:
    """Render the poses of a log, and compare the images.

    Returns:
        The comparison, None if there is no step to compare; and notes for readers of the results.

    Raises:
        UnsupportedBySimulator: the simulator cannot render what the log shows.
    """
    header, records = log.header, list(records)
    camera, measured = logged_camera(header), measured_by(header)
    lens = Lens.of(header.intrinsics)
    stride = math.ceil(len(records) / MOST_FOR_OFFSET)
    frames: list[FrameDifference] = []
    seen: list[Surfaces] = []
    left_out: dict[str, list[int]] = {}
    for record in records:
        reason, recorded = _no_pose(record), None
        try:
            recorded = log.frame(record) if not reason else None
        except RecordingError as error:
            reason = _reason(error, log, record)
        if recorded is None:
            left_out.setdefault(reason, []).append(record.index)
            continue
        if record.state.poses or record.state.held:
            simulator.put_objects(record.state.poses, record.state.held)
        rgb, depth_m = simulator.render(lens, camera.map_from_camera(record))
        pair = FramePair(record.index, recorded.rgb, recorded.depth_m, rgb, quantized(depth_m, measured))
        depth, color = depth_error(pair.recorded_depth_m, pair.simulated_depth_m), color_error(pair.recorded_rgb, rgb)
        frames.append(FrameDifference(record.index, recorded.stamp_ns, depth, color))
        if record.index % stride == 0:
            angles = record.head.pan_rad, record.head.tilt_rad
            seen.append(surfaces(pair.recorded_depth_m, pair.simulated_depth_m, header.intrinsics, *angles))
        if on_frame is not None:
            on_frame(pair)
    notes = [Note("pose", camera.note)] if camera.note else []
    notes += [Note("pose", f"{_steps(indices)} not compared: {why}") for why, indices in left_out.items()]
    if not frames:
        return None, tuple(notes)
    compared = PoseReplay(tuple(frames), (measured.depth_min_m, measured.depth_max_m), camera_offset(seen))
    return compared, tuple(notes)


def _no_pose(record: StepRecord) -> str:
    """The reason why a step has no pose on the map; empty if it has one."""
    estimate = record.referee
    pose = estimate.pose
    if not all(map(math.isfinite, (pose.x_m, pose.y_m, pose.yaw_rad))):
        return "the referee has no pose there"
    if estimate.frame != MAP_FRAME:
        return f"the referee's poses are in {estimate.frame!r}, not in {MAP_FRAME!r}"
    return ""


def _reason(error: RecordingError, log: LogReader, record: StepRecord) -> str:
    """The error without path and step, so that equal reasons can be grouped."""
    reason = error.message.removeprefix(f"{log.path}: step {record.index}")
    return "the log has no images" if reason.endswith("has no images") else reason.removeprefix(": ")


def _steps(indices: Sequence[int]) -> str:
    if len(indices) == 1:
        return f"step {indices[0]}"
    return f"{len(indices)} steps, {indices[0]} to {indices[-1]},"
