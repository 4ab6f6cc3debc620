"""Errors of the camera's pose and of depth by pose replays in a simulated scene.

The scene's walls also determine pan and forward position of the camera, which the floor alone does not. A constant
error of the referee is part of both.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibration.fitting.camera import DEPTH_BIAS, LEAST, SIGMAS, CameraFit, Triple, pose_of
from calibration.fitting.contact import Array, median
from robot_runtime.errors import ConfigError
from robot_runtime.scoring.statistics.intervals import Interval

BIN_M = 0.5
"""Width of a bin of distances."""

UNKNOWN_FORWARD_M = 0.05
"""Prior standard deviation of the forward offset. A camera farther back and one that measures too far see the same."""

BIAS_ERROR_M = 0.002
"""Standard deviation of the bias at one distance, by the scene's accuracy."""

FARTHEST_SIGMAS = 4.0
"""Standard deviations beyond which a held-out value counts no more."""

COMPONENTS = {"tilt_deg": 1.0, "roll_deg": 1.0, "up_mm": 1e-3, "pan_deg": 1.0, "forward_mm": 1e-3}
"""Components of a replay's offset and their factors to a fit's units; the floor determines the first three."""

Offset = Mapping[str, Any]


@dataclass(frozen=True)
class ReplayedCamera:
    """Errors of the camera's described pose by pose replays.

    Attributes:
        replays: number of informative replays.
        tilt_deg: median over replays with 95 % interval, up positive; None if unknown.
        pan_deg: median pan with its interval, left positive.
        roll_deg: median roll with its interval, right positive.
        height_m: median height error with its interval.
        forward_m: median forward offset with its interval.
        bias: coefficients c of c[0] + c[1] z + c[2] z², measured less true depth in meters, after these corrections.
        farthest_m: greatest measured distance; 0 without any.
        offsets: name of the log's file and offset of each replay.
    """

    replays: int
    tilt_deg: Interval | None
    pan_deg: Interval | None
    roll_deg: Interval | None
    height_m: Interval | None
    forward_m: Interval | None
    bias: Triple
    farthest_m: float
    offsets: tuple[tuple[str, Offset], ...] = ()


def read_replays(paths: Sequence[Path], robot: str) -> ReplayedCamera | None:
    """Return the camera's errors by replays of a robot's logs; None without any paths.

    Args:
        paths: JSON files of ``robot-runtime replay``, or folders of them.
        robot: name in the logs.

    Raises:
        ConfigError: a file is not a replay, or is of another robot; or no replay compares depth.
    """
    if not paths:
        return None
    files = [file for path in paths for file in (sorted(path.rglob("*.json")) if path.is_dir() else [path])]
    offsets = [offset for path in files if (offset := _offset(path, robot)) is not None]
    if not offsets:
        raise ConfigError(
            f"{', '.join(map(str, paths))}: no pose replay that compares depth",
            "make some of the same logs: `robot-runtime replay LOGS --poses --out replays`",
        )
    return pooled(offsets)


def pooled(offsets: Sequence[tuple[str, Offset]]) -> ReplayedCamera:
    """Return the camera's errors by some replays."""
    tilt, roll, height, pan, forward = (
        _pooled([offset for _, offset in offsets], name, scale) for name, scale in COMPONENTS.items()
    )
    biases = [(float(b["depth_m"]), float(b["bias_mm"]) / 1000) for _, offset in offsets for b in offset["biases"]]
    bias, forward = depth_bias(biases, forward)
    farthest_m = max((depth_m for depth_m, _ in biases), default=0.0)
    return ReplayedCamera(len(offsets), tilt, pan, roll, height, forward, bias, farthest_m, tuple(offsets))


def depth_bias(
    biases: Sequence[tuple[float, float]], forward_m: Interval | None = None
) -> tuple[Triple, Interval | None]:
    """Return the bias of depth and the forward offset that explain both measured ones together.

    Args:
        biases: pairs (distance m, bias m) that ``forward_m`` leaves.
        forward_m: forward offset; None if unknown, which keeps it at 0.

    Returns:
        Coefficients of the bias, zeros without any, and the forward offset with its joint interval.
    """
    if not biases:
        return (0.0, 0.0, 0.0), forward_m
    depth_m, bias_m = np.array(biases).T
    bins = np.floor(depth_m / BIN_M)
    middles = [(np.median(depth_m[bins == number]), np.median(bias_m[bins == number])) for number in np.unique(bins)]
    seen_m, middle_m = np.array(middles).T
    rows = np.column_stack([np.vander(seen_m, 3, increasing=True), -np.ones(seen_m.size)]) / BIAS_ERROR_M
    ahead_m = 0.0 if forward_m is None else forward_m.mean
    prior = np.diag(1 / np.array([*DEPTH_BIAS, 1e-9 if forward_m is None else UNKNOWN_FORWARD_M])) ** 2
    covariance = np.linalg.inv(rows.T @ rows + prior)
    c0, c1, c2, joint_m = (covariance @ rows.T @ ((middle_m - ahead_m) / BIAS_ERROR_M)).tolist()
    if forward_m is None:
        return (c0, c1, c2), None
    half_m = math.hypot((forward_m.high - forward_m.low) / 2, SIGMAS * math.sqrt(covariance[3, 3]))
    return (c0, c1, c2), Interval(joint_m, joint_m - half_m, joint_m + half_m)


