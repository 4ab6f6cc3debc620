"""What one episode leaves behind: header, steps, end. Subscribers receive these; the recorder writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from typing_extensions import override

from robot_runtime.actions.continuous import Command
from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common.clock import Stopwatch
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import BaseState, HeadState, Intrinsics, PoseEstimate, RgbdFrame, Zone
from robot_runtime.hal.events import Event
from robot_runtime.policy import Observation, PolicySource
from robot_runtime.scenes.objects import Grab, ObjectPose, ObjectSource
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task


class Outcome(str, Enum):
    """How an action ended."""

    REACHED = "reached"
    CONTACT = "contact"
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What happened to one action.

    Attributes:
        commanded: what the action asked for; measured: what the robot's own odometry and head say was done.
        contact: zones that stopped this action; ``NONE`` unless the outcome is ``contact``.
        detail: for ``timed_out`` and ``fault``, what and why.
    """

    outcome: Outcome
    commanded: Displacement
    measured: Displacement
    contact: Zone
    duration_s: float
    detail: str = ""

    @property
    def collided(self) -> bool:
        """The simulator's ``previous_step_collided`` for this step."""
        return self.outcome is Outcome.CONTACT


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Stamps of one step on the robot's clock, nanoseconds. ``action_*`` equal ``observed_ns`` in step 0."""

    action_start_ns: int
    action_end_ns: int
    exposed_ns: int
    observed_ns: int


ANSWER = "answer"
"""Key of ``StepRecord.policy_info``, in the last step of an episode with a question: a ``policies.policy.Answer``."""


PHASES: dict[str, str] = {
    "infer": "the policy, from the observation to the action",
    "act": "from the action to the end of its motion, without coming to rest",
    "settle": "until wheels and head measure rest, and one pose longer",
    "observe": "waiting for a frame exposed after that, and making the observation",
    "localize": "waiting for the poses at that exposure",
    "log": "handing the step before to recorder and other subscribers",
}
"""Where a step's time goes, in order. Host time: of a simulated robot it is what computing its motion took."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step: an action, how it ended, and what was observed afterwards. Step 0 is the reset: no action.

    Attributes:
        observation: as fed to the policy. frame: as the camera delivered it.
        pose: policy's localizer at exposure; referee: scoring pose after the action, standing still.
        policy_info: what the policy said about the decision that led to ``action``.
        phase_s: host seconds by phase of :data:`PHASES`; those that the step did not have are not there.
        objects: poses (map) of the tracked objects when the action had ended, without those that are ``held``; empty
            in a task that moves none.
        grab: what ``grab_release`` came to; None after any other action.
        command: what a continuous ``action`` asked for; None with a discrete one.
        phase: of the episode, to which this step's observation belongs; empty where a task has one only. With the
            action that ends a phase, robot and objects are brought to the start of the next before anything is
            observed: there, poses jump.
    """

    index: int
    action: Action | None
    result: ActionResult | None
    observation: Observation
    frame: RgbdFrame
    pose: PoseEstimate
    referee: PoseEstimate
    base: BaseState
    head: HeadState
    times: StepTimes
    policy_info: dict[str, Any] = field(default_factory=dict)
    phase_s: dict[str, float] = field(default_factory=dict)
    objects: Mapping[str, ObjectPose] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    grab: Grab | None = None
    phase: str = ""
    command: Command | None = None


class EndReason(str, Enum):
    """Why an episode ended."""

    STOP = "stop"
    REACHED = "reached"
    MAX_STEPS = "max_steps"
    MAX_SECONDS = "max_seconds"
    FAULT = "fault"
    INTERRUPTED = "interrupted"
    LOCALIZATION_LOST = "localization_lost"

    @property
    def aborted(self) -> bool:
        """Whether something other than policy and task ended it, so that it says nothing about the policy."""
        return self in (EndReason.FAULT, EndReason.INTERRUPTED, EndReason.LOCALIZATION_LOST)


@dataclass(frozen=True, slots=True)
class EpisodeEnd:
    """The last record.

    Attributes:
        steps: index of the last step.
        detail: of ``fault``, ``interrupted`` and ``localization_lost``, what and why.
        action, result: the action that was carried out after the last step, and how it ended: no step tells of it,
            because a fault came before anything could be observed. None if there is none.
    """

    reason: EndReason
    steps: int
    stamp_ns: int
    detail: str = ""
    action: Action | None = None
    result: ActionResult | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """How well a robot was brought to the start of its episode, from poses of a robot that stood still.

    Attributes:
        way: who brought it: ``teleport``, ``operator``, ``drive``. source: the localizer that saw it there.
        goal: where it was to stand, and pose: where it stood, in ``map``; the heading is the goal's where the source
            knows none.
        error_m: between the positions. error_rad: of the heading, left positive; None if the source knows none.
        scatter_m: standard deviation of the source's positions, one by one.
    """

    way: str
    source: str
    goal: SE2
    pose: SE2
    error_m: float
    error_rad: float | None
    scatter_m: float

    def __str__(self) -> str:
        turned = "" if self.error_rad is None else f" and {abs(math.degrees(self.error_rad)):.1f}°"
        return f"{100 * self.error_m:.1f} cm{turned} off ({self.way}), as {self.source} sees it"


