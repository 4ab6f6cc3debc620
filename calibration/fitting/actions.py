"""Selection of free motions from logs, and their errors: bias, covariance, and confidence intervals.

Excluded, and counted by reason, are actions ended by contact, a time limit, a person or a fault; actions during
contact, or so near to an obstacle on the map that a bumper may have missed it; actions of an uncommon size; and
outliers.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm, t

from calibration.fitting.log_samples import LoggedAction, LoggedEpisode
from calibration.fitting.map_distance import Walls
from calibration.motion.action_errors import Trial, by_action, error_of
from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.errors import CalibrationFailed
from robot_runtime.records import Outcome
from robot_runtime.robots.action_errors import ARRIVAL, MOVES, ActionError, ActuationModel
from robot_runtime.scoring.statistics.intervals import Interval, bootstrap_mean

Array = NDArray[np.float64]

MIN_ACTIONS = 20
"""Least number of actions of a kind; it determines their standard deviation to 16 %."""

MIN_EPISODES = 5
"""Least number of episodes with a kind of action: an interval over fewer covers nothing."""

OUTLIER = float(chi2.ppf(0.9999, 3))
"""Squared Mahalanobis distance beyond which an action is an outlier."""

PASSES = 4

NEAR_M = 0.06
"""Margin around the robot's radius within which contact is possible, by the map's cells and the robot's shape."""

RESAMPLES = 2000


@dataclass(frozen=True, eq=False)
class Sample:
    """A trial with its origin.

    Attributes:
        slip: the same with the end by odometry for the intended one.
        room: id of the room in which the action began; empty outside all rooms.
    """

    episode: int
    step: int
    trial: Trial
    slip: Trial
    room: str = ""


@dataclass(frozen=True)
class Size:
    """Commonest sizes of the commanded actions, positive."""

    forward_m: float
    turn_deg: float

    def matches(self, action: Action, commanded: Displacement) -> bool:
        """Return whether an action is of this size."""
        if action is Action.MOVE_FORWARD:
            return math.isclose(commanded.forward_m, self.forward_m, abs_tol=1e-6)
        return math.isclose(abs(math.degrees(commanded.turn_rad)), self.turn_deg, abs_tol=1e-6)


@dataclass(frozen=True, eq=False)
class Selection:
    """Actions to fit.

    Attributes:
        size: commonest size of the actions in all samples.
        samples: samples of free motions.
        left_out: number of excluded actions of each kind, by reason.
        outliers: samples of free motions that are far from all others.
    """

    size: Size
    samples: tuple[Sample, ...]
    left_out: Mapping[str, Mapping[str, int]]
    outliers: tuple[Sample, ...] = ()

    def of(self, action: Action) -> list[Sample]:
        """Return the samples of an action, in order."""
        return [sample for sample in self.samples if sample.trial.action is action]


@dataclass(frozen=True)
class ActionFit:
    """Error of an action.

    Attributes:
        error: mean and covariance.
        bias: mean error in x (m), y (m) and yaw (rad), with 95 % intervals over episodes.
        noise: standard deviations (x m, y m, yaw rad) of the referee, already subtracted.
    """

    error: ActionError
    bias: tuple[Interval, Interval, Interval]
    noise: tuple[float, float, float]


def size_of(episodes: Sequence[LoggedEpisode]) -> Size:
    """Return the commonest sizes. Raises ``CalibrationFailed``: no forward motion, or no turn, in any log."""
    forward: Counter[float] = Counter()
    turn: Counter[float] = Counter()
    for episode in episodes:
        for logged in episode.actions:
            commanded = logged.result.commanded
            if logged.action is Action.MOVE_FORWARD:
                forward[round(commanded.forward_m, 9)] += 1
            else:
                turn[round(abs(math.degrees(commanded.turn_rad)), 6)] += 1
    for what, sizes in (("forward motions", forward), ("turns", turn)):
        if not sizes:
            raise CalibrationFailed(
                f"the logs contain no {what}; an action model cannot be fitted",
                "add logs of an agent that drives and turns",
            )
    return Size(forward.most_common(1)[0][0], turn.most_common(1)[0][0])


