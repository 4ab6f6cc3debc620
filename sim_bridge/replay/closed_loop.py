"""Closed loop: the policy drives the simulated robot from the recorded start, in an episode with a log of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import takewhile
from pathlib import Path

from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.errors import DeviceFault, PolicyError, RecordingError, SceneError
from robot_runtime.policy import Policy
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeHeader, StepRecord, Subscriber
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.summary import score_log
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.registry import check_episode
from sim_bridge.replay.action_replay import MOVED_M, decision_of, recorded_start, second_start
from sim_bridge.replay.backends.base import SimulatorBackend, UnsupportedBySimulator
from sim_bridge.replay.backends.external import ExternalBackend
from sim_bridge.replay.backends.external_episode import run_external_episode
from sim_bridge.replay.backends.mujoco import MujocoBackend, around
from sim_bridge.replay.results import ClosedLoop, Metrics, Note

PART = "closed"


def run_closed_loop(
    log: LogReader, records: Sequence[StepRecord], simulator: SimulatorBackend, policy: Policy, folder: Path
) -> tuple[ClosedLoop, tuple[Note, ...]]:
    """Run the log's episode in the simulator, with the log's seed.

    Args:
        log: the recording.
        records: records of the log, read without images.
        simulator: made with images.
        policy: policy to run.
        folder: folder of the log of the new episode; an older one in it is replaced.

    Raises:
        ReplayError: the log has no pose to begin from.
        UnsupportedBySimulator: the simulator does not support the task.
        SceneError: there is no scene to score the episode by.
        InvalidStart: the episode cannot be started there in this scene.
        UnreachableGoal: the goal cannot be reached from there.
        PolicyError: the policy cannot run in this task.
        RecordingError: the new log cannot be written.
    """
    header = log.header
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
            Note(PART, f"begins {100 * moved_m:.1f} cm from the recorded start, which is not free in the simulator")
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
            _run_mujoco(simulator, header, episode, policy, second, recorder)
    except (DeviceFault, PolicyError, UnsupportedBySimulator) as error:
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


def _run_mujoco(
    simulator: MujocoBackend,
    header: EpisodeHeader,
    episode: Episode,
    policy: Policy,
    second: SE2 | None,
    recorder: Recorder,
) -> None:
    simulator.restart(header.seed)
    phases = () if second is None else (_NextPhase(simulator, second),)
    with Env(
        simulator.robot,
        header.task,
        simulator.scene,
        (recorder, *phases),
        robot_config=asdict(simulator.robot_file),
        dataset=header.dataset,
    ) as env:
        run_episode(env, policy, episode, header.seed, _agent_name(header, policy))


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
