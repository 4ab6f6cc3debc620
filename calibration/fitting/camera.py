"""Error of the camera's described pose, from the floor in logged depth images.

The floor cannot distinguish a tilt of the mount, of the camera in it, and of the head's zero, and it does not determine
the heading.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.fitting.actions import RESAMPLES, of_few
from calibration.fitting.log_samples import LoggedEpisode, LoggedStep, evenly
from calibration.fitting.map_distance import Walls
from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.imaging.floor import find_floor
from robot_runtime.recording.reader import LogReader, before_damage
from robot_runtime.records import EpisodeHeader
from robot_runtime.robots.camera_mount import CameraMount, load_mount
from robot_runtime.scoring.statistics.intervals import Interval

MAX_FRAMES = 200
"""Number of frames of all logs; detecting the floor in one takes about 30 ms."""

MIN_FRAMES = 5

MIN_SHARE = 0.1
"""Least share of a frame that is floor."""

OPEN_M = 1.5
"""Free distance ahead with which a level camera sees the floor."""

LOOKING_DOWN_RAD = math.radians(-15)

MAX_OFF_M, MAX_OFF_RAD = 0.15, math.radians(15)
"""Greatest error of a description; planes farther off are tables or walls."""

OUTLIER_MADS = 4.0
"""Median absolute deviations beyond which a frame shows another plane than the floor."""

LEAST = np.array([0.05, 0.05, 0.001])
"""Least median absolute deviations of tilt (°), roll (°) and height (m)."""

SIGMAS = 1.96

DEPTH_BIAS = (0.003, 0.01, 0.002)
"""Standard deviations of an unknown bias of depth, c[0] + c[1] z + c[2] z² in m, of each c: 2 % at 2 m are common."""

BIASED_FRAMES = 12
"""Number of frames in which the effect of such a bias on the floor is computed."""

Triple = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class FloorFrame:
    """Errors of the described pose by one frame's floor, true less described.

    Attributes:
        head_tilt_rad: tilt measured by the head's encoder.
        tilt_rad: error of the tilt, up positive.
        roll_rad: error of the roll, right positive.
        height_m: error of the height.
        share: share of the frame that is floor.
    """

    episode: int
    step: int
    head_tilt_rad: float
    tilt_rad: float
    roll_rad: float
    height_m: float
    share: float


@dataclass(frozen=True)
class CameraFit:
    """Error of the camera's described pose, signed as ``CameraOptions.mount_error``.

    Attributes:
        tilt_deg: median with 95 % interval, up positive; None with too few frames of the floor. Intervals are over
            episodes and over biases of depth, which change the floor as a wrong pose does.
        roll_deg: median roll with its interval, right positive.
        height_m: median height error with its interval.
        looked_at: number of evaluated frames.
        biased: changes of tilt (°), roll (°) and height (m) by one standard deviation of each of :data:`DEPTH_BIAS`.
        mount: name or path of the described mount; None if the logs contain the height only.
        reason: why the errors are unknown.
    """

    tilt_deg: Interval | None
    roll_deg: Interval | None
    height_m: Interval | None
    frames: tuple[FloorFrame, ...]
    looked_at: int
    biased: tuple[Triple, Triple, Triple] = ((0.0, 0.0, 0.0),) * 3
    mount: str | None = None
    reason: str = ""


def fit_camera(
    episodes: Sequence[LoggedEpisode], walls: Mapping[str, Walls], max_frames: int = MAX_FRAMES
) -> CameraFit:
    """Fit the camera's error to frames taken evenly from all logs.

    Raises:
        RecordingError: a log cannot be read.
    """
    floors: list[FloorFrame] = []
    changes: list[list[Triple]] = []
    looked_at, name = 0, None
    # An even selection of logs, if there are more logs than frames.
    numbers = evenly(len(episodes), max_frames)
    each = max(1, max_frames // len(numbers))
    for number in numbers:
        episode = episodes[number]
        mount, name = described_mount(episode.header)
        wanted = {step.index for step in _likely_floor_steps(episode, walls[episode.header.scene.digest], each)}
        with LogReader(episode.path) as log:
            frames, _ = before_damage((r, log.frame(r)) for r in log.steps(images=False) if r.index in wanted)
            for record, frame in frames:
                looked_at += 1
                head_rad = record.head.pan_rad, record.head.tilt_rad
                seen = _floor(number, record.index, log.header, mount, head_rad, frame.depth_m)
                if seen is None:
                    continue
                floors.append(seen)
                if len(changes) < BIASED_FRAMES and len(floors) % max(1, max_frames // BIASED_FRAMES) == 0:
                    changes.append(changes_by_bias(seen, log.header, mount, head_rad, frame.depth_m))
    return camera_of(floors, looked_at, name, np.median(changes or np.zeros((1, 3, 3)), axis=0))


def camera_of(
    frames: Sequence[FloorFrame], looked_at: int, mount: str | None = None, biased: Any = CameraFit.biased
) -> CameraFit:
    """Return the medians of the frames without outliers, with ``biased`` as in :class:`CameraFit`."""
    effects: tuple[Triple, Triple, Triple] = tuple(tuple(map(float, row)) for row in biased)  # type: ignore[assignment]
    good = _agreeing(frames)
    if len(good) < MIN_FRAMES:
        why = f"{len(good)} of {looked_at} frames show enough floor, {MIN_FRAMES} are needed"
        return CameraFit(None, None, None, tuple(good), looked_at, effects, mount, why)
    episodes = [frame.episode for frame in good]
    tilt, roll, height = (
        _widened(_median(values, episodes), SIGMAS * math.hypot(*by_bias))
        for values, by_bias in zip(zip(*map(pose_of, good), strict=True), zip(*effects, strict=True), strict=True)
    )
    return CameraFit(tilt, roll, height, tuple(good), looked_at, effects, mount)


def pose_of(frame: FloorFrame) -> Triple:
    """Return a frame's errors of tilt (°), roll (°) and height (m)."""
    return math.degrees(frame.tilt_rad), math.degrees(frame.roll_rad), frame.height_m


