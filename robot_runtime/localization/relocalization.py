"""Relocalization: the pose that a run of measurements agrees on, whatever the filter believed before.

It applies at the start and after a jump. Odometry gives the motion between the measurements, so that each of them votes
for one current pose; most must agree, the others are outliers. A single position contains no heading:

* if the robot moved far enough, aligning the measured path with the path by odometry gives the heading (least squares
  over pairs of points, Umeyama 1991, after a vote of all pairs that are far apart);
* if not, the prior heading is kept with a larger variance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.common.quantities import ShortTime, SmallMove
from robot_runtime.localization.gaussian_pose import Belief, Measurement
from robot_runtime.localization.odometry_preintegration import OdometrySample


@dataclass(frozen=True)
class RelocalizationLimits(config.Strict):
    """Conditions under which measurements replace the belief.

    Attributes:
        min_first: agreeing measurements needed at the start.
        min_run: consecutive rejected measurements needed later.
        reanchor_s: duration over which they must have been rejected.
        max_run: newest measurements of the run that are used.
        min_agreeing: fraction of them that must agree.
        within_m: distance from the consensus beyond three standard deviations.
        within_deg: angle from the consensus beyond three standard deviations.
        max_heading_deg: largest standard deviation of a heading from motion.
        kept_heading_deg: standard deviation added to a prior heading that is kept.
    """

    min_first: int = 3
    min_run: int = 5
    reanchor_s: ShortTime = 2.0
    max_run: int = 32
    min_agreeing: float = 0.6
    within_m: SmallMove = 0.03
    within_deg: float = 3.0
    max_heading_deg: float = 8.0
    kept_heading_deg: float = 10.0


def relocalize(
    run: Sequence[tuple[Measurement, OdometrySample]], prior: Belief | None, limits: RelocalizationLimits
) -> Belief | None:
    """Estimate the pose at the last measurement of a run.

    Args:
        run: measurements with odometry at their stamps, by stamp, all of the same dimensions; not empty.
        prior: the belief at the last one, before it; None if there is none.
        limits: conditions of agreement.

    Returns:
        None while the measurements do not agree, or leave the heading open.
    """
    if run[-1][0].dimensions == 3:
        return _from_poses([item for item in run if item[0].dimensions == 3], limits)
    return _from_positions(run, prior, limits)


def _from_poses(run: Sequence[tuple[Measurement, OdometrySample]], limits: RelocalizationLimits) -> Belief | None:
    now = run[-1][1]
    votes = np.array([_vote(measurement, sample, now) for measurement, sample in run])
    reference = votes[-1, 2]
    votes[:, 2] = np.remainder(votes[:, 2] - reference + math.pi, 2 * math.pi) - math.pi
    std_m, std_rad = (
        _median([measurement.std_m for measurement, _ in run]),
        _median([measurement.std_rad for measurement, _ in run]),
    )
    center = np.median(votes, axis=0)
    near = np.hypot(*(votes - center)[:, :2].T) <= 3 * std_m + limits.within_m
    near &= abs(votes[:, 2] - center[2]) <= 3 * std_rad + math.radians(limits.within_deg)
    if not _enough_agree(near, limits):
        return None
    x, y, turn = votes[near].mean(axis=0).tolist()
    return (x, y, reference + turn, std_m**2, 0.0, 0.0, std_m**2, 0.0, std_rad**2)


def _from_positions(
    run: Sequence[tuple[Measurement, OdometrySample]], prior: Belief | None, limits: RelocalizationLimits
) -> Belief | None:
    now = run[-1][1]
    lever = complex(*run[-1][0].lever_m)
    here = complex(now[0], now[1])
    seen = np.array([complex(measurement.x_m, measurement.y_m) for measurement, _ in run])
    known = np.array([complex(w[0], w[1]) + lever * _unit(w[2]) for _, w in run])
    std_m = _median([measurement.std_m for measurement, _ in run])
    turn = _voted_turn(seen, known, std_m)
    near = _consistent(seen, known, turn, std_m, limits) if turn is not None else None
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
    if prior is None:
        return None
    turn = _unit(prior[2] - now[2])
    near = _consistent(seen, known, turn, std_m, limits)
    if near is None:
        return None
    arm = (here - complex(known[near].mean())) * turn
    heading = prior[8] + math.radians(limits.kept_heading_deg) ** 2
    return _belief(complex(seen[near].mean()) + arm, turn * _unit(now[2]), arm, std_m**2, heading)


def _voted_turn(seen: NDArray[np.complex128], known: NDArray[np.complex128], std_m: float) -> complex | None:
    """Rotation from odom to map by the median over pairs of distant points; None if the robot hardly moved."""
    first, second = np.triu_indices(len(known), 1)
    a, b = known[second] - known[first], seen[second] - seen[first]
    length = abs(a)
    if not len(length) or length.max() < 5 * std_m:
        return None
    far = (length >= 0.5 * length.max()) & (abs(b) > 0) & (abs(abs(b) - length) <= 4 * std_m + 0.1 * length)
    if not far.any():
        return None
    turns = b[far] / abs(b[far]) * a[far].conj() / length[far]
    # Median of the angles relative to the middle one, to avoid wrapping.
    angles = np.angle(turns / turns[len(turns) // 2])
    return complex(turns[len(turns) // 2] * np.exp(1j * np.median(angles)))


def _consistent(
    seen: NDArray[np.complex128],
    known: NDArray[np.complex128],
    turn: complex,
    std_m: float,
    limits: RelocalizationLimits,
) -> NDArray[np.bool_] | None:
    """Mask of the measurements that vote for one place; None if too few do."""
    votes = seen - turn * known
    center = complex(np.median(votes.real), np.median(votes.imag))
    near: NDArray[np.bool_] = abs(votes - center) <= 3 * std_m + limits.within_m
    return near if _enough_agree(near, limits) else None


def _enough_agree(near: NDArray[np.bool_], limits: RelocalizationLimits) -> bool:
    return int(near.sum()) >= max(limits.min_first, math.ceil(limits.min_agreeing * len(near)))


def _vote(measurement: Measurement, sample: OdometrySample, now: OdometrySample) -> tuple[float, float, float]:
    """The current pose according to one pose measurement."""
    turn = _unit(measurement.yaw_rad - sample[2])
    moved = complex(now[0] - sample[0], now[1] - sample[1]) * turn
    lever = complex(*measurement.lever_m) * _unit(measurement.yaw_rad)
    place = complex(measurement.x_m, measurement.y_m) - lever + moved
    return place.real, place.imag, measurement.yaw_rad + now[2] - sample[2]


def _belief(place: complex, facing: complex, arm: complex, variance: float, heading: float) -> Belief:
    """Belief of independent errors of the centroid and the heading; ``arm`` leads from the centroid to the robot."""
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


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))
