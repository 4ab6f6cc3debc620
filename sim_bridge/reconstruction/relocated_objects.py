"""Where a thing may have gone: its shape laid over surfaces that have appeared.

A robot sees one or two sides of a thing, so the shape is fitted from many headings and offsets, and the fits are judged
by what they explain, by what surface they find where they put some, and by how much they put where the robot has looked
through. The answer is a guess among equals: of two chairs that changed places each has "possibly" gone to the other's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from robot_runtime.common.geometry import SE2, wrap_angle
from sim_bridge.reconstruction.occupancy_mapping import Evidence

Array = NDArray[np.float64]

NEAR_M = 0.07
"""From a voxel's mean point to the shape."""

LEAST_EXPLAINED = 0.6
_YAWS = 24
_KEPT = 8
_FARTHER, _TURNED = 0.02, 0.1
"""Of the score: a metre's move and half a turn need so much better evidence than staying."""


@dataclass(frozen=True, slots=True)
class Move:
    """A way a shape may have moved.

    Attributes:
        motion: of the plane, in ``map``: takes points of the shape where it was to where it is.
        explained: share of the appeared points that lie on the shape. open: share of the shape that lies where the
            robot looked through. score: higher is better.
    """

    motion: SE2
    explained: float
    open: float
    score: float

    def plausible(self, most_open: float) -> bool:
        """Whether it explains enough, with no more than that in the open."""
        return self.explained >= LEAST_EXPLAINED and self.open <= most_open


def fit_move(shape: Array, appeared: Array, evidence: Evidence, maybe: Array | None = None) -> Move:
    """The likeliest motion of the plane that brings ``shape`` (N, 3) to points (M, 3) that have appeared.

    Args:
        maybe: points (K, 3) where the shape may have more surface, because nobody saw those sides of it.
    """
    judge = _Judge(shape, appeared, evidence, maybe)
    starts = [start for yaw in range(_YAWS) for start in _starts(shape, appeared, yaw * 2 * math.pi / _YAWS)]
    rough = sorted((judge.judged(judge.refined(start, 4)) for start in starts), key=lambda move: -move.score)
    # The means of voxels are good to a centimetre or two, so a few steps are enough.
    fine = [judge.judged(judge.refined(move.motion, 15)) for move in rough[:_KEPT]]
    return max(fine, key=lambda move: move.score)


def _starts(shape: Array, appeared: Array, yaw: float) -> list[SE2]:
    """Motions with a yaw that lay the shape's middle, or one of its four sides, on the middle of the points."""
    c, s = math.cos(yaw), math.sin(yaw)
    turned = shape[:, :2] @ np.array([[c, s], [-s, c]])
    low, high = turned.min(axis=0), turned.max(axis=0)
    middle = (low + high) / 2
    goal = (appeared[:, :2].min(axis=0) + appeared[:, :2].max(axis=0)) / 2
    half = (high - low) / 2
    offsets = [np.zeros(2)] + [np.array(side) * half for side in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    moves = [(goal + offset - middle).tolist() for offset in offsets]
    return [SE2(x, y, yaw) for x, y in moves]


class _Judge:
    def __init__(self, shape: Array, appeared: Array, evidence: Evidence, maybe: Array | None) -> None:
        self._shape, self._appeared = shape, appeared
        self._whole = shape if maybe is None else np.concatenate([shape, maybe])
        self._tree = cKDTree(self._whole)
        self._middle = shape[:, :2].mean(axis=0)
        self._evidence = evidence
        self._standing, self._open = evidence.standing.reshape(-1), evidence.open.reshape(-1)

    def refined(self, motion: SE2, rounds: int) -> SE2:
        """Point-to-point ICP in the plane, from the points that are nearest to the shape."""
        for _ in range(rounds):
            back = self._back(motion)
            distance, index = self._tree.query(back)
            near = distance <= max(NEAR_M, float(np.quantile(distance, 0.7)))
            source, goal = self._whole[index[near], :2], self._appeared[near, :2]
            a, b = source.mean(axis=0), goal.mean(axis=0)
            cross = (source - a).T @ (goal - b)
            yaw = math.atan2(cross[0, 1] - cross[1, 0], cross[0, 0] + cross[1, 1])
            c, s = math.cos(yaw), math.sin(yaw)
            x, y = (b - np.array([[c, -s], [s, c]]) @ a).tolist()
            motion = SE2(x, y, yaw)
        return motion

    def judged(self, motion: SE2) -> Move:
        distance, _ = self._tree.query(self._back(motion))
        explained = float((distance <= NEAR_M).mean())
        c, s = math.cos(motion.yaw_rad), math.sin(motion.yaw_rad)
        moved = self._shape.copy()
        moved[:, :2] = self._shape[:, :2] @ np.array([[c, s], [-s, c]]) + (motion.x_m, motion.y_m)
        voxel = self._evidence.voxels(moved)
        voxel = voxel[voxel >= 0]
        share = 1 / max(1, len(moved))
        opened, met = float(self._open[voxel].sum()) * share, float(self._standing[voxel].sum()) * share
        x, y = motion.apply(*self._middle.tolist())
        way_m = math.dist((x, y), self._middle.tolist())
        turned = abs(wrap_angle(motion.yaw_rad)) / math.pi
        score = explained + 0.5 * met - opened - _FARTHER * way_m - _TURNED * turned
        return Move(motion, explained, opened, score)

    def _back(self, motion: SE2) -> Array:
        """The appeared points as the unmoved shape would have them."""
        c, s = math.cos(motion.yaw_rad), math.sin(motion.yaw_rad)
        back = self._appeared.copy()
        back[:, :2] = (self._appeared[:, :2] - (motion.x_m, motion.y_m)) @ np.array([[c, -s], [s, c]])
        return np.asarray(back)
