"""Slow adaptation of the motors' model to what a base does from action to action.

What matters to where the robot comes to rest is the sum of dead time and lag, and the gains. Both follow from one leg
from rest to rest without a search: the gain is the ratio of the distances, and the delay is the area between the
predicted and the measured position over time, per distance. (A fit as of ``identification`` takes 0.3 s per action.)
"""

from dataclasses import replace

import numpy as np

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.hal.motors import MAX_DEAD_TIME_S, MAX_LAG_S, KnownMotors, MotorModel
from robot_runtime.motion.wheel_record import WheelRecord

LEAST_M = 0.15
"""A leg in which a wheel has less to cover is too short: a start against friction loses several millimeters."""

RATE = 0.5
"""Share of a difference by which the model follows in an action."""

DELAY_TOLERANCE_S = 0.015
GAIN_TOLERANCE = 0.01
"""Differences that are not worth a change."""

DELAY_STEP_S = 0.05
GAIN_STEP = 0.02
"""Largest changes in one action."""

DELAY_BOUND_S = 0.3
GAIN_BOUND = 0.1
"""Largest changes in all, from the model that a base came with."""


def adapted(model: MotorModel, record: WheelRecord, known: KnownMotors) -> MotorModel:
    """The model after one leg.

    Args:
        model: model by which the leg was driven.
        record: record of the leg, from rest to rest, in which both wheels covered :data:`LEAST_M` at least.
        known: knowledge of the motors at first. Delays of a calibrated base stay, its gains follow the battery.

    Returns:
        ``model`` itself where nothing differs.
    """
    predicted_m = np.stack([record.predicted_m(model, index) for index in (0, 1)], axis=1)
    driven_m = record.driven_m - record.driven_m[0]
    if np.any(predicted_m[-1] * driven_m[-1] <= 0):
        return model
    ratios = driven_m[-1] / predicted_m[-1]
    gain = tuple(
        _step(now, ratio * now, GAIN_TOLERANCE, GAIN_STEP, start, GAIN_BOUND)
        for now, ratio, start in zip(model.gain, ratios.tolist(), known.model.gain, strict=True)
    )
    dead_time_s, lag_s = model.dead_time_s, model.lag_s
    if not known.calibrated:
        late_s = np.trapezoid(ratios * predicted_m - driven_m, record.stamp_ns / NS_PER_S, axis=0) / driven_m[-1]
        delay_s, start_s = dead_time_s + lag_s, known.model.dead_time_s + known.model.lag_s
        wanted_s = delay_s + float(late_s.mean())
        changed_s = max(0.0, _step(delay_s, wanted_s, DELAY_TOLERANCE_S, DELAY_STEP_S, start_s, DELAY_BOUND_S))
        if changed_s != delay_s:
            dead_time_s = min(max(0.0, changed_s - lag_s), MAX_DEAD_TIME_S)
            lag_s = min(changed_s - dead_time_s, MAX_LAG_S)
    return replace(model, dead_time_s=dead_time_s, lag_s=lag_s, gain=(gain[0], gain[1]))


def described(before: MotorModel, after: MotorModel) -> str:
    """The difference of two models, for people; empty if there is none."""
    parts = []
    for name, old, new in (
        ("dead time", (before.dead_time_s,), (after.dead_time_s,)),
        ("lag", (before.lag_s,), (after.lag_s,)),
        ("gain", before.gain, after.gain),
        ("threshold", before.threshold_m_s, after.threshold_m_s),
    ):
        if old != new:
            unit = {"gain": "", "threshold": " m/s"}.get(name, " s")
            parts.append(f"{name} {_listed(old)} to {_listed(new)}{unit}")
    return ", ".join(parts)


def _listed(values: tuple[float, ...]) -> str:
    return "/".join(f"{value:.3f}" for value in values)


def _step(now: float, wanted: float, tolerance: float, step: float, start: float, bound: float) -> float:
    if abs(wanted - now) < tolerance:
        return now
    change = min(max(RATE * (wanted - now), -step), step)
    return min(max(now + change, start - bound), start + bound)
