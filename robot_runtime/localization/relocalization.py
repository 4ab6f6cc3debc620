"""Where a row of measurements puts the robot, whatever was believed before: at the start, and after a jump.

Odometry says how the robot moved between them, so each of them votes for one place of the robot now. Most must agree;
the others are outliers. Of a source that measures positions only, the heading is not in a single measurement:

* if the robot moved far enough, the way that was measured, laid on the way that odometry knows, gives it (least squares
  over pairs of points, Umeyama 1991, after a vote of all pairs that are far apart);
* if not, the heading believed so far is kept, and trusted less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.localization.gaussian_pose import Belief, Measurement
from robot_runtime.localization.odometry_preintegration import OdometrySample


@dataclass(frozen=True)
class RelocalizationLimits:
    """When measurements are believed that nothing else supports.

    Attributes:
        min_first: how many must agree at the start.
        min_run, reanchor_s: how many, and over how long, must contradict odometry until they are believed instead.
        max_run: of them, so many are looked at, the newest.
        min_agreeing: fraction that must vote for one place.
        within_m, within_deg: how far votes for one place may lie from it beyond three standard deviations.
        max_heading_deg: standard deviation beyond which a heading from motion is none yet.
        kept_heading_deg: what is added to a heading's standard deviation that was kept over a jump.
    """

    min_first: int = 3
    min_run: int = 5
    reanchor_s: float = 2.0
    max_run: int = 32
    min_agreeing: float = 0.6
    within_m: float = 0.03
    within_deg: float = 3.0
    max_heading_deg: float = 8.0
    kept_heading_deg: float = 10.0

    __pydantic_config__ = config.STRICT


def relocalize(
    run: Sequence[tuple[Measurement, OdometrySample]], believed: Belief | None, limits: RelocalizationLimits
) -> Belief | None:
    """The robot's place at the last measurement of a row.

    Args:
        run: in the order of their stamps, all of the same dimensions; not empty.
        believed: at the last one, before it; None if nothing is known.

    Returns:
        None while they do not agree, or leave the heading open.
    """
    if run[-1][0].dimensions == 3:
        return _from_poses([item for item in run if item[0].dimensions == 3], limits)
    return _from_positions(run, believed, limits)


def _from_poses(run: Sequence[tuple[Measurement, OdometrySample]], limits: RelocalizationLimits) -> Belief | None:
    now = run[-1][1]
    votes = np.array([_carried(fix, waypoint, now) for fix, waypoint in run])
    reference = votes[-1, 2]
    votes[:, 2] = np.remainder(votes[:, 2] - reference + math.pi, 2 * math.pi) - math.pi
    std_m, std_rad = _typical([fix.std_m for fix, _ in run]), _typical([fix.std_rad for fix, _ in run])
    center = np.median(votes, axis=0)
    near = np.hypot(*(votes - center)[:, :2].T) <= 3 * std_m + limits.within_m
    near &= abs(votes[:, 2] - center[2]) <= 3 * std_rad + math.radians(limits.within_deg)
    if not _enough(near, limits):
        return None
    x, y, turn = votes[near].mean(axis=0).tolist()
    return (x, y, reference + turn, std_m**2, 0.0, 0.0, std_m**2, 0.0, std_rad**2)


def _from_positions(
    run: Sequence[tuple[Measurement, OdometrySample]], believed: Belief | None, limits: RelocalizationLimits
) -> Belief | None:
    now = run[-1][1]
    lever = complex(*run[-1][0].lever_m)
    here = complex(now[0], now[1])
    seen = np.array([complex(fix.x_m, fix.y_m) for fix, _ in run])
    known = np.array([complex(w[0], w[1]) + lever * _unit(w[2]) for _, w in run])
    std_m = _typical([fix.std_m for fix, _ in run])
    turn = _voted_turn(seen, known, std_m)
    near = _agreeing(seen, known, turn, std_m, limits) if turn is not None else None
    if near is not None:
        # Least squares over those that agree.
        from_seen, from_known = seen[near] - seen[near].mean(), known[near] - known[near].mean()
        spread = float((abs(from_known) ** 2).sum())
        fitted = complex((from_seen * from_known.conj()).sum()) / spread if spread > 0 else 0j
        if abs(abs(fitted) - 1) <= 0.25 and std_m / math.sqrt(spread) <= math.radians(limits.max_heading_deg):
            turn = fitted / abs(fitted)
            arm = (here - complex(known[near].mean())) * turn
            place = complex(seen[near].mean()) + arm
            variance, heading = std_m**2 / int(near.sum()), std_m**2 / spread
            return _belief(place, turn * _unit(now[2]), arm, variance, heading)
    if believed is None:
        return None
    turn = _unit(believed[2] - now[2])
    near = _agreeing(seen, known, turn, std_m, limits)
    if near is None:
        return None
    arm = (here - complex(known[near].mean())) * turn
    heading = believed[8] + math.radians(limits.kept_heading_deg) ** 2
    return _belief(complex(seen[near].mean()) + arm, turn * _unit(now[2]), arm, std_m**2, heading)


def _voted_turn(seen: NDArray[np.complex128], known: NDArray[np.complex128], std_m: float) -> complex | None:
    """The turn from odom to map that most pairs of far points agree on; None if the robot hardly moved."""
    first, second = np.triu_indices(len(known), 1)
    a, b = known[second] - known[first], seen[second] - seen[first]
    length = abs(a)
    if not len(length) or length.max() < 5 * std_m:
        return None
    far = (length >= 0.5 * length.max()) & (abs(b) > 0) & (abs(abs(b) - length) <= 4 * std_m + 0.1 * length)
    if not far.any():
        return None
    turns = b[far] / abs(b[far]) * a[far].conj() / length[far]
    # The median direction: against any of them, the middle one.
    angles = np.angle(turns / turns[len(turns) // 2])
    return complex(turns[len(turns) // 2] * np.exp(1j * np.median(angles)))


def _agreeing(
    seen: NDArray[np.complex128],
    known: NDArray[np.complex128],
    turn: complex,
    std_m: float,
    limits: RelocalizationLimits,
) -> NDArray[np.bool_] | None:
    """Which of them vote for one place, if enough do."""
    votes = seen - turn * known
    center = complex(np.median(votes.real), np.median(votes.imag))
    near: NDArray[np.bool_] = abs(votes - center) <= 3 * std_m + limits.within_m
    return near if _enough(near, limits) else None


def _enough(near: NDArray[np.bool_], limits: RelocalizationLimits) -> bool:
    return int(near.sum()) >= max(limits.min_first, math.ceil(limits.min_agreeing * len(near)))


def _carried(fix: Measurement, waypoint: OdometrySample, now: OdometrySample) -> tuple[float, float, float]:
    """Where the robot is now if a pose measurement is right."""
    turn = _unit(fix.yaw_rad - waypoint[2])
    moved = complex(now[0] - waypoint[0], now[1] - waypoint[1]) * turn
    lever = complex(*fix.lever_m) * _unit(fix.yaw_rad)
    place = complex(fix.x_m, fix.y_m) - lever + moved
    return place.real, place.imag, fix.yaw_rad + now[2] - waypoint[2]


def _belief(place: complex, facing: complex, arm: complex, variance: float, heading: float) -> Belief:
    """Independent errors of the points' middle and of the heading; ``arm`` leads from that middle to the robot."""
    u, v = arm.real, arm.imag
    yaw = math.atan2(facing.imag, facing.real)
    return (
        place.real,
        place.imag,
        yaw,
        variance + v * v * heading,
        -u * v * heading,
        -v * heading,
        variance + u * u * heading,
        u * heading,
        heading,
    )


def _unit(angle_rad: float) -> complex:
    return complex(math.cos(angle_rad), math.sin(angle_rad))


def _typical(values: Sequence[float]) -> float:
    return float(np.median(values))
