"""Pause, end, take over, drive to the start, in the robot's loop: a subscriber, a policy around the policy, a guide."""

from collections.abc import Callable
from typing import Any

from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common.clock import Stopwatch, SystemClock, wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import EpisodeAborted
from robot_runtime.hal import Base, BaseState, Velocity
from robot_runtime.placement.guide import Guide
from robot_runtime.placement.offset import Offset, Tolerance
from robot_runtime.policies.human.human import await_choice, choice_record, decision_of
from robot_runtime.policies.human.inbox import ActionInbox, Choice
from robot_runtime.policies.wrapper import PolicyWrapper
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.records import EpisodeHeader, StepRecord, Subscriber
from robot_runtime.tasks.task import Task

PAUSE_LIMIT_S = 3600.0
"""Longest pause; then the episode is ended."""

STEER = Velocity(0.25, 0.6)
"""Velocity of a full stick."""

_POLL_S = 0.05


class Supervision(Subscriber):
    """Requests of the operator to the loop. The methods without ``on_`` are for any thread.

    Args:
        inbox: inbox of the person who drives.
        view: view of that person, for the log.
        human: whether the agent of the run is a person anyway.
        continuous: whether that person drives with velocities; a person who takes over does as the policy did.

    Attributes:
        paused: whether the operator has paused the run.
        waits: whether the loop waits because of that.
        steers: whether the operator may drive the robot to its start.
        operator: pseudonym of the person in control.
        taken_over: pseudonym of the person whose actions count instead of the policy's; None if there is none.
        interventions: steps of the present episode that a person decided instead of the policy.
        helper: pseudonym of that person, the last one if there were several.
        helped: numbers of the episodes with such steps, from 1.
    """

    def __init__(self, inbox: ActionInbox, view: str, human: bool = False, continuous: bool = False) -> None:
        self.inbox, self.view, self.human, self.continuous = inbox, view, human, continuous
        self.operator = self.helper = ""
        self.paused = self.waits = self.steers = False
        self.taken_over: str | None = None
        self.interventions: list[int] = []
        self.helped: list[int] = []
        self._begun = 0
        self._aborted: str | None = None
        self._runs = False
        self._pose: SE2 | None = None

    def abort(self, reason: str) -> None:
        """End the present episode, also in the middle of a motion."""
        if self._runs:
            self._aborted = reason
            self.inbox.abort(reason)

    def take_over(self, by: str) -> None:
        """Let a person decide from the next step on."""
        self.taken_over = self.helper = by

    def hand_back(self) -> None:
        """Let the policy decide from the next step on."""
        self.taken_over = None
        self.inbox.release()

    # --- the robot's thread -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin an episode, before the robot is placed."""
        self._runs, self._aborted, self.taken_over, self.interventions = True, None, None, []
        self._begun += 1
        self.inbox.clear()

    def finish(self) -> None:
        """End an episode."""
        if self.interventions:
            self.helped.append(self._begun)
        self._runs = self.steers = False

    def check(self) -> None:
        """Raise ``EpisodeAborted`` if the operator has ended the episode."""
        if self._aborted is not None:
            raise EpisodeAborted(self._aborted, "continue with the next episode, or run this one again")

    def wait_while_paused(self) -> float:
        """Return once the run is not paused, with the seconds that it waited. Raises ``EpisodeAborted``."""
        self.check()
        if not self.paused:
            return 0.0
        timer = Stopwatch()

        def may_go_on() -> bool | None:
            self.check()
            return None if self.paused else True

        self.waits = True
        try:
            if wait_for(SystemClock(), may_go_on, PAUSE_LIMIT_S, _POLL_S) is None:
                raise EpisodeAborted(f"paused for {PAUSE_LIMIT_S:g} s", "run the episode again")
        finally:
            self.waits = False
        return timer.elapsed_s()

    @override
    def on_episode_start(self, header: EpisodeHeader) -> None:
        self.check()

    @override
    def on_base_state(self, state: BaseState) -> None:
        self.check()

    @override
    def on_step(self, record: StepRecord) -> None:
        self._pose = record.pose.pose

    def decide(self, proposed: Decision, task: Task) -> tuple[Decision, dict[str, Any]]:
        """The person's decision instead of the policy's while taken over, and what the log says about it.

        Raises:
            EpisodeAborted: the operator ended the episode, or left the robot without a decision.
        """
        by = self.taken_over
        if by is None:
            return proposed, {}

        self.continuous = not isinstance(proposed, Action) and task.control is not None and bool(task.control.velocity)

        def known(pressed: Choice) -> Decision | None:
            return decision_of(pressed, task, self.continuous)

        choice, reaction_s = await_choice(
            self.inbox, lambda pressed: known(pressed) is not None, lambda: self.taken_over is None
        )
        decision = None if choice is None else known(choice)
        if choice is None or decision is None:
            return proposed, {}
        pose = self._pose or SE2()
        return decision, {
            **choice_record(choice, reaction_s, by, self.view),
            "intervention": True,
            "proposed": str(proposed.action if not isinstance(proposed, Action) else proposed),
            "pose_before": [pose.x_m, pose.y_m, pose.yaw_rad],
        }


