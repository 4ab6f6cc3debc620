"""Action replay: the recorded actions in the twin, from the recorded start; trajectory against trajectory.

Two questions, two columns. *Where does it lead?* The actions are carried out one after the other, so that errors add up
as they do for a policy: distances at each step, nDTW, end error. *Which action is to blame?* Each action's own
displacement, seen from where that action began, is compared with the recorded one: there nothing adds up. Where a wall
stood in the way, that still depends on where the robot had got to; ``forced`` replays every action from the recorded
pose before it, and so tells a contact that is missing in the twin from one that was not reached.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from robot_runtime.actions.continuous import Decision
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import RecordingError, RuntimeFault
from robot_runtime.metrics.functional.dtw import ndtw
from robot_runtime.metrics.reference_poses import MAP_FRAME
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeEnd, EpisodeHeader, StepRecord
from sim_bridge.replay.action_images import ImagePairs
from sim_bridge.replay.backends.base import ReplayError, Twin, TwinStep
from sim_bridge.replay.results import (
    ActionReplay,
    ActionStep,
    DivergedBy,
    Divergence,
    Moved,
    Note,
    Thresholds,
)

SAME_POSE = 1e-6
"""Metres and radians. A recorded start that is so near to the episode's is the episode's: a pose that was interpolated
and written as text may differ from it in its last digits, which bit-identical images would show."""

MOVED_M = 1e-3
"""A start that the twin moved by less is not worth a note."""

PART = "action"


def replay_actions(
    log: LogReader,
    records: Sequence[StepRecord],
    twin: Twin,
    images: bool = False,
    forced: bool = False,
    thresholds: Thresholds | None = None,
) -> tuple[ActionReplay, tuple[Note, ...]]:
    """Carry out in the twin what the robot was told to do.

    Args:
        records: of the log, read without images.
        images: whether to compare what is seen where the actions led; the twin must have been made for it.
        forced: whether to replay every action from the recorded pose before it, too.

    Returns:
        The replay, as far as it got; and what a reader must know.

    Raises:
        ReplayError: the log has no step, or no pose to begin from.
        TwinUnable: the twin cannot do this task at all. InvalidStart: the robot does not fit near the recorded start.
        What goes wrong later ends the replay there, with a note.
    """
    header, thresholds = log.header, thresholds or Thresholds()
    start = recorded_start(log, records)
    second = second_start(header, records)
    notes: list[Note] = []
    compare = ImagePairs(log, notes) if images else None
    made = twin.begin(header, start, records[0].head.tilt_rad)
    if second is not None:
        twin.next_phase_at(second)
    moved_m = made.pose.distance_to(start)
    if records[0].index:
        notes.append(Note(PART, f"begins at step {records[0].index}: the log has none before it"))
    steps = [_step(None, records[0], None, made, compare)]
    notes += _start_notes(moved_m, "start")
    for before, record in pairwise(records):
        previous = made
        try:
            _require_next(before, record)
            made = twin.act(decision_of(record))
        except RuntimeFault as error:
            notes.append(Note(PART, f"replayed up to step {before.index}: {error.message}", error.remedy))
            break
        steps.append(_step(before, record, previous, made, compare))
        if record.phase != before.phase and second is not None:
            notes += _start_notes(made.pose.distance_to(second), f"start of phase {record.phase!r}")
    if forced:
        steps, left_out = _forced(twin, records, steps)
        if left_out:
            why = "they move objects, end a phase, or the robot does not fit there"
            notes.append(Note(PART, f"{left_out} actions are not replayed from the recorded pose before them: {why}"))
    notes += _poseless(steps) + _end_notes(log.end)
    return _summary(header, steps, len(records), moved_m, thresholds), tuple(notes)


def recorded_start(log: LogReader, records: Sequence[StepRecord]) -> SE2:
    """Where the robot stood when the episode began, in ``map``.

    Raises:
        ReplayError: the log has no step, or does not say.
    """
    if not records:
        raise ReplayError(f"{log.path}: holds no step", "record the episode again; it was torn before its first step")
    start = known_pose(records[0])
    if start is None:
        raise ReplayError(
            f"{log.path}: step 0 has no pose in {MAP_FRAME!r} to begin from",
            "record with a referee that knows the map, or replay the policy alone, which needs no poses",
        )
    return _exactly(start, log.header.episode.start)


def known_pose(record: StepRecord) -> SE2 | None:
    """The referee's pose of a step in ``map``; None if it has none."""
    pose = record.referee.pose
    finite = all(map(math.isfinite, (pose.x_m, pose.y_m, pose.yaw_rad)))
    return pose if finite and record.referee.frame == MAP_FRAME else None


