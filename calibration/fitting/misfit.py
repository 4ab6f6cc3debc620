"""Goodness of fit of the action model, by the number and by the place of the errors that it does not explain.

The model has one normally distributed error per action. Two tests contradict it, both on all usable actions, outliers
included:

* Number: more outliers than a normal distribution has. Rooms in which they gather are named.
* Place: in one room, errors along an axis, or their Mahalanobis distances, rank otherwise than in the others.

Ranks and counts need no distribution of the errors. The tests assume that errors of different actions are independent.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom, mannwhitneyu

from calibration.fitting.actions import Sample, Selection
from robot_runtime.robots.action_errors import ARRIVAL, MOVES

LEVEL = 0.002
"""Probability, over all tests of a robot, that a robot which the model describes is called a misfit."""

OUTLIER_SHARE = 1e-3
"""Share of outliers of a normal distribution whose covariance was estimated from a few actions: 1e-4 if known."""

LOCATING_LEVEL = 0.005
"""Probability that a room has as many of the outliers by chance, below which they are said to gather in it."""

MIN_IN_ROOM = 8
"""Least number of actions in a room, and outside it, for a comparison."""

MIN_EFFECT = 0.1
"""Least deviation of the probability of superiority from 1/2: smaller differences change no simulation much."""

NAMES = {"move_forward": "forward", "turn_left": "turn left", "turn_right": "turn right"}
EFFECTS = ("ahead", "to the left", "of heading", "spread")


@dataclass(frozen=True)
class Misfit:
    """One contradiction of the model.

    Attributes:
        effect: the errors that differ: an element of ``EFFECTS``, or "outliers".
        room: name of the room; empty for everywhere.
        found: number of outliers; for ranks, the probability that an error in the room exceeds one elsewhere.
        due: the same by the model.
        actions: number of actions that were compared, in the room or everywhere.
        p_value: probability of as great a difference under the model.
    """

    action: str
    effect: str
    room: str
    found: float
    due: float
    actions: int
    p_value: float

    def __str__(self) -> str:
        where = f" in {self.room}" if self.room else ""
        name = NAMES[self.action]
        if self.effect == "outliers":
            return (
                f"{name}{where}: {self.found:.0f} of {self.actions} actions are far from all others, {self.due:.1f} due"
            )
        more = "more" if self.found > self.due else "less"
        share = max(self.found, 1 - self.found)
        return (
            f"{name}{where}: {more} error {self.effect} than elsewhere in {100 * share:.0f} % of comparisons, "
            f"50 due, {self.actions} actions"
        ).replace("error spread", "spread")


def misfits(selection: Selection) -> tuple[Misfit, ...]:
    """Return the contradictions of a selection, the clearest first; none for a model that fits."""
    everything = (*selection.samples, *selection.outliers)
    rooms = {sample.room for sample in everything if sample.room}
    level = LEVEL / (len(MOVES) * (1 + len(rooms) * (1 + len(EFFECTS))))
    outliers = {(sample.episode, sample.step) for sample in selection.outliers}
    found: list[Misfit] = []
    for action in MOVES:
        samples = [sample for sample in everything if sample.trial.action is action]
        out = np.array([(sample.episode, sample.step) in outliers for sample in samples], bool)
        name = action.name.lower()
        found += _by_number(name, samples, out, level)
        if (~out).sum() >= MIN_IN_ROOM:
            found += _by_place(name, samples, out, level)
    return tuple(sorted(found, key=lambda misfit: misfit.p_value))


def _by_number(name: str, samples: Sequence[Sample], out: NDArray[np.bool_], level: float) -> Iterator[Misfit]:
    count, total = len(samples), int(out.sum())
    p_value = float(binom.sf(total - 1, count, OUTLIER_SHARE))
    if p_value >= level:
        return
    placed = False
    for room, inside in _rooms(samples):
        size, here = int(inside.sum()), int((inside & out).sum())
        by_chance = float(hypergeom.sf(here - 1, count, total, size))
        if size < count and by_chance < LOCATING_LEVEL:
            placed = True
            yield Misfit(name, "outliers", room, here, size * OUTLIER_SHARE, size, p_value)
    if not placed:
        yield Misfit(name, "outliers", "", total, count * OUTLIER_SHARE, count, p_value)


def _by_place(name: str, samples: Sequence[Sample], out: NDArray[np.bool_], level: float) -> Iterator[Misfit]:
    errors = np.array([sample.trial.error for sample in samples])
    noise = np.array([sample.trial.noise for sample in samples])
    off = errors - errors[~out].mean(axis=0)
    own = np.cov(errors[~out], rowvar=False) - noise[~out].mean(axis=0)
    values, vectors = np.linalg.eigh(own)
    # The referee's noise may differ between actions: each is compared with its own.
    expected = (vectors * np.maximum(values, 0)) @ vectors.T + ARRIVAL + noise
    spread = np.einsum("ni,ni->n", off, np.linalg.solve(expected, off[:, :, None])[:, :, 0])
    for room, inside in _rooms(samples):
        here, elsewhere = int(inside.sum()), int((~inside).sum())
        if min(here, elsewhere) < MIN_IN_ROOM:
            continue
        for effect, ranked in zip(EFFECTS, (*off.T, spread), strict=True):
            statistic, p_value = mannwhitneyu(ranked[inside], ranked[~inside], method="asymptotic")
            exceeds = float(statistic) / (here * elsewhere)
            if math.isfinite(p_value) and p_value < level and abs(exceeds - 0.5) >= MIN_EFFECT:
                yield Misfit(name, effect, room, exceeds, 0.5, here, float(p_value))


def _rooms(samples: Sequence[Sample]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    for room in sorted({sample.room for sample in samples if sample.room}):
        yield room, np.array([sample.room == room for sample in samples], bool)
