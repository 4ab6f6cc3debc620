"""The robot as an environment: Habitat's ``reset``, ``step``, ``episode_over`` and ``get_metrics`` on any ``Robot``.

One episode::

    reset ──► on_episode_start ──► on_step (index 0: what is seen at the start)
    step  ──► wheels move and come to rest ──► frame exposed after that ──► on_step (index n)
    stop action, success that ends it, step limit, fault ──► wheels at zero ──► on_episode_end, exactly once

Where a task moves objects, ``reset`` puts them where the episode begins. A task with two phases puts robot and objects
to the start of the second when the first is over, within the action that ended it: what that step observes is seen
there (``StepRecord.phase``).

A device fault, an unknown action or a failing subscriber ends the episode (``EndReason.FAULT``) and is raised; the log
is complete by then. An action that the Guard stopped for an e-stop, a wheel drop or a cliff ends it as ``INTERRUPTED``:
a person has to help the robot, and an episode that somebody helped in is not comparable with the others. Where the
robot is lost, nothing is observed until it is found; after a while without that, the episode ends
(``EndReason.LOCALIZATION_LOST``) and ``LocalizationLost`` is raised.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

from typing_extensions import Self

from robot_runtime.actions.continuous import Command, Decision, VelocityCommand, WaypointCommand, check_command
from robot_runtime.actions.discrete import Action, parse_action
from robot_runtime.common.clock import NS_PER_S, Stopwatch, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.common.provenance import provenance
from robot_runtime.errors import DeviceFault, EpisodeError, LocalizationLost, RuntimeFault
from robot_runtime.hal import BaseState, PoseEstimate, RgbdFrame, Robot
from robot_runtime.hal.events import Event
from robot_runtime.hal.streams import STREAMS
from robot_runtime.localization.pose_monitor import PATIENCE_S, PoseMonitor, check_frames
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.metrics.settings import Metrics
from robot_runtime.motion.continuous import Steering
from robot_runtime.motion.controller import MotionController, MotionProfile
from robot_runtime.placement.measured import placement
from robot_runtime.policy import Observation, PolicySource
from robot_runtime.records import (
    ActionResult,
    EndReason,
    EpisodeEnd,
    EpisodeHeader,
    Outcome,
    Placement,
    StepRecord,
    StepTimes,
    Subscriber,
)
from robot_runtime.robots.calibration_file import calibrations_in
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.objects import Grab, TrackedObjects
from robot_runtime.scenes.scene import Scene
from robot_runtime.sensors import Changes, ObservationBuilder, check_camera, observations_of
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.rearrangement.session import (
    UNSHUFFLE,
    WALKTHROUGH,
    RearrangementSession,
    goal_state,
    start_state,
)
from robot_runtime.tasks.registry import check_episode
from robot_runtime.tasks.task import Task

MAP_FRAME = "map"

T = TypeVar("T")

ORIGIN_S = 1.0
"""The mean of the poses of so long becomes the episode's origin; the robot stands still meanwhile."""

PLACED_M = 0.1
PLACED_RAD = math.radians(5.0)
"""How far from an episode's start, one standard deviation, a placer may leave the robot."""


@dataclass(frozen=True, slots=True)
class _Act:
    """What happened before the step's frame was taken; the fields are ``StepRecord``'s."""

    index: int
    action: Action | None
    result: ActionResult | None
    start_ns: int
    end_ns: int
    policy_info: dict[str, Any] = field(default_factory=dict)
    phase_s: dict[str, float] = field(default_factory=dict)
    grab: Grab | None = None
    command: Command | None = None


