"""Causes of failed episodes, each with its evidence, from the log alone.

The first cause of this order whose evidence is in the log counts: the end of the episode (operator, policy, localizer,
base), help by a person, wheels that did not carry out actions, a policy that was told a wrong position, contacts at one
place; then, by how the episode ended, where the robot was and what its camera saw. Without evidence the cause is
``unknown``.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.hal import Halt
from robot_runtime.hal.events import Event
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason, EpisodeEnd, EpisodeHeader, Outcome, StepRecord

CauseName = Literal[
    "stopped_too_early",
    "never_saw_goal",
    "saw_goal_and_left",
    "contact_loop",
    "too_many_contacts",
    "localization",
    "timeout",
    "wheels",
    "operator",
    "policy_fault",
    "unknown",
]

CONTACT_LIMIT = "contact limit"
"""Beginning of the detail with which a campaign's limit of contacts ends an episode."""

LEFT_M = 1.0
"""Distance to the goal gained after the closest approach that counts as having left."""

WRONG_POSE_M = 0.5
"""Least error of the policy's position that explains a failure."""

LOOP_M = 0.5
LOOP_CONTACTS = 6
LOOP_GAP = 10
"""A contact loop: this many contacts, at most this many steps apart, within this distance of the first."""

LOOP_SHARE = 0.25
"""Share of the steps that a loop must last, unless it lasts to the end."""

UNMOVED = 0.3
"""Share of a commanded motion below which the referee says that the robot did not move."""

UNMOVED_ACTIONS = 4
UNMOVED_SHARE = 0.2
"""Number and share of an episode's motions that were not carried out, from which on the wheels are the cause."""

_BY_PERSON = ("interrupted from the keyboard", "ended by SIG")
_LOST = ("lost", "no_fix", "frozen", "clock_went_back", "mirrored", "scale")
_FOUND = ("regained", "fix")
_LIMITS = {EndReason.MAX_STEPS: "the step limit ended it", EndReason.MAX_SECONDS: "the time limit ended it"}


@dataclass(frozen=True)
class FailureCause:
    """Cause of a failed or aborted episode.

    Attributes:
        name: name of the cause.
        evidence: what the log says, with steps and numbers.
        step: step at which the evidence begins; None without such a step.
    """

    name: CauseName
    evidence: str
    step: int | None = None

    @property
    def text(self) -> str:
        """The name for people."""
        return cause_text(self.name)


def cause_text(name: CauseName) -> str:
    """A cause's name for people."""
    return name.replace("_", " ")


def cause_of_abort(log: LogReader, end: EpisodeEnd) -> FailureCause:
    """The cause of an episode that neither the task nor the policy's actions ended. Raises ``RuntimeFault``."""
    records = sorted(log.steps(images=False), key=lambda record: record.index)
    last = records[-1] if records else None
    step = end.steps
    detail = end.detail or "no detail"
    if detail.startswith(CONTACT_LIMIT):
        return _contact_loop(records, end) or FailureCause("too_many_contacts", detail, step)
    if end.of_policy:
        return FailureCause("policy_fault", detail, step)
    if end.reason is EndReason.LOCALIZATION_LOST:
        return FailureCause("localization", detail, step)
    halt = Halt.NONE if last is None else last.base.halt
    if end.reason is EndReason.INTERRUPTED:
        stopped = last is not None and last.result is not None and last.result.outcome is Outcome.STOPPED
        if halt is Halt.E_STOP or stopped or "e_stop" in detail or detail.startswith(_BY_PERSON):
            return FailureCause("operator", detail, step)
        return FailureCause("unknown", f"interrupted: {detail}", step)
    of_base = detail.startswith("base:") or (end.result is not None and end.result.outcome is Outcome.FAULT)
    if of_base or halt in (Halt.WHEEL_DROP, Halt.NO_FEEDBACK):
        return FailureCause("wheels", detail, step)
    return FailureCause("unknown", f"fault: {detail}", step)


