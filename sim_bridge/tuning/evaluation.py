"""The likelihoods of settings on the logs of real episodes, on any number of workers."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime import __version__
from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.errors import InvalidStart
from robot_runtime.parallel.map import ONE, Workers
from robot_runtime.parallel.result_journal import ResultJournal, file_key
from robot_runtime.parallel.workers import WorkerLoss
from robot_runtime.recording.json_records import plain
from sim_bridge.physics.scene_model import SceneModel
from sim_bridge.replay.camera_pose import logged_camera
from sim_bridge.robot.driver import SimOptions
from sim_bridge.tuning.episodes import Places, Scenes
from sim_bridge.tuning.likelihood import (
    ActionErrorsOf,
    Parts,
    Spread,
    camera_part,
    delay_part,
    motion_part,
    mount_off,
)
from sim_bridge.tuning.log_statistics import Evidence, Motion
from sim_bridge.tuning.one_step_prediction import Prediction, drift_covariances, motion_options, predict, scene_model
from sim_bridge.tuning.progress import SILENT, Watcher, all_done
from sim_bridge.tuning.settings import Setting
from sim_bridge.tuning.timing import delay_s, timing_options

Said = list[Prediction | None]
"""Of one log's motions."""

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Steps:
    """One way of moving on one log."""

    options: SimOptions
    log: Path
    places: Places
    motions: tuple[Motion, ...]


class Evaluation:
    """Likelihoods on the same logs for any number of settings; what settings have in common is simulated once."""

    def __init__(
        self,
        evidence: Sequence[Evidence],
        places: Places,
        workers: Workers = ONE,
        watcher: Watcher = SILENT,
        ledger: ResultJournal[Steps, Said] | None = None,
    ) -> None:
        self._evidence, self._places, self._workers, self._watcher = evidence, places, workers, watcher
        self._ledger = ledger
        self._drifts: list[tuple[SimOptions, dict[Action, Floats]]] = []
        self._delays: list[tuple[SimOptions, float]] = []
        self._spread = Spread.of(evidence)
        self._scene = places.of(evidence[0].header)
        self._predictions: list[tuple[SimOptions, list[Said]]] = []
        self._kinds = {motion.action: motion.commanded for one in evidence for motion in one.motions}

    @property
    def known(self) -> list[Mask]:
        """By log, bool per motion: those that every setting so far could be asked of.

        Sums over different motions cannot be compared, so what one cannot be asked of is asked of none.
        """
        return [
            np.array(
                [all(said[number][i] is not None for _, said in self._predictions) for i in range(len(one.motions))],
                bool,
            )
            for number, one in enumerate(self._evidence)
        ]

    @property
    def unknown(self) -> int:
        """How many motions are not :attr:`known`."""
        return sum(int((~mask).sum()) for mask in self.known)

    def prepare(self, settings: Sequence[Setting]) -> None:
        """Simulate what these need; :attr:`known` then holds for all of them."""
        ways: list[SimOptions] = []
        for setting in settings:
            way = motion_options(setting.options)
            if way not in ways and all(way != known for known, _ in self._predictions):
                ways.append(way)
        items = [Steps(way, one.path, self._places, one.motions) for way in ways for one in self._evidence]
        what = "actions, one step ahead"
        found = all_done(_predict_each, items, self._workers, _unpredicted, self._ledger, self._watcher, what)
        count = len(self._evidence)
        self._predictions += [(way, found[i * count : (i + 1) * count]) for i, way in enumerate(ways)]

    def parts(self, setting: Setting) -> list[Parts]:
        """By log, over the motions that are known.

        Raises:
            RuntimeFault: the setting's robot cannot be made, or cannot stand at the start of any log.
        """
        self.prepare([setting])
        options = setting.options
        way = motion_options(options)
        said = next(predictions for known, predictions in self._predictions if known == way)
        errors = ActionErrorsOf(options, self._drift(way))
        delayed_s = self._delay_s(setting)
        return [
            self._of(one, *_where(one, each, mask), errors, setting, delayed_s)
            for one, each, mask in zip(self._evidence, said, self.known, strict=True)
        ]

    def total(self, setting: Setting) -> float:
        """The sum over logs and parts."""
        return math.fsum(one.total for one in self.parts(setting))

    def _drift(self, way: SimOptions) -> dict[Action, Floats]:
        for known, drift in self._drifts:
            if known == way:
                return drift
        found = drift_covariances(self._scene, way, list(self._kinds.items()))
        self._drifts.append((way, found))
        return found

    def _delay_s(self, setting: Setting) -> float:
        way = timing_options(setting.options)
        for known, delay in self._delays:
            if known == way:
                return delay
        found = self._measured_delay_s(setting)
        self._delays.append((way, found))
        return found

    def _measured_delay_s(self, setting: Setting) -> float:
        """In the first episode in whose start the robot fits."""
        found = (self._tried_delay_s(setting, one) for one in self._evidence)
        refused: InvalidStart | None = None
        for one in found:
            if not isinstance(one, InvalidStart):
                return one
            refused = refused or one
        assert refused is not None, "there is no sweep without logs"
        raise InvalidStart(f"setting {setting.name!r}: {refused.message}", refused.remedy) from refused

    def _tried_delay_s(self, setting: Setting, one: Evidence) -> float | InvalidStart:
        try:
            return delay_s(setting, self._places.of(one.header), one.header, one.actions)
        except InvalidStart as error:
            return error

    def _of(
        self,
        one: Evidence,
        motions: list[Motion],
        said: Said,
        errors: ActionErrorsOf,
        setting: Setting,
        delayed_s: float,
    ) -> Parts:
        moved, contacts = motion_part(motions, said, errors)
        camera = delays = 0.0
        if one.floor is not None:
            tilt_rad, error = one.header.task.camera.tilt_rad, setting.options.camera.mount_error
            camera = camera_part(one.floor, mount_off(logged_camera(one.header), error, 0.0, tilt_rad), self._spread)
        if one.delay_s is not None:
            delays = delay_part(one.delay_s, delayed_s, self._spread)
        return Parts(moved, contacts, camera, delays)


