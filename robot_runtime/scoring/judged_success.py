"""Success by an automatic judge of visibility, corrected for the judge's errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from robot_runtime.scoring.statistics.intervals import Interval
from robot_runtime.scoring.statistics.judge import corrected_success
from robot_runtime.scoring.summary import EpisodeScore
from robot_runtime.verdicts import Judge, Verdict


@dataclass(frozen=True)
class JudgedSuccess:
    """Success in the episodes that one judge decided, and in those that failed without it.

    Attributes:
        who: name of the judge.
        judge: its thresholds and errors.
        judged: stops near the object that it decided.
        failed: episodes that failed whatever it says: without a stop, or with one far from the object.
        abstained: episodes that it left open; they are not part of the share.
        success: the corrected share; None if it decided nothing.
    """

    who: str
    judge: Judge
    judged: int
    failed: int
    abstained: int
    success: Interval | None


def judged_successes(scores: Iterable[EpisodeScore]) -> tuple[JudgedSuccess, ...]:
    """One entry for each judge of a group's scored episodes; an episode that a person judged is in none."""
    scored = [score for score in scores if score.scorable]
    last = [(score, _last(score.evidence)) for score in scored]
    found = []
    for who, judge in dict.fromkeys((one.who, one.judge) for _, one in last if one is not None and one.judge):
        own = [(score, one) for score, one in last if one is not None and (one.who, one.judge) == (who, judge)]
        decided = [score for score, one in own if one.visible is not None]
        near = [score for score in decided if _may_succeed(score)]
        unstopped = sum(one is None and not _may_succeed(score) for score, one in last)
        failed, yes = len(decided) - len(near) + unstopped, sum(bool(score.metrics["success"]) for score in near)
        share = corrected_success(yes, len(near), failed, judge) if near else None
        found.append(JudgedSuccess(who, judge, len(near), failed, len(own) - len(decided), share))
    return tuple(found)


def judge_text(found: JudgedSuccess) -> str:
    """Name of the judge, number of its verdicts, and its errors, in a line."""
    judge = found.judge
    return (
        f"visibility judged by {found.who}: {found.judged} stops decided, {found.abstained} left open, {found.failed} "
        f"failed without it; right in {judge.true_positives} of {judge.positives} positives and {judge.true_negatives} "
        f"of {judge.negatives} negatives of known truth"
    )


def _last(statements: Iterable[Verdict]) -> Verdict | None:
    """The last annotation of visibility by a judge; None if a person gave a verdict."""
    said = [one for one in statements if one.visible is not None or one.judge is not None]
    by_people = [one for one in said if one.judge is None]
    return said[-1] if said and not by_people else None


def _may_succeed(score: EpisodeScore) -> bool:
    criteria = ("criterion_intentionality", "criterion_proximity")
    return all(score.metrics.get(name) is not False for name in criteria)
