"""Environment of a robot: Habitat's ``reset``, ``step``, ``episode_over`` and ``get_metrics`` on any ``Robot``.

One episode::

    reset ──► on_episode_start ──► on_step (index 0: the observation at the start)
    step  ──► wheels move and come to rest, or go on ──► frame exposed after that ──► on_step (index n)
    stop action, success that ends it, step limit, fault ──► wheels at zero ──► on_episode_end, exactly once

What a kind of task adds to this (objects to move, phases) is its ``TaskSession``. The action that ends a first phase
also brings robot and objects to the start of the second; its observation is made there (``StepState.phase``).

A device fault, an unknown action or a failing subscriber ends the episode (``EndReason.FAULT``) and is raised; the log
is complete by then. An action that the Guard stopped for an e-stop, a wheel drop or a cliff ends it as ``INTERRUPTED``:
a person has to help. While the robot is lost, nothing is observed; after a while ``LocalizationLost`` ends the episode.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import Self

from robot_runtime.actions.discrete import Action, parse_action
from robot_runtime.actions.timed import Decision, TimedAction, stamped
from robot_runtime.common.clock import NS_PER_S, Stopwatch, ns_to_seconds, seconds_to_ns, utc_now_iso
from robot_runtime.common.provenance import provenance
from robot_runtime.errors import DeviceFault, EpisodeError, LocalizationLost, RuntimeFault, UnknownAction, interruption
from robot_runtime.hal import STREAMS, Halt, PoseEstimate, RgbdFrame, Robot
from robot_runtime.localization.pose_monitor import PATIENCE_S, PoseMonitor, check_frames
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.metrics.settings import Metrics
from robot_runtime.motion.controller import MotionController
from robot_runtime.placement.measured import placement
from robot_runtime.policy import Observation, PolicySource
from robot_runtime.records import (
    Act,
    ActionResult,
    EndReason,
    EpisodeEnd,
    EpisodeHeader,
    Outcome,
    Placement,
    RunInfo,
    StepRecord,
    StepTimes,
    Subscriber,
    SubscriberGroup,
)
from robot_runtime.robots.calibration_file import calibrations_in
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import Scene
from robot_runtime.sensors import ObservationBuilder, check_camera, observations_of
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.episode_check import check_episode
from robot_runtime.tasks.kind import kind_of
from robot_runtime.tasks.task import Task

if TYPE_CHECKING:
    from robot_runtime.motion.pursuit import Pursuit

MAP_FRAME = "map"
T = TypeVar("T")
ORIGIN_S = 1.0
"""Duration over which poses are averaged to the episode's origin; the robot stands still meanwhile."""

PLACED_M, PLACED_RAD = 0.1, math.radians(5.0)
"""One standard deviation of a placed robot's distance from an episode's start."""


@dataclass(frozen=True, slots=True)
class _Phase:
    """Start of a phase, from which its limits count.

    Attributes:
        index: index of its first step.
        stamp_ns: time on the robot's clock, without the pauses of the episode so far.
        origin: pose by the policy's localizer.
        placement: its accuracy.
    """

    index: int
    stamp_ns: int
    origin: PoseEstimate
    placement: Placement | None
    observations: ObservationBuilder


