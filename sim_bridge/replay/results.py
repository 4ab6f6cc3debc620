"""Results of a replay, and their lossless JSON.

Lengths are in meters and angles in radians unless a name says otherwise. None stands for what could not be compared;
the replay's notes have the reason.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import TimedAction
from robot_runtime.common import config
from robot_runtime.common.creating import creating
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.recording import json_output
from robot_runtime.records import EndReason, Outcome
from robot_runtime.scenes.objects import GrabOutcome
from robot_runtime.scoring.policy_agreement import OpenLoop
from robot_runtime.scoring.sim_to_real.parting import Parting
from sim_bridge.replay.camera_offset import CameraOffset
from sim_bridge.replay.image_error import ColorError, DepthError

SCHEMA = 2

Part = Literal["pose", "action", "open", "closed"]
"""Images at recorded poses, recorded actions, the policy over recorded observations, the policy in the simulator."""

PARTS: tuple[Part, ...] = ("pose", "action", "open", "closed")


@dataclass(frozen=True)
class Note:
    """Something that was not done, or not as it was recorded.

    Attributes:
        part: part of the replay; empty for all parts.
        message: what and why.
        remedy: what the reader can do about it; empty if nothing.
    """

    part: str
    message: str
    remedy: str = ""


# --- pose replay ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FrameDifference:
    """One recorded frame compared with the simulator's from the same pose."""

    index: int
    stamp_ns: int
    depth: DepthError
    color: ColorError


@dataclass(frozen=True)
class PoseReplay:
    """Images compared at the recorded poses.

    Attributes:
        frames: differences of the steps with images and a pose.
        depth_range_m: range of the log's depth camera; simulated depth is limited to it, too.
        offset: estimated offset of the camera from its logged pose; None where the images do not determine it.
    """

    frames: tuple[FrameDifference, ...]
    depth_range_m: tuple[float, float]
    offset: CameraOffset | None

    def median(self, part: Literal["depth", "color"], name: str) -> float | None:
        """The median over frames of a value of ``DepthError`` or ``ColorError``; None where no frame has it."""
        values = self._values(part, name)
        return float(np.median(values)) if values else None

    def mean(self, part: Literal["depth", "color"], name: str) -> float | None:
        """The mean over frames, as :meth:`median`."""
        values = self._values(part, name)
        return float(np.mean(values)) if values else None

    def _values(self, part: Literal["depth", "color"], name: str) -> list[float]:
        return [value for frame in self.frames if (value := getattr(getattr(frame, part), name)) is not None]

    @property
    def far_frames(self) -> FarFrames | None:
        """The frames of which a share of the pixels is far off; None where no depth is compared."""
        shares = [(frame.depth.far_off, -frame.index) for frame in self.frames if frame.depth.far_off is not None]
        if not shares:
            return None
        worst, index = max(shares)
        return FarFrames(sum(share > FAR_SHARE for share, _ in shares), len(shares), worst, -index)


FAR_SHARE = 0.01
"""Share of a frame's pixels beyond ``FAR_OFF_M`` above which a frame is far off."""


@dataclass(frozen=True)
class FarFrames:
    """Frames that are far off, which a median over frames does not show.

    Attributes:
        count: number of frames of which more than :data:`FAR_SHARE` of the pixels are beyond ``FAR_OFF_M``.
        frames: number of compared frames.
        worst: greatest share of pixels in a frame.
        worst_index: step of that frame.
    """

    count: int
    frames: int
    worst: float
    worst_index: int


# --- action replay --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Thresholds(config.Strict):
    """Differences beyond which a replayed trajectory has diverged from the recorded one."""

    position_m: float = 0.10
    heading_deg: float = 10.0
    action_m: float = 0.03
    action_deg: float = 3.0

    def __post_init__(self) -> None:
        config.check_positive(self)


DivergedBy = Literal["position", "heading", "contact", "outcome", "grab"]
"""Quantities in which a replay diverges; the last three when they differ at all."""


@dataclass(frozen=True)
class Divergence:
    """A step at which replay and recording have diverged, and in which quantities."""

    index: int
    by: tuple[DivergedBy, ...]


@dataclass(frozen=True)
class RelativeMotion:
    """A displacement, or a difference of two, in the frame of the action's start: forward, left, counterclockwise."""

    x_m: float
    y_m: float
    yaw_rad: float


@dataclass(frozen=True)
class ImageDifference:
    """Difference of the recorded frame and the simulator's where the replayed action led.

    Attributes:
        depth_identical: whether the depth images are equal bit for bit.
        rgb_identical: whether the color images are.
        depth_mae_mm: mean absolute error where both have depth; None if nowhere.
        rgb_mae: mean absolute error, 0 .. 255.
    """

    depth_identical: bool
    rgb_identical: bool
    depth_mae_mm: float | None
    rgb_mae: float


