"""Sequential tests and confidence sequences of paired differences, valid at any time.

A test martingale is the capital of a player who bets on the hypothesis being false, with stakes chosen from the past.
If the hypothesis holds, the capital exceeds 1/alpha at any time with probability alpha at most (Ville 1939), so one may
look after every pair and stop at will. A value of the mean is in the confidence sequence as long as the capital against
it has stayed below 1/alpha (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting").
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_runtime.errors import ConfigError
from robot_runtime.scoring.statistics.intervals import Interval, is_count

Sides = Literal["one", "two"]
"""``one``: only whether B is better than A; ``two``: whether either is better."""

Decision = Literal["continue", "A", "B", "undecided"]
"""``A`` or ``B`` is better; ``undecided``: the largest number of pairs is reached without an answer."""

_Numbers = float | NDArray[np.float64]

_CAP = 0.95
"""Largest stake as a share of what could be lost on one value."""

_ROUNDING = 1e-9

_PRIOR_SUM, _PRIOR_SQUARES = 1.0, 2.0
"""Start of the stake's sums. For values of -1 and 1 the stakes are then those of the sign test with the predicted
probability max(1/2, (w + 1.5) / (w + l + 2)) after w wins and l losses."""

_GRID = 801
"""Values of the mean that a confidence sequence tries; its ends are rounded outward by one step of 1/400."""


class BettingProcess:
    """Log capital of bets against hypotheses about the mean of bounded values, one process per element of ``null``.

    The capital of the bet on a larger mean is the product of 1 + stake (x - null); its stake is sum(x - null) /
    sum((x - null)^2) of the past, which approximates the stake of fastest growth, and at least 0. The bet on a smaller
    mean mirrors it. With two sides the capital is the average of both.

    Attributes:
        up: log capital of the bet on a larger mean.
        down: log capital of the bet on a smaller mean.

    Raises:
        ConfigError: a hypothesis is not finite.
    """

    def __init__(self, null: ArrayLike) -> None:
        self._null = np.asarray(null, np.float64)
        if not np.isfinite(self._null).all():
            raise ConfigError("a hypothesis about the mean is not finite", "give hypotheses between the values' bounds")
        self._sum = np.zeros(self._null.shape)
        self._squares = np.zeros(self._null.shape)
        self.up = np.zeros(self._null.shape)
        self.down = np.zeros(self._null.shape)

    def add(self, values: _Numbers, low: float = -1.0, high: float = 1.0) -> None:
        """Add one value to each process.

        Args:
            values: one value for all processes, or an array of the shape of ``null``.
            low: least possible value, known before it is seen; at most ``null``.
            high: largest possible value, known before it is seen; at least ``null``.

        Raises:
            ConfigError: a value is not between ``low`` and ``high``; nothing has changed then.
        """
        given = np.asarray(values)
        if not ((given >= low - _ROUNDING) & (given <= high + _ROUNDING)).all():
            raise ConfigError(f"a value is not between {low} and {high}", "give values within their bounds")
        past = self._squares + _PRIOR_SQUARES
        stake_up = _stake(self._sum + _PRIOR_SUM, past, self._null - low)
        stake_down = _stake(_PRIOR_SUM - self._sum, past, high - self._null)
        moved = values - self._null
        self.up += np.log1p(stake_up * moved)
        self.down += np.log1p(-stake_down * moved)
        self._sum += moved
        self._squares += moved * moved

    def log_capital(self, sides: Sides) -> NDArray[np.float64]:
        """Log of the e-value against each hypothesis: the mean is at most (one) or equal to (two) ``null``."""
        return self.up if sides == "one" else np.logaddexp(self.up, self.down) - math.log(2)


def _stake(gain: NDArray[np.float64], squares: NDArray[np.float64], loss: NDArray[np.float64]) -> NDArray[np.float64]:
    """Stakes between 0 and a share of 1/loss, where ``loss`` is the most that one value may be beyond ``null``."""
    return np.clip(gain / squares, 0.0, _CAP / np.maximum(loss, 1e-9))


def _check_level(alpha: float, sides: Sides) -> None:
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha must lie in (0, 1), got {alpha}", "0.05 is usual")
    if sides not in ("one", "two"):
        raise ConfigError(f"sides must be 'one' or 'two', got {sides!r}", "use 'two' unless only B may be better")


class ConfidenceSequence:
    """Interval of the mean of values between -1 and 1 that is valid after all values together.

    Args:
        alpha: probability that it ever leaves the mean out.
        sides: ``one`` bounds the mean from below only.

    Attributes:
        bets: bets against the values of the mean that are tried, from -1 to 1.
        low: lower end; every value at or below it is excluded.
        high: upper end; every value at or above it is excluded, unless it is 1.

    Raises:
        ConfigError: ``alpha`` or ``sides`` is none, or in :meth:`add` a value is out of its bounds.
    """

    def __init__(self, alpha: float, sides: Sides = "two") -> None:
        _check_level(alpha, sides)
        self._limit, self._sides, self._grid = -math.log(alpha), sides, np.linspace(-1.0, 1.0, _GRID)
        self._possible = np.ones(_GRID, bool)
        self.bets = BettingProcess(self._grid)
        self.low, self.high = -1.0, 1.0

    def add(self, value: float, low: float = -1.0, high: float = 1.0) -> None:
        """Add a value; ``low`` and ``high`` are its bounds, known before it, at most -1 and at least 1."""
        self.bets.add(value, low, high)
        self._possible &= self.bets.log_capital(self._sides) < self._limit
        if self._possible.any():  # else, with probability alpha at most, the last ends stay
            inside = np.flatnonzero(self._possible)
            self.low = float(self._grid[max(0, inside[0] - 1)])
            self.high = 1.0 if self._sides == "one" else float(self._grid[min(_GRID - 1, inside[-1] + 1)])


class SequentialPairedTest:
    """Test of two policies on the same starts, one pair at a time.

    For a success (0 or 1) this is the sign test of the pairs that differ; for a graded score, a bet on the differences.
    The pairs must be scored in the order in which they were run, and metric, alpha, sides and largest number be chosen
    before the first.

    Args:
        metric: name of the metric, for messages.
        alpha: probability of a wrong decision, over all pairs together.
        sides: sides of the alternative hypothesis.
        max_pairs: number of pairs after which the test ends; None for no limit.
        worst: worst possible value of the metric, in its unit.
        best: best possible value of the metric; below ``worst`` where less is better.

    Raises:
        ConfigError: a number is outside its range.
    """

    def __init__(
        self,
        metric: str,
        alpha: float = 0.05,
        sides: Sides = "two",
        max_pairs: int | None = None,
        worst: float = 0.0,
        best: float = 1.0,
    ) -> None:
        _check_level(alpha, sides)
        if max_pairs is not None and (not is_count(max_pairs) or max_pairs < 1):
            raise ConfigError(f"the largest number of pairs is whole and at least 1, not {max_pairs}", "correct it")
        if not (math.isfinite(worst) and math.isfinite(best)) or worst == best:
            raise ConfigError(f"{metric} cannot range from {worst} to {best}", "give two different, finite values")
        self.metric, self.alpha, self.sides, self.max_pairs = metric, alpha, sides, max_pairs
        self._worst, self._scale = worst, best - worst
        self._sequence = ConfidenceSequence(alpha, sides)
        self._sum = 0.0
        self._largest_log_e = 0.0
        self._better: Decision = "continue"
        self.pairs = 0

    def add(self, a: float, b: float) -> Decision:
        """Add the scores of a start and return the decision so far.

        Raises:
            ConfigError: a score is not in the metric's range, or the largest number of pairs is reached.
        """
        if self.pairs == self.max_pairs:
            raise ConfigError(f"all {self.max_pairs} pairs of the plan are in", "plan another campaign for more")
        shares = [(value - self._worst) / self._scale for value in (a, b)]
        for value, share in zip((a, b), shares, strict=True):
            if not 0 <= share <= 1:
                raise ConfigError(
                    f"{self.metric} {value} is outside {self._worst} to {self._worst + self._scale}",
                    "choose a metric with bounds, or state wider bounds before the first pair",
                )
        difference = shares[1] - shares[0]
        self._sequence.add(difference)
        self.pairs += 1
        self._sum += difference
        bets, zero = self._sequence.bets, _GRID // 2
        log_e = float(bets.log_capital(self.sides)[zero])
        self._largest_log_e = max(self._largest_log_e, log_e)
        if self._better == "continue" and log_e >= -math.log(self.alpha):
            self._better = "B" if bets.up[zero] >= bets.down[zero] else "A"
        return self.decision

    @property
    def decision(self) -> Decision:
        """The decision so far; once made, it stays."""
        if self._better == "continue" and self.pairs == self.max_pairs:
            return "undecided"
        return self._better

    @property
    def p_value(self) -> float:
        """Any-time p-value of equal policies, or with one side of B not being better."""
        return math.exp(-self._largest_log_e)

    @property
    def interval(self) -> Interval:
        """Mean of B - A in the metric's unit with a confidence sequence of 1 - alpha, valid at all times together.

        With one side only the end on A's side is bounded. Before the first pair the mean is NaN.
        """
        mean = self._sum / self.pairs if self.pairs else math.nan
        low, high = sorted(end * self._scale for end in (self._sequence.low, self._sequence.high))
        return Interval(mean * self._scale, low, high)


def stopping_times(
    differences: ArrayLike, alpha: float = 0.05, sides: Sides = "one"
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs until the decision of many campaigns at once, by the test of :class:`SequentialPairedTest`.

    Args:
        differences: B - A of each campaign and pair, between -1 and 1, shape (campaigns, max_pairs).
        alpha: probability of a wrong decision.
        sides: sides of the alternative hypothesis.

    Returns:
        Pairs used, and the better policy: 1 for B, -1 for A, 0 for undecided; both of shape (campaigns,).

    Raises:
        ConfigError: the differences have another shape, or one is not between -1 and 1; or as
            :class:`SequentialPairedTest`.
    """
    _check_level(alpha, sides)
    array = np.asarray(differences, np.float64)
    if array.ndim != 2 or not (np.abs(array) <= 1).all():
        raise ConfigError(
            f"differences of shape {array.shape} are not campaigns by pairs, all between -1 and 1",
            "give a row per campaign, of scores between 0 and 1",
        )
    campaigns, most = array.shape
    pairs = np.full(campaigns, most)
    better = np.zeros(campaigns, np.int64)
    bets = BettingProcess(np.zeros(campaigns))
    for number in range(most):
        bets.add(array[:, number])
        decided = (better == 0) & (bets.log_capital(sides) >= -math.log(alpha))
        pairs[decided] = number + 1
        better[decided] = np.where(bets.up[decided] >= bets.down[decided], 1, -1)
        if better.all():
            break
    return pairs, better
