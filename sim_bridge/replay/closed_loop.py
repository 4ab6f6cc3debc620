"""Closed loop: the policy drives the twin from the recorded start, in an ordinary episode with a log of its own."""

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
from sim_bridge.replay.backends.base import Twin, TwinUnable
from sim_bridge.replay.backends.external import ForeignTwin
from sim_bridge.replay.backends.external_episode import run_foreign
from sim_bridge.replay.backends.mujoco import MujocoTwin, around
from sim_bridge.replay.results import ClosedLoop, Metrics, Note

PART = "closed"


def run_closed_loop(
    log: LogReader, records: Sequence[StepRecord], twin: Twin, policy: Policy, folder: Path
) -> tuple[ClosedLoop, tuple[Note, ...]]:
    """Let the policy run the log's episode in the twin, with the log's seed.

    Args:
        records: of the log, read without images. twin: made with images.
        folder: for the log of the new episode; an older one in it is replaced.

    Raises:
        ReplayError: the log has no pose to begin from. TwinUnable: the twin cannot show or do what the task needs.
        SceneError: there is no scene by which the episode could be judged.
        InvalidStart, UnreachableGoal: the episode cannot be run from there in this scene.
        PolicyError: the policy cannot run in this task. RecordingError: the new log cannot be written.
    """
    header = log.header
    if not isinstance(twin, MujocoTwin | ForeignTwin):
        raise TwinUnable(f"{twin.name}: runs no policies", "run the closed loop in sim")
    if twin.scene is None:
        raise SceneError(f"{twin.name}: without a scene, nobody can judge an episode", "name its folder with --scene")
    start = recorded_start(log, records)
    episode = _runnable(header, twin.scene, start, records[0].head.tilt_rad)
    notes: list[Note] = []
    second = second_start(header, records)
    made = _run(twin, twin.scene, header, episode, policy, _emptied(folder), second, notes)
    with LogReader(made) as own:
        theirs = list(own.steps(images=False))
        end = own.end
    if end is None or not theirs:
        raise RecordingError(f"{made}: the episode in the twin left no steps", "see the notes")
    moved_m = theirs[0].referee.pose.distance_to(start)
    if moved_m > MOVED_M:
        notes.append(
            Note(PART, f"begins {100 * moved_m:.1f} cm from the recorded start, which is not free in the twin")
        )
    pairs = zip(records[1:], theirs[1:], strict=False)
    closed = ClosedLoop(
        agent=_called(header, policy),
        seed=header.seed,
        log=str(made),
        metrics_recorded=_metrics(log.path, notes),
        metrics_replayed=_metrics(made, notes),
        end_recorded=None if log.end is None else log.end.reason,
        end_replayed=end.reason,
        steps_recorded=records[-1].index,
        steps_replayed=theirs[-1].index,
        same_actions=sum(1 for _ in takewhile(lambda pair: decision_of(pair[0]) == decision_of(pair[1]), pairs)),
    )
    return closed, tuple(notes)


def _run(
    twin: MujocoTwin | ForeignTwin,
    scene: Scene,
    header: EpisodeHeader,
    episode: Episode,
    policy: Policy,
    folder: Path,
    second: SE2 | None,
    notes: list[Note],
) -> Path:
    """The log of an episode in the twin."""
    recorder = Recorder(folder)
    try:
        if isinstance(twin, ForeignTwin):
            run_foreign(twin, replace(header, agent=_called(header, policy)), scene, episode, policy, (recorder,))
        else:
            _run_robot(twin, header, episode, policy, second, recorder)
    except (DeviceFault, PolicyError, TwinUnable) as error:
        if recorder.path is None:
            raise
        notes.append(Note(PART, f"the episode in the twin was ended: {error.message}", error.remedy))
    finally:
        recorder.close()
    if recorder.path is None:
        raise RecordingError(f"{folder}: the episode in the twin was not recorded", "free the disk, and try again")
    return recorder.path


class _NextPhase(Subscriber):
    """Has the twin begin the second phase where the recorded robot began it, once it stands where the first begins."""

    def __init__(self, twin: MujocoTwin, start: SE2) -> None:
        self._twin, self._start = twin, start

    def on_episode_start(self, header: EpisodeHeader) -> None:
        self._twin.next_phase_at(self._start)


def _run_robot(
    twin: MujocoTwin, header: EpisodeHeader, episode: Episode, policy: Policy, second: SE2 | None, recorder: Recorder
) -> None:
    twin.restart(header.seed)
    phases = () if second is None else (_NextPhase(twin, second),)
    config, dataset = asdict(twin.robot_file), header.dataset
    with Env(twin.robot, header.task, twin.scene, (recorder, *phases), robot_config=config, dataset=dataset) as env:
        run_episode(env, policy, episode, header.seed, _called(header, policy))


def _called(header: EpisodeHeader, policy: Policy) -> str:
    """What the new log calls the policy: what the old one did, if it is the same."""
    return header.agent if header.policy is not None and policy.source == header.policy else policy.name


def _runnable(header: EpisodeHeader, scene: Scene, start: SE2, tilt_rad: float) -> Episode:
    """The log's episode from the recorded start or, where that is too near an obstacle, from the nearest that is not.

    Raises:
        InvalidStart, UnreachableGoal, EpisodeError: it cannot be run in this scene.
    """
    geodesic = GeodesicMap(scene.map, header.task.robot_radius_m)
    # A scene that was made of the place may have another name.
    episode = replace(header.episode, start=start, start_tilt_rad=tilt_rad, scene=scene.name)
    free = next((near for near in (start, *around(start)) if geodesic.is_navigable(near.x_m, near.y_m)), start)
    return check_episode(header.task, scene, replace(episode, start=free), geodesic)


def _emptied(folder: Path) -> Path:
    """The folder without the logs of an earlier replay. Raises ``RecordingError``."""
    try:
        for log in folder.glob("*.mcap"):
            log.unlink()
    except OSError as error:
        raise RecordingError(f"{folder}: cannot be emptied: {error.strerror or error}", "use another --out") from error
    return folder


def _metrics(path: Path, notes: list[Note]) -> Metrics:
    """The score of a log by name; what is not finite is None."""
    score = score_log(path)
    if not score.scorable:
        notes.append(Note(PART, f"{path.name} cannot be scored: {score.reason}"))
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in score.metrics.items()
    }
