"""Likelihoods of settings on the logs of real episodes, computed by any number of workers."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.common.version import VERSION
from robot_runtime.env import Env
from robot_runtime.errors import InvalidStart
from robot_runtime.parallel.map import ONE, Workers
from robot_runtime.parallel.result_journal import ResultJournal, file_key
from robot_runtime.recording.json_output import plain
from robot_runtime.records import EpisodeHeader
from robot_runtime.robots.loader import RobotContext, build_robot
from robot_runtime.scenes.scene import Scene
from sim_bridge.physics.scene_model import SceneModel
from sim_bridge.replay.camera_pose import logged_camera
from sim_bridge.replay.options import SceneSource
from sim_bridge.robot.camera import MountError
from sim_bridge.robot.chassis import ContactOptions
from sim_bridge.robot.driver import SimOptions
from sim_bridge.tuning.likelihood import (
    ActionErrorsOf,
    Parts,
    Spread,
    camera_part,
    delay_part,
    motion_part,
    mount_offset,
)
from sim_bridge.tuning.log_statistics import LogStatistics, Motion, read_header
from sim_bridge.tuning.one_step_prediction import Prediction, drift_covariances, motion_options, predict, scene_model
from sim_bridge.tuning.progress import SILENT, ProgressListener, map_with_progress
from sim_bridge.tuning.settings import Setting

T = TypeVar("T")

Predictions = list[Prediction | None]
"""Predictions of a log's motions; None where there is none."""

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PredictionJob:
    """One log to be predicted under options that affect motion."""

    options: SimOptions
    log: Path
    scene_source: SceneSource
    motions: tuple[Motion, ...]


class Evaluation:
    """Likelihoods of settings on the same logs; settings that move alike share their predictions."""

    def __init__(
        self,
        statistics: Sequence[LogStatistics],
        scene_source: SceneSource,
        workers: Workers = ONE,
        listener: ProgressListener = SILENT,
        journal: ResultJournal[PredictionJob, Predictions] | None = None,
    ) -> None:
        self._statistics, self._scene_source = statistics, scene_source
        self._workers, self._listener, self._journal = workers, listener, journal
        self._drifts: list[tuple[SimOptions, dict[Action, Floats]]] = []
        self._delays: list[tuple[SimOptions, float]] = []
        self._spread = Spread.of(statistics)
        self._scene = scene_source.of(statistics[0].header)
        self._predictions: list[tuple[SimOptions, list[Predictions]]] = []
        self._kinds = {motion.action: motion.commanded for log in statistics for motion in log.motions}

    @property
    def known(self) -> list[Mask]:
        """By log, a mask of the motions that all settings so far could predict.

        Sums over different motions cannot be compared, so only these count.
        """
        return [
            np.array(
                [
                    all(predicted[number][i] is not None for _, predicted in self._predictions)
                    for i in range(len(log.motions))
                ],
                bool,
            )
            for number, log in enumerate(self._statistics)
        ]

    @property
    def unknown(self) -> int:
        """Number of motions that are not :attr:`known`."""
        return sum(int((~mask).sum()) for mask in self.known)

    def prepare(self, settings: Sequence[Setting]) -> None:
        """Simulate the motions under these settings; :attr:`known` then holds for all of them."""
        new_settings: list[SimOptions] = []
        for setting in settings:
            motion_settings = motion_options(setting.options)
            if motion_settings not in new_settings and all(motion_settings != known for known, _ in self._predictions):
                new_settings.append(motion_settings)
        items = [
            PredictionJob(motion_settings, log.path, self._scene_source, log.motions)
            for motion_settings in new_settings
            for log in self._statistics
        ]
        what = "actions, one step ahead"
        predicted = map_with_progress(
            _predict_each,
            items,
            self._workers,
            lambda item, _: [None] * len(item.motions),
            self._journal,
            self._listener,
            what,
        )
        count = len(self._statistics)
        self._predictions += [
            (motion_settings, predicted[i * count : (i + 1) * count]) for i, motion_settings in enumerate(new_settings)
        ]

    def parts(self, setting: Setting) -> list[Parts]:
        """The likelihood by log, over the :attr:`known` motions.

        Raises:
            RuntimeFault: the setting's robot cannot be built, or collides at the start of every log.
        """
        self.prepare([setting])
        options = setting.options
        motion_settings = motion_options(options)
        predicted = next(predictions for known, predictions in self._predictions if known == motion_settings)
        kinds = list(self._kinds.items())
        drift = _cached(self._drifts, motion_settings, lambda: drift_covariances(self._scene, motion_settings, kinds))
        errors = ActionErrorsOf(options, drift)
        delayed_s = _cached(self._delays, timing_options(options), lambda: self._delay_s(setting))
        counted = [
            [prediction if counts else None for prediction, counts in zip(each, mask, strict=True)]
            for each, mask in zip(predicted, self.known, strict=True)
        ]
        return [
            self._of(log, each, errors, setting, delayed_s) for log, each in zip(self._statistics, counted, strict=True)
        ]

    def total(self, setting: Setting) -> float:
        """The logarithm of the likelihood of all logs."""
        return math.fsum(part.total for part in self.parts(setting))

    def _delay_s(self, setting: Setting) -> float:
        """The delay in the first episode at whose start the robot does not collide."""
        refused: InvalidStart | None = None
        for delay in (self._delay_of_episode_s(setting, log) for log in self._statistics):
            if not isinstance(delay, InvalidStart):
                return delay
            refused = refused or delay
        assert refused is not None, "there is no sweep without logs"
        raise InvalidStart(f"setting {setting.name!r}: {refused.message}", refused.remedy) from refused

    def _delay_of_episode_s(self, setting: Setting, log: LogStatistics) -> float | InvalidStart:
        try:
            return delay_s(setting, self._scene_source.of(log.header), log.header, log.actions)
        except InvalidStart as error:
            return error

    def _of(
        self, log: LogStatistics, predicted: Predictions, errors: ActionErrorsOf, setting: Setting, delayed_s: float
    ) -> Parts:
        moved, contacts = motion_part(log.motions, predicted, errors)
        camera = delays = 0.0
        if log.floor is not None:
            tilt_rad, error = log.header.task.camera.tilt_rad, setting.options.camera.mount_error
            camera = camera_part(log.floor, mount_offset(logged_camera(log.header), error, 0.0, tilt_rad), self._spread)
        if log.delay_s is not None:
            delays = delay_part(log.delay_s, delayed_s, self._spread)
        return Parts(moved, contacts, camera, delays)


