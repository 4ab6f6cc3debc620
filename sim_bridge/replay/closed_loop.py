"""Closed loop: the policy drives the simulated robot from the recorded start, in an episode with a log of its own."""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from robot_runtime.actions.discrete import Action, Displacement, parse_action
from robot_runtime.actions.timed import Decision, TimedAction
from robot_runtime.actions.timed_values import check_timed
from robot_runtime.common.clock import NS_PER_S, Stopwatch, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.provenance import provenance
from robot_runtime.env import Env
from robot_runtime.errors import DeviceFault, PolicyError, RecordingError, RuntimeFault, SceneError
from robot_runtime.hal import BaseState, Halt, HeadState, PoseEstimate, RgbdFrame, Velocity, Zone
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.policies.stepping import check_policy, decide, reset_policy
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
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
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.reference_poses import MAP_FRAME
from robot_runtime.scoring.sim_to_real.parting import find_parting
from robot_runtime.scoring.summary import score_log
from robot_runtime.sensors import observations_of
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.episode_check import check_episode
from robot_runtime.tasks.state import NO_STATE
from sim_bridge.replay.action_replay import MOVED_M, decision_of, recorded_start, second_start
from sim_bridge.replay.backends.base import SimulatedStep, SimulatorBackend, SimulatorFailed, UnsupportedBySimulator
from sim_bridge.replay.backends.external import ExternalBackend
from sim_bridge.replay.backends.mujoco import MujocoBackend, around
from sim_bridge.replay.results import ClosedLoop, Metrics, Note, Thresholds

PART = "closed"


def run_closed_loop(
    log: LogReader,
    records: Sequence[StepRecord],
    simulator: SimulatorBackend,
    policy: Policy,
    folder: Path,
    thresholds: Thresholds | None = None,
) -> tuple[ClosedLoop, tuple[Note, ...]]:
    """Run the log's episode in the simulator, with the log's seed.

    Args:
        log: the recording.
        records: records of the log, read without images.
        simulator: made with images.
        policy: policy to run.
        folder: folder of the log of the new episode; an older one in it is replaced.
        thresholds: differences beyond which the episodes have parted.

    Raises:
        ReplayError: the log has no pose to begin from.
        UnsupportedBySimulator: the simulator does not support the task.
        SceneError: there is no scene to score the episode by.
        InvalidStart: the episode cannot be started there in this scene.
        UnreachableGoal: the goal cannot be reached from there.
        PolicyError: the policy cannot run in this task.
        RecordingError: the new log cannot be written.
    """
    header, thresholds = log.header, thresholds or Thresholds()
    if not isinstance(simulator, MujocoBackend | ExternalBackend):
        raise UnsupportedBySimulator(f"{simulator.name}: runs no policies", "run the closed loop in sim")
    if simulator.scene is None:
        raise SceneError(f"{simulator.name}: cannot score an episode without a scene", "name its folder with --scene")
    start = recorded_start(log, records)
    episode = _runnable(header, simulator.scene, start, records[0].head.tilt_rad)
    notes: list[Note] = []
    second = second_start(header, records)
    made = _run(simulator, simulator.scene, header, episode, policy, _without_logs(folder), second, notes)
    with LogReader(made) as own:
        replayed = list(own.steps(images=False))
        end = own.end
    if end is None or not replayed:
        raise RecordingError(f"{made}: the episode in the simulator has no steps", "see the notes")
    moved_m = replayed[0].referee.pose.distance_to(start)
    if moved_m > MOVED_M:
        notes.append(
            Note(PART, f"begins {100 * moved_m:.1f} cm from the recorded start; that is not free in the simulator")
        )
    pairs = zip(records[1:], replayed[1:], strict=False)
    closed = ClosedLoop(
        agent=_agent_name(header, policy),
        seed=header.seed,
        log=str(made),
        metrics_recorded=_metrics(log.path, notes),
        metrics_replayed=_metrics(made, notes),
        end_recorded=None if log.end is None else log.end.reason,
        end_replayed=end.reason,
        steps_recorded=records[-1].index,
        steps_replayed=replayed[-1].index,
        same_actions=sum(1 for _ in takewhile(lambda pair: decision_of(pair[0]) == decision_of(pair[1]), pairs)),
        parting=find_parting(records, replayed, thresholds.position_m, thresholds.heading_deg),
    )
    return closed, tuple(notes)


