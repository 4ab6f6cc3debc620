"""Records of an episode: header, steps, end. Subscribers receive them; the recorder writes them."""

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from typing_extensions import override

from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.actions.timed import TimedAction
from robot_runtime.common.clock import Stopwatch
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import BaseState, Event, HeadState, Intrinsics, PoseEstimate, RgbdFrame, Zone
from robot_runtime.policy import Observation, PolicySource
from robot_runtime.scenes.objects import ObjectSource
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.state import NO_STATE, StepState
from robot_runtime.tasks.task import Task


class Outcome(str, Enum):
    """End of an action."""

    REACHED = "reached"
    CONTACT = "contact"
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    FAULT = "fault"
    MOVING = "moving"
    """The robot still pursues it: it goes on while the policy decides."""


@dataclass(frozen=True, slots=True)
class Pursued:
    """What became of an action that does not settle.

    Attributes:
        age_s: time from the exposure that it was computed from to its application.
        standing_s: time for which the robot had stood before, for want of a decision.
        driven: pose at the end in base_link at the end of the step before, by odometry.
        error_m: largest distance from the curve through its points.
        error_rad: largest error of the heading on that curve.
    """

    age_s: float
    standing_s: float
    driven: SE2
    error_m: float
    error_rad: float


@dataclass(frozen=True, slots=True)
class ActionResult:
    """Result of an action.

    Attributes:
        outcome: how it ended.
        commanded: the displacement that the action asked for.
        measured: the displacement by the robot's own odometry and head.
        contact: zones that stopped or, where the robot slides, shortened this action; else ``NONE``.
        duration_s: duration on the robot's clock.
        detail: cause of ``timed_out`` and ``fault``, of a look that a limit refused, and of a pause.
        pursued: course of an action that does not settle, None where it settles. ``measured`` and ``duration_s`` then
            begin at the end of the step before, and include the time of the decision.
    """

    outcome: Outcome
    commanded: Displacement
    measured: Displacement
    contact: Zone
    duration_s: float
    detail: str = ""
    pursued: Pursued | None = None

    @property
    def collided(self) -> bool:
        """The simulator's ``previous_step_collided`` for this step."""
        return self.outcome is Outcome.CONTACT

    @property
    def waits_s(self) -> dict[str, float]:
        """Times for :data:`PHASES` of an action that does not settle."""
        return {} if self.pursued is None else {"age": self.pursued.age_s, "stand": self.pursued.standing_s}

    @property
    def succeeded(self) -> bool:
        """AI2-THOR's ``lastActionSuccess``: carried out or going on, and no limit of a look prevented it."""
        return self.outcome in (Outcome.REACHED, Outcome.MOVING) and not (self.commanded.tilt_rad and self.detail)


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Stamps of a step on the robot's clock, nanoseconds. ``action_*`` equal ``observed_ns`` in step 0."""

    action_start_ns: int
    action_end_ns: int
    exposed_ns: int
    observed_ns: int


ANSWER = "answer"
"""Key of ``StepRecord.policy_info``, in the last step of an episode with a question: a ``policies.policy.Answer``."""

EVIDENCE = "evidence"
"""Key of ``StepRecord.policy_info`` next to an answer: sentences on what it rests on, or why there is none."""


PHASES: dict[str, str] = {
    "infer": "the policy, from the observation to the action",
    "act": "from the action to the end of its motion, without coming to rest",
    "settle": "until wheels and head measure rest, and one pose longer",
    "observe": "waiting for a frame exposed after that, and making the observation",
    "localize": "waiting for the poses at that exposure",
    "log": "handing the step before to recorder and other subscribers",
    "age": "in motion, on the robot's clock: from the exposure of the policy's image until its decision holds",
    "stand": "in motion, on the robot's clock: standing before that, for want of a decision",
}
"""Phases of a step's host time, in order, and the waits of an action that does not settle.

The motion of a simulated robot counts the time that computing it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step: an action (None at the reset), how it ended, and what was observed afterwards.

    Attributes:
        command: what a continuous ``action`` asks for; None with a discrete action.
        observation: observation as given to the policy.
        frame: frame as the camera delivered it.
        pose: pose by the policy's localizer at exposure.
        referee: scoring pose after the action, standing still.
        policy_info: basis of the decision that led to ``action`` (``Policy.info``).
        phase_s: host seconds by phase of :data:`PHASES`; without the phases that the step did not have.
        state: state of the episode that the task's kind logs; ``NO_STATE`` where it logs none.
    """

    index: int
    action: Action | None
    command: TimedAction | None = None
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
    state: StepState = NO_STATE


@dataclass(frozen=True, slots=True)
class Act:
    """The part of a step before its frame is taken; the fields are ``StepRecord``'s."""

    index: int
    action: Action | None
    result: ActionResult | None
    start_ns: int
    end_ns: int
    policy_info: dict[str, Any] = field(default_factory=dict)
    phase_s: dict[str, float] = field(default_factory=dict)
    command: TimedAction | None = None