def changes_by_bias(
    seen: FloorFrame, header: EpisodeHeader, mount: CameraMount, head_rad: tuple[float, float], depth_m: Any
) -> list[Triple]:
    """Return the changes of tilt (°), roll (°) and height (m) by each of ``DEPTH_BIAS``; zeros without a floor then.

    Args:
        seen: errors by the frame's floor.
        header: header of the log.
        mount: described mount.
        head_rad: pan and tilt of the head.
        depth_m: float32 (H, W), 0 where there is no measurement.
    """
    changes: list[Triple] = []
    for power, std in enumerate(DEPTH_BIAS):
        again = _floor(
            seen.episode, seen.step, header, mount, head_rad, np.where(depth_m > 0, depth_m + std * depth_m**power, 0)
        )
        tilt_deg, roll_deg, height_m = np.subtract(pose_of(again or seen), pose_of(seen)).tolist()
        changes.append((tilt_deg, roll_deg, height_m))
    return changes


def described_mount(header: EpisodeHeader) -> tuple[CameraMount, str | None]:
    """Return the mount named by the robot's configuration, if it exists here, else one of the logged height.

    Returns:
        The mount, and its name or path; None for the logged height.
    """
    name = _named_mount(header.robot_config)
    if name is not None:
        try:
            mount = load_mount(config.find_preset("mounts", name))
        except ConfigError:
            pass  # the file is on another computer; the log contains the position only
        else:
            return mount, name
    return CameraMount(header.mount), None


def _named_mount(configuration: Any) -> str | None:
    """Return the value of the first key ``mount`` that is a string."""
    if isinstance(configuration, Mapping):
        if isinstance(configuration.get("mount"), str):
            return str(configuration["mount"])
        return next((name for value in configuration.values() if (name := _named_mount(value)) is not None), None)
    return None


def _likely_floor_steps(episode: LoggedEpisode, walls: Walls, count: int) -> list[LoggedStep]:
    """Return an even selection of steps at whose end the floor must be visible, filled up with others."""
    still = [step for step in episode.steps if not step.head.moving]
    good = [step for step in still if _sees_floor(step, walls)]
    others = [step for step in still if step not in good]
    return [
        steps[index]
        for steps, most in ((good, count), (others, count - min(count, len(good))))
        for index in evenly(len(steps), most)
    ]


def _sees_floor(step: LoggedStep, walls: Walls) -> bool:
    if step.head.tilt_rad <= LOOKING_DOWN_RAD:
        return True
    return step.stationary is not None and walls.nearest_on_path_m(step.stationary.truth, OPEN_M) > 0


def _floor(
    episode: int, step: int, header: EpisodeHeader, mount: CameraMount, head_rad: tuple[float, float], depth_m: Any
) -> FloorFrame | None:
    height_m, tilt_rad, roll_rad = mount.pointing(*head_rad)
    seen = find_floor(depth_m, header.intrinsics, height_m, tilt_rad)
    if seen is None or seen.share < MIN_SHARE:
        return None
    tilt_off, roll_off = seen.tilt_rad - tilt_rad, seen.roll_rad - roll_rad
    height_off = seen.height_m - height_m
    if abs(height_off) > MAX_OFF_M or max(abs(tilt_off), abs(roll_off)) > MAX_OFF_RAD:
        return None
    return FloorFrame(episode, step, head_rad[1], tilt_off, roll_off, height_off, seen.share)


def _agreeing(frames: Sequence[FloorFrame]) -> list[FloorFrame]:
    """Return the frames without outliers, those that show a table or a threshold."""
    if not frames:
        return []
    values = np.array([pose_of(frame) for frame in frames])
    off = np.abs(values - np.median(values, axis=0))
    reach = OUTLIER_MADS * np.maximum(np.median(off, axis=0), LEAST)
    return [frame for frame, good in zip(frames, (off <= reach).all(axis=1), strict=True) if good]


def _median(values: Sequence[float], episodes: Sequence[int]) -> Interval:
    """Return the median and its bootstrap interval over episodes."""
    groups = [
        np.array([v for v, e in zip(values, episodes, strict=True) if e == episode])
        for episode in sorted(set(episodes))
    ]
    random = np.random.default_rng(0)
    drawn = [
        float(np.median(np.concatenate([groups[i] for i in random.integers(0, len(groups), len(groups))])))
        for _ in range(RESAMPLES // 4)
    ]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return of_few(Interval(float(np.median(values)), float(low), float(high)), len(groups))


def _widened(interval: Interval, half: float) -> Interval:
    """Return an interval with an independent error added."""
    mean, low, high = interval.mean, interval.low, interval.high
    return Interval(mean, mean - math.hypot(mean - low, half), mean + math.hypot(high - mean, half))
