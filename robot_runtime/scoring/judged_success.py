"""Success by an automatic judge of visibility, corrected for the judge's errors."""

from collections.abc import Iterable
from dataclasses import dataclass

from robot_runtime.scoring.statistics.intervals import Interval
from robot_runtime.scoring.summary import EpisodeScore
from robot_runtime.verdicts import Judge, Verdict


@dataclass(frozen=True)
class JudgedSuccess:
    """Success in the episodes that one judge decided, and in those that failed without it.

    Attributes:
        who: name of the judge.
        judge: thresholds and errors of the judge.
        judged: number of stops near the object that it decided.
        failed: number of episodes that failed whatever it says: without a stop, or with a stop far from the object.
        abstained: number of episodes that it left open; they are not part of the share.
        success: corrected share of successes; None if it decided nothing.
    """

    who: str
    judge: Judge
    judged: int
    failed: int
    abstained: int
    success: Interval | None


def judged_successes(scores: Iterable[EpisodeScore]) -> tuple[JudgedSuccess, ...]:
    """One entry for each judge of a group's scored episodes; an episode with a person's verdict is in none."""
    scored = [score for score in scores if score.scorable]
    last = [(score, _last(score.verdicts)) for score in scored]
    successes = []
    judges = dict.fromkeys((verdict.who, verdict.judge) for _, verdict in last if verdict and verdict.judge)
    for who, judge in judges:
        from robot_runtime.scoring.statistics.judge import corrected_success  # most runs have no judge

        own = [(score, given) for score, given in last if given and (given.who, given.judge) == (who, judge)]
        decided = [score for score, verdict in own if verdict.visible is not None]
        near = [score for score in decided if _may_succeed(score)]
        unstopped = sum(verdict is None and not _may_succeed(score) for score, verdict in last)
        failed, yes = len(decided) - len(near) + unstopped, sum(bool(score.metrics["success"]) for score in near)
        share = corrected_success(yes, len(near), failed, judge) if near else None
        successes.append(JudgedSuccess(who, judge, len(near), failed, len(own) - len(decided), share))
    return tuple(successes)


def judge_text(result: JudgedSuccess) -> str:
    """Name of the judge, number of its verdicts, and its errors, in a line."""
    judge = result.judge
    return (
        f"visibility judged by {result.who}: {result.judged} stops decided, {result.abstained} left open, "
        f"{result.failed} failed without it; right in {judge.true_positives} of {judge.positives} positives and "
        f"{judge.true_negatives} of {judge.negatives} negatives of known truth"
    )


def _last(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The last verdict on visibility, if a judge gave it and no person gave any; else None."""
    said = [verdict for verdict in verdicts if verdict.visible is not None or verdict.judge is not None]
    by_people = [verdict for verdict in said if verdict.judge is None]
    return said[-1] if said and not by_people else None


def _may_succeed(score: EpisodeScore) -> bool:
    criteria = ("criterion_intentionality", "criterion_proximity")
    return all(score.metrics.get(name) is not False for name in criteria)