@dataclass(frozen=True)
class ActionStep:
    """One action as recorded and as replayed.

    ``contact_*``: whether a contact ended the action; ``contact_forced`` belongs to ``forced``. ``outcome_*``: how it
    ended; ``outcome_replayed`` is None from simulators that do not report it. ``tilt_*_rad``: head tilt, up positive.
    ``grab_*``: outcome of ``grab_release``; None after any other action.

    Attributes:
        index: index of the step in the log. Step 0 is the start and has no action.
        action: None at the start.
        command: velocity command of a continuous action.
        phase: phase of the episode; empty where a task has a single phase.
        recorded: base_link in ``map`` afterwards, at rest; None where the log has no pose.
        replayed: base_link in ``map`` after the replayed action, at rest.
        distance_m: distance between the two positions.
        turned_rad: angle from recorded to replayed heading, left positive.
        difference: replayed minus recorded displacement of this action alone, each in the frame of its own start. None
            at the start, after a change of phase, and without recorded poses.
        forced: same difference with the action replayed from the recorded pose before it. None if that was not done.
        image: None where the replay had no images, or the log has none.
        objects_m: largest distance between recorded and replayed position of an object; None where no object has both.
    """

    index: int
    action: Action | None
    command: TimedAction | None
    phase: str
    recorded: SE2 | None
    replayed: SE2
    distance_m: float | None
    turned_rad: float | None
    difference: RelativeMotion | None
    forced: RelativeMotion | None
    contact_recorded: bool
    contact_replayed: bool
    contact_forced: bool | None
    outcome_recorded: Outcome | None
    outcome_replayed: Outcome | None
    tilt_recorded_rad: float
    tilt_replayed_rad: float
    image: ImageDifference | None = None
    grab_recorded: GrabOutcome | None = None
    grab_replayed: GrabOutcome | None = None
    objects_m: float | None = None


@dataclass(frozen=True)
class ActionReplay:
    """The recorded actions in the simulator from the recorded start, compared by trajectory.

    ``end_error_*`` is at the last replayed step, ``largest_error_*`` at any.

    Attributes:
        steps: replayed steps, the start first.
        recorded_steps: number of steps of the log.
        start_moved_m: distance of the simulated from the recorded start, where that was not free.
        ndtw: nDTW of the replayed path with the recorded one as reference.
        ndtw_threshold_m: distance threshold of ``ndtw``.
        contact_agreement: share of the actions with equal contact.
        outcome_agreement: share of the actions with equal outcome.
        divergence: the first step beyond the thresholds; None if there was none.
        departure: the first action that leads elsewhere by itself, by ``forced`` where that was done, else by
            ``difference``; None if there is none.
    """

    steps: tuple[ActionStep, ...]
    recorded_steps: int
    start_moved_m: float
    ndtw: float | None
    ndtw_threshold_m: float
    end_error_m: float | None
    end_error_rad: float | None
    largest_error_m: float | None
    largest_error_rad: float | None
    contact_agreement: float | None
    outcome_agreement: float | None
    divergence: Divergence | None
    thresholds: Thresholds
    departure: Divergence | None = None


# --- closed loop ----------------------------------------------------------------------------------------------------

Metrics = dict[str, bool | int | float | str | None]


def succeeded(metrics: Metrics) -> bool | None:
    """Whether an episode succeeded; None if it was not scored."""
    success = metrics.get("success")
    return None if success is None else bool(success)


@dataclass(frozen=True)
class ClosedLoop:
    """The policy in the simulator, from the recorded start.

    ``metrics_*``: by name, each scored from its own log. ``end_*``: why the episodes ended; None for a truncated log.

    Attributes:
        agent: name of the policy.
        seed: seed of policy and simulator.
        log: path of the log of the new episode.
        same_actions: number of equal actions from the start on.
        parting: first difference from the recording; None if there is none.
    """

    agent: str
    seed: int
    log: str
    metrics_recorded: Metrics
    metrics_replayed: Metrics
    end_recorded: EndReason | None
    end_replayed: EndReason
    steps_recorded: int
    steps_replayed: int
    same_actions: int
    parting: Parting | None = None


# --- all of it ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SceneCheck:
    """The scene that a log was replayed in.

    Attributes:
        folder: None where none was found.
        recorded_digest: version that the log was recorded in.
        replayed_digest: version that it was replayed in.
    """

    name: str
    folder: str | None
    recorded_digest: str
    replayed_digest: str | None

    @property
    def same(self) -> bool:
        """Whether the versions are equal."""
        return self.recorded_digest == self.replayed_digest


@dataclass(frozen=True)
class Replay:
    """All results for one log; a part is None where it was not requested or could not be done.

    Attributes:
        twin: simulator and robot.
        notes: what was not done or done otherwise, with the reasons.
        facts: sentences on the simulator: the cells of its navigation mesh, distances by it.
    """

    log: str
    episode: str
    task: str
    robot: str
    agent: str
    seed: int
    twin: str
    scene: SceneCheck
    complete: bool
    notes: tuple[Note, ...] = ()
    pose: PoseReplay | None = None
    action: ActionReplay | None = None
    open_loop: OpenLoop | None = None
    closed_loop: ClosedLoop | None = None
    facts: tuple[str, ...] = ()
    schema: int = field(default=SCHEMA, kw_only=True)

    def to_json(self) -> dict[str, Any]:
        """The JSON document."""
        document: dict[str, Any] = json_output.plain(self)
        return document

    @staticmethod
    def from_json(document: Any, where: str) -> Replay:
        """The inverse of :meth:`to_json`. Raises ``RecordingError``, naming ``where`` and the field."""
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise RecordingError(f"{where}: not a replay of schema {SCHEMA}", "replay the log again")
        try:
            return config.parse(document, Replay, where, recorded=True)
        except ConfigError as error:
            raise RecordingError(error.message, "replay the log again") from error


def write_replay(path: Path, replay: Replay) -> None:
    """Write a replay as JSON, atomically. Raises ``RecordingError``."""
    with creating(path, "free the disk, or make the folder writable") as draft:
        draft.write_text(json.dumps(replay.to_json(), allow_nan=False) + "\n", encoding="utf-8")


def read_replay(path: Path) -> Replay:
    """Read the file of :func:`write_replay`. Raises ``RecordingError``."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path}: cannot be read: {error}", "replay the log again") from error
    return Replay.from_json(document, str(path))
