"""Serialization of raw poses between steps by columns: one message for many poses, which compresses well."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.hal import PoseEstimate, PoseStatus
from robot_runtime.recording.codec import codec_of

_UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


@dataclass(frozen=True, slots=True)
class PoseColumns:
    """Raw poses of a source, by columns, in the order of arrival; one status may stand for all.

    Attributes:
        source: name of the source.
        frame: frame of the poses.
        stamp_ns: time of each pose.
        x_m, y_m: position of each pose.
        yaw_rad: heading of each pose, counter-clockwise positive.
        status: status of each pose, or one status for all.
        covariance: rows [xx, xy, xyaw, yy, yyaw, yawyaw], one row for each pose, or one row for all.
    """

    source: str
    frame: str
    stamp_ns: list[int]
    x_m: list[float]
    y_m: list[float]
    yaw_rad: list[float]
    status: list[PoseStatus]
    covariance: list[list[float]]


POSES = codec_of(PoseColumns, {})


def topic_of(source: str) -> str:
    """Topic of a source's poses."""
    return "/localizer/" + (re.sub(r"[^a-z0-9]+", "_", source.lower()).strip("_") or "unnamed")


def poses_to_columns(source: str, estimates: Sequence[PoseEstimate]) -> PoseColumns:
    """Convert one or more estimates in one frame."""
    first = estimates[0]
    status: Sequence[PoseEstimate] = estimates if any(e.status is not first.status for e in estimates) else [first]
    unequal = any(e.covariance is not first.covariance for e in estimates)
    return PoseColumns(
        source,
        first.frame,
        [e.stamp_ns for e in estimates],
        [e.pose.x_m for e in estimates],
        [e.pose.y_m for e in estimates],
        [e.pose.yaw_rad for e in estimates],
        [e.status for e in status],
        [_upper(e.covariance) for e in (estimates if unequal else [first])],
    )


def poses_from_json(data: Mapping[str, Any]) -> tuple[str, list[PoseEstimate]]:
    """The source and its estimates. Raises ``KeyError``, ``ValueError``."""
    columns = POSES.decode(data)
    count, covariances = len(columns.stamp_ns), [_full(row) for row in columns.covariance]
    rows = zip(
        columns.stamp_ns,
        columns.x_m,
        columns.y_m,
        columns.yaw_rad,
        covariances * count if len(covariances) == 1 else covariances,
        columns.status * count if len(columns.status) == 1 else columns.status,
        strict=True,
    )
    return columns.source, [
        PoseEstimate(stamp_ns, SE2(x_m, y_m, yaw_rad), columns.frame, covariance, status)
        for stamp_ns, x_m, y_m, yaw_rad, covariance, status in rows
    ]


def _upper(covariance: NDArray[np.float64]) -> list[float]:
    values = (float(covariance[i, j]) for i, j in _UPPER)
    return [value if math.isfinite(value) else math.inf for value in values]


def _full(upper: Sequence[float]) -> NDArray[np.float64]:
    full = np.empty((3, 3))
    for value, (i, j) in zip(upper, _UPPER, strict=True):
        full[i, j] = full[j, i] = value
    return full
