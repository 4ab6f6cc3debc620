"""What pose replays say of the camera: where it hangs, and by how much depth is off at which distance.

A scene's twin has walls where the floor alone has none, so a replay knows the camera's pan and its place ahead, too. A
referee that is off by the same amount everywhere shows in these as well.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibration.fitting.contact import median
from robot_runtime.errors import ConfigError
from robot_runtime.scoring.statistics.intervals import Interval

SIGMAS = 1.96
BIN_M = 0.5
"""Distances that are nearer to each other are one."""

UNKNOWN_BIAS = (0.05, 0.02, 0.01)
"""Standard deviations of the coefficients (m, 1, 1/m) before any replay: the bias stays small beyond what is seen."""

BIAS_ERROR_M = 0.002
"""Of the bias at one distance: scenes are not the places that they stand for to the millimeter."""

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class ReplayedCamera:
    """The camera by its pose replays.

    Attributes:
        replays: that say anything of it.
        tilt_deg, pan_deg, roll_deg, height_m, forward_m: from where its description has it, medians over replays with
            95 % intervals; None where no replay tells. Tilt up, pan left, roll right positive.
        bias: coefficients c of c[0] + c[1] z + c[2] z², measured less true depth in meters, beyond what these explain.
        farthest_m: as far as that was seen; 0 where it was not.
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
    """The camera of a robot by replays of its logs; None without any paths.

    Args:
        paths: JSON files of ``robot-runtime replay``, or folders of them. robot: its name in the logs.

    Raises:
        ConfigError: a file that is no replay, or of another robot; none that compares depth.
    """
    if not paths:
        return None
    offsets = [offset for path in _files(paths) if (offset := _offset(path, robot)) is not None]
    if not offsets:
        raise ConfigError(
            f"{', '.join(map(str, paths))}: no pose replay that compares depth",
            "make some of the same logs: `robot-runtime replay LOGS --poses --out replays`",
        )
    biases = [(float(one["depth_m"]), float(one["bias_mm"]) / 1000) for offset in offsets for one in offset["biases"]]
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
    """Coefficients of the bias, of what replays found: (distance m, bias m) each; zeros of none."""
    if not biases:
        return (0.0, 0.0, 0.0)
    depth_m, bias_m = np.array(biases).T
    bins = np.floor(depth_m / BIN_M)
    middles = [(np.median(depth_m[bins == one]), np.median(bias_m[bins == one])) for one in np.unique(bins)]
    seen_m, middle_m = np.array(middles).T
    rows = np.vander(seen_m, 3, increasing=True) / BIAS_ERROR_M
    prior = np.diag(1 / np.array(UNKNOWN_BIAS)) ** 2
    c0, c1, c2 = np.linalg.solve(rows.T @ rows + prior, rows.T @ (middle_m / BIAS_ERROR_M)).tolist()
    return c0, c1, c2


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.json")) if path.is_dir() else [path]


def _offset(path: Path, robot: str) -> Mapping[str, Any] | None:
    """What one replay says of the camera's place; None of one that has no pose replay, or too little depth in it."""
    again = "make it anew: `robot-runtime replay LOG --poses --overwrite`"
    try:
        replay = json.loads(path.read_text(encoding="utf-8"))
        of, pose = replay["robot"], replay["pose"]
        offset: Mapping[str, Any] | None = None if pose is None else pose["offset"]
        if offset is not None and "biases" not in offset:
            raise ConfigError(f"{path}: written before replays compared depth by distance", again)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path}: is no replay: {error!r}", again) from error
    if of != robot:
        raise ConfigError(f"{path}: is a replay of robot {of!r}, not of {robot!r}", "give replays of the same logs")
    return offset


def _pooled(offsets: Sequence[Mapping[str, Any]], name: str, scale: float = 1.0) -> Interval | None:
    known = [offset[name] for offset in offsets if offset[name] is not None]
    if not known:
        return None
    values = [scale * float(one["value"]) for one in known]
    # Of few replays the spread alone would say too much.
    reach = SIGMAS * scale * float(np.median([one["error"] for one in known])) / math.sqrt(len(known))
    middle = median(values)
    return Interval(middle.mean, min(middle.low, middle.mean - reach), max(middle.high, middle.mean + reach))
