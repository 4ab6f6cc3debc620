"""What a replay found, as data; and as JSON and back, without loss.

Lengths are in metres and angles in radians unless a name says otherwise. None stands for what could not be compared;
the replay's notes say why.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from robot_runtime.actions.continuous import VelocityCommand, WaypointCommand
from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, RecordingError, writing
from robot_runtime.recording import json_records
from robot_runtime.records import EndReason, Outcome
from robot_runtime.scenes.objects import GrabOutcome
from robot_runtime.scoring.policy_agreement import OpenLoop
from sim_bridge.replay.camera_offset import CameraOffset
from sim_bridge.replay.image_error import ColorError, DepthError

SCHEMA = 1

Part = Literal["pose", "action", "open", "closed"]
"""Of a replay: sensors at recorded poses, recorded actions, the policy over recorded observations, and in the twin."""

PARTS: tuple[Part, ...] = ("pose", "action", "open", "closed")


@dataclass(frozen=True)
class Note:
    """Something that a reader of the results must know: what was not done, or not as it was recorded, and why.

    Attributes:
        part: of the replay; empty if it is about the whole.
    """

    part: str
    message: str
    remedy: str = ""


# --- pose replay ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FrameDifference:
    """One recorded frame beside the twin's view from the same pose.

    Attributes:
        index: of the step. stamp_ns: of the exposure.
    """

    index: int
    stamp_ns: int
    depth: DepthError
    color: ColorError


@dataclass(frozen=True)
class PoseReplay:
    """Sensor against sensor at the recorded poses.

    Attributes:
        frames: those that the log has images and a pose of.
        depth_range_m: what the log's depth camera can measure; the twin sees nothing outside of it, either.
        offset: of the camera from where the log has it; None where too little was seen to tell.
    """

    frames: tuple[FrameDifference, ...]
    depth_range_m: tuple[float, float]
    offset: CameraOffset | None


# --- action replay --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Thresholds:
    """How far a replayed trajectory may be from the recorded one before it has diverged.

    Attributes:
        position_m, heading_deg: of a pose. action_m, action_deg: of the displacement of a single action.
    """

    position_m: float = 0.10
    heading_deg: float = 10.0
    action_m: float = 0.03
    action_deg: float = 3.0

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")


DivergedBy = Literal["position", "heading", "contact", "outcome", "grab"]
"""What a divergence is told by; the last three diverge when they differ at all."""


@dataclass(frozen=True)
class Divergence:
    """A step at which replay and recording have parted, and by what of :data:`DivergedBy`."""

    index: int
    by: tuple[DivergedBy, ...]


@dataclass(frozen=True)
class Moved:
    """A displacement, or a difference of two, in the frame in which its action began: forward, left, turned left."""

    x_m: float
    y_m: float
    yaw_rad: float


@dataclass(frozen=True)
class ImageDifference:
    """The recorded frame beside the twin's where the replayed action led.

    Attributes:
        depth_identical, rgb_identical: bit for bit. depth_mae_mm: where both measure; None if nowhere.
        rgb_mae: 0 .. 255.
    """

    depth_identical: bool
    rgb_identical: bool
    depth_mae_mm: float | None
    rgb_mae: float


@dataclass(frozen=True)
class ActionStep:
    """One action as it was recorded and as it was replayed.

    Attributes:
        index: of the step in the log. Step 0 is the start, and has no action.
        action: None at the start. command: what a continuous one asked for.
        phase: of the episode; empty where a task has one only.
        recorded, replayed: base_link in ``map`` afterwards, at rest. recorded is None where the log has no pose.
        distance_m: between the two. turned_rad: from recorded to replayed heading, left positive.
        difference: replayed minus recorded displacement of this action alone, each in the frame of its own start. None
            at the start, with an action that took the robot to another phase's start, and without recorded poses.
        forced: likewise, with the action replayed from the recorded pose before it. None if that was not done.
        contact_*: whether something stopped the action; contact_forced belongs to ``forced``.
        outcome_*: how it ended; outcome_replayed is None of a simulator that does not say.
        tilt_*_rad: of the head, up positive.
        image: None where the replay had no images, or the log has none.
        grab_*: what ``grab_release`` came to; None after any other action.
        objects_m: how far apart recorded and replayed positions are of the object that is farthest off; None where no
            object has both.
    """

    index: int
    action: Action | None
    command: VelocityCommand | WaypointCommand | None
    phase: str
    recorded: SE2 | None
    replayed: SE2
    distance_m: float | None
    turned_rad: float | None
    difference: Moved | None
    forced: Moved | None
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
    """Trajectory against trajectory: the recorded actions in the twin, from the recorded start.

    Attributes:
        steps: those that were replayed, the start first; ``recorded_steps`` is how many the log has.
        start_moved_m: how far from the recorded start the twin was put, because the recorded one was not free there.
        ndtw: of the replayed path with the recorded one as reference, threshold ``ndtw_threshold_m``.
        end_error_m, end_error_rad: at the last replayed step.
        largest_error_m, largest_error_rad: at any step. contact_agreement, outcome_agreement: shares of the actions.
        divergence: None if there was none. thresholds: that it was found with.
        departure: the first action that leads elsewhere by itself, whatever came before it: told by ``forced`` where
            that was done, else by ``difference``. None if there is none.
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


@dataclass(frozen=True)
class ClosedLoop:
    """The policy in the twin, from the start that was recorded.

    Attributes:
        agent: its name. seed: of policy and twin.
        log: of the new episode.
        metrics_recorded, metrics_replayed: by name, each scored from its own log.
        end_recorded, end_replayed: why the episodes ended; None of a torn log.
        same_actions: how many actions are the same in both, from the start on.
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


# --- all of it ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SceneCheck:
    """In which scene the log was replayed.

    Attributes:
        folder: None where none was found. same: whether it is the version that was recorded in.
    """

    name: str
    folder: str | None
    recorded_digest: str
    replayed_digest: str | None

    @property
    def same(self) -> bool:
        return self.recorded_digest == self.replayed_digest


@dataclass(frozen=True)
class Replay:
    """Everything that was found out about one log.

    Attributes:
        log: its path. episode, task, robot, agent, seed: from its header. twin: simulator and robot.
        complete: whether the log's end was recorded and nothing is torn off.
        notes: what was not done and why, and what was done otherwise than recorded.
        pose, action, open_loop, closed_loop: None where they were not asked for, or could not be done.
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
    schema: int = field(default=SCHEMA, kw_only=True)

    def to_json(self) -> dict[str, Any]:
        """As JSON can say it."""
        document: dict[str, Any] = json_records.plain(self)
        return document

    @staticmethod
    def from_json(document: Any, where: str) -> Replay:
        """The inverse of :meth:`to_json`. Raises ``RecordingError``, naming ``where`` and the field."""
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise RecordingError(f"{where}: is no replay of schema {SCHEMA}", "replay the log again")
        try:
            return config.parse(document, Replay, where)
        except ConfigError as error:
            raise RecordingError(error.message, "replay the log again") from error


def write_replay(path: Path, replay: Replay) -> None:
    """One replay as a JSON file, complete or not at all. Raises ``RecordingError``."""
    unfinished = path.with_name(f"{path.name}.part")
    with writing(path, "free the disk, or make the folder writable"):
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(replay.to_json(), allow_nan=False) + "\n", encoding="utf-8")
        unfinished.replace(path)


def read_replay(path: Path) -> Replay:
    """What :func:`write_replay` wrote. Raises ``RecordingError``."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path}: cannot be read: {error}", "replay the log again") from error
    return Replay.from_json(document, str(path))
