"""Judgments of people: strict and lenient success of an episode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from robot_runtime.verdicts import Verdict


@dataclass(frozen=True)
class SuccessViews:
    """Success of an episode where people judged it or helped.

    Attributes:
        strict: an episode with help, or that one judge calls a failure, has failed.
        lenient: help is ignored, and one judge who calls it a success suffices.
    """

    strict: bool
    lenient: bool


def success_views(statements: Sequence[Verdict], by_metrics: bool) -> SuccessViews:
    """Both views of an episode; without any judgment the metrics decide.

    Args:
        statements: annotations of the episode, the last one last.
        by_metrics: success by the task's rule.
    """
    helped = False
    for one in statements:
        helped = helped if one.intervention is None else one.intervention
    judged = list(judgments(statements).values()) or [by_metrics]
    return SuccessViews(all(judged) and not helped, any(judged))


def judgments(statements: Iterable[Verdict]) -> dict[str, bool]:
    """The last judgment of success or failure by each person."""
    found: dict[str, bool] = {}
    for one in statements:
        if one.judgment == "invalid":
            found.pop(one.who, None)
        elif one.judgment is not None:
            found[one.who] = one.judgment == "success"
    return found
