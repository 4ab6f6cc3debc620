"""Likelihood of logs of real episodes under a setting: natural logarithms, in four parts that add up.

========  ============================================================================================================
motions   per action, the density (1/(m² rad)) of its end by the referee: normal, with the simulator's end
          (:mod:`sim_bridge.tuning.one_step_prediction`) plus the mean of the setting's action errors as its mean. Its
          covariance adds those of the setting's errors, of the referee at both ends,
          :data:`robot_runtime.robots.action_errors.ARRIVAL`, and where something is touched, :data:`WALL`, because
          scenes are not exact. It is mixed with a wide density (:data:`WIDE`, weight :data:`STRAY`), so that no
          single action decides.
contacts  per action, the probability of the observed contact or its absence: :data:`SURE` that the simulator is right.
camera    per episode, the density (1/(m rad²)) of the height, tilt and roll of the floor in its images, normal about
          the setting's mount with :data:`MOUNT` and the spread between episodes; mixed with :data:`TABLE`, because
          the plane may have been something else.
delays    per episode, the density (1/s) of the time from exposure to use, normal about the setting's with
          :data:`DELAY_S` and the spread between episodes; mixed with :data:`LATE_S` for busy hosts.
========  ============================================================================================================

The last two count once per episode, not per image: an error of the mount is the same in all of its images.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.robots.action_errors import ARRIVAL, ActionError
from sim_bridge.noise.actions import action_noise
from sim_bridge.replay.camera_pose import LoggedCamera
from sim_bridge.robot.camera import MountError, apply_mount_error
from sim_bridge.robot.driver import SimOptions
from sim_bridge.tuning.log_statistics import FloorOffset, LogStatistics, Motion
from sim_bridge.tuning.one_step_prediction import Prediction

Floats = NDArray[np.float64]

WALL = np.diag([0.01, 0.01, math.radians(1.0)]) ** 2
WIDE = np.diag([0.1, 0.1, math.radians(20.0)]) ** 2
STRAY = 0.01
SURE = 0.98
MOUNT = (0.003, math.radians(0.1), math.radians(0.1))
"""Standard deviations of height in m, tilt in rad and roll in rad."""

TABLE = (0.1, math.radians(5.0), math.radians(5.0))
TABLES = 0.05
"""Share of episodes whose plane is not the floor."""

DELAY_S, LATE_S = 0.002, 0.1
LATE = 0.05
"""Share of episodes on a busy host."""

_NONE = ActionError((0.0, 0.0, 0.0), ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))

PARTS = ("motions", "contacts", "camera", "delays")


@dataclass(frozen=True)
class Parts:
    """Logarithms of the likelihood of a log under one setting; 0 where the log has no data."""

    motions: float = 0.0
    contacts: float = 0.0
    camera: float = 0.0
    delays: float = 0.0

    @property
    def total(self) -> float:
        """Their sum."""
        return math.fsum(astuple(self))


class ActionErrorsOf:
    """The distribution of a setting's action errors.

    Args:
        options: options of the simulated robot.
        drift: covariance (3, 3) by action of the errors of wheels and odometry.
    """

    def __init__(self, options: SimOptions, drift: Mapping[Action, Floats]) -> None:
        self._noise = None if options.action_noise is None else action_noise(options.action_noise)
        self._drift = drift
        self._known: dict[Action, tuple[Floats, Floats]] = {}

    def of(self, motion: Motion, prediction: Prediction) -> tuple[Floats, Floats]:
        """Mean (3,) and covariance (3, 3) of the errors of a prediction, in the frame of the start."""
        mean, covariance = np.zeros(3), self._drift.get(motion.action, np.zeros((3, 3)))
        noise = self._noise
        if noise is None:
            return mean, covariance
        if motion.action not in self._known:
            self._known[motion.action] = noise.moments(motion.action)
        moves = motion.action is Action.MOVE_FORWARD
        whole = noise.forward_m if moves else noise.turn_rad
        commanded = abs(motion.commanded.forward_m if moves else motion.commanded.turn_rad)
        # As in the simulator, errors are proportional to the distance driven and occur once.
        share = min(1.0, prediction.share * commanded / whole)
        mean, errors = self._known[motion.action]
        return share * mean, covariance + share**2 * errors


def motion_part(
    motions: Sequence[Motion], predictions: Sequence[Prediction | None], errors: ActionErrorsOf
) -> tuple[float, float]:
    """The parts of motions and of contacts; actions without a prediction are left out."""
    pairs = [
        (motion, predicted) for motion, predicted in zip(motions, predictions, strict=True) if predicted is not None
    ]
    if not pairs:
        return 0.0, 0.0
    off, covariance = np.empty((len(pairs), 3)), np.empty((len(pairs), 3, 3))
    for i, (motion, predicted) in enumerate(pairs):
        mean, spread = errors.of(motion, predicted)
        off[i] = motion.moved - predicted.moved - mean
        walls = WALL if predicted.touching or predicted.contact or motion.contact else 0.0
        covariance[i] = spread + motion.noise + ARRIVAL + walls
    off[:, 2] = np.mod(off[:, 2] + math.pi, 2 * math.pi) - math.pi
    explained = math.log1p(-STRAY) + _NONE.log_densities(off, covariance)
    stray = math.log(STRAY) + _NONE.log_densities(off, covariance + WIDE)
    right = sum(motion.contact == predicted.contact for motion, predicted in pairs)
    contacts = right * math.log(SURE) + (len(pairs) - right) * math.log1p(-SURE)
    return float(np.logaddexp(explained, stray).sum()), contacts


@dataclass(frozen=True)
class Spread:
    """Standard deviations between episodes, with their lower limits.

    Attributes:
        mount: standard deviations of height (m), tilt (rad) and roll (rad).
        delay_s: standard deviation of the delay.
    """

    mount: tuple[float, float, float]
    delay_s: float

    @classmethod
    def of(cls, statistics: Sequence[LogStatistics]) -> Spread:
        """A robust estimate from all logs."""
        floors = np.array(
            [(seen.height_m, seen.tilt_rad, seen.roll_rad) for log in statistics if (seen := log.floor) is not None]
        ).reshape(-1, 3)
        height_m, tilt_rad, roll_rad = (math.hypot(least, _robust(floors[:, axis])) for axis, least in enumerate(MOUNT))
        delays = np.array([log.delay_s for log in statistics if log.delay_s is not None])
        return cls((height_m, tilt_rad, roll_rad), math.hypot(DELAY_S, _robust(delays)))


def camera_part(seen: FloorOffset, predicted: tuple[float, float, float], spread: Spread) -> float:
    """The part of an episode's floor.

    Args:
        seen: the floor in the images.
        predicted: height m, tilt rad and roll rad by which the setting's camera is off.
        spread: spread between episodes.
    """
    off = (seen.height_m - predicted[0], seen.tilt_rad - predicted[1], seen.roll_rad - predicted[2])
    floor, table = (
        math.fsum(_log_normal_1(value, sigma) for value, sigma in zip(off, sigmas, strict=True))
        for sigmas in (spread.mount, TABLE)
    )
    return float(np.logaddexp(math.log1p(-TABLES) + floor, math.log(TABLES) + table))


def delay_part(seen_s: float, said_s: float, spread: Spread) -> float:
    """The part of an episode's delay."""
    usual, late = (_log_normal_1(seen_s - said_s, sigma_s) for sigma_s in (spread.delay_s, LATE_S))
    return float(np.logaddexp(math.log1p(-LATE) + usual, math.log(LATE) + late))


def mount_offset(
    camera: LoggedCamera, error: MountError, pan_rad: float, tilt_rad: float
) -> tuple[float, float, float]:
    """Height m, tilt rad and roll rad between a misaligned camera and its description, at a pose of the head."""
    # Without the rotation of straightened images: it follows the description and not the error.
    true = apply_mount_error(camera.mount, error).pointing(pan_rad, tilt_rad)
    predicted = camera.mount.pointing(pan_rad, tilt_rad)
    height_m, tilted_rad, rolled_rad = (a - b for a, b in zip(true, predicted, strict=True))
    return height_m, tilted_rad, rolled_rad


def _log_normal_1(off: float, sigma: float) -> float:
    return -0.5 * ((off / sigma) ** 2 + math.log(2 * math.pi)) - math.log(sigma)


def _robust(values: Floats) -> float:
    """Standard deviation estimated by the median absolute deviation; 0 without values."""
    if not values.size:
        return 0.0
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))