class Supervised(PolicyWrapper):
    """A policy under an operator, who may pause it, end its episode, and decide in its place."""

    def __init__(self, policy: Policy, supervision: Supervision) -> None:
        super().__init__(policy, policy.name)
        self._supervision = supervision
        self._task: Task | None = None
        self._operator: dict[str, Any] = {}
        self._steps = 0

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._task, self._operator, self._steps = task, {}, 0
        super().reset(task, seed, world)

    @override
    def act(self, observation: Observation) -> Decision:
        assert self._task is not None
        supervision = self._supervision
        self._steps += 1
        paused_s = supervision.wait_while_paused()
        decision, self._operator = supervision.decide(super().act(observation), self._task)
        supervision.check()
        if self._operator:
            supervision.interventions.append(self._steps)
            self.overruled(decision)
        if paused_s:
            self._operator = {**self._operator, "paused_s": round(paused_s, 3)}
        return decision

    @override
    def info(self) -> dict[str, Any]:
        return {**super().info(), **({"operator": self._operator} if self._operator else {})}


class PageGuide(Guide):
    """Messages of a placement to the page, and to the guide that was there; the page drives where no program does.

    A command is repeated at each message, ten times a second, and expires after the Guard's 0.2 s: a released key, a
    lost page and a placement that ends stop the robot.
    """

    def __init__(
        self, show: Callable[[Offset | None, str, Tolerance], None], other: Guide, supervision: Supervision, base: Base
    ) -> None:
        super().__init__()
        self._show, self._other, self._supervision, self._base = show, other, supervision, base
        self._tolerance = Tolerance()
        self._moves = False

    @override
    def begin(self, goal: SE2, tolerance: Tolerance, drives: bool) -> None:
        self._tolerance = tolerance
        self._supervision.steers = not drives
        self._other.begin(goal, tolerance, drives)

    @override
    def show(self, now_ns: int, offset: Offset | None, note: str) -> None:
        self._supervision.check()
        if self._supervision.steers:
            self._steer()
        self._show(offset, note, self._tolerance)
        self._other.show(now_ns, offset, note)

    @override
    def done(self, offset: Offset) -> None:
        self._supervision.steers = False
        self._show(offset, "placed", self._tolerance)
        self._other.done(offset)

    def _steer(self) -> None:
        held = self._supervision.inbox.held
        if held is not None and held.stick is not None:
            linear, angular = held.stick
            self._base.command(Velocity(linear * STEER.linear_m_s, angular * STEER.angular_rad_s))
            self._moves = True
        elif self._moves:
            self._base.stop()
            self._moves = False