def decision_of(record: StepRecord) -> Decision:
    """What led to a step that is not the first. Raises ``RecordingError`` if the log does not say."""
    decision = record.command or record.action
    if decision is None:
        raise RecordingError(f"step {record.index} names no action", "record the episode again")
    return decision


def _require_next(before: StepRecord, record: StepRecord) -> None:
    """Raise ``RecordingError`` unless one step follows the other: a log that was mended may have lost some."""
    if record.index != before.index + 1:
        raise RecordingError(f"the log has no step {before.index + 1}", "compare the original, if there is one")


def _exactly(recorded: SE2, stated: SE2) -> SE2:
    same = recorded.distance_to(stated) < SAME_POSE
    return stated if same and abs(wrap_angle(recorded.yaw_rad - stated.yaw_rad)) < SAME_POSE else recorded


def second_start(header: EpisodeHeader, records: Sequence[StepRecord]) -> SE2 | None:
    """Where the second phase began; None where there is none, or no pose of it."""
    later = next((record for record in records if record.phase != records[0].phase), None)
    pose = None if later is None else known_pose(later)
    return None if pose is None else _exactly(pose, header.episode.start)


# --- one step -------------------------------------------------------------------------------------------------------


def _step(
    before: StepRecord | None, record: StepRecord, previous: TwinStep | None, made: TwinStep, images: ImagePairs | None
) -> ActionStep:
    """A recorded step beside the twin's.

    Args:
        before, previous: the steps that came before these; None at the start.
    """
    recorded, difference = known_pose(record), None
    if before is not None and previous is not None and before.phase == record.phase:
        difference = displacement_difference(known_pose(before), recorded, previous.pose, made.pose)
    return ActionStep(
        index=record.index,
        action=record.action,
        command=record.command,
        phase=record.phase,
        recorded=recorded,
        replayed=made.pose,
        distance_m=None if recorded is None else recorded.distance_to(made.pose),
        turned_rad=None if recorded is None else wrap_angle(made.pose.yaw_rad - recorded.yaw_rad),
        difference=difference,
        forced=None,
        contact_recorded=record.result is not None and record.result.collided,
        contact_replayed=made.contact,
        contact_forced=None,
        outcome_recorded=None if record.result is None else record.result.outcome,
        outcome_replayed=made.outcome,
        tilt_recorded_rad=record.head.tilt_rad,
        tilt_replayed_rad=made.tilt_rad,
        image=None if images is None else images.compare(record, made.frame),
        grab_recorded=None if record.grab is None else record.grab.outcome,
        grab_replayed=made.grab,
        objects_m=max(
            (
                math.dist(pose.position, made.objects[name].position)
                for name, pose in record.objects.items()
                if name in made.objects
            ),
            default=None,
        ),
    )


def displacement_difference(
    recorded_from: SE2 | None, recorded_to: SE2 | None, made_from: SE2, made_to: SE2
) -> Moved | None:
    """Replayed minus recorded displacement, each in the frame in which its action began."""
    if recorded_from is None or recorded_to is None:
        return None
    recorded, made = recorded_to.relative_to(recorded_from), made_to.relative_to(made_from)
    return Moved(made.x_m - recorded.x_m, made.y_m - recorded.y_m, wrap_angle(made.yaw_rad - recorded.yaw_rad))


def _forced(twin: Twin, records: Sequence[StepRecord], steps: Sequence[ActionStep]) -> tuple[list[ActionStep], int]:
    """The steps with every action replayed from the recorded pose before it, and with how many that was not done."""
    found, left_out = [steps[0]], 0
    for (before, record), step in zip(pairwise(records), steps[1:], strict=False):
        recorded_from, recorded_to = known_pose(before), known_pose(record)
        whole = recorded_from is not None and recorded_to is not None and before.phase == record.phase
        made = twin.act_from(before, decision_of(record)) if whole else None
        if made is None:
            left_out += 1
            found.append(step)
        else:
            began, ended = made
            moved = displacement_difference(recorded_from, recorded_to, began, ended.pose)
            found.append(replace(step, forced=moved, contact_forced=ended.contact))
    return found, left_out