def _run(
    simulator: MujocoBackend | ExternalBackend,
    scene: Scene,
    header: EpisodeHeader,
    episode: Episode,
    policy: Policy,
    folder: Path,
    second: SE2 | None,
    notes: list[Note],
) -> Path:
    """Run an episode in the simulator, and return its log."""
    recorder = Recorder(folder)
    try:
        if isinstance(simulator, ExternalBackend):
            named = replace(header, agent=_agent_name(header, policy))
            run_external_episode(simulator, named, scene, episode, policy, (recorder,))
        else:
            simulator.restart(header.seed)
            subscribers = (recorder, *([] if second is None else [_NextPhase(simulator, second)]))
            facts: dict[str, Any] = {"robot_config": asdict(simulator.robot_file), "dataset": header.dataset}
            with Env(simulator.robot, header.task, simulator.scene, subscribers, **facts) as env:
                run_episode(env, policy, episode, header.seed, _agent_name(header, policy))
    except (DeviceFault, PolicyError, SimulatorFailed, UnsupportedBySimulator) as error:
        if recorder.path is None:
            raise
        notes.append(Note(PART, f"the episode in the simulator was ended: {error.message}", error.remedy))
    finally:
        recorder.close()
    if recorder.path is None:
        raise RecordingError(f"{folder}: the episode in the simulator was not recorded", "free the disk, and try again")
    return recorder.path


class _NextPhase(Subscriber):
    """Subscriber that starts the second phase from the recorded pose, set when the episode starts."""

    def __init__(self, simulator: MujocoBackend, start: SE2) -> None:
        self._simulator, self._start = simulator, start

    def on_episode_start(self, header: EpisodeHeader) -> None:
        self._simulator.next_phase_at(self._start)


def _agent_name(header: EpisodeHeader, policy: Policy) -> str:
    """The recorded agent's name if the policy is the recorded one, else the policy's own."""
    return header.agent if header.policy is not None and policy.source == header.policy else policy.name


def _runnable(header: EpisodeHeader, scene: Scene, start: SE2, tilt_rad: float) -> Episode:
    """The log's episode from the recorded start or, if that is too near an obstacle, from the nearest that is not.

    Raises:
        RuntimeFault: the episode cannot be run in this scene.
    """
    geodesic = GeodesicMap(scene.map, header.task.robot_radius_m)
    # A reconstructed scene may have another name.
    episode = replace(header.episode, start=start, start_tilt_rad=tilt_rad, scene=scene.name)
    free = next((near for near in (start, *around(start)) if geodesic.is_navigable(near.x_m, near.y_m)), start)
    return check_episode(header.task, scene, replace(episode, start=free), geodesic)


def _without_logs(folder: Path) -> Path:
    """Delete the logs of an earlier replay from a folder. Raises ``RecordingError``."""
    try:
        for log in folder.glob("*.mcap"):
            log.unlink()
    except OSError as error:
        raise RecordingError(f"{folder}: cannot be emptied: {error.strerror or error}", "use another --out") from error
    return folder


def _metrics(path: Path, notes: list[Note]) -> Metrics:
    """The metrics of a log; None where a value is not finite."""
    score = score_log(path)
    if not score.scorable:
        notes.append(Note(PART, f"{path.name} cannot be scored: {score.reason}"))
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in score.metrics.items()
    }


