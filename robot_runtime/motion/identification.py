"""Identification of a base's motors from the commands that it was sent and what odometry measured of its wheels.

The model of :mod:`robot_runtime.hal.motors` is simulated at the recorded commands and compared with odometry at its
stamps. Dead time, lag, gains and acceleration limit follow by nonlinear least squares with a soft L1 loss, against
slip; the thresholds, at which the error of the model jumps, by a search among the commands that were sent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.hal.motors import MAX_DEAD_TIME_S, MAX_LAG_S, MAX_THRESHOLD_M_S, MotorModel
from robot_runtime.motion.wheel_record import Array, WheelRecord

SIGMA_M = 0.001
"""Standard deviation of what odometry measures of a wheel: encoder steps, slip, and the model's own error."""

LEAST_LAG_S = 0.001

PARAMETERS = (
    "dead_time_s",
    "lag_s",
    "gain_left",
    "gain_right",
    "slowness_s2_m",
    "threshold_left_m_s",
    "threshold_right_m_s",
)
"""Parameters of a fit, in its vectors' order. The slowness is the inverse of the acceleration limit, 0 for none."""

SMOOTH = 5
"""Number of the first parameters: they change the model's error smoothly."""

LOWER = np.array([0.0, LEAST_LAG_S, 0.55, 0.55, 0.0])
UPPER = np.array([MAX_DEAD_TIME_S, MAX_LAG_S, 1.9, 1.9, 5.0])
"""Bounds of the smooth parameters."""

STEPS = np.array([1e-3, 1e-3, 1e-3, 1e-3, 1e-2])
"""Steps of the derivatives, well above what the interpolation between commands rounds."""

LEAST_SLOWNESS_S2_M = 0.05
"""Acceleration limits above 20 m/s² cannot be told from none."""

COARSE_ACCELS_M_S2 = (0.6, 2.0)
COARSE_THRESHOLDS_M_S = (0.0, 0.04, 0.08, 0.12)
CONTINUED = 3
ROUNDS = 6
LOCAL_ROUNDS = 1
"""Starting points, how many of them are continued from, and how often the search for thresholds and the fit of all else
alternate; with a prior, once. From a low limit of acceleration the search finds that there is none; not conversely."""

SEARCHED = 25
"""Thresholds that are tried at once: the loss has several minima."""

LEAST_SIGMA = 1e-9
"""A prior's standard deviation of 0 keeps a parameter."""

OUTLIER = 3.0
"""Standard deviations beyond which an error counts linearly."""

COMMON = 6.0
"""Reports whose errors count as one: the phase of the base's ticks, slip and threshold are common to many."""

NEAR = 0.05
"""Share by which the loss may be above the least one within a threshold's interval: errors are correlated."""

PAUSE_NS = 10 * NS_PER_S
"""Pause between two records, in which every wheel comes to rest."""

INTERVAL_SIGMAS = 1.96
"""Half width of a 95 % interval in standard deviations."""


class _Joined:
    """Records after each other, with rests between, so that they are simulated in one call."""

    def __init__(self, records: Sequence[WheelRecord]) -> None:
        command_ns, stamp_ns, first, now_ns, count = [], [], [], 0, 0
        for record in records:
            shift_ns = now_ns - record.command_ns[0]
            command_ns.append(record.command_ns + shift_ns)
            stamp_ns.append(record.stamp_ns + shift_ns)
            first.append(np.full(record.stamp_ns.size, count))
            count += record.stamp_ns.size
            now_ns = int(max(command_ns[-1][-1], stamp_ns[-1][-1])) + PAUSE_NS
        self._first = np.concatenate(first)
        """(m,) int64: to each report, the first one of its record."""
        self._record = WheelRecord(
            np.concatenate(command_ns),
            np.concatenate([record.command_m_s for record in records]),
            np.concatenate(stamp_ns),
            np.concatenate([record.driven_m for record in records]),
        )

    @property
    def commands_m_s(self) -> Array:
        """(n, 2) float64, of all records."""
        return self._record.command_m_s

    @property
    def growth_m_s2(self) -> float:
        """Median rate at which commands grow where a threshold may be; 0 without any."""
        speed_m_s = np.abs(self._record.command_m_s)
        grown_m_s, passed_s = np.diff(speed_m_s, axis=0), np.diff(self._record.command_ns)[:, None] / NS_PER_S
        growing = (grown_m_s > 0) & (speed_m_s[1:] <= MAX_THRESHOLD_M_S) & (passed_s > 0)
        return float(np.median((grown_m_s / np.maximum(passed_s, 1e-9))[growing])) if growing.any() else 0.0

    def predicted_m(self, model: MotorModel, index: int) -> Array:
        """Distance that a wheel drives from the beginning of each record, (m,) float64."""
        predicted_m = self._record.predicted_m(model, index, often=True)
        return np.asarray(predicted_m - predicted_m[self._first])

    def wheel_errors_m(self, model: MotorModel, index: int) -> Array:
        """Prediction minus measurement of a wheel at each stamp, (m,) float64."""
        errors_m = self._record.predicted_m(model, index, often=True) - self._record.driven_m[:, index]
        return np.asarray(errors_m - errors_m[self._first])

    def errors_m(self, model: MotorModel) -> Array:
        """The same of both wheels, (2 m,) float64."""
        return np.concatenate([self.wheel_errors_m(model, index) for index in (0, 1)])