def select(episodes: Sequence[LoggedEpisode], walls: Mapping[str, Walls]) -> Selection:
    """Select free motions. Raises ``CalibrationFailed`` if there are no motions of a kind in the logs."""
    size = size_of(episodes)
    kept: list[Sample] = []
    left_out: dict[str, Counter[str]] = {action.name.lower(): Counter() for action in MOVES}
    for number, episode in enumerate(episodes):
        near = walls[episode.header.scene.digest]
        for logged in episode.actions:
            reason = _rejection(logged, size, near)
            if reason:
                left_out[logged.action.name.lower()][reason] += 1
            else:
                kept.append(Sample(number, logged.step, trial_of(logged), slip_of(logged), _room(episode, logged)))
    chosen: list[Sample] = []
    outliers: list[Sample] = []
    for action in MOVES:
        samples = [sample for sample in kept if sample.trial.action is action]
        good = inliers(np.array([sample.trial.error for sample in samples]).reshape(-1, 3))
        chosen += [sample for sample, fits in zip(samples, good, strict=True) if fits]
        outliers += [sample for sample, fits in zip(samples, good, strict=True) if not fits]
        if not all(good):
            left_out[action.name.lower()]["far from all others"] += int((~good).sum())
    chosen.sort(key=lambda sample: (sample.episode, sample.step))
    reasons = {name: dict(counts) for name, counts in left_out.items()}
    return Selection(size, tuple(chosen), reasons, tuple(outliers))


def _room(episode: LoggedEpisode, logged: LoggedAction) -> str:
    stationary = logged.before.stationary
    assert stationary is not None
    x_m, y_m = stationary.truth.x_m, stationary.truth.y_m
    return next((room.id for room in episode.header.scene.rooms if room.contains(x_m, y_m)), "")


def trial_of(logged: LoggedAction) -> Trial:
    """Convert an action that the referee measured to a trial."""
    return Trial.of(logged.action, logged.result.commanded, logged.move, logged.carried_rad)


def slip_of(logged: LoggedAction) -> Trial:
    """Return the motion of an action that odometry did not measure, as a trial.

    The part that odometry measured is the motors' and the motion controller's, which a simulated robot has by itself.
    """
    truth, odom = logged.move.truth, logged.move.odom
    missed = np.array([truth.x_m - odom.x_m, truth.y_m - odom.y_m, wrap_angle(truth.yaw_rad - odom.yaw_rad)])
    return Trial(logged.action, missed, logged.move.noise)


def _rejection(logged: LoggedAction, size: Size, walls: Walls) -> str:
    if logged.result.outcome is not Outcome.REACHED:
        return str(logged.result.outcome.value).replace("_", " ")
    if not logged.seen:
        return "referee lost"
    if not size.matches(logged.action, logged.result.commanded):
        return "another size"
    if logged.action is Action.MOVE_FORWARD:
        if logged.felt:
            return "touching"
        stationary = logged.before.stationary
        assert stationary is not None
        if walls.nearest_on_path_m(stationary.truth, size.forward_m) < walls.radius_m + NEAR_M:
            return "near a wall"
    return ""


def inliers(errors: Array) -> NDArray[np.bool_]:
    """Return the inliers of errors (N, 3), bool (N,), by iterated Mahalanobis distances from a robust start."""
    if len(errors) < 4:
        return np.ones(len(errors), bool)
    center = np.median(errors, axis=0)
    covariance = np.diag((1.4826 * np.median(np.abs(errors - center), axis=0)) ** 2) + ARRIVAL
    good = np.ones(len(errors), bool)
    for _ in range(PASSES):
        off = errors - center
        good = np.einsum("ni,ni->n", off, np.linalg.solve(covariance, off.T).T) <= OUTLIER
        if good.sum() < 4:
            break
        center, covariance = errors[good].mean(axis=0), np.cov(errors[good], rowvar=False) + ARRIVAL
    return np.asarray(good)