def action_journal(path: Path, overwrite: bool = False) -> ResultJournal[PredictionJob, Predictions]:
    """The journal of finished predictions. Raises what :class:`ResultJournal` raises."""

    def key(item: PredictionJob) -> str:
        content = [config.unparse(item.options), plain(item.scene_source), plain(item.motions)]
        return f"{hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()} {file_key(item.log)}"

    def decode(data: Any) -> Predictions:
        return [
            None if prediction is None else Prediction(**{**prediction, "moved": np.array(prediction["moved"])})
            for prediction in data
        ]

    return ResultJournal(path, {"actions": VERSION}, key, plain, decode, overwrite)


def summed(parts: Sequence[Parts]) -> Parts:
    """The sum over logs, part by part."""
    return Parts(*(math.fsum(getattr(each, name) for each in parts) for name in Parts.__dataclass_fields__))


def _predict_each(items: Iterable[PredictionJob]) -> Iterator[Predictions]:
    scenes: dict[Path, Scene] = {}
    cached: tuple[object, SceneModel] | None = None
    for item in items:
        scene = item.scene_source.of(read_header(item.log), scenes)
        key = scene.folder, item.options
        if cached is None or cached[0] != key:
            cached = key, scene_model(scene, item.options)
        yield list(predict(cached[1], item.options, item.motions))


def _cached(cache: list[tuple[SimOptions, T]], key: SimOptions, compute: Callable[[], T]) -> T:
    """The value of a key in a cache; a list, because options cannot be hashed."""
    for known, value in cache:
        if known == key:
            return value
    cache.append((key, compute()))
    return cache[-1][1]


# --- delays ---------------------------------------------------------------------------------------------------------


STEPS = 5
"""Number of steps of a recorded episode; a simulated robot's delay varies only with the phase of its streams."""


def timing_options(options: SimOptions) -> SimOptions:
    """The options that delays depend on; the others have their default."""
    camera = replace(options.camera, mount_error=MountError(), depth_noise={}, color_noise={})
    return replace(options, camera=camera, action_noise=None, contact=ContactOptions(), tags=None)


def delay_s(setting: Setting, scene: Scene, header: EpisodeHeader, actions: Sequence[Action]) -> float:
    """Median time from an image's exposure to its use, over the first actions of a repeated episode.

    Raises:
        RuntimeFault: the robot cannot be built, or collides at the start.
    """
    context = replace(RobotContext.of(header.task, scene, [header.episode], header.seed), images=False)
    task = replace(header.task, sensors=())
    with build_robot(setting.robot, setting.path, context) as robot, Env(robot, task, scene, judged=False) as env:
        env.reset(header.episode)
        delays = [env.record.times.observed_ns - env.record.times.exposed_ns]
        for action in actions[:STEPS]:
            if env.episode_over:
                break
            env.step(action)
            delays.append(env.record.times.observed_ns - env.record.times.exposed_ns)
    return float(np.median(delays)) / 1e9
