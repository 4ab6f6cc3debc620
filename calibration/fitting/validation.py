"""Cross-validation of the fitted action model against published models.

Each action is evaluated by a model fitted to other episodes. A model's figure is the mean log density of the ends of
actions, in nats per action; differences between models are paired by action, with bootstrap intervals over episodes.
All models, the ideal one included, contain ``robot_runtime.robots.action_errors.ARRIVAL`` and the referee's noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.actions import MIN_EPISODES, RESAMPLES, Sample, Selection, fit_model
from robot_runtime.robots.action_errors import ARRIVAL, MOVES, ActuationModel
from robot_runtime.robots.published_action_errors import published_models
from robot_runtime.scoring.statistics.intervals import Interval, bootstrap_mean

Array = NDArray[np.float64]

FOLDS = 5
MIN_ACTIONS = 100


@dataclass(frozen=True)
class Rival:
    """One published model compared with the fitted one.

    Attributes:
        nats: mean log density per held-out action.
        gain: fitted less this model, nats per action, with 95 % interval.
        by_action: gain of each action alone.
    """

    name: str
    nats: float
    gain: Interval
    by_action: dict[str, Interval]

    @property
    def verdict(self) -> str:
        """Comparison of the fitted model with this one in words."""
        if self.gain.low > 0:
            return "better"
        return "worse" if self.gain.high < 0 else "no telling"


@dataclass(frozen=True)
class Validation:
    """Held-out likelihood.

    Attributes:
        nats: mean log density of the fitted model per held-out action; None with too few actions or episodes.
        rivals: published models, the strongest first.
        reason: why there is no figure.
    """

    nats: float | None
    rivals: tuple[Rival, ...]
    actions: int
    episodes: int
    reason: str = ""


def validate(selection: Selection) -> Validation:
    """Cross-validate the fit of a selection."""
    samples = selection.samples
    episodes = sorted({sample.episode for sample in samples})
    if len(episodes) < MIN_EPISODES or len(samples) < MIN_ACTIONS:
        why = (
            f"too few to hold some out: {len(samples)} actions in {len(episodes)} episodes, {MIN_ACTIONS} in "
            f"{MIN_EPISODES} are needed"
        )
        return Validation(None, (), len(samples), len(episodes), why)
    fold = {episode: place % FOLDS for place, episode in enumerate(episodes)}
    fitted = np.full(len(samples), np.nan)
    for number in range(FOLDS):
        held_out = np.array([fold[sample.episode] == number for sample in samples])
        model = fit_model(selection, [s for s, out in zip(samples, held_out, strict=True) if not out])
        if model is None:
            why = "too few actions of a kind are left where some episodes are held out"
            return Validation(None, (), len(samples), len(episodes), why)
        fitted[held_out] = log_densities(model, [s for s, out in zip(samples, held_out, strict=True) if out])
    size = selection.size
    rivals = [
        _rival(name, samples, fitted, log_densities(model, samples))
        for name, model in published_models(size.forward_m, size.turn_deg).items()
    ]
    rivals.sort(key=lambda rival: -rival.nats)
    return Validation(float(fitted.mean()), tuple(rivals), len(samples), len(episodes))


def log_densities(model: ActuationModel, samples: Sequence[Sample]) -> Array:
    """Return the log density of each sample under a model, float64 (N,), nats."""
    densities = np.empty(len(samples))
    for action in MOVES:
        places = [place for place, sample in enumerate(samples) if sample.trial.action is action]
        if places:
            errors = np.array([samples[place].trial.error for place in places])
            noise = np.array([samples[place].trial.noise for place in places])
            densities[places] = model.actions[action.name.lower()].log_densities(errors, noise + ARRIVAL)
    return densities


def _rival(name: str, samples: Sequence[Sample], fitted: Array, published: Array) -> Rival:
    gain = fitted - published
    episodes = np.array([sample.episode for sample in samples])
    kinds = np.array([sample.trial.action.name.lower() for sample in samples])
    by_action = {}
    for kind in dict.fromkeys(kinds.tolist()):
        of_kind = kinds == kind
        if len(set(episodes[of_kind].tolist())) >= 2:
            by_action[kind] = _interval(gain[of_kind], episodes[of_kind])
    return Rival(name, float(published.mean()), _interval(gain, episodes), by_action)


def _interval(values: Array, episodes: NDArray[np.int64]) -> Interval:
    return bootstrap_mean(values.tolist(), resamples=RESAMPLES, clusters=episodes.tolist())