class Env:
    """Episodes of one task on one robot in one scene.

    Args:
        robot: connected; stays the caller's to close.
        subscribers: get every record in order, in the caller's thread.
        motion_profile: how actions are carried out; None for the defaults.
        seed: default of :meth:`reset`'s, for the header only: randomness lives in the robot and the policy.
        robot_config: the robot's YAML, for the header; the hashes of the calibrations that it names are added.
        dataset: where the episodes were read from, for the header.
        localization_patience_s: how long the robot waits where it is lost, before the episode ends.
        judged: whether an episode must be one that can be solved, is scored as it goes, and ends as the task says.
            Without that, only ``stop``, or what needs a person's help, ends it: for actions that were chosen before.

    Raises:
        ConfigError: if the robot's camera is not the one that the task's policies were trained with, a localizer
            reports in a frame of its own, or the task moves objects and the robot cannot.
    """

    def __init__(
        self,
        robot: Robot,
        task: Task,
        scene: Scene,
        subscribers: Sequence[Subscriber] = (),
        motion_profile: MotionProfile | None = None,
        seed: int = 0,
        robot_config: Mapping[str, Any] | None = None,
        dataset: str = "",
        localization_patience_s: float = PATIENCE_S,
        judged: bool = True,
    ) -> None:
        check_camera(task, robot.camera.info)
        check_frames(robot)
        self.robot = robot
        self.task = task
        self.scene = scene
        self._subscribers = tuple(subscribers)
        self._started: list[Subscriber] = []
        self._seed = seed
        self._robot_config = dict(robot_config or {})
        if calibrations := calibrations_in(self._robot_config):
            self._robot_config["calibrations"] = calibrations
        self._provenance = provenance()
        self._dataset = dataset
        self._geodesic = GeodesicMap(scene.map, task.robot_radius_m)
        self._motion = MotionController(robot.clock, robot.base, robot.head, motion_profile, self._on_base_state)
        self._steering = Steering(robot.clock, robot.base, robot.head, self._motion)
        self._objects = None if task.rearrangement is None else RearrangementSession(robot, task, task.rearrangement)
        self._phase = ""
        self._phase_began = self._phase_began_ns = 0
        self._goal_frame: RgbdFrame | None = None
        self._semantic = "semantic" in task.sensors
        self._judged = judged
        self._watch = PoseMonitor(robot, self._on_event, self._on_poses, localization_patience_s)
        self._origin: PoseEstimate | None = None
        self._placement: Placement | None = None
        slowest_hz = min(robot.localizer.info.rate_hz, robot.referee.info.rate_hz)
        self._stand_ns = seconds_to_ns(1 / slowest_hz)
        self._over = True
        self._builder: ObservationBuilder | None = None
        self._scorer: EpisodeScorer | None = None
        self._episode: Episode | None = None
        self._record: StepRecord | None = None
        self._end_record: EpisodeEnd | None = None
        self._unobserved: tuple[Action | None, ActionResult | None] = (None, None)
        self._log_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    @property
    def episode_over(self) -> bool:
        """True before the first :meth:`reset`, and from an episode's end to the next one."""
        return self._over

    @property
    def episode(self) -> Episode:
        """The present or last episode, with the goals that its file left to the scene. Raises ``EpisodeError``."""
        return _known(self._episode)

    @property
    def record(self) -> StepRecord:
        """The last step. Raises ``EpisodeError`` before the first :meth:`reset`."""
        return _known(self._record)

    @property
    def end(self) -> EpisodeEnd:
        """How the last episode ended. Raises ``EpisodeError`` while one runs and before the first."""
        return _known(self._end_record)

    def get_metrics(self) -> Metrics:
        """The metrics of the episode so far; final once it is over. Keys are ``EpisodeScorer``'s.

        Raises:
            EpisodeError: before the first :meth:`reset`, and where episodes are not judged.
        """
        return _known(self._scorer).metrics()

    def reset(
        self, episode: Episode, agent_name: str = "", seed: int | None = None, policy: PolicySource | None = None
    ) -> Observation:
        """Bring the robot to the start and return what it sees there. An episode that still runs is interrupted.

        Args:
            agent_name, seed, policy: for the header; ``seed`` is the environment's if None.

        Raises:
            InvalidStart, UnreachableGoal, EpisodeError: before the robot moves; no record is written.
            DeviceFault: a device failed; nothing was recorded yet, or the episode was ended as ``FAULT``.
        """
        self.interrupt(EndReason.INTERRUPTED, "another episode was started")
        if self._judged:
            episode = check_episode(self.task, self.scene, episode, self._geodesic)
        with self._ends_on_error():
            self._goal_frame = self._goal_view(episode)
            self._begin_phase(episode, self._objects.phases[0] if self._objects is not None else "", 0)
            header = self._header(episode, agent_name, self._seed if seed is None else seed, policy)
            self._start(header)
            now_ns = self.robot.clock.now_ns()
            return self._observe(_Act(0, None, None, now_ns, now_ns))

    def step(
        self, action: Decision | str, policy_info: Mapping[str, Any] | None = None, infer_s: float = 0.0
    ) -> Observation:
        """Carry out one action and return what is seen afterwards, in read-only arrays.

        Args:
            action: an :class:`Action` or its logged name, or a continuous action's command.
            policy_info: what the decision was based on; infer_s: host seconds that it took. Both for the log.

        Raises:
            EpisodeError: if no episode is running.
            UnknownAction: not one of the task's; the wheels are at zero and the episode is over.
            DeviceFault: a device failed, for instance ``StaleData``; likewise.
        """
        if self._over:
            raise EpisodeError("no episode is running: it is over or was never started", "call reset() first")
        index = self.record.index + 1
        with self._ends_on_error():
            chosen, command = self._chosen(action)
            watch = Stopwatch()
            start_ns = self.robot.clock.now_ns()
            result, settle_s = self._carry_out(chosen, command)
            grab = None
            if self._objects is not None:
                if chosen is Action.GRAB_RELEASE:
                    grab = self._objects.grab_release(self._phase)
                stopped = result.outcome is Outcome.STOPPED
                if not stopped and self._objects.ends_walkthrough(self._phase, chosen, index):
                    self._begin_phase(self.episode, UNSHUFFLE, index)
            end_ns = self.robot.clock.now_ns()
            phase_s = {"infer": infer_s, "act": watch.elapsed_s() - settle_s, "settle": settle_s}
            act = _Act(index, chosen, result, start_ns, end_ns, dict(policy_info or {}), phase_s, grab, command)
            observation = self._observe(act)
            self._end_if_over(chosen, result, index, end_ns)
            return observation

    def _chosen(self, action: Decision | str) -> tuple[Action, Command | None]:
        """The action by name and, of a continuous one, what it asks for. Raises ``UnknownAction``."""
        if isinstance(action, VelocityCommand | WaypointCommand):
            check_command(action, self.task.control, self.task.name)
            return action.action, action
        return parse_action(action, self.task.actions), None

    def _carry_out(self, chosen: Action, command: Command | None) -> tuple[ActionResult, float]:
        """How the action ended, and the host seconds from its end to rest. Raises ``DeviceFault``."""
        if command is not None and self.task.control is not None:
            return self._steering.execute(command, self.task.control), self._steering.settle_s
        result = self._motion.execute(self.task.magnitudes.displacement(chosen))
        self._unobserved = chosen, result
        if self._motion.fault is not None:
            raise self._motion.fault
        return result, self._motion.settle_s

    def interrupt(self, reason: EndReason, detail: str) -> None:
        """End the running episode from outside, wheels first; nothing happens if none is running."""
        if not self._over:
            self._end(reason, detail)

    def close(self) -> None:
        """End the running episode, if any. The robot stays connected."""
        self.interrupt(EndReason.INTERRUPTED, "the environment was closed")

    # --- phases -----------------------------------------------------------------------------------------------------

    def _begin_phase(self, episode: Episode, phase: str, index: int) -> None:
        """Objects and robot to where the phase begins."""
        self._phase, self._phase_began = phase, index
        if self._objects is None:
            start = self._place(episode)
        else:
            layout = goal_state(episode) if phase == WALKTHROUGH else start_state(episode)
            self._objects.put_objects(layout)
            start = self._place(episode)
            self._objects.check_layout(layout)
        self._builder = self._observation_builder(episode, start)
        self._phase_began_ns = self.robot.clock.now_ns() - self._watch.paused_ns

    def _end_if_over(self, chosen: Action, result: ActionResult, index: int, end_ns: int) -> None:
        begins, limit_s = index == self._phase_began, self.task.max_seconds
        waited_ns = end_ns - self._phase_began_ns - self._watch.paused_ns
        counts = self._judged and self._phase != WALKTHROUGH
        if chosen is Action.STOP and not begins:
            self._end(EndReason.STOP, "")
        elif counts and self.task.success.when == "reached" and self.get_metrics()["success"]:
            self._end(EndReason.REACHED, "")
        elif result.outcome is Outcome.STOPPED:
            self._end(EndReason.INTERRUPTED, result.detail)
        elif counts and index - self._phase_began >= self.task.max_steps:
            self._end(EndReason.MAX_STEPS, "")
        elif counts and limit_s is not None and waited_ns >= limit_s * NS_PER_S:
            self._end(EndReason.MAX_SECONDS, "")

    def _goal_view(self, episode: Episode) -> RgbdFrame | None:
        """What the robot would see at the start if everything were as it is to be; None where no task asks for it."""
        if self._objects is None or not self._objects.shows_goal:
            return None
        self._objects.put_objects(goal_state(episode))
        self._place(episode)
        self._objects.check_layout(goal_state(episode))
        return self.robot.camera.capture(self.robot.clock.now_ns(), STREAMS["rgb"].max_age_s)

    # --- start ------------------------------------------------------------------------------------------------------

    def _place(self, episode: Episode) -> SE2:
        """Robot at the start, standing still; returns where the policy's localizer sees it."""
        robot, clock = self.robot, self.robot.clock
        # At every whole second, streams of whole-numbered rates are in the same phase: an episode does not depend on
        # those before it, and a simulated one repeats bit for bit.
        clock.sleep_until(-(-clock.now_ns() // NS_PER_S) * NS_PER_S)
        tilt_rad = self.task.camera.tilt_rad if episode.start_tilt_rad is None else episode.start_tilt_rad
        robot.placer.place(episode.start, tilt_rad)
        for localizer in dict.fromkeys((robot.localizer, robot.referee)):
            localizer.expect(episode.start, PLACED_M, PLACED_RAD)
        self._motion.forget()
        self._motion.rest()
        if self._over:
            self._watch.begin()
        stood_ns = clock.now_ns()
        self._origin = self._watch.origin(ORIGIN_S)
        self._placement = placement(robot, episode.start, stood_ns)
        return self._origin.pose

    def _observation_builder(self, episode: Episode, start: SE2) -> ObservationBuilder:
        # Odometry does not know the map: there, the robot is where it was put.
        in_map = start if self.robot.localizer.info.frame == MAP_FRAME else episode.start
        changes = None if self._objects is None else Changes(episode, in_map, self._goal_frame)
        return observations_of(self.task, self.scene, episode, start, in_map, changes)

    def _header(self, episode: Episode, agent_name: str, seed: int, policy: PolicySource | None) -> EpisodeHeader:
        camera = self.robot.camera.info
        return EpisodeHeader(
            episode=episode,
            task=self.task,
            scene=self.scene,
            robot=self.robot.name,
            robot_config=self._robot_config,
            agent=agent_name,
            seed=seed,
            intrinsics=camera.intrinsics,
            depth_unit_m=camera.depth_unit_m,
            mount=(camera.mount.x_m, camera.mount.y_m, camera.mount.z_m),
            start_ns=self.robot.clock.now_ns(),
            provenance=self._provenance,
            dataset=self._dataset,
            object_source=None if self._objects is None else self._objects.source,
            origin=self._origin,
            placement=self._placement,
            localizers=self.robot.pose_sources,
            policy=policy,
        )

    # --- observing --------------------------------------------------------------------------------------------------

    def _observe(self, act: _Act) -> Observation:
        """Look, standing still since the act ended; record the step; return the observation."""
        watch = Stopwatch()
        robot, phase_s = self.robot, dict(act.phase_s)
        # One pose later than the end of the motion: a pose at the exposure is interpolated between two measurements,
        # and the earlier one must not be from a robot that still moved.
        look_ns = act.end_ns + self._stand_ns
        timeout_s = ns_to_seconds(self._stand_ns) + STREAMS["rgb"].max_age_s
        robot.clock.sleep_until(look_ns)
        phase_s["settle"] = phase_s.get("settle", 0.0) + watch.restart()
        frame = robot.camera.capture(look_ns, timeout_s, self._semantic)
        phase_s["observe"] = watch.restart()
        located = self._watch.at(frame)
        while located is None:
            frame = robot.camera.capture(robot.clock.now_ns(), timeout_s, self._semantic)
            located = self._watch.at(frame)
        pose, referee = located
        phase_s["localize"] = watch.restart()
        things = TrackedObjects(frame.stamp_ns) if self._objects is None else self._objects.tracked(act.end_ns)
        record = StepRecord(
            index=act.index,
            action=act.action,
            result=act.result,
            observation=_known(self._builder).build(frame, pose.pose, things.held, self._phase),
            frame=frame,
            pose=pose,
            referee=referee,
            base=robot.base.state(STREAMS["base"].max_age_s),
            head=robot.head.state(STREAMS["head"].max_age_s),
            times=StepTimes(act.start_ns, act.end_ns, frame.stamp_ns, robot.clock.now_ns()),
            policy_info=act.policy_info,
            phase_s=phase_s,
            objects=things.poses,
            held=things.held,
            grab=act.grab,
            phase=self._phase,
            command=act.command,
        )
        self._record, self._unobserved = record, (None, None)
        self._watch.publish()
        phase_s["observe"] += watch.restart()
        if act.index:
            phase_s["log"] = self._log_s
        for subscriber in self._started:
            subscriber.on_step(record)
        self._log_s = watch.elapsed_s()
        return dict(record.observation)

    # --- records and ends -------------------------------------------------------------------------------------------

    def _on_base_state(self, state: BaseState) -> None:
        for subscriber in self._started:
            subscriber.on_base_state(state)

    def _on_event(self, event: Event) -> None:
        for subscriber in self._started:
            subscriber.on_event(event)

    def _on_poses(self, source: str, estimates: tuple[PoseEstimate, ...]) -> None:
        for subscriber in self._started:
            subscriber.on_poses(source, estimates)

    def _start(self, header: EpisodeHeader) -> None:
        self._scorer = EpisodeScorer(header, geodesic=self._geodesic) if self._judged else None
        self._episode = header.episode
        self._record = None
        self._end_record = None
        self._unobserved = (None, None)
        self._over = False
        for subscriber in (*filter(None, (self._scorer,)), *self._subscribers):
            subscriber.on_episode_start(header)
            self._started.append(subscriber)

    def _end(self, reason: EndReason, detail: str) -> None:
        """Wheels to zero, then tell everybody who was told of the start, even if one of them or the base fails."""
        self._over = True
        if reason.aborted:
            with suppress(DeviceFault):  # whatever is broken is why the episode ends
                self._watch.publish()
        steps = self._record.index if self._record is not None else 0
        end = self._end_record = EpisodeEnd(reason, steps, self.robot.clock.now_ns(), detail, *self._unobserved)
        started, self._started = self._started, []
        with ExitStack() as stack:
            for subscriber in reversed(started):
                stack.callback(subscriber.on_episode_end, end)
            stack.callback(self._motion.stop)

    @contextmanager
    def _ends_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if self._over:
                self._motion.stop()
            elif isinstance(error, KeyboardInterrupt):
                self._end(EndReason.INTERRUPTED, "interrupted from the keyboard")
            elif isinstance(error, LocalizationLost):
                self._end(EndReason.LOCALIZATION_LOST, error.message)
            else:
                self._end(EndReason.FAULT, error.message if isinstance(error, RuntimeFault) else repr(error))
            raise


def _known(value: T | None) -> T:
    if value is None:
        raise EpisodeError("there is none: no episode was started, or it still runs", "call reset() or step() first")
    return value