# --- the whole ------------------------------------------------------------------------------------------------------


def _summary(
    header: EpisodeHeader, steps: Sequence[ActionStep], recorded: int, moved_m: float, thresholds: Thresholds
) -> ActionReplay:
    distances_m = [step.distance_m for step in steps if step.distance_m is not None]
    turns_rad = [abs(step.turned_rad) for step in steps if step.turned_rad is not None]
    placed = [(step.recorded, step.replayed) for step in steps if step.recorded is not None]
    recorded_path, replayed_path = ([(pose.x_m, pose.y_m) for pose in path] for path in zip(*placed, strict=True))
    threshold_m = header.task.magnitudes.forward_m
    last, actions = steps[-1], steps[1:]
    told = [step for step in actions if step.outcome_recorded is not None and step.outcome_replayed is not None]
    return ActionReplay(
        steps=tuple(steps),
        recorded_steps=recorded,
        start_moved_m=moved_m,
        ndtw=ndtw(recorded_path, replayed_path, threshold_m),
        ndtw_threshold_m=threshold_m,
        end_error_m=last.distance_m,
        end_error_rad=None if last.turned_rad is None else abs(last.turned_rad),
        largest_error_m=max(distances_m, default=None),
        largest_error_rad=max(turns_rad, default=None),
        contact_agreement=_share(step.contact_recorded == step.contact_replayed for step in actions),
        outcome_agreement=_share(step.outcome_recorded is step.outcome_replayed for step in told),
        divergence=next(filter(None, (_divergence(step, thresholds) for step in steps)), None),
        thresholds=thresholds,
        departure=next(filter(None, (_departure(step, thresholds) for step in actions)), None),
    )


def _divergence(step: ActionStep, thresholds: Thresholds) -> Divergence | None:
    by: list[DivergedBy] = []
    if step.distance_m is not None and step.distance_m > thresholds.position_m:
        by.append("position")
    if step.turned_rad is not None and abs(step.turned_rad) > math.radians(thresholds.heading_deg):
        by.append("heading")
    if step.contact_recorded != step.contact_replayed:
        by.append("contact")
    outcomes = (step.outcome_recorded, step.outcome_replayed)
    if None not in outcomes and outcomes[0] is not outcomes[1]:
        by.append("outcome")
    if step.grab_recorded is not step.grab_replayed:
        by.append("grab")
    return Divergence(step.index, tuple(by)) if by else None


def _departure(step: ActionStep, thresholds: Thresholds) -> Divergence | None:
    """Whether an action by itself leads elsewhere than it did."""
    by: list[DivergedBy] = []
    own, contact = step.forced, step.contact_forced
    if own is None:
        own, contact = step.difference, step.contact_replayed
    if own is not None and math.hypot(own.x_m, own.y_m) > thresholds.action_m:
        by.append("position")
    if own is not None and abs(own.yaw_rad) > math.radians(thresholds.action_deg):
        by.append("heading")
    if own is not None and contact != step.contact_recorded:
        by.append("contact")
    return Divergence(step.index, tuple(by)) if by else None


def _share(agreements: Iterable[bool]) -> float | None:
    counted = list(agreements)
    return sum(counted) / len(counted) if counted else None


def _start_notes(moved_m: float, what: str) -> list[Note]:
    if moved_m < MOVED_M:
        return []
    return [Note(PART, f"the recorded {what} is not free in the twin: replayed from {100 * moved_m:.1f} cm beside it")]


def _poseless(steps: Sequence[ActionStep]) -> list[Note]:
    missing = [step.index for step in steps if step.recorded is None]
    if not missing:
        return []
    return [Note(PART, f"{len(missing)} steps from {missing[0]} on have no recorded pose: nothing to compare there")]


def _end_notes(end: EpisodeEnd | None) -> list[Note]:
    if end is None or not end.reason.aborted:
        return []
    detail = f" ({end.detail})" if end.detail else ""
    notes = [Note(PART, f"the episode was ended by {end.reason.value}{detail}: its actions up to there are replayed")]
    if end.action is not None:
        notes.append(Note(PART, f"the last action, {end.action}, is not replayed: where it led was never observed"))
    return notes
