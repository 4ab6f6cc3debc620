"""Action replay: the recorded actions in the simulator, from the recorded start; trajectory against trajectory.

Two comparisons are made. Over the episode, the actions are executed one after the other, so that errors accumulate as
they do for a policy: distance at each step, nDTW, end error. Per action, its displacement in the frame of its own start
is compared with the recorded one, so that nothing accumulates. Where contacts matter, that still depends on where the
robot was; ``forced`` therefore replays every action from the recorded pose before it, which distinguishes a contact
that is missing in the simulator from one that was not reached.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import RecordingError, RuntimeFault
from robot_runtime.hal import RgbdFrame
from robot_runtime.metrics.functional.dtw import ndtw
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeEnd, EpisodeHeader, StepRecord
from robot_runtime.scoring.reference_poses import MAP_FRAME, known_pose
from sim_bridge.replay.backends.base import ReplayError, SimulatedStep, SimulatorBackend
from sim_bridge.replay.results import (
    ActionReplay,
    ActionStep,
    DivergedBy,
    Divergence,
    ImageDifference,
    Note,
    RelativeMotion,
    Thresholds,
)

SAME_POSE = 1e-6
"""Meters and radians within which the recorded start is taken to be the episode's.

An interpolated pose written as text may differ in its last digits. A bitwise comparison of images would show this.
"""

MOVED_M = 1e-3
"""A start that the simulator moved by less is not noted."""

PART = "action"


def replay_actions(
    log: LogReader,
    records: Sequence[StepRecord],
    simulator: SimulatorBackend,
    images: bool = False,
    forced: bool = False,
    thresholds: Thresholds | None = None,
) -> tuple[ActionReplay, tuple[Note, ...]]:
    """Execute the recorded actions in the simulator. A later error ends the replay there, with a note.

    Args:
        log: the recording.
        records: records of the log, read without images.
        simulator: simulator to replay in.
        images: whether to compare images where the actions led; the simulator must have been made with images.
        forced: whether to replay every action from the recorded pose before it, too.
        thresholds: differences beyond which the trajectories have diverged.

    Returns:
        The replay up to its end or first error, and notes for readers of the results.

    Raises:
        ReplayError: the log has no step, or no pose to begin from.
        UnsupportedBySimulator: the simulator does not support the task.
        InvalidStart: the robot does not fit near the recorded start.
    """
    header, thresholds = log.header, thresholds or Thresholds()
    start = recorded_start(log, records)
    second = second_start(header, records)
    notes: list[Note] = []
    compare = ImageComparison(log, notes) if images else None
    made = simulator.begin(header, start, records[0].head.tilt_rad)
    if second is not None:
        simulator.next_phase_at(second)
    moved_m = made.pose.distance_to(start)
    if records[0].index:
        notes.append(Note(PART, f"begins at step {records[0].index}: the log has none before it"))
    steps = [_step(None, records[0], None, made, compare)]
    notes += _start_notes(moved_m, "start")
    for before, record in pairwise(records):
        previous = made
        try:
            _require_next(before, record)
            made = simulator.act(decision_of(record), record.phase_s.get("infer", 0.0))
        except RuntimeFault as error:
            notes.append(Note(PART, f"replayed up to step {before.index}: {error.message}", error.remedy))
            break
        steps.append(_step(before, record, previous, made, compare))
        if record.state.phase != before.state.phase and second is not None:
            notes += _start_notes(made.pose.distance_to(second), f"start of phase {record.state.phase!r}")
    if forced:
        steps, left_out = _forced(simulator, records, steps)
        if left_out:
            why = "they move objects, end a phase, or the robot does not fit there"
            notes.append(Note(PART, f"{left_out} actions are not replayed from the recorded pose before them: {why}"))
    notes += _missing_pose_notes(steps) + _end_notes(log.end)
    return _summary(header, steps, len(records), moved_m, thresholds), tuple(notes)


def recorded_start(log: LogReader, records: Sequence[StepRecord]) -> SE2:
    """The recorded pose in ``map`` at the start of the episode. Raises ``ReplayError``: the log has none."""
    if not records:
        raise ReplayError(f"no step in {log.path}", "record the episode again; it was truncated before its first step")
    start = known_pose(records[0])
    if start is None:
        raise ReplayError(
            f"{log.path}: step 0 has no pose in {MAP_FRAME!r} to begin from",
            "record with a referee that knows the map, or replay the policy alone; that needs no poses",
        )
    return _exactly(start, log.header.episode.start)


def decision_of(record: StepRecord) -> Decision:
    """The action or command that led to a step. Raises ``RecordingError``: the log names none."""
    decision = record.command or record.action
    if decision is None:
        raise RecordingError(f"step {record.index} names no action", "record the episode again")
    # A stamp of the recorded robot's clock says nothing on the simulated one.
    return decision if isinstance(decision, Action) or decision.settle else replace(decision, exposure_ns=None)


def _require_next(before: StepRecord, record: StepRecord) -> None:
    """Raise ``RecordingError`` unless the steps are consecutive: a recovered log may have lost some."""
    if record.index != before.index + 1:
        raise RecordingError(f"the log has no step {before.index + 1}", "compare the original, if there is one")


def _exactly(recorded: SE2, stated: SE2) -> SE2:
    same = recorded.distance_to(stated) < SAME_POSE
    return stated if same and abs(wrap_angle(recorded.yaw_rad - stated.yaw_rad)) < SAME_POSE else recorded


def second_start(header: EpisodeHeader, records: Sequence[StepRecord]) -> SE2 | None:
    """The pose at the start of the second phase; None without one, or without its pose."""
    later = next((record for record in records if record.state.phase != records[0].state.phase), None)
    pose = None if later is None else known_pose(later)
    return None if pose is None else _exactly(pose, header.episode.start)


# --- one step -------------------------------------------------------------------------------------------------------


def _step(
    before: StepRecord | None,
    record: StepRecord,
    previous: SimulatedStep | None,
    made: SimulatedStep,
    images: ImageComparison | None,
) -> ActionStep:
    """Compare a recorded with a simulated step; ``before`` and ``previous`` precede them, None at the start."""
    recorded, difference = known_pose(record), None
    if before is not None and previous is not None and before.state.phase == record.state.phase:
        difference = displacement_difference(known_pose(before), recorded, previous.pose, made.pose)
    return ActionStep(
        index=record.index,
        action=record.action,
        command=record.command,
        phase=record.state.phase,
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
        grab_recorded=None if record.state.grab is None else record.state.grab.outcome,
        grab_replayed=made.grab,
        objects_m=max(
            (
                math.dist(pose.position, made.objects[name].position)
                for name, pose in record.state.poses.items()
                if name in made.objects
            ),
            default=None,
        ),
    )


def displacement_difference(
    recorded_from: SE2 | None, recorded_to: SE2 | None, made_from: SE2, made_to: SE2
) -> RelativeMotion | None:
    """Replayed minus recorded displacement, each in the frame in which its action began."""
    if recorded_from is None or recorded_to is None:
        return None
    recorded, made = recorded_to.relative_to(recorded_from), made_to.relative_to(made_from)
    yaw_rad = wrap_angle(made.yaw_rad - recorded.yaw_rad)
    return RelativeMotion(made.x_m - recorded.x_m, made.y_m - recorded.y_m, yaw_rad)


def _forced(
    simulator: SimulatorBackend, records: Sequence[StepRecord], steps: Sequence[ActionStep]
) -> tuple[list[ActionStep], int]:
    """The steps with each action replayed from the recorded pose before it, and the number left out."""
    replayed, left_out = [steps[0]], 0
    for (before, record), step in zip(pairwise(records), steps[1:], strict=False):
        recorded_from, recorded_to = known_pose(before), known_pose(record)
        whole = recorded_from is not None and recorded_to is not None and before.state.phase == record.state.phase
        made = simulator.act_from(before, decision_of(record)) if whole else None
        if made is None:
            left_out += 1
            replayed.append(step)
        else:
            began, ended = made
            moved = displacement_difference(recorded_from, recorded_to, began, ended.pose)
            replayed.append(replace(step, forced=moved, contact_forced=ended.contact))
    return replayed, left_out


# --- all parts ------------------------------------------------------------------------------------------------------


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
    """The quantities in which an action by itself differs beyond the thresholds; None if none does."""
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
    moved = f"replayed from {100 * moved_m:.1f} cm away"
    return [Note(PART, f"the recorded {what} is not free in the simulator: {moved}")]


def _missing_pose_notes(steps: Sequence[ActionStep]) -> list[Note]:
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
        notes.append(Note(PART, f"the last action, {end.action}, is not replayed: its result was not recorded"))
    return notes


# --- images where actions lead --------------------------------------------------------------------------------------


class ImageComparison:
    """Comparison of the frames of a log with the simulator's.

    Args:
        log: the recording.
        notes: gets one note, with the reason, if frames cannot be compared.
    """

    def __init__(self, log: LogReader, notes: list[Note]) -> None:
        self._log, self._notes = log, notes
        self._noted = False

    def compare(self, record: StepRecord, simulated: RgbdFrame | None) -> ImageDifference | None:
        """The difference at a step; None if an image is missing or the sizes differ."""
        try:
            recorded = self._log.frame(record)
        except RecordingError as error:
            self._note(error.message)
            return None
        if simulated is None or recorded.depth_m.shape != simulated.depth_m.shape:
            size = "none" if simulated is None else _size(simulated)
            self._note(f"step {record.index}: {_size(recorded)} in the log, {size} in the simulator")
            return None
        both = (recorded.depth_m > 0) & (simulated.depth_m > 0)
        depth_same = np.array_equal(recorded.depth_m, simulated.depth_m)
        color_same = np.array_equal(recorded.rgb, simulated.rgb)
        error_mm = None
        if both.any():
            depth_error_m = np.abs(recorded.depth_m - simulated.depth_m)
            error_mm = 0.0 if depth_same else 1000 * float(depth_error_m.mean(where=both, dtype=np.float64))
        rgb_error = 0.0 if color_same else float(np.abs(recorded.rgb.astype(np.int16) - simulated.rgb).mean())
        return ImageDifference(depth_same, color_same, error_mm, rgb_error)

    def _note(self, reason: str) -> None:
        if not self._noted:
            self._notes.append(Note("action", f"not all images are compared: {reason}"))
            self._noted = True


def _size(frame: RgbdFrame) -> str:
    return "x".join(map(str, reversed(frame.depth_m.shape)))