def held_out_gain(camera: CameraFit, replayed: ReplayedCamera, logs: Sequence[str]) -> float | None:
    """Return the log likelihood that replays add in logs that were held out; None if a half of the logs has no replay.

    Each half of the logs is predicted by the other: poses by the floor, with their spread and unknown biases of depth,
    and offsets by replays, with theirs.
    """
    numbers = {name: number for number, name in enumerate(logs)}
    floors: dict[int, Array] = {}
    for number in {frame.episode for frame in camera.frames}:
        poses = [pose_of(frame) for frame in camera.frames if frame.episode == number]
        floors[number] = np.append(np.median(poses, axis=0), [np.nan, np.nan])
    floor_scale = np.append(np.sqrt(LEAST**2 + np.square(camera.biased).sum(axis=0)), [1.0, 1.0])
    scale = np.array([_spread([offset for _, offset in replayed.offsets], name) for name in COMPONENTS])
    gain = 0.0
    for half in (0, 1):
        others = [one for one in replayed.offsets if numbers.get(one[0], 0) % 2 != half]
        held_out = [offset for name, offset in replayed.offsets if numbers.get(name, 0) % 2 == half]
        if not others or not held_out:
            return None
        ours = pooled(others)
        # Replays that were held out cannot tell a forward offset from a bias of depth, either.
        seen = [_pooled([offset for _, offset in others], name, factor) for name, factor in COMPONENTS.items()]
        by_replays = np.array([0.0 if interval is None else interval.mean for interval in seen])
        alone = np.nan_to_num(np.median([f for n, f in floors.items() if n % 2 != half] or [np.zeros(5)], axis=0))
        shown = by_replays + np.append(np.divide(ours.bias, DEPTH_BIAS) @ np.array(camera.biased), [0.0, 0.0])
        for floor in (floor for number, floor in floors.items() if number % 2 == half):
            gain += _loss(floor, alone, floor_scale) - _loss(floor, shown, floor_scale)
        for offset in held_out:
            known = [(offset[name] or {"value": np.nan})["value"] for name in COMPONENTS]
            values = np.array(known) * list(COMPONENTS.values())
            gain += _loss(values, alone, scale) - _loss(values, by_replays, scale)
    return gain


def _spread(offsets: Sequence[Offset], name: str) -> float:
    """Return the standard deviation of a component between replays, from its median deviation and its own error."""
    known = [offset[name] for offset in offsets if offset[name] is not None] or [{"value": 0.0, "error": 1.0}]
    values = np.array([estimate["value"] for estimate in known])
    between = 1.4826 * float(np.median(np.abs(values - np.median(values))))
    return COMPONENTS[name] * max(between, float(np.median([estimate["error"] for estimate in known])))


def _loss(values: Array, expected: Array, scale: Array) -> float:
    return float(np.nansum(np.minimum(np.square((values - expected) / scale), FARTHEST_SIGMAS**2)) / 2)


def _offset(path: Path, robot: str) -> tuple[str, Offset] | None:
    """Return one replay's log and offset of the camera; None without a pose replay, or with too little depth."""
    again = "run it again: `robot-runtime replay LOG --poses --overwrite`"
    try:
        replay = json.loads(path.read_text(encoding="utf-8"))
        of, pose = replay["robot"], replay["pose"]
        offset: Offset | None = None if pose is None else pose["offset"]
        if offset is not None and "biases" not in offset:
            raise ConfigError(f"{path}: written before replays compared depth by distance", again)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path}: not a replay: {error!r}", again) from error
    if of != robot:
        raise ConfigError(f"{path}: is a replay of robot {of!r}, not of {robot!r}", "give replays of the same logs")
    return None if offset is None else (Path(str(replay.get("log", path))).name, offset)


def _pooled(offsets: Sequence[Offset], name: str, scale: float = 1.0) -> Interval | None:
    known = [offset[name] for offset in offsets if offset[name] is not None]
    if not known:
        return None
    values = [scale * float(estimate["value"]) for estimate in known]
    # The spread of few replays alone underestimates the interval.
    reach = SIGMAS * scale * float(np.median([estimate["error"] for estimate in known])) / math.sqrt(len(known))
    middle = median(values)
    return Interval(middle.mean, min(middle.low, middle.mean - reach), max(middle.high, middle.mean + reach))