def action_ledger(path: Path, overwrite: bool = False) -> ResultJournal[Steps, Said]:
    """Holds predictions. Raises what :class:`ResultJournal` does."""
    return ResultJournal(path, {"actions": __version__}, _key, _encode, _decode, overwrite)


def _key(item: Steps) -> str:
    told = [config.unparse(item.options), plain(item.places), plain(item.motions)]
    return f"{hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()} {file_key(item.log)}"


def _encode(said: Said) -> Any:
    return [None if one is None else plain(one) for one in said]


def _decode(data: Any) -> Said:
    return [None if one is None else Prediction(**{**one, "moved": np.array(one["moved"])}) for one in data]


def summed(parts: Sequence[Parts]) -> Parts:
    """Part by part."""
    return Parts(*(math.fsum(getattr(one, name) for one in parts) for name in Parts.__dataclass_fields__))


def _predict_each(items: Iterable[Steps]) -> Iterator[Said]:
    scenes = Scenes()
    kept: tuple[object, SceneModel] | None = None
    for item in items:
        scene = scenes.of(scenes.header(item.log), item.places)
        key = scene.folder, item.options
        if kept is None or kept[0] != key:
            kept = key, scene_model(scene, item.options)
        yield list(predict(kept[1], item.options, item.motions))


def _unpredicted(item: Steps, how: WorkerLoss) -> Said:
    return [None] * len(item.motions)


def _where(one: Evidence, said: Said, mask: Mask) -> tuple[list[Motion], Said]:
    kept = [pair for pair, counts in zip(zip(one.motions, said, strict=True), mask, strict=True) if counts]
    return [motion for motion, _ in kept], [prediction for _, prediction in kept]