class Env:
    """Episodes of a task on one robot in one scene.

    Args:
        robot: connected; remains the caller's to close.
        task: the task of all episodes.
        scene: the scene of all episodes.
        subscribers: get every record in order, in the caller's thread.
        seed: default of :meth:`reset`'s, for the header only: randomness is the robot's and the policy's.
        robot_config: the robot's YAML, for the header; the hashes of the calibrations that it names are added.
        dataset: file or folder that the episodes were read from, for the header.
        localization_patience_s: longest wait for a lost robot before the episode ends.
        judged: whether an episode must be solvable, is scored as it goes, and ends by the task's rules. Otherwise only
            ``stop``, or a stop that needs a person's help, ends it: for actions that were chosen before.

    Raises:
        ConfigError: the robot's camera is not the one that the task's policies were trained with, a localizer reports
            in a frame of its own, or the robot lacks a part that the task needs.
    """

    def __init__(
        self,
        robot: Robot,
        task: Task,
        scene: Scene,
        subscribers: Sequence[Subscriber] = (),
        seed: int = 0,
        robot_config: Mapping[str, Any] | None = None,
        dataset: str = "",
        localization_patience_s: float = PATIENCE_S,
        judged: bool = True,
    ) -> None:
        check_camera(task, robot.camera.info)
        check_frames(robot)
        task.check_base(robot.base.info)
        self.robot, self.task, self.scene = robot, task, scene
        config = dict(robot_config or {})
        if calibrations := calibrations_in(config):
            config["calibrations"] = calibrations
        self._run = RunInfo(config, dataset, seed, provenance())
        self._judged = judged
        self._geodesic = GeodesicMap(scene.map, task.robot_radius_m)
        self._subscribers = group = SubscriberGroup(subscribers)
        listeners = group.on_base_state, group.on_command
        self._motion = MotionController(
            robot.clock, robot.base, robot.head, robot.motion, *listeners, task.look_limits_rad, group.on_event
        )
        self._pursuit: Pursuit | None = None
        if task.control is not None and task.control.trajectory is not None:
            from robot_runtime.motion.pursuit import Pursuit  # most tasks have discrete actions alone

            self._pursuit = Pursuit(robot, self._motion, task.control, group)
        self._session = kind_of(task).session(robot, task)
        self._pose_monitor = PoseMonitor(robot, group.on_event, group.on_poses, localization_patience_s)
        self._over = True
        self._phase: _Phase | None = None
        self._header: EpisodeHeader | None = None
        self._scorer: EpisodeScorer | None = None
        self._record: StepRecord | None = None
        self._unobserved: tuple[Action | None, ActionResult | None] = (None, None)
        self._end_record: EpisodeEnd | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def episode_over(self) -> bool:
        """True before the first :meth:`reset`, and from an episode's end to the next one."""
        return self._over

    @property
    def episode(self) -> Episode:
        """The present or last episode, with the goals that its file leaves to the scene. Raises ``EpisodeError``."""
        return _available(self._header).episode

    @property
    def record(self) -> StepRecord:
        """The last step. Raises ``EpisodeError`` before the first :meth:`reset`."""
        return _available(self._record)

    @property
    def end(self) -> EpisodeEnd:
        """The last episode's end. Raises ``EpisodeError`` while one runs and before the first."""
        return _available(self._end_record)

    def get_metrics(self) -> Metrics:
        """The metrics of the episode so far; final once it is over. Keys are ``EpisodeScorer``'s.

        Raises:
            EpisodeError: before the first :meth:`reset`, and where episodes are not judged.
        """
        return _available(self._scorer).metrics()

    def reset(
        self, episode: Episode, agent_name: str = "", seed: int | None = None, policy: PolicySource | None = None
    ) -> Observation:
        """Bring the robot to the start and return its observation there. A running episode is interrupted.

        Args:
            episode: the episode to run.
            agent_name: agent's name in the header.
            seed: seed in the header; None for the environment's.
            policy: source of the policy in the header.

        Raises:
            InvalidStart, UnreachableGoal, EpisodeError: before the robot moves; no record is written.
            DeviceFault: a device failed or is not ready; nothing was recorded yet, or the episode ended as ``FAULT``.
        """
        self.interrupt(EndReason.INTERRUPTED, "another episode was started")
        if self._judged:
            episode = check_episode(self.task, self.scene, episode, self._geodesic)
        with self._ends_on_error():
            self.robot.check_ready()
            episode = self._session.begin_episode(episode, lambda: self._place(episode))
            phase = self._begin_phase(episode, 0)
            self._start(self._new_header(episode, phase, agent_name, seed, policy))
            now_ns = self.robot.clock.now_ns()
            return self._observe(Act(0, None, None, now_ns, now_ns), phase)

    def step(
        self, action: Decision | str, policy_info: Mapping[str, Any] | None = None, infer_s: float = 0.0
    ) -> Observation:
        """Carry out one action and return the observation after it, in read-only arrays.

        Args:
            action: an :class:`Action` or its logged name, or a continuous action's command.
            policy_info: basis of the decision, for the log.
            infer_s: host seconds that the decision took, for the log.

        Raises:
            EpisodeError: no episode is running.
            UnknownAction: not one of the task's; the wheels are at zero and the episode is over.
            DeviceFault: a device failed, for instance ``StaleData``; the wheels are at zero and the episode is over.
        """
        if self._over:
            raise EpisodeError("no episode is running: it is over or was never started", "call reset() first")
        index, phase = self.record.index + 1, _available(self._phase)
        with self._ends_on_error():
            chosen, command = self._chosen(action)
            timer = Stopwatch()
            if self._pursuit is not None:
                self._pursuit.decided(infer_s, self.record.times.observed_ns)
            start_ns = self.robot.clock.now_ns()
            result, settle_s = self._carry_out(chosen, command)
            if self._session.after_action(chosen, index) and result.outcome is not Outcome.STOPPED:
                phase = self._begin_phase(self.episode, index)
            end_ns = self.robot.clock.now_ns()
            phase_s = {"infer": infer_s, "act": timer.elapsed_s() - settle_s, "settle": settle_s, **result.waits_s}
            act = Act(index, chosen, result, start_ns, end_ns, dict(policy_info or {}), phase_s, command)
            observation = self._observe(act, phase)
            self._end_if_over(act, chosen, result, phase)
            return observation

    def interrupt(self, reason: EndReason, detail: str, of_policy: bool = False) -> None:
        """End the running episode, if any, from outside, wheels first; see ``EpisodeEnd`` about the arguments."""
        if not self._over:
            self._end(reason, detail, of_policy)

    def close(self) -> None:
        """End the running episode, if any. The robot stays connected."""
        self.interrupt(EndReason.INTERRUPTED, "the environment was closed")

    # --- start ------------------------------------------------------------------------------------------------------

    def _begin_phase(self, episode: Episode, index: int) -> _Phase:
        """Bring scene and robot to where the next phase begins."""
        origin, placed = self._session.begin_phase(lambda: self._place(episode))
        # Odometry has no map: in the map, the robot is at the episode's start.
        in_map = origin.pose if self.robot.localizer.info.frame == MAP_FRAME else episode.start
        mount = astuple(self.robot.camera.info.mount)
        observations = observations_of(self.task, self.scene, episode, origin.pose, in_map, mount)
        stamp_ns = self.robot.clock.now_ns() - self._pose_monitor.paused_ns
        self._phase = _Phase(index, stamp_ns, origin, placed, observations)
        return self._phase

    def _place(self, episode: Episode) -> tuple[PoseEstimate, Placement | None]:
        """Bring the robot to the start, standing still; return its pose by the policy's localizer, and the accuracy."""
        robot, clock = self.robot, self.robot.clock
        # At every whole second, streams of whole-numbered rates are in the same phase: an episode does not depend on
        # those before it, and a simulated one repeats bit for bit.
        clock.sleep_until(-(-clock.now_ns() // NS_PER_S) * NS_PER_S)
        tilt_rad = self.task.camera.tilt_rad if episode.start_tilt_rad is None else episode.start_tilt_rad
        robot.placer.place(episode.start, tilt_rad)
        for localizer in dict.fromkeys((robot.localizer, robot.referee)):
            localizer.expect(episode.start, PLACED_M, PLACED_RAD)
        self._motion.begin_episode()
        if self._over:
            self._pose_monitor.begin()
        stood_ns = clock.now_ns()
        origin = self._pose_monitor.origin(ORIGIN_S)
        return origin, placement(robot, episode.start, stood_ns)

    def _new_header(
        self, episode: Episode, phase: _Phase, agent_name: str, seed: int | None, policy: PolicySource | None
    ) -> EpisodeHeader:
        camera = self.robot.camera.info
        return EpisodeHeader(
            episode=episode,
            task=self.task,
            scene=self.scene,
            robot=self.robot.name,
            robot_config=self._run.robot_config,
            agent=agent_name,
            seed=self._run.seed if seed is None else seed,
            intrinsics=camera.intrinsics,
            depth_unit_m=camera.depth_unit_m,
            mount=astuple(camera.mount),
            start_ns=self.robot.clock.now_ns(),
            provenance={**self._run.provenance, "recorded": utc_now_iso()},
            dataset=self._run.dataset,
            object_source=self._session.object_source,
            origin=phase.origin,
            placement=phase.placement,
            localizers=self.robot.pose_sources,
            policy=policy,
            senses_contact=self.robot.base.info.senses_contact,
        )

    def _start(self, header: EpisodeHeader) -> None:
        self._header = header
        self._scorer = EpisodeScorer(header, geodesic=self._geodesic) if self._judged else None
        self._record = self._end_record = None
        self._unobserved = (None, None)
        self._over = False
        self._subscribers.start(header, self._scorer)

    # --- one step ---------------------------------------------------------------------------------------------------

    def _chosen(self, action: Decision | str) -> tuple[Action, TimedAction | None]:
        """Return the action by name and, of a continuous one, its command. Raises ``UnknownAction``."""
        if isinstance(action, TimedAction):
            from robot_runtime.actions.timed_values import check_timed

            check_timed(action, self.task.control, self.task.name)
            return action.action, stamped(action, self.record.times.exposed_ns)
        return parse_action(action, self.task.actions), None

    def _carry_out(self, chosen: Action, command: TimedAction | None) -> tuple[ActionResult, float]:
        """Return the action's result, and the host seconds from its end to rest. Raises ``DeviceFault``."""
        if command is not None and self._pursuit is not None and not command.settle:
            result, settle_s = self._pursuit.step(command, self.record.times.exposed_ns), 0.0
        elif command is not None and self.task.control is not None:
            from robot_runtime.motion.steering import Steering  # most policies are discrete

            steering = Steering(self.robot.clock, self.robot.base, self.robot.head, self._motion)
            result, settle_s = steering.execute(command, self.task.control), steering.settle_s
        else:
            result = self._motion.execute(self.task.magnitudes.displacement(chosen))
            settle_s = self._motion.settle_s
        self._unobserved = chosen, result
        if self._motion.fault is not None:
            raise self._motion.fault
        return result, settle_s

    def _observe(self, act: Act, phase: _Phase) -> Observation:
        """Take a frame, standing still since the act ended if it settles; record the step; return the observation."""
        timer, robot, phase_s = Stopwatch(), self.robot, dict(act.phase_s)
        # One pose later than the end of the motion: a pose at the exposure is interpolated between two measurements,
        # and the earlier one must not be from a robot that still moved.
        moves = act.command is not None and not act.command.settle
        one_pose_ns = 0 if moves else seconds_to_ns(1 / min(robot.localizer.info.rate_hz, robot.referee.info.rate_hz))
        timeout_s = ns_to_seconds(one_pose_ns) + STREAMS["rgb"].max_age_s + robot.patience_s
        robot.clock.sleep_until(act.end_ns + one_pose_ns)
        phase_s["settle"] = phase_s.get("settle", 0.0) + timer.restart()
        frame = self._capture(act.end_ns + one_pose_ns, timeout_s)
        phase_s["observe"] = timer.restart()
        located = self._pose_monitor.at(frame)
        while located is None:
            frame = self._capture(robot.clock.now_ns(), timeout_s)
            located = self._pose_monitor.at(frame)
        pose, referee = located
        phase_s["localize"] = timer.restart()
        added, head = self._session.observe(act.end_ns), robot.head_state()
        record = StepRecord(
            index=act.index,
            action=act.action,
            result=act.result,
            observation=phase.observations.build(frame, pose.pose, added.goal, head),
            frame=frame,
            pose=pose,
            referee=referee,
            base=robot.base_state(),
            head=head,
            times=StepTimes(act.start_ns, act.end_ns, frame.stamp_ns, robot.clock.now_ns()),
            policy_info=act.policy_info,
            phase_s=phase_s,
            state=added.state,
            command=act.command,
        )
        self._record, self._unobserved = record, (None, None)
        self._pose_monitor.publish()
        for event in robot.camera.events():
            self._subscribers.on_event(event)
        phase_s["observe"] += timer.restart()
        if act.index:
            phase_s["log"] = self._subscribers.step_s
        self._subscribers.on_step(record)
        return dict(record.observation)

    def _capture(self, not_before_ns: int, timeout_s: float) -> RgbdFrame:
        return self.robot.camera.capture(not_before_ns, timeout_s, "semantic" in self.task.sensors)

    # --- end --------------------------------------------------------------------------------------------------------

    def _end_if_over(self, act: Act, chosen: Action, result: ActionResult, phase: _Phase) -> None:
        """End the episode if the last act or a limit of the phase ends it."""
        steps, limit_s = act.index - phase.index, self.task.max_seconds
        elapsed_ns = act.end_ns - phase.stamp_ns - self._pose_monitor.paused_ns
        counts = self._judged and self._session.scored
        if chosen is Action.STOP and steps > 0:
            self._end(EndReason.STOP, "")
        elif counts and self.task.success.when == "reached" and self.get_metrics()["success"]:
            self._end(EndReason.REACHED, "")
        elif result.outcome is Outcome.STOPPED or self.record.base.halt is Halt.E_STOP:  # perhaps it stood still
            self._end(EndReason.INTERRUPTED, result.detail or "base: held by e_stop", bool(self.record.base.cliff))
        elif counts and steps >= self.task.max_steps:
            self._end(EndReason.MAX_STEPS, "")
        elif counts and limit_s is not None and elapsed_ns >= limit_s * NS_PER_S:
            self._end(EndReason.MAX_SECONDS, "")

    def _end(self, reason: EndReason, detail: str, of_policy: bool = False) -> None:
        """Stop the wheels, then hand the end to all that got the start, even if one of them or the base fails."""
        self._over = True
        if reason.aborted:
            with suppress(DeviceFault):  # a broken device may be why the episode ends
                self._pose_monitor.publish()
        steps = self._record.index if self._record is not None else 0
        self._end_record = EpisodeEnd(reason, steps, self.robot.clock.now_ns(), detail, *self._unobserved, of_policy)
        try:
            self._motion.stop()
        finally:
            self._subscribers.on_episode_end(self._end_record)

    @contextmanager
    def _ends_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if self._over:
                self._motion.stop()
            elif (interrupted := interruption(error)) is not None:
                self._end(EndReason.INTERRUPTED, interrupted)
            elif isinstance(error, LocalizationLost):
                self._end(EndReason.LOCALIZATION_LOST, error.message)
            else:
                message = error.message if isinstance(error, RuntimeFault) else repr(error)
                self._end(EndReason.FAULT, message, isinstance(error, UnknownAction))
            raise


def _available(value: T | None) -> T:
    if value is None:
        raise EpisodeError("there is none: no episode was started, or it still runs", "call reset() or step() first")
    return value
