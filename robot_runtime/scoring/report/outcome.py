"""Outcome of an episode in words: why it failed, ObjectNav's criteria, question and answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral

from robot_runtime.scoring.report.episode_data import EpisodeData
from robot_runtime.scoring.summary import EpisodeScore

SHOWN_ANSWERS = 8

_CRITERIA = {
    "criterion_intentionality": ("stopped", "did not stop"),
    "criterion_validity": ("in a valid place", "not in a valid place"),
    "criterion_proximity": ("near the object", "not near"),
    "criterion_visibility": ("sees the object", "object not seen"),
}


@dataclass(frozen=True)
class Criterion:
    """One condition of success; ``met`` is None if it is unknown."""

    label: str
    met: bool | None
    detail: str = ""


@dataclass(frozen=True)
class QuestionResult:
    """A question and its answer.

    Attributes:
        question: text of the question.
        type: type of the question.
        truth: the correct answer.
        given: the agent's answer.
        right: whether it is correct; None without a score.
        rank: rank of the correct answer among scored ones.
        ranked: scored answers, best first, with their scores and whether each is correct.
        evidence: what the answer rests on, in the agent's words.
    """

    question: str
    type: str
    truth: str
    given: str
    right: bool | None
    rank: float | None
    ranked: tuple[tuple[str, float, bool], ...]
    evidence: tuple[str, ...] = ()


def outcome(score: EpisodeScore) -> tuple[str, str]:
    """CSS class (``won``, ``lost`` or none) and text of an episode's outcome."""
    if not score.scorable:
        return "", "not scored"
    if score.metrics["success"]:
        return "won", "success"
    missed = [text for name, (_, text) in _CRITERIA.items() if score.metrics.get(name) is False]
    if any(verdict.intervention for verdict in score.verdicts):
        return "lost", "failed: a person helped"
    if any(verdict.judgment == "fail" for verdict in score.verdicts):
        return "lost", "failed: by a person's verdict"
    if missed:
        return "lost", "failed: " + ", ".join(missed)
    met = score.metrics.get("targets_met")
    if met is not None:
        harm = ", harm done" if score.metrics["criterion_no_harm"] is False else ""
        return "lost", f"failed: {met:.0%} of targets met{harm}"
    if "answer_accuracy" in score.metrics:
        return "lost", "failed: wrong or no answer"
    limits = {"max_steps": "step limit", "max_seconds": "time limit"}
    return "lost", f"failed: {limits.get(score.end or '', 'stopped elsewhere')}"


def criteria(data: EpisodeData) -> list[Criterion]:
    """ObjectNav's four criteria, each with its source; none for other tasks and without a score."""
    score = data.score
    if "criterion_visibility" not in score.metrics:
        return []
    near, place = score.choices["criterion_proximity"], score.choices["criterion_validity"]
    instances = {goal.object_id for goal in data.header.episode.goals}
    end = data.poses[-1]
    distances = [o.distance_m(end.x_m, end.y_m) for o in data.header.scene.objects if o.id in instances]
    measured = f"{min(distances):.2f} m to its box, " if distances else ""
    names = [verdict.who for verdict in score.verdicts if verdict.visible is not None]
    seen = str(score.choices["criterion_visibility"]) + (f", {names[-1]}'s" if names else "")
    details = ("", place, f"{measured}limit {near['distance_m']:g} m", seen)
    found = []
    for (name, (yes, no)), detail in zip(_CRITERIA.items(), details, strict=True):
        met = score.metrics[name]
        label = f"{yes}?" if met is None else yes if met else no
        found.append(Criterion(label, None if met is None else bool(met), detail))
    return found


def _outside_vocabulary(given: str, data: EpisodeData) -> tuple[str, ...]:
    """A sentence, if the answer is none of the dataset's."""
    dataset = data.header.episode.info.get("dataset")
    vocabulary = dataset.get("answer_vocab") if isinstance(dataset, Mapping) else None
    words = vocabulary.get("word_list") if isinstance(vocabulary, Mapping) else None
    if not words or given == "none" or given.startswith("answer id") or given.strip().casefold() in words:
        return ()
    return (f"{given!r} is none of the dataset's {len(words)} answers",)


def question_result(data: EpisodeData) -> QuestionResult | None:
    """Question and answer of an episode; None without a question."""
    asked, answer = data.header.episode.question, data.answer
    if asked is None:
        return None
    ranked: tuple[tuple[str, float, bool], ...] = ()
    if isinstance(answer, Mapping):
        best = sorted(answer.items(), key=lambda item: -float(item[1]))
        truth = asked.answer.strip().casefold()
        ranked = tuple((str(word), float(value), str(word).strip().casefold() == truth) for word, value in best)
        given = ranked[0][0] if ranked else "none"
    elif isinstance(answer, Integral):
        given = f"answer id {answer}"
    else:
        given = "none" if answer is None else str(answer)
    right = data.score.metrics.get("answer_accuracy")
    rank = data.score.metrics.get("answer_rank")
    return QuestionResult(
        question=asked.text,
        type=asked.type,
        truth=asked.answer,
        given=given,
        right=None if right is None else bool(right),
        rank=None if rank is None else float(rank),
        ranked=ranked[:SHOWN_ANSWERS],
        evidence=(*data.answer_evidence, *_outside_vocabulary(given, data)),
    )
