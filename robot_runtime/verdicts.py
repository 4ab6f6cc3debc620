"""Verdicts on a run: success, help, visibility of the goal object, and poses of objects.

People give them after the run, and automatic judges, whose errors are known; a person's verdict counts before a
judge's. Later verdicts override earlier ones, and none is deleted. Their files are in
:mod:`robot_runtime.recording.verdict_files`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from robot_runtime.common import config
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.objects import ObjectPose

EpisodeVerdict = Literal["success", "fail", "invalid"]
"""A verdict on the episode. An invalid one (wrong start, broken device) says nothing about the policy."""


@dataclass(frozen=True)
class Judge(config.Strict):
    """An automatic judge: its thresholds, and its errors as counted on episodes of known truth.

    Attributes:
        low: score below which the judge says no.
        high: score from which it says yes; between the two it abstains.
        positives: number of calibration episodes whose truth is yes and that it decided.
        true_positives: number of positives to which it said yes.
        negatives: number of decided calibration episodes whose truth is negative.
        true_negatives: number of negatives to which it said no.
    """

    low: float
    high: float
    positives: int
    true_positives: int
    negatives: int
    true_negatives: int

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high <= 1:
            raise ValueError(f"a judge needs 0 <= low <= high <= 1, got {self.low} and {self.high}")
        if not (0 <= self.true_positives <= self.positives and 0 <= self.true_negatives <= self.negatives):
            raise ValueError(f"a judge is right at most as often as it decides, got {self}")

    def verdict(self, score: float) -> bool | None:
        """Return yes, no, or None for an abstention."""
        return True if score >= self.high else False if score < self.low else None


@dataclass(frozen=True)
class Verdict(config.Strict):
    """Verdict of one person or automatic judge on one run.

    Attributes:
        who: name of the author.
        when: time in UTC, ISO 8601.
        visible: whether the goal object was in view where the robot stopped; None if the author does not say.
        objects: poses of objects in map at the end of the episode, by id; may be incomplete.
        note: free text.
        judgment: verdict on the episode; None if the author does not say.
        intervention: whether a person helped the robot and the episode has thus failed; None if the author does not
            say.
        judge: thresholds and errors of the automatic judge, None for a person; a judge abstained where ``visible`` is
            None.
    """

    who: str
    when: str
    visible: bool | None = None
    objects: dict[str, ObjectPose] = field(default_factory=dict)
    note: str = ""
    judgment: EpisodeVerdict | None = None
    intervention: bool | None = None
    judge: Judge | None = None

    def __post_init__(self) -> None:
        if not self.who.strip():
            raise ValueError("a verdict needs the name of its author")
        content = (self.visible, self.objects or None, self.judgment, self.intervention, self.note.strip() or None)
        if self.judge is None and all(value is None for value in content):
            raise ValueError(
                "a verdict needs a judgment of the episode, an intervention, visibility, poses of objects, or a note"
            )
        for name, pose in self.objects.items():
            if pose.fault is not None:
                raise ValueError(f"object {name!r}: {pose.fault}")


@dataclass(frozen=True)
class RunIdentity(config.Strict):
    """Identity of a run."""

    episode: str
    seed: int
    start_ns: int
    created: str

    @classmethod
    def of(cls, header: EpisodeHeader) -> RunIdentity:
        """Identity of the run of a header."""
        created = str(header.provenance.get("created", ""))
        return cls(header.episode.key, header.seed, header.start_ns, created)


@dataclass(frozen=True)
class Verdicts(config.Strict):
    """All verdicts on a run, in the order in which they were given.

    Attributes:
        schema: version of the file format.
        run: identity of the run.
        statements: the verdicts; empty without a file.
    """

    schema: Literal[1]
    run: RunIdentity
    statements: tuple[Verdict, ...] = ()

    @property
    def on_visibility(self) -> Verdict | None:
        """The last verdict on visibility by a person, else the last by a judge that did not abstain."""
        said = [verdict for verdict in reversed(self.statements) if verdict.visible is not None]
        return next((verdict for verdict in said if verdict.judge is None), said[0] if said else None)

    @property
    def on_episode(self) -> Verdict | None:
        """The last verdict with a judgment of the episode."""
        return next((verdict for verdict in reversed(self.statements) if verdict.judgment is not None), None)

    @property
    def helper(self) -> str:
        """The person who helped the robot, by the last verdict on an intervention; empty if there was none."""
        said = (verdict for verdict in reversed(self.statements) if verdict.intervention is not None)
        return next((verdict.who if verdict.intervention else "" for verdict in said), "")

    @property
    def helped(self) -> bool:
        """Whether a person helped the robot, see :attr:`helper`."""
        return bool(self.helper)

    @property
    def success(self) -> bool | None:
        """Success by people's verdicts; None if the metrics decide it."""
        if self.helped:
            return False
        return None if self.on_episode is None else self.on_episode.judgment == "success"

    @property
    def objects(self) -> dict[str, ObjectPose]:
        """Poses of objects, each by its last verdict."""
        return {name: pose for verdict in self.statements for name, pose in verdict.objects.items()}


@dataclass(frozen=True)
class SuccessViews:
    """Success of an episode on which people gave verdicts, or in which they helped.

    Attributes:
        strict: success, where help or the verdict ``fail`` of any person is a failure.
        lenient: success, where help is ignored and the verdict ``success`` of any person suffices.
    """

    strict: bool
    lenient: bool


def success_views(verdicts: Sequence[Verdict], by_metrics: bool) -> SuccessViews:
    """Both views of an episode; without any verdict on the episode the metrics decide.

    Args:
        verdicts: verdicts on the run, the last one last.
        by_metrics: success by the task's rule.
    """
    helped = False
    for verdict in verdicts:
        helped = helped if verdict.intervention is None else verdict.intervention
    successes = list(success_by_person(verdicts).values()) or [by_metrics]
    return SuccessViews(all(successes) and not helped, any(successes))


def success_by_person(verdicts: Iterable[Verdict]) -> dict[str, bool]:
    """Success by the last verdict of each person on the episode."""
    successes: dict[str, bool] = {}
    for verdict in verdicts:
        if verdict.judgment == "invalid":
            successes.pop(verdict.who, None)
        elif verdict.judgment is not None:
            successes[verdict.who] = verdict.judgment == "success"
    return successes