@dataclass(frozen=True, slots=True, eq=False)
class MotorFit:
    """A fitted model.

    Attributes:
        model: the one with the smallest error.
        sigma: (7,) float64, standard deviations of :data:`PARAMETERS`.
        error_m: root mean square of the remaining error.
    """

    model: MotorModel
    sigma: Array
    error_m: float

    def interval(self, name: str) -> tuple[float, float]:
        """The 95 % interval of one of :data:`PARAMETERS`."""
        index = PARAMETERS.index(name)
        value, half = float(_vector(self.model)[index]), INTERVAL_SIGMAS * float(self.sigma[index])
        return max(0.0, value - half), value + half


def fit_motors(
    records: Sequence[WheelRecord], start: MotorModel, prior_sigma: Array | Sequence[float] | None = None
) -> MotorFit:
    """Fit dead time, lag, gains, acceleration limit and thresholds; quantum and separation are those of ``start``.

    Args:
        records: records to fit to. Thresholds need wheels that start from rest.
        start: model at which the search begins.
        prior_sigma: how far from ``start`` each of :data:`PARAMETERS` may be expected; None for anywhere.
    """
    joined = _Joined(records)
    if prior_sigma is not None:
        prior = _Prior(_vector(start), np.maximum(np.asarray(prior_sigma, np.float64), LEAST_SIGMA))
        return _alternated(joined, _fit_smooth(joined, start, prior), LOCAL_ROUNDS, prior)
    trials = [
        _fit_smooth(joined, replace(start, threshold_m_s=(least_m_s, least_m_s), accel_m_s2=accel_m_s2), None)
        for least_m_s in COARSE_THRESHOLDS_M_S
        for accel_m_s2 in COARSE_ACCELS_M_S2
    ]
    best = sorted(trials, key=lambda fit: fit.error_m)[:CONTINUED]
    limited = min((_alternated(joined, fit, ROUNDS, None) for fit in best), key=lambda fit: fit.error_m)
    free = _fit_smooth(joined, replace(limited.model, accel_m_s2=None), None)
    return min(limited, _alternated(joined, free, ROUNDS, None), key=lambda fit: fit.error_m)


@dataclass(frozen=True, slots=True, eq=False)
class _Prior:
    """Expected :data:`PARAMETERS` and their standard deviations."""

    mean: Array
    sigma: Array


def _alternated(records: _Joined, fit: MotorFit, rounds: int, prior: _Prior | None) -> MotorFit:
    """Search the thresholds and fit the rest in turns."""
    for _ in range(rounds):
        model, sigma_m_s = _search_thresholds(records, fit.model, prior)
        fit = _fit_smooth(records, model, prior)
        # A wheel that starts late has a long dead time or a high threshold.
        joint_m_s = np.hypot(sigma_m_s, records.growth_m_s2 * fit.sigma[0])
        fit = replace(fit, sigma=np.append(fit.sigma[:SMOOTH], joint_m_s))
    model = fit.model
    # Commands below half a quantum are rounded to zero, so that a threshold below that cannot be seen.
    left_m_s, right_m_s = (max(threshold_m_s, model.speed_quantum_m_s / 2) for threshold_m_s in model.threshold_m_s)
    return replace(fit, model=replace(model, threshold_m_s=(left_m_s, right_m_s)))


def _fit_smooth(records: _Joined, start: MotorModel, prior: _Prior | None) -> MotorFit:
    """Fit all but the thresholds."""

    def residuals(vector: Array) -> Array:
        parts = [records.errors_m(_model(start, vector)) / SIGMA_M]
        if prior is not None:
            parts.append((vector - prior.mean[:SMOOTH]) / prior.sigma[:SMOOTH])
        return np.concatenate(parts)

    def derivatives(vector: Array) -> Array:
        steps = np.where(vector + STEPS <= UPPER, STEPS, -STEPS)
        here = residuals(vector)
        return np.stack([(residuals(vector + step) - here) / step.sum() for step in np.diag(steps)], axis=1)

    origin = np.clip(_vector(start)[:SMOOTH], LOWER, UPPER)
    fit = least_squares(
        residuals, origin, derivatives, (LOWER, UPPER), x_scale=20 * STEPS, loss="soft_l1", f_scale=OUTLIER, max_nfev=30
    )
    model = _model(start, fit.x)
    errors_m = [records.wheel_errors_m(model, index) for index in (0, 1)]
    error_m = float(np.sqrt(np.mean(np.square(errors_m))))
    information = fit.jac.T @ fit.jac
    # Errors of neighboring reports are not independent: a correlation length of them counts as a single report.
    size_m = error_m * math.sqrt(max(_correlation_length(errors) for errors in errors_m))
    wider = max(math.sqrt(COMMON), size_m / SIGMA_M)
    sigma = np.sqrt(np.maximum(np.diag(np.linalg.pinv(information)), 0.0)) * wider
    return MotorFit(model, np.append(sigma, (0.0, 0.0)), error_m)


