"""RGB-D frames with camera poses, from several logs of the same place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import RecordingError, SceneError
from robot_runtime.hal import Intrinsics, Lens, PoseStatus, RgbdFrame
from robot_runtime.hal.simulation import Pose3
from robot_runtime.metrics.settings import RefereeRule
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.reference_poses import MAP_FRAME, scored_steps
from sim_bridge.replay.camera_pose import logged_camera

FLYING = 0.04
"""A pixel whose depth lies between its neighbors', by more than this share of it from either, mixes both surfaces."""

STILL_M = 0.01
STILL_RAD = math.radians(0.5)
"""Frames of a camera that moved less than this since the last used frame are skipped: they show nothing new."""


@dataclass(frozen=True, eq=False)
class PosedFrame:
    """A frame and the poses at which it was taken.

    Attributes:
        rgb: uint8 (H, W, 3).
        depth_m: float32 (H, W) along the optical axis, 0 where nothing reliable was measured.
        map_from_camera: float64 (4, 4), of the optical frame (x right, y down, z forward).
        base: the robot's pose in ``map``.
    """

    log: Path
    step: int
    rgb: NDArray[np.uint8]
    depth_m: NDArray[np.float32]
    intrinsics: Intrinsics
    map_from_camera: Pose3
    base: SE2

    def points(self, stride: int = 1) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """The measured points in ``map``, float32 (N, 3), and their colors, uint8 (N, 3), of every stride-th pixel."""
        depth_m = self.depth_m[::stride, ::stride]
        measured = depth_m > 0
        depths = depth_m[measured]
        optical = [axis[::stride, ::stride][measured] * depths for axis in _rays(self.intrinsics)]
        matrix = self.map_from_camera.astype(np.float32)
        # Written out, because a product of such narrow matrices is slower.
        points = np.stack([m[0] * optical[0] + m[1] * optical[1] + (m[2] * depths + m[3]) for m in matrix[:3]], 1)
        return points, self.rgb[::stride, ::stride][measured]

    def with_depth(self, depth_m: NDArray[np.float32]) -> PosedFrame:
        """The same view with other depth."""
        return replace(self, depth_m=depth_m)


@lru_cache(maxsize=4)
def _rays(pinhole: Intrinsics) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The x and y of every pixel's ray at a depth of 1, each float32 (H, W)."""
    rays = Lens.of(pinhole).pixel_rays().astype(np.float32)
    return np.ascontiguousarray(rays[..., 0]), np.ascontiguousarray(rays[..., 1])


