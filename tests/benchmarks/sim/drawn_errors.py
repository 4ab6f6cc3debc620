"""Errors of actions drawn for robots that a model describes, or does not in one of four rooms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.actions import Sample, Selection, Size, inliers
from calibration.fitting.misfit import misfits
from calibration.motion.action_errors import Trial
from robot_runtime.actions.discrete import Action
from robot_runtime.robots.action_errors import MOVES

Array = NDArray[np.float64]
Change = Callable[[np.random.Generator, Action, Array], Array]

DEVIATION = np.array([0.008, 0.006, 0.017])
ROOMS = ("bath", "hall", "kitchen", "study")


def selection(random: np.random.Generator, actions: int, change: Change, place: str = "kitchen") -> Selection:
    """Actions of each kind in four rooms, changed in one of them."""
    samples: list[Sample] = []
    good: list[bool] = []
    for action in MOVES:
        of_action = []
        for number in range(actions):
            error, room = random.normal(0, DEVIATION), ROOMS[random.integers(4)]
            if place in ("", room):
                error = change(random, action, error)
            trial = Trial(action, error, np.zeros((3, 3)))
            of_action.append(Sample(number % 10, 3 * number + MOVES.index(action), trial, trial, room))
        samples += of_action
        good += inliers(np.array([sample.trial.error for sample in of_action])).tolist()
    kept = tuple(sample for sample, fits in zip(samples, good, strict=True) if fits)
    return Selection(Size(0.25, 30.0), kept, {}, tuple(s for s, fits in zip(samples, good, strict=True) if not fits))


def slipping(random: np.random.Generator, action: Action, error: Array) -> Array:
    lost = [-0.1, 0, 0] if action is Action.MOVE_FORWARD else [0, 0, 0.2]
    return np.add(error, lost) if random.random() < 0.5 else error


def sloping(_: np.random.Generator, action: Action, error: Array) -> Array:
    return np.add(error, (0, 0.012, 0)) if action is Action.MOVE_FORWARD else error


def rough(_: np.random.Generator, action: Action, error: Array) -> Array:
    return 3 * error if action is Action.TURN_LEFT else error


def unchanged(_: np.random.Generator, action: Action, error: Array) -> Array:
    return error


def named(seed: int, robots: int, actions: int = 150) -> tuple[int, int]:
    """How many robots that slip in the kitchen a fit says so of, and how many without a fault it contradicts.

    Args:
        seed: seed of all errors.
        robots: number of robots of either kind.
        actions: number of actions of each kind.
    """
    found, false = 0, 0
    for number in range(robots):
        faults = misfits(selection(np.random.default_rng((seed, number, 0)), actions, slipping))
        found += any(fault.room == "kitchen" for fault in faults)
        false += bool(misfits(selection(np.random.default_rng((seed, number, 1)), actions, unchanged)))
    return found, false