def fit_actions(selection: Selection, slip: bool = False) -> dict[str, ActionFit]:
    """Fit the error of each action, by its name.

    Args:
        selection: actions to fit.
        slip: whether only the motion that odometry did not measure is fitted.

    Raises:
        CalibrationFailed: too few actions of a kind, or all of the same episode.
    """
    fits = {}
    for action in MOVES:
        samples, name = selection.of(action), action.name.lower()
        episodes = [sample.episode for sample in samples]
        if len(samples) < MIN_ACTIONS or len(set(episodes)) < MIN_EPISODES:
            reasons = ", ".join(f"{count} {reason}" for reason, count in selection.left_out[name].items())
            raise CalibrationFailed(
                f"{name}: {len(samples)} usable actions in {len(set(episodes))} episodes, {MIN_ACTIONS} in "
                f"{MIN_EPISODES} are needed" + (f" (left out: {reasons})" if reasons else ""),
                "add logs of an agent that drives through free space and turns both ways",
            )
        trials = [sample.slip if slip else sample.trial for sample in samples]
        errors = np.array([trial.error for trial in trials])
        noise = np.mean([trial.noise for trial in trials], axis=0)
        x, y, yaw = (_mean(errors[:, axis].tolist(), episodes) for axis in range(3))
        deviations = np.sqrt(np.maximum(np.diag(noise), 0)).tolist()
        fits[name] = ActionFit(error_of(trials), (x, y, yaw), tuple(deviations))
    return fits


def _mean(values: Sequence[float], episodes: Sequence[int]) -> Interval:
    """Return the mean with its interval over episodes."""
    return of_few(bootstrap_mean(values, resamples=RESAMPLES, clusters=episodes), len(set(episodes)))


def of_few(found: Interval, count: int) -> Interval:
    """Return a bootstrap interval over ``count`` episodes, widened as Student's distribution is for few."""
    wider = float(t.ppf(0.975, count - 1) / norm.ppf(0.975)) * math.sqrt(count / (count - 1)) if count > 1 else 1.0
    mean = found.mean
    return Interval(mean, mean - wider * (mean - found.low), mean + wider * (found.high - mean))


def model_of(selection: Selection, fits: Mapping[str, ActionFit]) -> ActuationModel:
    """Return the fits as a model."""
    size = selection.size
    return ActuationModel(size.forward_m, size.turn_deg, {name: fit.error for name, fit in fits.items()})


def fit_model(selection: Selection, samples: Sequence[Sample]) -> ActuationModel | None:
    """Fit a model to some of the samples; None if one action has too few for a covariance."""
    trials = by_action([sample.trial for sample in samples])
    if any(len(trials.get(action, ())) < 4 for action in MOVES):
        return None
    errors = {action.name.lower(): error_of(trials[action]) for action in MOVES}
    return ActuationModel(selection.size.forward_m, selection.size.turn_deg, errors)


def consecutive_correlation(samples: Sequence[Sample]) -> tuple[tuple[float, float, float], int]:
    """Return correlations of the errors (x, y, yaw) of consecutive actions, and the number of pairs.

    They are 0 for independent errors, down to -0.5 for errors of the referee, and NaN with too few pairs.
    """
    means = {
        action: np.mean([t.error for t in trials], axis=0)
        for action, trials in by_action([s.trial for s in samples]).items()
    }
    off = {(s.episode, s.step): s.trial.error - means[s.trial.action] for s in samples}
    pairs = [(off[key], off[key[0], key[1] + 1]) for key in off if (key[0], key[1] + 1) in off]
    if len(pairs) < MIN_ACTIONS:
        return (math.nan, math.nan, math.nan), len(pairs)
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    scale = np.sqrt((first**2).mean(axis=0) * (second**2).mean(axis=0))
    x, y, yaw = np.divide((first * second).mean(axis=0), scale, out=np.zeros(3), where=scale > 0).tolist()
    return (x, y, yaw), len(pairs)