class EndReason(str, Enum):
    """Reason for the end of an episode."""

    STOP = "stop"
    REACHED = "reached"
    MAX_STEPS = "max_steps"
    MAX_SECONDS = "max_seconds"
    FAULT = "fault"
    INTERRUPTED = "interrupted"
    LOCALIZATION_LOST = "localization_lost"

    @property
    def aborted(self) -> bool:
        """Whether neither policy nor task ended it, so that its result does not count for the policy."""
        return self in (EndReason.FAULT, EndReason.INTERRUPTED, EndReason.LOCALIZATION_LOST)


@dataclass(frozen=True, slots=True)
class EpisodeEnd:
    """The last record; a log without it was interrupted.

    Attributes:
        steps: index of the last step.
        detail: cause of ``fault``, ``interrupted`` and ``localization_lost``.
        action: the action after the last step, which no step contains because a fault prevented its observation;
            None if there is none.
        result: result of that action.
        of_policy: whether the policy is the cause of a fault or an interruption: it raised, gave no answer or none that
            is an action, or drove to a cliff.
    """

    reason: EndReason
    steps: int
    stamp_ns: int
    detail: str = ""
    action: Action | None = None
    result: ActionResult | None = None
    of_policy: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """Accuracy of a robot's placing at the start of its episode, from poses of a robot that stood still.

    Attributes:
        way: kind of placer: ``teleport``, ``operator``, ``drive``.
        source: the localizer that measured the pose.
        goal: the pose asked for, in ``map``.
        pose: the measured pose, in ``map``, with the goal's heading where the source measures none.
        error_m: between the positions.
        error_rad: error of the heading, left positive; None if the source does not measure it.
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
    """Everything needed to score and to replay the episode; scene and map are attachments.

    Attributes:
        dataset: file or folder that the episode was read from; empty if it was generated.
        intrinsics: intrinsics of the camera whose frames follow.
        depth_unit_m: depth unit of that camera.
        mount: x, y, z of its optical center in base_link at rest, meters.
        origin: mean pose, with covariance, of the standing robot at the start by the policy's localizer. None in older
            logs.
        placement: accuracy of the start. None where no source measured it in ``map``, and in older logs.
        localizers: names of the sources of raw poses by role (``policy``, ``referee``, ``odometry``): more than one
            where several are fused.
        object_source: source of the objects' poses; None in a task that moves none.
        policy: source of the policy ``agent``. None where it cannot be loaded again by name, and in older logs.
        senses_contact: whether the base reports contacts; without that, an episode has no number of collisions.
        provenance: commit, versions, host, wall-clock times of the session (``created``) and of the episode's beginning
            (``recorded``; not in older logs): the only part that differs between identical runs.
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
    senses_contact: bool = True


class SentCommand(NamedTuple):
    """A velocity that was sent to the base, as its Guard let it through; it holds until the next.

    Attributes:
        stamp_ns: when it was sent.
        linear_m_s: forward positive.
        angular_rad_s: left positive.
    """

    stamp_ns: int
    linear_m_s: float
    angular_rad_s: float


class Subscriber:
    """Gets every record, in order, in the loop's thread; must return quickly and may raise ``RuntimeFault``."""

    def on_episode_start(self, header: EpisodeHeader) -> None:
        """The robot stands at the start; nothing has been observed yet."""

    def on_step(self, record: StepRecord) -> None:
        """A step is complete."""

    def on_base_state(self, state: BaseState) -> None:
        """A base state seen by the motion loop, at its own rate."""

    def on_command(self, command: SentCommand) -> None:
        """A velocity that the motion loop sent to the base, at the loop's rate; zero where it stopped the wheels."""

    def on_event(self, event: Event) -> None:
        """An event between the steps; handed over at an action's end or, while the robot waits, at once."""

    def on_poses(self, source: str, estimates: tuple[PoseEstimate, ...]) -> None:
        """Poses from a source (``LocalizerInfo.name``) since the last call, in order of arrival.

        Handed over at the end of every action and of the episode, before :meth:`on_step`.
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
        self._on_base_state: list[Callable[[BaseState], None]] = []
        self._on_command: list[Callable[[SentCommand], None]] = []
        self.step_s = 0.0

    def start(self, header: EpisodeHeader, scorer: Subscriber | None = None) -> None:
        """Start an episode; its scorer, if any, gets each record before all others."""
        for subscriber in (*([] if scorer is None else [scorer]), *self._subscribers):
            subscriber.on_episode_start(header)
            self._started.append(subscriber)
        # These two come at the motion loop's rate, and few subscribers use them.
        self._on_base_state = [s.on_base_state for s in self._started if _uses(s, "on_base_state")]
        self._on_command = [s.on_command for s in self._started if _uses(s, "on_command")]

    @override
    def on_step(self, record: StepRecord) -> None:
        timer = Stopwatch()
        for subscriber in self._started:
            subscriber.on_step(record)
        self.step_s = timer.elapsed_s()

    @override
    def on_base_state(self, state: BaseState) -> None:
        for take in self._on_base_state:
            take(state)

    @override
    def on_command(self, command: SentCommand) -> None:
        for take in self._on_command:
            take(command)

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
        self._on_base_state, self._on_command = [], []
        with ExitStack() as stack:
            for subscriber in reversed(started):
                stack.callback(subscriber.on_episode_end, end)


def _uses(subscriber: Subscriber, name: str) -> bool:
    return getattr(type(subscriber), name) is not getattr(Subscriber, name)