@dataclass
class FrameSequence:
    """The frames of logs, read on iteration: one at a time is in memory.

    Attributes:
        paths: logs of the same place, of any number of robots.
        referee: source of the poses: logged when the episodes ran, or smoothed afterwards.
        max_depth_m: greater depths are left out.
        scene: the scene that the first log was recorded in.
        viewpoints: float64 (N, 3), optical centers of all frames, in ``map``.
        notes: what was left out, and why.

    Raises:
        RecordingError: a log that cannot be read, contains no steps, or whose poses are not in ``map``.
        SceneError: logs of different maps.
    """

    paths: Sequence[Path]
    referee: RefereeRule = "logged"
    max_depth_m: float = 4.0
    scene: Scene = field(init=False)
    viewpoints: NDArray[np.float64] = field(init=False)
    notes: list[str] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self._steps: list[tuple[Path, list[StepRecord]]] = []
        centers = []
        for path in self.paths:
            with LogReader(path) as log:
                header = log.header
                self._check_place(path, header)
                steps = self._distinct_steps(path, list(scored_steps(log, self.referee)))
                if not log.complete:
                    self.notes.append(f"{path.name}: is truncated; its first {len(steps)} frames are used")
                self._steps.append((path, steps))
                camera = logged_camera(header)
                if camera.note:
                    self.notes.append(f"{path.name}: {camera.note}")
                centers += [camera.map_from_camera(step)[:3, 3] for step in steps]
        self.viewpoints = np.array(centers, np.float64).reshape(-1, 3)

    def __len__(self) -> int:
        return sum(len(steps) for _, steps in self._steps)

    def __iter__(self) -> Iterator[PosedFrame]:
        """The frames, log by log, in order.

        Raises:
            RecordingError: a log without images, or without depth; a log that is damaged in the middle.
        """
        for path, steps in self._steps:
            seen = measured = 0
            with LogReader(path) as log:
                camera = logged_camera(log.header)
                # The steps are read again, because the records of this reader know where their images are.
                wanted = {step.index: step for step in steps}
                for record in log.steps(images=False):
                    if record.index not in wanted:
                        continue
                    frame = self._frame(log, record)
                    if frame is None:
                        continue
                    seen += 1
                    step = wanted[record.index]
                    depth_m = reliable(frame.depth_m, self.max_depth_m)
                    measured += bool(depth_m.any())
                    matrix = camera.map_from_camera(step)
                    yield PosedFrame(
                        path, step.index, frame.rgb, depth_m, log.header.intrinsics, matrix, step.referee.pose
                    )
            if not seen:
                raise RecordingError(f"no images in {path}", "leave it out, or record the episode with its images")
            if not measured:
                raise RecordingError(
                    f"{path}: none of its {seen} frames has depth within {self.max_depth_m:g} m",
                    "leave it out, raise --max-depth-m, or record with a camera that measures depth",
                )

    def _frame(self, log: LogReader, record: StepRecord) -> RgbdFrame | None:
        """The step's images; None, with a note, where a truncated log lacks them."""
        try:
            return log.frame(record)
        except RecordingError as error:
            self.notes.append(error.message)
            return None

    def _check_place(self, path: Path, header: EpisodeHeader) -> None:
        if not self._steps:
            self.scene = header.scene
            return
        first, other = self.scene.map, header.scene.map
        grids = [(m.resolution_m, m.origin_x_m, m.origin_y_m) for m in (first, other)]
        if grids[0] != grids[1] or not np.array_equal(first.cells, other.cells):
            raise SceneError(
                f"{path}: was recorded in the map of scene {header.scene.name!r} ({header.scene.digest[:12]}), "
                f"{self._steps[0][0].name} in that of {self.scene.name!r} ({self.scene.digest[:12]})",
                "give logs of the same place, whose poses are in one map",
            )
        if header.scene.digest != self.scene.digest:
            self.notes.append(f"{path.name}: of another version of {self.scene.name!r}; the map is the same")

    def _distinct_steps(self, path: Path, records: Sequence[StepRecord]) -> list[StepRecord]:
        """The steps with a known pose at which the camera has moved; raises if there are none."""
        if not records:
            raise RecordingError(f"no steps in {path}", "leave it out, or record the episode again")
        foreign = {record.referee.frame for record in records} - {MAP_FRAME}
        if foreign:
            raise RecordingError(
                f"{path}: its poses are in frame {min(foreign)!r}, not in {MAP_FRAME!r}",
                "record with a localizer that knows the map, or align its frame: robot-runtime calibrate localization",
            )
        known = [record for record in records if _has_pose(record)]
        if len(known) < len(records):
            self.notes.append(f"{path.name}: {len(records) - len(known)} of {len(records)} steps have no reliable pose")
        distinct: list[StepRecord] = []
        for record in known:
            if not distinct or _camera_moved(distinct[-1], record):
                distinct.append(record)
        if not distinct:
            raise RecordingError(f"{path}: has no pose at any step", "leave it out, or score it with --poses smoothed")
        return distinct


def reliable(depth_m: NDArray[np.float32], max_depth_m: float) -> NDArray[np.float32]:
    """Depth with 0 for holes, for greater depths, and for pixels that mix both sides of an edge."""
    depth = np.where(np.isfinite(depth_m) & (depth_m > 0), depth_m, 0).astype(np.float32)
    mixed = np.zeros(depth.shape, bool)
    for axis in (0, 1):
        inner = [slice(None)] * 2
        inner[axis] = slice(1, -1)
        middle = depth[tuple(inner)]
        step_in = middle - np.take(depth, range(depth.shape[axis] - 2), axis)
        step_out = np.take(depth, range(2, depth.shape[axis]), axis) - middle
        limit = FLYING * middle
        mixed[tuple(inner)] |= ((step_in > limit) & (step_out > limit)) | ((step_in < -limit) & (step_out < -limit))
    return np.where(mixed | (depth > max_depth_m), np.float32(0), depth)


def _has_pose(record: StepRecord) -> bool:
    pose, covariance = record.referee.pose, record.referee.covariance
    numbers = (pose.x_m, pose.y_m, pose.yaw_rad, *np.diag(covariance).tolist())
    return record.referee.status is PoseStatus.OK and all(map(math.isfinite, numbers))


def _camera_moved(before: StepRecord, now: StepRecord) -> bool:
    one, other = before.referee.pose, now.referee.pose
    turns = (
        other.yaw_rad - one.yaw_rad,
        now.head.pan_rad - before.head.pan_rad,
        now.head.tilt_rad - before.head.tilt_rad,
    )
    return one.distance_to(other) > STILL_M or any(abs(wrap_angle(turn)) > STILL_RAD for turn in turns)


def stems(paths: Iterable[Path]) -> str:
    """The names of the first few logs and the number of the others, for provenance."""
    names = [path.stem for path in paths]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
