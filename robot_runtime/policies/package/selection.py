"""Choice of an action's id from logits."""

import numpy as np
from numpy.typing import NDArray

from robot_runtime.policies.package.manifest import Selection


class Selector:
    """Selector of an episode; of equal logits it takes the first.

    Args:
        selection: mode, temperature and seed.
        episode_seed: together with ``selection.seed``, of the draws.
    """

    def __init__(self, selection: Selection, episode_seed: int) -> None:
        self._selection = selection
        self._random = np.random.default_rng((selection.seed, episode_seed))

    def choose(self, logits: NDArray[np.float32]) -> int:
        """The chosen index into ``logits`` (actions,); draws one random number if it samples."""
        if self._selection.mode == "argmax":
            return int(logits.argmax())
        cumulative = probabilities(logits, self._selection.temperature).cumsum()
        # Rounding may leave the last sum below 1, and the draw between the two.
        return min(int(np.searchsorted(cumulative, self._random.random(), side="right")), len(logits) - 1)


def probabilities(logits: NDArray[np.float32], temperature: float = 1.0) -> NDArray[np.float64]:
    """Softmax of ``logits / temperature``, float64."""
    scaled = logits.astype(np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    return np.asarray(weights / weights.sum())
