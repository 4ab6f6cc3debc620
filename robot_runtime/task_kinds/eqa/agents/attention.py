"""The learned answerers that ship, and the shortest-path navigator in front of them: the paper's baselines.

Trained in generated flats by ``python -m sim_bridge.training.eqa``.
"""

from collections import deque
from pathlib import Path
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.actions.timed import Decision
from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.policies.baselines.oracle import Oracle
from robot_runtime.policies.package.vocabulary import Vocabulary, question_tokens
from robot_runtime.policy import Answer, Observation, Policy, World
from robot_runtime.tasks.task import Task

FOLDER = Path(__file__).parent.parent / "shipped" / "eqa_answerer"
MODES = ("attention", "last", "blind")


class LearnedAnswerer:
    """A network that answers from a question and the last frames.

    Args:
        mode: ``attention`` over the last five frames, ``last`` for the last one alone, ``blind`` for none.

    Raises:
        ConfigError: there is no such mode, or onnxruntime is missing.
    """

    def __init__(self, mode: str = "attention") -> None:
        if mode not in MODES:
            raise ConfigError(f"there is no answerer {mode!r}", f"use one of {', '.join(MODES)}")
        try:
            from robot_runtime.policies.package.formats.onnx import open_session
        except ModuleNotFoundError as error:
            raise ConfigError("learned answerers need onnxruntime", "pip install 'robot-runtime[onnx]'") from error
        self._session = open_session(str(FOLDER / f"{mode}.onnx"))
        self._vocabulary = config.load(FOLDER / "vocabulary.yaml", Vocabulary)
        shapes = {one.name: one.shape for one in self._session.get_inputs()}
        self._length, (frames, self._side) = shapes["question"][1], shapes.get("frames", (0, 0))[:2]
        self._frames: deque[NDArray[np.uint8]] = deque(maxlen=frames)

    def reset(self) -> None:
        """Forget the frames of the last episode."""
        self._frames.clear()

    def observe(self, rgb: NDArray[np.uint8]) -> None:
        """Take a frame, (H, W, 3)."""
        if not self._side:  # blind
            return
        size = (self._side, self._side)
        self._frames.append(np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), np.uint8))

    def scores(self, question: str) -> dict[str, float]:
        """The probability of each answer. The first frame stands for missing ones; unless blind, there must be one."""
        inputs: dict[str, NDArray[Any]] = {"question": question_tokens(question, self._vocabulary.words, self._length)}
        if self._side:
            missing = int(self._frames.maxlen or 1) - len(self._frames)
            inputs["frames"] = np.stack([self._frames[0]] * missing + list(self._frames))
        (found,) = self._session.run(["answer"], inputs)
        return dict(zip(self._vocabulary.answers, map(float, found[0]), strict=True))


class EqaAttention(Policy):
    """Follows the shortest path to the target, then a learned answerer answers.

    Args:
        answerer: ``attention``, ``last`` or ``blind``.
    """

    name = "eqa-attention"
    kinds: ClassVar[tuple[str, ...]] = ("eqa",)
    needs: ClassVar[tuple[str, ...]] = ("rgb", "question")
    privileged: ClassVar[bool] = True

    def __init__(self, answerer: str = "attention") -> None:
        self._answerer, self._oracle = LearnedAnswerer(answerer), Oracle()

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._answerer.reset()
        self._oracle.reset(task, seed, world)

    @override
    def act(self, observation: Observation) -> Decision:
        self._answerer.observe(observation["rgb"])
        return self._oracle.act(observation)

    @override
    def answer(self, observation: Observation) -> Answer | None:
        return self._answerer.scores(str(observation["question"]))
