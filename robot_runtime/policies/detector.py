"""Detector of objects in ONNX as the source of the sensor ``semantic``, for robots whose camera has no such images."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.actions.timed import Decision
from robot_runtime.common import config
from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import ConfigError, PolicyError, PolicyOutputError
from robot_runtime.imaging.depth import observed_m
from robot_runtime.policies.wrapper import PolicyWrapper
from robot_runtime.policy import Observation, Policy, World, digest_of
from robot_runtime.tasks.task import Task

NOTHING = -1
_NEAR_M = 0.4
"""Pixels of a box whose depth differs by more than this from that of its middle are background."""


@dataclass(frozen=True)
class DetectorFile(config.Strict):
    """A detector's description, in YAML next to its network.

    Attributes:
        model: the network's file, relative to this one.
        labels: name of each class, by index; empty for the background.
        width: width of the network's input image.
        height: height of the network's input image.
        kind: ``masks``: one output (1, classes, h, w) of logits per pixel; ``boxes``: outputs ``boxes`` (1, N, 4) with
            x0, y0, x1, y1 in pixels of the input image, ``scores`` (1, N) in 0..1 and ``labels`` (1, N).
        outputs: names of the outputs in that order.
        min_score: a pixel or box below this is nothing.
        layout: layout of the input, float32.
        colors: order of the input's channels.
        scale: scale of the input: (value - mean) * scale.
        mean: mean of the input, one per channel, 0..255.
    """

    model: str
    labels: tuple[str, ...]
    width: int
    height: int
    kind: Literal["masks", "boxes"]
    outputs: tuple[str, ...]
    min_score: float = 0.5
    layout: Literal["nchw", "nhwc"] = "nchw"
    colors: Literal["rgb", "bgr"] = "rgb"
    scale: tuple[float, float, float] = (1 / 255, 1 / 255, 1 / 255)
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if len(self.outputs) != (1 if self.kind == "masks" else 3):
            raise ValueError(f"outputs must name {'one' if self.kind == 'masks' else 'boxes, scores and labels'}")
        if not (self.labels and self.width > 0 and self.height > 0 and 0 < self.min_score <= 1):
            raise ValueError("needs labels, a positive size and a min_score in (0, 1]")


@dataclass(frozen=True, eq=False)
class Detection:
    """Result of a detector for one image.

    Attributes:
        labels: int32 (H, W), index of the class per pixel, -1 for nothing.
        scores: float32 (H, W), 0..1.
    """

    labels: NDArray[np.int32]
    scores: NDArray[np.float32]

    def presence(self, label: int) -> float:
        """The highest score of a pixel of a class; 0 if it has none. A judge of visibility decides by it."""
        return float(self.scores[self.labels == label].max(initial=0.0))


class Detector:
    """A network and its description.

    Args:
        path: path of the :class:`DetectorFile`.
        threads: that the network runs on.

    Attributes:
        digest: SHA-256 of description and network.

    Raises:
        ConfigError: the description or the network cannot be read, or they do not fit each other.
    """

    def __init__(self, path: Path, threads: int = 1) -> None:
        try:
            from robot_runtime.policies.package.formats.onnx import open_session
        except ModuleNotFoundError as error:
            raise ConfigError(f"{path}: detectors need onnxruntime", "pip install 'robot-runtime[onnx]'") from error
        self.file, self.path = config.load(path, DetectorFile), path
        model = path.parent / self.file.model
        self.digest = digest_of(path, {"model": str(model)}) or ""
        try:
            self._session = open_session(str(model), threads)
        except Exception as error:  # its own classes derive from Exception, one for each way to fail
            raise ConfigError(
                f"{model}: is not a network that ONNX Runtime can run: {error}", "export it again"
            ) from error
        names = [output.name for output in self._session.get_outputs()]
        missing = [name for name in self.file.outputs if name not in names]
        if missing or len(self._session.get_inputs()) != 1:
            raise ConfigError(
                f"{path}: the network has no output {', '.join(missing)}" if missing else f"{path}: needs one input",
                f"correct 'outputs'; it has {', '.join(names)}",
            )
        try:
            self.detect(np.zeros((self.file.height, self.file.width, 3), np.uint8))
        except PolicyOutputError as error:
            raise ConfigError(error.message, f"correct {path}") from error

    def detect(self, rgb: NDArray[np.uint8], depth_m: NDArray[np.float32] | None = None) -> Detection:
        """Classes and scores of an image.

        Args:
            rgb: (H, W, 3).
            depth_m: (H, W), which separates what is in a box from what is behind it; None: whole boxes count.

        Raises:
            PolicyOutputError: the network failed, or gave NaN, another shape, an unknown label or a score beyond 0..1.
        """
        file = self.file
        image = cv2.resize(rgb, (file.width, file.height), interpolation=cv2.INTER_AREA)
        channels = image if file.colors == "rgb" else image[..., ::-1]
        values = (channels - np.array(file.mean, np.float32)) * np.array(file.scale, np.float32)
        values = values.transpose(2, 0, 1) if file.layout == "nchw" else values
        try:
            found = self._session.run(list(file.outputs), {self._session.get_inputs()[0].name: values[None]})
        except Exception as error:  # any error of foreign code
            raise self._wrong(f"failed: {error}") from error
        if any(not np.isfinite(array).all() for array in found):
            raise self._wrong("gave numbers that are not finite")
        return self._masks(rgb.shape, *found) if file.kind == "masks" else self._boxes(rgb.shape, depth_m, *found)

    def _masks(self, shape: tuple[int, ...], logits: NDArray[np.float32]) -> Detection:
        if logits.ndim != 4 or logits.shape[:2] != (1, len(self.file.labels)):
            raise self._wrong(f"gave masks of shape {logits.shape} for {len(self.file.labels)} labels")
        shares = np.exp(logits[0] - logits[0].max(axis=0))
        best = np.argmax(shares, axis=0)
        scores = (shares.max(axis=0) / shares.sum(axis=0)).astype(np.float32)
        size = (shape[1], shape[0])
        labels = cv2.resize(best.astype(np.int16), size, interpolation=cv2.INTER_NEAREST).astype(np.int32)
        large = cv2.resize(scores, size, interpolation=cv2.INTER_NEAREST)
        named = np.array([bool(name) for name in self.file.labels])
        return Detection(np.where((large >= self.file.min_score) & named[labels], labels, NOTHING), large)

    def _boxes(
        self,
        shape: tuple[int, ...],
        depth_m: NDArray[np.float32] | None,
        boxes: NDArray[np.float32],
        scores: NDArray[np.float32],
        labels: NDArray[np.int64],
    ) -> Detection:
        count = scores.size
        if boxes.shape != (1, count, 4) or scores.shape != (1, count) or labels.shape != (1, count):
            raise self._wrong(f"gave boxes {boxes.shape}, scores {scores.shape} and labels {labels.shape}")
        if count and (scores.min() < 0 or scores.max() > 1):
            raise self._wrong(f"gave scores from {scores.min():.3g} to {scores.max():.3g}")
        if count and not 0 <= labels.min() <= labels.max() < len(self.file.labels):
            raise self._wrong(f"gave label {labels.max()}, and there are {len(self.file.labels)}")
        height, width = shape[:2]
        found = Detection(np.full((height, width), NOTHING, np.int32), np.zeros((height, width), np.float32))
        stretch = np.array([width / self.file.width, height / self.file.height] * 2)
        for index in np.argsort(scores[0], kind="stable").tolist():
            x0, y0, x1, y1 = np.rint(np.clip(boxes[0, index] * stretch, 0, [width, height] * 2)).astype(int).tolist()
            label, score = int(labels[0, index]), float(scores[0, index])
            if score < self.file.min_score or not self.file.labels[label] or x1 <= x0 or y1 <= y0:
                continue
            inside = np.ones((y1 - y0, x1 - x0), np.bool_)
            if depth_m is not None:
                middle = depth_m[(y0 + y1) // 2, (x0 + x1) // 2]
                inside = np.abs(depth_m[y0:y1, x0:x1] - middle) <= _NEAR_M
            found.labels[y0:y1, x0:x1][inside] = label
            found.scores[y0:y1, x0:x1][inside] = score
        return found

    def _wrong(self, what: str) -> PolicyOutputError:
        return PolicyOutputError(f"detector {self.path}: {what}", "correct its description, or use another network")


class Detecting(PolicyWrapper):
    """A policy whose sensor ``semantic`` comes from a detector."""

    def __init__(self, inner: Policy, detector: Detector) -> None:
        super().__init__(inner, f"{inner.name}+detector")
        self._detector, self._info = detector, dict[str, Any]()
        own = [name for name in inner.needs if name != "semantic"]
        self.needs = (*own, *(["rgb"] if "rgb" not in own else []))  # type: ignore[misc]

    @override
    def check(self, task: Task) -> None:
        if not (_ids(self._detector.file.labels, task) >= 0).any():
            raise PolicyError(
                f"detector {self._detector.path} knows none of the categories of task {task.name!r}",
                f"name its labels like them: {', '.join(list(task.categories)[:8]) or 'the task has none'}",
            )
        super().check(task)

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._task, self._ids = task, np.append(_ids(self._detector.file.labels, task), np.int32(NOTHING))
        super().reset(task, seed, world)

    @override
    def act(self, observation: Observation) -> Decision:
        timer = Stopwatch()
        depth_m = observed_m(observation["depth"][..., 0], self._task.camera) if "depth" in observation else None
        found = self._detector.detect(observation["rgb"], depth_m)
        labels = np.unique(found.labels[found.labels != NOTHING]).tolist()
        self._info = {
            "ms": round(1e3 * timer.elapsed_s(), 2),
            "labels": [self._detector.file.labels[i] for i in labels],
        }
        return super().act({**observation, "semantic": self._ids[found.labels][..., None]})

    @override
    def info(self) -> dict[str, Any]:
        return {**super().info(), "detector": {"file": str(self._detector.path), **self._info}}


def _ids(labels: tuple[str, ...], task: Task) -> NDArray[np.int32]:
    """For each label the id of the task's category of that name, -1 for none."""
    ids: Mapping[str, int] = {
        name: category.id for key, category in task.categories.items() for name in (key, *category.matches)
    }
    return np.array([ids.get(label, NOTHING) for label in labels], np.int32)
