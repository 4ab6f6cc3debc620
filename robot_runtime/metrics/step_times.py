"""Times of many steps: percentiles per phase, of any number of steps in a few hundred numbers.

Times are counted in bins that are 2 % wide, so a percentile is within 1 % of the exact one, and the counts of thousands
of logs add up.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from robot_runtime.records import PHASES

_BIN = math.log(1.02)
_MIN_S = 1e-9

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class PhaseTime:
    """Host milliseconds per step that one phase took: percentiles over ``steps`` that had it."""

    phase: str
    steps: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass
class Latency:
    """Counts of times by phase (a key of ``records.PHASES``) and bin; equal for equal times in any order."""

    counts: dict[str, Counter[int]] = field(default_factory=dict)

    def add(self, phase_s: Mapping[str, float]) -> None:
        """Add one step. Unknown phases, of older logs, are left out."""
        for phase, seconds in phase_s.items():
            if phase in PHASES:
                number = math.floor(math.log(max(seconds, _MIN_S)) / _BIN)
                self.counts.setdefault(phase, Counter())[number] += 1

    def times(self) -> list[PhaseTime]:
        """Percentiles of all phases that occurred, in the order of ``PHASES``."""
        return [
            PhaseTime(phase, self.counts[phase].total(), *_percentiles_ms(self.counts[phase]))
            for phase in PHASES
            if phase in self.counts
        ]


def together(parts: Iterable[Latency]) -> Latency:
    """Merge the counts of several parts."""
    whole = Latency()
    for part in parts:
        for phase, counts in part.counts.items():
            whole.counts.setdefault(phase, Counter()).update(counts)
    return whole


def _percentiles_ms(counts: Counter[int]) -> Iterator[float]:
    """Per percentile, the smallest time that at least so many percent of the steps did not exceed."""
    total = counts.total()
    ordered = sorted(counts.items())
    for percent in PERCENTILES:
        seen = 0
        for number, count in ordered:
            seen += count
            if 100 * seen >= percent * total:
                yield 1000 * math.exp((number + 0.5) * _BIN)
                break
