"""Images and trajectories in the form that servers of navigators exchange."""

import math
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision, trajectory
from robot_runtime.errors import PolicyError
from robot_runtime.imaging.depth import observed_m
from robot_runtime.tasks.task import TrainingCamera

DEPTH_PER_M = 10_000
"""Units of a depth image per meter; a 16-bit pixel reaches 6.5535 m."""

STILL_M = 0.02
"""A trajectory that stays within this distance of the robot means stop: the servers multiply it with 0."""

_SPACING_M = 0.1
_MOST_POINTS = 1000


def jpeg(rgb: NDArray[np.uint8], quality: int, swapped: bool = False) -> bytes:
    """A color image, uint8 (H, W, 3), as JPEG; with red and blue in each other's place where ``swapped``."""
    image = rgb if swapped else cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR)
    return bytes(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1])


def depth_png(depth: NDArray[np.float32], camera: TrainingCamera) -> bytes:
    """A depth observation, float32 (H, W, 1), as 16-bit PNG of meters times ``DEPTH_PER_M``, clipped.

    What the observation shows at the nearest depth is sent as 0, a hole: there, holes cannot be told from what is near.
    """
    depth_m = observed_m(depth[:, :, 0], camera)
    units = np.minimum(depth_m * DEPTH_PER_M, 65535).astype(np.uint16)
    units[depth_m <= camera.depth_min_m] = 0
    return bytes(cv2.imencode(".png", units, [cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_RLE])[1])


def points_of(answer: Any, server: str) -> NDArray[np.float64]:
    """The trajectory in an answer: float64 (N, 2), m in the robot's frame at the image, x forward, y left.

    Args:
        answer: rows of x, y and perhaps further numbers, which servers use for different things.
        server: name of the server, for errors.

    Raises:
        PolicyError: it is no such trajectory, or a number is not finite.
    """
    try:
        points = np.asarray(answer, np.float64)
    except (ValueError, TypeError, OverflowError):
        points = np.empty(0)
    if points.ndim != 2 or points.shape[1] not in (2, 3) or not 0 < len(points) <= _MOST_POINTS:
        found = f"of shape {points.shape}" if points.size else f"{answer!r:.100}"
        raise PolicyError(f"{server}: answered a trajectory {found}, not rows of x, y", "correct the server")
    if not np.isfinite(points).all():
        raise PolicyError(f"{server}: answered a trajectory with a number that is not finite", "correct the server")
    return points[:, :2]


def followed(points: NDArray[np.float64], speed_m_s: float) -> Decision:
    """The decision to follow :func:`points_of` at one speed from the robot's place at the image, or to stop there."""
    if np.hypot(*points.T).max() <= STILL_M:
        return Action.STOP
    chain = np.vstack([np.zeros(2), points])
    along_m = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(chain, axis=0).T))])
    steps = min(max(math.ceil(along_m[-1] / _SPACING_M - 1e-6), 1), _MOST_POINTS)
    at_m = np.linspace(0.0, along_m[-1], steps + 1)[1:]
    rows = np.column_stack([np.interp(at_m, along_m, column) for column in chain.T])
    return trajectory(rows.tolist(), float(along_m[-1]) / steps / speed_m_s)
