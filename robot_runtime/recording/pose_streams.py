"""Serialization of raw poses between steps by columns: one message for many poses, which compresses well.

::

    {"source": "odometry", "frame": "odom", "stamp_ns": [..], "x_m": [..], "y_m": [..], "yaw_rad": [..],
     "status": ["ok", ..], "covariance": [[xx, xy, xyaw, yy, yyaw, yawyaw], ..]}

Poses are in the order of arrival. ``status`` and ``covariance`` have one entry if all poses share it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.hal import PoseEstimate, PoseStatus
from robot_runtime.recording.json_values import integer, number, text

_UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def topic_of(source: str) -> str:
    """Topic of a source's poses."""
    return "/localizer/" + (re.sub(r"[^a-z0-9]+", "_", source.lower()).strip("_") or "unnamed")


def poses_to_json(source: str, estimates: Sequence[PoseEstimate]) -> dict[str, Any]:
    """Convert one or more estimates in one frame to JSON."""
    first = estimates[0]
    status: Sequence[PoseEstimate] = estimates if any(e.status is not first.status for e in estimates) else [first]
    unequal = any(e.covariance is not first.covariance for e in estimates)
    return {
        "source": source,
        "frame": first.frame,
        "stamp_ns": [e.stamp_ns for e in estimates],
        "x_m": [e.pose.x_m for e in estimates],
        "y_m": [e.pose.y_m for e in estimates],
        "yaw_rad": [e.pose.yaw_rad for e in estimates],
        "status": [e.status.value for e in status],
        "covariance": [_upper(e.covariance) for e in (estimates if unequal else [first])],
    }


def poses_from_json(data: Mapping[str, Any]) -> tuple[str, list[PoseEstimate]]:
    """The inverse of :func:`poses_to_json`: the source and its estimates. Raises ``KeyError``, ``ValueError``."""
    count, frame = len(data["stamp_ns"]), text(data["frame"])
    covariances = [_full([number(value) for value in row]) for row in data["covariance"]]
    statuses = [PoseStatus(word) for word in data["status"]]
    columns = (
        map(integer, data["stamp_ns"]),
        *(map(number, data[name]) for name in ("x_m", "y_m", "yaw_rad")),
        covariances * count if len(covariances) == 1 else covariances,
        statuses * count if len(statuses) == 1 else statuses,
    )
    rows = zip(*columns, strict=True)
    return text(data["source"]), [
        PoseEstimate(stamp_ns, SE2(x_m, y_m, yaw_rad), frame, covariance, status)
        for stamp_ns, x_m, y_m, yaw_rad, covariance, status in rows
    ]


def _upper(covariance: NDArray[np.float64]) -> list[float | str]:
    values = (float(covariance[i, j]) for i, j in _UPPER)
    return [value if math.isfinite(value) else "Infinity" for value in values]


def _full(upper: Sequence[float]) -> NDArray[np.float64]:
    full = np.empty((3, 3))
    for value, (i, j) in zip(upper, _UPPER, strict=True):
        full[i, j] = full[j, i] = value
    return full
