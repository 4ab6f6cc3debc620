"""Errors of the camera's pose and of depth by pose replays in a simulated scene.

The scene's walls also determine pan and forward position of the camera, which the floor alone does not. A constant
error of the referee is part of both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibration.fitting.contact import median
from robot_runtime.errors import ConfigError
from robot_runtime.scoring.statistics.intervals import Interval

SIGMAS = 1.96
BIN_M = 0.5
"""Width of a bin of distances."""

UNKNOWN_BIAS = (0.05, 0.02, 0.01)
"""Prior standard deviations of the coefficients (m, 1, 1/m); they keep the bias small beyond the measured range."""

BIAS_ERROR_M = 0.002
"""Standard deviation of the bias at one distance, by the scene's accuracy."""

Triple = tuple[float, float, float]


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
    """

    replays: int
    tilt_deg: Interval | None
    pan_deg: Interval | None
    roll_deg: Interval | None
    height_m: Interval | None
    forward_m: Interval | None
    bias: Triple
    farthest_m: float


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
    biases = [
        (float(bias["depth_m"]), float(bias["bias_mm"]) / 1000) for offset in offsets for bias in offset["biases"]
    ]
    return ReplayedCamera(
        len(offsets),
        _pooled(offsets, "tilt_deg"),
        _pooled(offsets, "pan_deg"),
        _pooled(offsets, "roll_deg"),
        _pooled(offsets, "up_mm", 1e-3),
        _pooled(offsets, "forward_mm", 1e-3),
        depth_bias(biases),
        max((depth_m for depth_m, _ in biases), default=0.0),
    )


def depth_bias(biases: Sequence[tuple[float, float]]) -> Triple:
    """Return the coefficients of the bias from pairs (distance m, bias m); zeros without any."""
    if not biases:
        return (0.0, 0.0, 0.0)
    depth_m, bias_m = np.array(biases).T
    bins = np.floor(depth_m / BIN_M)
    middles = [(np.median(depth_m[bins == number]), np.median(bias_m[bins == number])) for number in np.unique(bins)]
    seen_m, middle_m = np.array(middles).T
    rows = np.vander(seen_m, 3, increasing=True) / BIAS_ERROR_M
    prior = np.diag(1 / np.array(UNKNOWN_BIAS)) ** 2
    c0, c1, c2 = np.linalg.solve(rows.T @ rows + prior, rows.T @ (middle_m / BIAS_ERROR_M)).tolist()
    return c0, c1, c2


def _offset(path: Path, robot: str) -> Mapping[str, Any] | None:
    """Return one replay's offset of the camera; None without a pose replay, or with too little depth."""
    again = "run it again: `robot-runtime replay LOG --poses --overwrite`"
    try:
        replay = json.loads(path.read_text(encoding="utf-8"))
        of, pose = replay["robot"], replay["pose"]
        offset: Mapping[str, Any] | None = None if pose is None else pose["offset"]
        if offset is not None and "biases" not in offset:
            raise ConfigError(f"{path}: written before replays compared depth by distance", again)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path}: not a replay: {error!r}", again) from error
    if of != robot:
        raise ConfigError(f"{path}: is a replay of robot {of!r}, not of {robot!r}", "give replays of the same logs")
    return offset


def _pooled(offsets: Sequence[Mapping[str, Any]], name: str, scale: float = 1.0) -> Interval | None:
    known = [offset[name] for offset in offsets if offset[name] is not None]
    if not known:
        return None
    values = [scale * float(estimate["value"]) for estimate in known]
    # The spread of few replays alone underestimates the interval.
    reach = SIGMAS * scale * float(np.median([estimate["error"] for estimate in known])) / math.sqrt(len(known))
    middle = median(values)
    return Interval(middle.mean, min(middle.low, middle.mean - reach), max(middle.high, middle.mean + reach))
