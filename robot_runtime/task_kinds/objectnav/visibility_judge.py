"""Judge of visibility: whether the goal object is in the frame of the stop, by a detector and by the list of objects.

The judge weighs two facts: the detector's score for the category, and how many measured points lie in the box that an
instance has in the scene. Each alone makes errors: a weak detector often, boxes where objects were
moved. A logistic regression combines both, and the judge abstains where the result is uncertain.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.metrics.visibility import points_in_map, visible_pixels
from robot_runtime.policies.detector import Detector
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.verdict_files import read_verdicts
from robot_runtime.scoring.statistics.judge import calibrate, count_errors
from robot_runtime.tasks.categories import category_of, instances, object_category_ids
from robot_runtime.verdicts import Judge

_RIDGE = 0.01
_LEAST = 20
"""Frames of each outcome that a calibration needs."""


@dataclass(frozen=True)
class JudgeFile(config.Strict):
    """A calibrated judge of visibility, in YAML.

    Attributes:
        detector: digest of the detector that it was calibrated with.
        weights: weights of 1, the detector's score, and the logarithm of 1 + points in the box.
        judge: thresholds of the score, and errors on frames that nothing was fitted to.
    """

    detector: str
    weights: tuple[float, float, float]
    judge: Judge

    def score(self, facts: "Facts") -> float:
        """Probability that the object is in view."""
        return float(expit(np.dot(self.weights, facts.row)))


@dataclass(frozen=True)
class Facts:
    """Facts about an object in a frame.

    Attributes:
        presence: score of the category's best pixel, 0..1.
        points: number of measured points in the box of an instance.
    """

    presence: float
    points: int

    @property
    def row(self) -> tuple[float, float, float]:
        """The inputs of the regression."""
        return 1.0, self.presence, math.log1p(self.points)


def fit_judge(facts: Sequence[Facts], truth: Sequence[bool], detector: str, abstention: float = 0.1) -> JudgeFile:
    """A judge from frames of known truth: weights and thresholds from half of them, errors from the others.

    Args:
        facts: facts about each frame.
        truth: whether each frame shows the object.
        detector: digest of the detector.
        abstention: largest share of frames without a verdict, of those that thresholds are chosen on.

    Raises:
        ConfigError: there are too few frames of the same outcome.
    """
    if min(sum(truth), len(truth) - sum(truth)) < _LEAST:
        raise ConfigError(
            f"{sum(truth)} of {len(truth)} frames show the object, and {_LEAST} of each outcome are needed",
            "calibrate on more logs",
        )
    rows, yes = np.array([fact.row for fact in facts]), np.asarray(truth, np.bool_)
    half = np.zeros(len(yes), np.bool_)
    for outcome in (True, False):
        half[np.flatnonzero(yes == outcome)[::2]] = True
    weights = _regression(rows[half], yes[half])
    scores = expit(rows @ weights)
    calibrated = calibrate(scores[half], yes[half], abstention)
    judge = count_errors(scores[~half], yes[~half], calibrated.low, calibrated.high)
    return JudgeFile(detector, (float(weights[0]), float(weights[1]), float(weights[2])), judge)


def _regression(rows: NDArray[np.float64], yes: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Weights of a logistic regression with a small ridge."""
    signs = np.where(yes, 1.0, -1.0)

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margins = signs * (rows @ weights)
        gradient = -(rows * (signs * expit(-margins))[:, None]).mean(axis=0) + 2 * _RIDGE * weights
        return float(np.logaddexp(0, -margins).mean() + _RIDGE * (weights**2).sum()), gradient

    return np.asarray(minimize(loss, np.zeros(rows.shape[1]), jac=True).x)


def stop_facts(path: Path, detector: Detector) -> tuple[Facts, bool | None] | None:
    """The facts in the frame of the stop of an ObjectNav log, and the truth where it is known.

    The truth is the last verdict of a person on visibility, else what the simulator's object ids show.

    Returns:
        None of an episode that did not end with a stop.

    Raises:
        ConfigError: the task has no goal object, or the detector does not know its category.
        RecordingError: the log is damaged, or has no depth image of the stop.
    """
    with LogReader(path) as log:
        header = log.header
        if header.task.kind != "objectnav":
            raise ConfigError(f"{path}: task {header.task.name!r} has no goal object", "judge ObjectNav logs")
        last = None
        for record in log.steps(images=False):
            last = record
        if last is None or last.action is not Action.STOP:
            return None
        frame = log.frame(last)
        if not frame.depth_m.size:
            raise RecordingError(f"{path}: the stop has no depth image", "judge logs of an RGB-D camera")
        category = category_of(header.task, header.episode)
        names = {str(header.episode.category), *category.matches}
        labels = [index for index, name in enumerate(detector.file.labels) if name in names]
        if not labels:
            raise ConfigError(
                f"{detector.path}: does not know {header.episode.category!r}", "use a detector of the task's categories"
            )
        detection = detector.detect(frame.rgb, frame.depth_m)
        pose, items = last.referee.pose, instances(header.task, header.scene, header.episode)
        points = points_in_map(frame.depth_m, header.intrinsics, header.mount, last.head, pose)
        counts = [visible_pixels(points, item, pose, math.inf) for item in items]
        facts = Facts(max(detection.presence(label) for label in labels), max(counts, default=0))
        verdict = read_verdicts(path, header).on_visibility
        if verdict is not None and verdict.judge is None:
            return facts, verdict.visible
        if frame.semantic is None:
            return facts, None
        ids = object_category_ids(header.task, header.scene)
        shown = frame.semantic[frame.semantic >= 0]
        return facts, int((ids[shown] == category.id).sum()) >= header.task.success.min_visible_pixels