# --- an episode in another simulator --------------------------------------------------------------------------------


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

    The policy decides, the simulator's own agent moves, a log is written. There is no time: an action's stamps are one
    second apart, a velocity command's its duration. The log has the simulator's ground truth: policy and referee have
    one pose, and the base has neither encoders nor a battery.

    Raises:
        PolicyError: the policy cannot run in the task, before anything is recorded; or it raised.
        UnsupportedBySimulator: the task needs something that the simulator cannot show or do.
    """
    task = header.task
    check_policy(policy, task)
    if "semantic" in task.sensors:
        raise UnsupportedBySimulator(
            f"{simulator.name}: sensor semantic: cannot show object ids: it is 0 in scenes without annotations",
            "run the closed loop in sim",
        )
    tilt_rad = task.camera.tilt_rad if episode.start_tilt_rad is None else episode.start_tilt_rad
    begun = simulator.begin(replace(header, episode=episode), episode.start, tilt_rad)
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
        self._step: SimulatedStep | None = None

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
        observe = observations_of(header.task, header.scene, header.episode, step.pose, step.pose, header.mount).build
        observation = self._record(observe, step, None, None, {}, 0.0)
        reset_policy(policy, header.task, header.seed, self._world() if policy.privileged else None)
        end: EpisodeEnd | None = None
        while end is None:
            timer = Stopwatch()
            decision, info = decide(policy, observation, self._index + 1, header.task)
            decision = self._allowed(decision)
            inferred_s, before = timer.elapsed_s(), step
            step = self._simulator.act(decision, inferred_s)
            self._index += 1
            result = _result(decision, header, before, step)
            observation = self._record(observe, step, decision, result, info, inferred_s)
            end = self._end(decision)
        return end

    def _world(self) -> World:
        """The scene of the log, in which the simulator's own agent has the poses."""

        def state() -> SimulatedStep:
            assert self._step is not None
            return self._step

        header = self._header
        return World(header.scene, header.episode, lambda: state().pose, lambda: state().tilt_rad, lambda: NO_STATE)

    def _allowed(self, decision: Decision) -> Decision:
        """Check that the task has the decision. Raises ``UnknownAction``."""
        task = self._header.task
        if isinstance(decision, TimedAction):
            check_timed(decision, task.control, task.name)
            return decision
        return parse_action(decision, task.actions)

    def _record(
        self,
        observe: Callable[[RgbdFrame, SE2, object, HeadState], Observation],
        step: SimulatedStep,
        decision: Decision | None,
        result: ActionResult | None,
        info: dict[str, Any],
        inferred_s: float,
    ) -> Observation:
        """Record a step, and return the observation of the policy."""
        self._step = step
        began_ns = self._now_ns
        if result is not None:
            self._now_ns += seconds_to_ns(result.duration_s)
        now_ns = self._now_ns
        assert step.frame is not None, "the simulator was made without images"
        frame = replace(step.frame, stamp_ns=now_ns)
        pose = PoseEstimate(now_ns, step.pose, MAP_FRAME)
        contact = Zone.CENTER if step.contact else Zone.NONE
        head = HeadState(now_ns, 0.0, step.tilt_rad, False)
        observation = observe(frame, step.pose, None, head)
        command = None if decision is None or isinstance(decision, Action) else decision
        record = StepRecord(
            index=self._index,
            action=decision if isinstance(decision, Action) else None if command is None else command.action,
            result=result,
            observation=observation,
            frame=frame,
            pose=pose,
            referee=pose,
            base=BaseState(now_ns, step.pose, Velocity(), contact, Zone.NONE, Zone.NONE, Halt.NONE, math.nan, math.nan),
            head=head,
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


def _result(decision: Decision, header: EpisodeHeader, before: SimulatedStep, after: SimulatedStep) -> ActionResult:
    moved = after.pose.relative_to(before.pose)
    asked = header.task.magnitudes.displacement(decision) if isinstance(decision, Action) else decision.displacement
    done = Displacement(moved.x_m, wrap_angle(moved.yaw_rad), after.tilt_rad - before.tilt_rad)
    duration_s = ACTION_S
    if isinstance(decision, TimedAction) and decision.action is Action.VELOCITY_CONTROL:
        duration_s = decision.points[-1].after_s
    contact = Zone.CENTER if after.contact else Zone.NONE
    return ActionResult(after.outcome or Outcome.REACHED, asked, done, contact, duration_s)