class CauseFinder:
    """Search for the cause of an episode that was scored as failed."""

    def __init__(self, header: EpisodeHeader) -> None:
        self._header = header
        self._records: list[StepRecord] = []

    def on_step(self, record: StepRecord) -> None:
        """Add the next step, without images. Steps of a walkthrough are ignored, as in scores."""
        if record.state.scored:
            self._records.append(record)

    def cause(self, log: LogReader, end: EpisodeEnd, scorer: EpisodeScorer, helped_by: str = "") -> FailureCause:
        """The cause of the failure. Raises ``RuntimeFault``: the log is damaged."""
        if helped_by:
            return FailureCause("operator", f"{helped_by} helped the robot")
        if end.reason.aborted:
            return cause_of_abort(log, end)
        return (
            _wheels(self._records)
            or self._localization(scorer, log.events())
            or _contact_loop(self._records, end)
            or self._by_end(log, end, scorer)
        )

    def _localization(self, scorer: EpisodeScorer, events: Iterable[Event]) -> FailureCause | None:
        task = self._header.task
        last = self._records[-1]
        policy, referee = last.pose, last.referee
        uses_pose = any(name not in ("rgb", "depth", "semantic") for name in task.sensors)
        if uses_pose and policy.frame == referee.frame:
            error_m = policy.pose.distance_to(referee.pose)
            limit_m = max(WRONG_POSE_M, task.success.distance_m)
            thought_m = scorer.distance_m(policy.pose)
            if error_m > limit_m or (error_m > WRONG_POSE_M / 2 and thought_m <= task.success.distance_m):
                apart = ((r.index, r.pose.pose.distance_to(r.referee.pose)) for r in self._records)
                first = next(index for index, apart_m in apart if apart_m > error_m / 2)
                thought = f"; by its own position it was {thought_m:.2f} m from the goal"
                stopped = thought if last.action is Action.STOP else ""
                evidence = f"at the end the policy's position was {error_m:.2f} m off the referee's{stopped}"
                return FailureCause("localization", evidence, first)
        lost: dict[str, Event] = {}
        for event in events:
            if event.kind in _LOST:
                lost.setdefault(event.source, event)
            elif event.kind in _FOUND:
                lost.pop(event.source, None)
        names = self._header.localizers.get("policy", ())
        for source, event in lost.items():
            if uses_pose and (source in names or not names):
                step = next((r.index for r in self._records if r.times.observed_ns >= event.stamp_ns), last.index)
                return FailureCause("localization", f"{source}: {event.kind}: {event.detail}", step)
        return None

    def _by_end(self, log: LogReader, end: EpisodeEnd, scorer: EpisodeScorer) -> FailureCause:
        """The cause by where the robot was when it stopped or its limit came."""
        task, last = self._header.task, self._records[-1]
        limit = _LIMITS.get(end.reason, "")
        if not task.success.distance_m:  # success does not depend on the distance
            return FailureCause("timeout", limit, last.index) if limit else FailureCause("unknown", "stopped")
        distances_m = scorer.distances_m()
        closest = int(np.argmin(distances_m))
        final_m, closest_m = distances_m[-1], distances_m[closest]
        if not math.isfinite(final_m) or not math.isfinite(closest_m):
            return FailureCause("unknown", "the robot ended off the map", last.index)
        nearest = f"{closest_m:.2f} m from the goal at step {self._records[closest].index}, {final_m:.2f} m at the end"
        seen = scorer.measures.search_goal(self._records, log.frame)
        sight = f"{seen.text}; " if seen is not None and seen.text else ""
        was_there = closest_m <= task.success.distance_m
        if (was_there or (seen is not None and seen.step is not None)) and final_m > closest_m + LEFT_M:
            return FailureCause("saw_goal_and_left", f"{sight}{nearest}", closest)
        if limit:
            if seen is not None and seen.step is None and seen.certain:
                return FailureCause("never_saw_goal", f"{limit}; {sight}{nearest}", last.index)
            stayed = ", where it did not stop" if final_m <= task.success.distance_m else ""
            return FailureCause("timeout", f"{limit}; {nearest}{stayed}", last.index)
        if seen is None and final_m > closest_m + LEFT_M:
            return FailureCause("unknown", f"stopped away from the goal: {nearest}", last.index)
        if seen is not None and seen.decides and was_there:
            return FailureCause("unknown", f"stopped near, but the goal is not in view: {nearest}", last.index)
        evidence = f"stopped {final_m:.2f} m from the goal after {last.index} of {task.max_steps} steps"
        return FailureCause("stopped_too_early", f"{evidence}; {sight}".removesuffix("; "), last.index)


def _wheels(records: Sequence[StepRecord]) -> FailureCause | None:
    """Motions that timed out, failed, or that the referee did not see although nothing was touched."""
    failed: list[tuple[int, str]] = []
    motions = 0
    for before, record in pairwise(records):
        result = record.result
        if result is None or result.pursued or result.outcome in (Outcome.CONTACT, Outcome.STOPPED):
            continue
        wanted = result.commanded
        if not (wanted.forward_m or wanted.turn_rad):
            continue
        motions += 1
        if result.outcome in (Outcome.TIMED_OUT, Outcome.FAULT):
            failed.append((record.index, f"{result.outcome.value}: {result.detail or 'no detail'}"))
        elif (
            wanted.forward_m
            and before.referee.frame == record.referee.frame
            and before.state.phase == record.state.phase
        ):
            moved_m = before.referee.pose.distance_to(record.referee.pose)
            if moved_m < UNMOVED * abs(wanted.forward_m):
                failed.append(
                    (record.index, f"moved {moved_m:.2f} m of {abs(wanted.forward_m):.2f} m, without contact")
                )
    if len(failed) < UNMOVED_ACTIONS or len(failed) < UNMOVED_SHARE * motions:
        return None
    step, first = failed[0]
    return FailureCause(
        "wheels", f"{len(failed)} of {motions} motions were not carried out; at step {step}: {first}", step
    )


def _contact_loop(records: Sequence[StepRecord], end: EpisodeEnd) -> FailureCause | None:
    """The longest run of contacts at one place, if it lasted long or to the end."""
    longest: list[StepRecord] = []
    run: list[StepRecord] = []
    for record in records:
        if record.result is None or not record.result.collided:
            continue
        near = run and record.index - run[-1].index <= LOOP_GAP
        if not near or run[0].referee.pose.distance_to(record.referee.pose) > LOOP_M:
            run = []
        run.append(record)
        longest = max(longest, run, key=len)[:]
    if len(longest) < LOOP_CONTACTS:
        return None
    first, last = longest[0].index, longest[-1].index
    if last - first < LOOP_SHARE * end.steps and last < end.steps - LOOP_GAP:
        return None
    pose = longest[0].referee.pose
    evidence = (
        f"{len(longest)} contacts in steps {first} to {last}, within {LOOP_M} m of ({pose.x_m:.2f}, {pose.y_m:.2f})"
    )
    return FailureCause("contact_loop", evidence, first)