def _correlation_length(errors_m: Array) -> float:
    """Integrated autocorrelation of errors until it changes its sign, in reports; 1 where they are independent."""
    products = np.correlate(errors_m, errors_m, "full")[errors_m.size - 1 :]
    if products[0] == 0.0:
        return 1.0
    negative = np.flatnonzero(products <= 0)
    return float(2 * products[: negative[0] if negative.size else None].sum() / products[0] - 1)


def _search_thresholds(records: _Joined, model: MotorModel, prior: _Prior | None) -> tuple[MotorModel, list[float]]:
    """The model with the thresholds of the smallest error, and their standard deviations."""
    sigma_m_s = []
    for index in (0, 1):
        sent_m_s = np.unique(np.round(np.abs(records.commands_m_s[:, index]), 4))
        # Two thresholds differ only if a command lies between them.
        levels_m_s = np.append(0.0, sent_m_s[(sent_m_s > 0) & (sent_m_s <= MAX_THRESHOLD_M_S)])
        middles_m_s = (levels_m_s + np.append(0.0, levels_m_s[:-1])) / 2
        costs: dict[int, float] = {}
        low, high = 0, len(levels_m_s) - 1
        while True:
            for level in np.unique(np.linspace(low, high, SEARCHED).astype(int)).tolist():
                if level not in costs:
                    costs[level] = _cost(records, _with_threshold(model, middles_m_s[level], index), index, prior)
            tried = sorted(costs)
            best = tried.index(min(tried, key=costs.__getitem__))
            low, high = tried[max(0, best - 1)], tried[min(len(tried) - 1, best + 1)]
            if high - low <= 2:
                break
        least = costs[tried[best]]
        near = [level for level in tried if costs[level] <= least + max(COMMON * INTERVAL_SIGMAS**2, NEAR * least)]
        width_m_s = levels_m_s[max(near)] - levels_m_s[max(0, min(near) - 1)]
        sigma_m_s.append(float(width_m_s) / 2 / INTERVAL_SIGMAS)
        model = _with_threshold(model, float(middles_m_s[tried[best]]), index)
    return model, sigma_m_s


def _cost(records: _Joined, model: MotorModel, index: int, prior: _Prior | None) -> float:
    """The loss of a wheel's errors, as in the fit of the smooth parameters.

    Without a prior it is the loss that other gains and dead times would leave: their errors have much in common with
    those of a threshold, and a search of each in turn would end where it began.
    """
    errors_m = records.wheel_errors_m(model, index)
    if prior is None:
        predicted_m = records.predicted_m(model, index)
        columns = np.stack([predicted_m, np.gradient(predicted_m)], axis=1)
        errors_m = errors_m - columns @ np.linalg.lstsq(columns, errors_m, rcond=None)[0]
    cost = float(OUTLIER**2 * np.sum(2 * (np.sqrt(1 + (errors_m / (OUTLIER * SIGMA_M)) ** 2) - 1)))
    if prior is not None:
        at = SMOOTH + index
        cost += float((model.threshold_m_s[index] - prior.mean[at]) / prior.sigma[at]) ** 2
    return cost


def _with_threshold(model: MotorModel, threshold_m_s: float, index: int) -> MotorModel:
    left_m_s, right_m_s = model.threshold_m_s
    return replace(model, threshold_m_s=(left_m_s, threshold_m_s) if index else (threshold_m_s, right_m_s))


def _vector(model: MotorModel) -> Array:
    slowness_s2_m = 0.0 if model.accel_m_s2 is None else 1 / model.accel_m_s2
    return np.array([model.dead_time_s, model.lag_s, *model.gain, slowness_s2_m, *model.threshold_m_s])


def _model(base: MotorModel, vector: Array) -> MotorModel:
    dead_time_s, lag_s, left, right, slowness_s2_m = vector.tolist()
    accel_m_s2 = 1 / slowness_s2_m if slowness_s2_m > LEAST_SLOWNESS_S2_M else None
    return replace(base, dead_time_s=dead_time_s, lag_s=lag_s, gain=(left, right), accel_m_s2=accel_m_s2)
