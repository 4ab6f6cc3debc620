"""Public functions of the statistics refuse what is no number, out of range, or no count."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from robot_runtime.errors import ConfigError
from robot_runtime.scoring.statistics.hypothesis_tests import paired_permutation_test, spl_variance
from robot_runtime.scoring.statistics.intervals import bootstrap_mean, wilson
from robot_runtime.scoring.statistics.judge import calibrate, count_errors
from robot_runtime.scoring.statistics.sequential import (
    BettingProcess,
    ConfidenceSequence,
    SequentialPairedTest,
    stopping_times,
)

NAN = math.nan
REFUSED: dict[str, Callable[[], Any]] = {
    "a fractional count": lambda: wilson(1.5, 3),  # type: ignore[arg-type]
    "a fractional number of episodes": lambda: wilson(1, 3.5),  # type: ignore[arg-type]
    "fractional samples": lambda: bootstrap_mean([0.0, 1.0], resamples=10.5),  # type: ignore[arg-type]
    "fractional permutations": lambda: paired_permutation_test([0.0], [1.0], permutations=1.5),  # type: ignore[arg-type]
    "fractional episodes": lambda: spl_variance(0.5, 0.5, 1.5),  # type: ignore[arg-type]
    "NaN abstentions": lambda: calibrate([0.1, 0.5], [False, True], abstention=NAN),
    "a NaN score": lambda: count_errors([0.1, NAN], [False, True], 0.3, 0.6),
    "NaN differences": lambda: stopping_times([[NAN]]),
    "differences of 5": lambda: stopping_times([[5.0] * 5]),
    "one dimension": lambda: stopping_times([0.5]),
    "a level of NaN": lambda: stopping_times([[0.5]], alpha=NAN),
    "no sides": lambda: stopping_times([[0.5]], sides="x"),  # type: ignore[arg-type]
    "fractional pairs": lambda: SequentialPairedTest("m", max_pairs=2.5),  # type: ignore[arg-type]
    "a level of 1.5": lambda: ConfidenceSequence(1.5),
    "a NaN value": lambda: ConfidenceSequence(0.05).add(NAN),
    "a value of 5": lambda: ConfidenceSequence(0.05).add(5.0),
    "a NaN bet": lambda: BettingProcess([0.0]).add(NAN),
    "a NaN hypothesis": lambda: BettingProcess([NAN]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(name: str) -> None:
    with pytest.raises((ConfigError, ValueError)):
        REFUSED[name]()