@dataclass(frozen=True)
class EpisodeHeader:
    """The first record: everything needed to score and to replay the episode.

    Attributes:
        dataset: file or folder that the episode was read from; empty if it was generated.
        intrinsics, depth_unit_m: of the camera whose frames follow; mount_height_m its optical center at rest.
        origin: where the policy's localizer saw the robot at the start, from poses of a robot that stood still; their
            mean and its covariance. None in logs from before it was written.
        placement: how far from the episode's start the robot stood then. None where nobody saw it in ``map``, and in
            logs from before it was written.
        localizers: by role (``policy``, ``referee``, ``odometry``), the names of the sources whose raw poses it is made
            of in the end: more than one where several are fused.
        object_source: who says where the objects are; None in a task that moves none.
        policy: what ``agent`` was loaded from. None where a program drove that nobody can load again by name, and in
            logs from before it was written.
        provenance: commit, versions, host, wall-clock time: the only part that differs between identical runs.
    """

    episode: Episode
    task: Task
    scene: Scene
    robot: str
    robot_config: dict[str, Any]
    agent: str
    seed: int
    intrinsics: Intrinsics
    depth_unit_m: float
    mount: tuple[float, float, float]
    start_ns: int
    provenance: dict[str, Any]
    dataset: str = ""
    object_source: ObjectSource | None = None
    origin: PoseEstimate | None = None
    placement: Placement | None = None
    localizers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    policy: PolicySource | None = None


class Subscriber:
    """Gets every record, in order, in the loop's thread; must return quickly and may raise ``RuntimeFault``."""

    def on_episode_start(self, header: EpisodeHeader) -> None:
        """The robot stands at the start; nothing has been observed yet."""

    def on_step(self, record: StepRecord) -> None:
        """A step is complete."""

    def on_base_state(self, state: BaseState) -> None:
        """A base state seen by the motion loop, at its own rate."""

    def on_event(self, event: Event) -> None:
        """Something happened beside the steps. Told of at an action's end or, while the robot waits, at once."""

    def on_poses(self, source: str, estimates: tuple[PoseEstimate, ...]) -> None:
        """What arrived from a source of poses (``LocalizerInfo.name``) since the last call, in order of arrival.

        Told of at the end of every action and of the episode, before :meth:`on_step`.
        """

    def on_episode_end(self, end: EpisodeEnd) -> None:
        """The episode is over and the wheels are at zero. Always called once after ``on_episode_start``."""


@dataclass(frozen=True)
class RunInfo:
    """Part of the headers that all episodes of a run share; the fields are :class:`EpisodeHeader`'s."""

    robot_config: dict[str, Any]
    dataset: str
    seed: int
    provenance: dict[str, Any]


class SubscriberGroup(Subscriber):
    """Subscribers of a run. Those that got an episode's start get all that follows, and its end exactly once.

    Attributes:
        step_s: host seconds that the subscribers took for the last step.
    """

    def __init__(self, subscribers: Iterable[Subscriber]) -> None:
        self._subscribers = tuple(subscribers)
        self._started: list[Subscriber] = []
        self.step_s = 0.0

    def start(self, header: EpisodeHeader, scorer: Subscriber | None = None) -> None:
        """Start an episode; its scorer, if any, gets each record before all others."""
        for subscriber in (*([] if scorer is None else [scorer]), *self._subscribers):
            subscriber.on_episode_start(header)
            self._started.append(subscriber)

    @override
    def on_step(self, record: StepRecord) -> None:
        timer = Stopwatch()
        for subscriber in self._started:
            subscriber.on_step(record)
        self.step_s = timer.elapsed_s()

    @override
    def on_base_state(self, state: BaseState) -> None:
        for subscriber in self._started:
            subscriber.on_base_state(state)

    @override
    def on_event(self, event: Event) -> None:
        for subscriber in self._started:
            subscriber.on_event(event)

    @override
    def on_poses(self, source: str, estimates: tuple[PoseEstimate, ...]) -> None:
        for subscriber in self._started:
            subscriber.on_poses(source, estimates)

    @override
    def on_episode_end(self, end: EpisodeEnd) -> None:
        """Hand over the end to all, even if one of them raises."""
        started, self._started = self._started, []
        with ExitStack() as stack:
            for subscriber in reversed(started):
                stack.callback(subscriber.on_episode_end, end)
