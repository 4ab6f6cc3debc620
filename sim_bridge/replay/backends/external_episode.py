"""Episodes in other simulators: the policy decides, the simulator's own agent moves, a log is written.

There is no time: an action's stamps are one second apart, a velocity command's its duration. The log has the
simulator's ground truth: policy and referee have one pose, and the base has neither encoders nor a battery.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from robot_runtime.actions.continuous import Command, Decision, VelocityCommand, WaypointCommand, check_command
from robot_runtime.actions.discrete import Action, Displacement, parse_action
from robot_runtime.common.clock import NS_PER_S, Stopwatch, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.provenance import provenance
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal import BaseState, Halt, HeadState, PoseEstimate, RgbdFrame, Velocity, Zone
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.policies.stepping import check_policy, decide, reset_policy
from robot_runtime.policy import Observation, Policy
from robot_runtime.records import (
    ActionResult,
    EndReason,
    EpisodeEnd,
    EpisodeHeader,
    Outcome,
    StepRecord,
    StepTimes,
    Subscriber,
)
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.reference_poses import MAP_FRAME
from robot_runtime.sensors import observations_of
from robot_runtime.tasks.episode import Episode
from sim_bridge.replay.backends.base import SimulatedStep, UnsupportedBySimulator
from sim_bridge.replay.backends.external import ExternalBackend

ACTION_S = 1.0
"""Time between the stamps of two actions."""


def run_external_episode(
    simulator: ExternalBackend,
    header: EpisodeHeader,
    scene: Scene,
    episode: Episode,
    policy: Policy,
    subscribers: Sequence[Subscriber] = (),
) -> EpisodeEnd:
    """Run one episode of a log's task, with the log's seed. A ``RuntimeFault`` on the way ends it as ``FAULT``.

    Args:
        simulator: made with images.
        header: header of the log; its agent's name is used.
        scene: scene used for scoring.
        episode: checked for the scene.
        policy: policy to run.
        subscribers: subscribers to notify in addition to the scorer.

    Raises:
        PolicyError: the policy cannot run in the task, before anything is recorded; or it raised.
        UnsupportedBySimulator: the task needs something that the simulator cannot show or do.
    """
    task = header.task
    check_policy(policy, task)
    if policy.privileged or "semantic" in task.sensors:
        what = "the world itself" if policy.privileged else "object ids"
        raise UnsupportedBySimulator(f"{simulator.name}: cannot show {what}", "run the closed loop in sim")
    begun = simulator.begin(replace(header, episode=episode), episode.start, _tilt_rad(header, episode))
    own = replace(
        header,
        episode=episode,
        scene=scene,
        robot=simulator.name,
        robot_config={},
        policy=policy.source,
        start_ns=0,
        provenance=provenance(),
        origin=None,
        placement=None,
        localizers={},
    )
    return _Episode(simulator, own, policy, subscribers).run(begun)


class _Episode:
    def __init__(
        self, simulator: ExternalBackend, header: EpisodeHeader, policy: Policy, subscribers: Sequence[Subscriber]
    ) -> None:
        self._simulator, self._header, self._policy = simulator, header, policy
        self._scorer = EpisodeScorer(header)
        self._subscribers = (self._scorer, *subscribers)
        self._now_ns = 0
        self._index = 0

    def run(self, begun: SimulatedStep) -> EpisodeEnd:
        started: list[Subscriber] = []
        end: EpisodeEnd | None = None
        try:
            for subscriber in self._subscribers:
                subscriber.on_episode_start(self._header)
                started.append(subscriber)
            end = self._play(begun)
        except RuntimeFault as error:
            end = EpisodeEnd(EndReason.FAULT, self._index, self._now_ns, error.message)
            raise
        finally:
            with ExitStack() as stack:
                for subscriber in reversed(started):
                    interrupted = EpisodeEnd(EndReason.INTERRUPTED, self._index, self._now_ns)
                    stack.callback(subscriber.on_episode_end, end or interrupted)
        return end

    def _play(self, step: SimulatedStep) -> EpisodeEnd:
        header, policy = self._header, self._policy
        observe = observations_of(header.task, header.scene, header.episode, step.pose, step.pose).build
        observation = self._record(observe, step, None, None, {}, 0.0)
        reset_policy(policy, header.task, header.seed)
        end: EpisodeEnd | None = None
        while end is None:
            timer = Stopwatch()
            decision, info = decide(policy, observation, self._index + 1, header.task)
            decision = self._allowed(decision)
            inferred_s, before = timer.elapsed_s(), step
            step = self._simulator.act(decision)
            self._index += 1
            result = _result(decision, header, before, step)
            observation = self._record(observe, step, decision, result, info, inferred_s)
            end = self._end(decision)
        return end

    def _allowed(self, decision: Decision) -> Decision:
        """Check that the task has the decision. Raises ``UnknownAction``."""
        task = self._header.task
        if isinstance(decision, VelocityCommand | WaypointCommand):
            check_command(decision, task.control, task.name)
            return decision
        return parse_action(decision, task.actions)

    def _record(
        self,
        observe: Callable[[RgbdFrame, SE2], Observation],
        step: SimulatedStep,
        decision: Decision | None,
        result: ActionResult | None,
        info: dict[str, Any],
        inferred_s: float,
    ) -> Observation:
        """Record a step, and return the observation of the policy."""
        began_ns = self._now_ns
        if result is not None:
            self._now_ns += seconds_to_ns(result.duration_s)
        now_ns = self._now_ns
        assert step.frame is not None, "the simulator was made without images"
        frame = replace(step.frame, stamp_ns=now_ns)
        pose = PoseEstimate(now_ns, step.pose, MAP_FRAME)
        contact = Zone.CENTER if step.contact else Zone.NONE
        observation = observe(frame, step.pose)
        action, command = _named(decision)
        record = StepRecord(
            index=self._index,
            action=action,
            result=result,
            observation=observation,
            frame=frame,
            pose=pose,
            referee=pose,
            base=BaseState(now_ns, step.pose, Velocity(), contact, Zone.NONE, Zone.NONE, Halt.NONE, math.nan, math.nan),
            head=HeadState(now_ns, 0.0, step.tilt_rad, False),
            times=StepTimes(began_ns, now_ns, now_ns, now_ns),
            policy_info=info,
            phase_s={} if result is None else {"infer": inferred_s},
            command=command,
        )
        for subscriber in self._subscribers:
            subscriber.on_step(record)
        return observation

    def _end(self, decision: Decision) -> EpisodeEnd | None:
        task = self._header.task
        reason = None
        if decision is Action.STOP:
            reason = EndReason.STOP
        elif task.success.when == "reached" and self._scorer.metrics()["success"]:
            reason = EndReason.REACHED
        elif self._index >= task.max_steps:
            reason = EndReason.MAX_STEPS
        elif task.max_seconds is not None and self._now_ns >= task.max_seconds * NS_PER_S:
            reason = EndReason.MAX_SECONDS
        return None if reason is None else EpisodeEnd(reason, self._index, self._now_ns)


def _named(decision: Decision | None) -> tuple[Action | None, Command | None]:
    """Action and command of a step."""
    if decision is None or isinstance(decision, Action):
        return decision, None
    return decision.action, decision


def _result(decision: Decision, header: EpisodeHeader, before: SimulatedStep, after: SimulatedStep) -> ActionResult:
    moved = after.pose.relative_to(before.pose)
    asked = header.task.magnitudes.displacement(decision) if isinstance(decision, Action) else decision.displacement
    done = Displacement(moved.x_m, wrap_angle(moved.yaw_rad), after.tilt_rad - before.tilt_rad)
    duration_s = decision.duration_s if isinstance(decision, VelocityCommand) else ACTION_S
    contact = Zone.CENTER if after.contact else Zone.NONE
    return ActionResult(after.outcome or Outcome.REACHED, asked, done, contact, duration_s)


def _tilt_rad(header: EpisodeHeader, episode: Episode) -> float:
    return header.task.camera.tilt_rad if episode.start_tilt_rad is None else episode.start_tilt_rad
