"""Automatic judge of what people judge: its thresholds, and what is known of its errors."""

from __future__ import annotations

from dataclasses import dataclass

from robot_runtime.common import config


@dataclass(frozen=True)
class Judge:
    """A judge's thresholds and what is known of its errors.

    Attributes:
        low: below this score the judge says no.
        high: at this score or above it says yes; between the two it abstains.
        positives: calibration episodes whose truth is yes and that it decided.
        true_positives: of them, those to which it said yes.
        negatives: calibration episodes whose truth is no and that it decided.
        true_negatives: of them, those to which it said no.
    """

    low: float
    high: float
    positives: int
    true_positives: int
    negatives: int
    true_negatives: int

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high <= 1:
            raise ValueError(f"a judge needs 0 <= low <= high <= 1, got {self.low} and {self.high}")
        if not (0 <= self.true_positives <= self.positives and 0 <= self.true_negatives <= self.negatives):
            raise ValueError(f"a judge is right at most as often as it decides, got {self}")

    def verdict(self, score: float) -> bool | None:
        """Yes, no, or None: it abstains."""
        return True if score >= self.high else False if score < self.low else None
