"""Manifest of a policy package, ``policy.yaml``: all data about a network that its file does not hold, strictly typed.

The task is in the schema of ``launch/tasks/*.yaml``: actions in the order of the network's logits with their
magnitudes, sensors, the training camera. The other fields describe the network.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.imaging.preprocess import Operation
from robot_runtime.policies.package.vocabulary import Vocabulary
from robot_runtime.tasks.registry import has_sensor
from robot_runtime.tasks.task import Task

SCHEMA = 1
"""Version of this file's layout."""

MANIFEST_FILE = "policy.yaml"

Format = Literal["onnx", "torch_export", "torchscript"]
Mode = Literal["argmax", "sample"]
DType = Literal["float32", "int64", "int32", "uint8", "bool"]

RECURRENT, PREVIOUS_ACTION, MASK = "recurrent_state", "previous_action", "mask"
LOGITS, VALUE, ANSWERS = "logits", "value", "answers"
QUESTION = "question"

_SHA256 = re.compile(r"[0-9a-f]{64}")
_VERSION = re.compile(r"\d+(\.\d+)*")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Source:
    """Origin of a part of the package: a checkpoint, a data set, a training script.

    Attributes:
        what: description in words.
        licence: its SPDX identifier or name.
        sha256: SHA-256 of the file; None for other sources.
        location: URL, repository and commit, or path in it.
    """

    what: str
    licence: str
    sha256: str | None = None
    location: str = ""

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not self.what or not self.licence:
            raise ValueError("a source needs 'what' and 'licence'")
        if self.sha256 is not None:
            _check_sha256(self.sha256)


@dataclass(frozen=True)
class Converter:
    """The program that wrote the package."""

    name: str
    version: str

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class Proof:
    """Comparison of the exported network with the original one.

    Attributes:
        against: the reference with its version: the original framework, or the runtime's own definition.
        steps: number of steps of the recurrent rollout.
        same_actions: steps at which the largest logit was the same one.
        max_logit_difference: absolute, over all steps.
    """

    against: str
    steps: int
    same_actions: int
    max_logit_difference: float

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not 0 <= self.same_actions <= self.steps or self.steps < 1 or self.max_logit_difference < 0:
            raise ValueError(f"needs 0 <= same_actions <= steps and a difference >= 0, got {self}")


@dataclass(frozen=True)
class Model:
    """The network's file.

    Attributes:
        opset: version of ONNX's own operators; None for other formats.
        minimum_runtime: first version of ONNX Runtime, or of torch, that runs it.
    """

    file: str
    format: Format
    sha256: str
    minimum_runtime: str
    opset: int | None = None

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        _check_file(self.file)
        _check_sha256(self.sha256)
        if not _VERSION.fullmatch(self.minimum_runtime):
            raise ValueError(f"minimum_runtime must be a version like 1.20.1, got {self.minimum_runtime!r}")
        if (self.opset is None) == (self.format == "onnx"):
            raise ValueError("opset goes with the format onnx")


@dataclass(frozen=True)
class Tensor:
    """One input or output of the network.

    Attributes:
        name: name in the network.
        shape: exact, with its leading ones (batch, time).
        role: meaning of an input: a sensor's name (its preprocessed observation), ``recurrent_state``,
            ``previous_action`` or ``mask``; of an output: ``logits``, ``value``, ``answers`` or ``recurrent_state``.
            Recurrent states are paired in order. A ``question`` is given as the words of ``vocabulary``: int64, index
            plus 1, then zeros.
    """

    name: str
    role: str
    dtype: DType
    shape: tuple[int, ...]

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 200:
            raise ValueError("a tensor needs a name of at most 200 characters")
        if any(side < 1 for side in self.shape) or math.prod(self.shape) > 1 << 26:
            raise ValueError(f"tensor {self.name!r}: every side must be positive, and 2**26 elements are the limit")


@dataclass(frozen=True)
class Goal:
    """The goal input of the network.

    Attributes:
        format: ``polar``: [distance m, azimuth rad]; ``id``: an index into ``vocabulary``; ``tokens``; ``none``.
        sensor: that holds the goal.
        sign: sign of the azimuth.
        vocabulary: category names, position is the id.
    """

    format: Literal["polar", "id", "tokens", "none"]
    sensor: str | None = None
    sign: Literal["left_positive"] | None = None
    vocabulary: tuple[str, ...] = ()

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if (self.format == "polar") != (self.sign is not None):
            raise ValueError("sign goes with the format polar")
        if (self.format == "id") != bool(self.vocabulary) or len(set(self.vocabulary)) < len(self.vocabulary):
            raise ValueError("vocabulary, each word once, goes with the format id")
        if (self.format == "none") != (self.sensor is None):
            raise ValueError("sensor goes with every format but none")


@dataclass(frozen=True)
class Recurrent:
    """The recurrent layers.

    Attributes:
        cell: kind of the layers.
        layers: number of layers.
        hidden: size of the state.
        packing: layout of the state. ``cat_h_c``: h of every layer, then c of every layer (habitat-baselines); ``h``: h
            of every layer; ``separate``: a tensor each for h and c.
        reset: state at an episode's start, ``zeros``; a network that takes a mask gets it false there as well.
    """

    cell: Literal["lstm", "gru", "other"]
    layers: int
    hidden: int
    packing: Literal["cat_h_c", "h", "separate"]
    reset: Literal["zeros"] = "zeros"

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class PreviousAction:
    """Input of the previous action: ``first`` at an episode's start, later the action's id plus ``offset``.

    habitat-baselines' networks shift the id themselves and take 0 at the start where the mask is false: both zero.
    """

    first: int = 0
    offset: int = 0

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not (-1 <= self.first <= 1000 and 0 <= self.offset <= 1):
            raise ValueError(f"needs first >= -1 and offset 0 or 1, got {self}")


@dataclass(frozen=True)
class Selection:
    """Choice of an action from logits.

    Attributes:
        mode: ``argmax``, the largest logit, or ``sample``, a draw from the softmax of ``logits / temperature``.
        seed: seed of the draws, together with the episode's; both are logged.
    """

    mode: Mode
    temperature: float = 1.0
    seed: int = 0

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not self.temperature > 0 or not 0 <= self.seed < 1 << 63:
            raise ValueError(f"needs temperature > 0 and a seed in 0..2**63-1, got {self}")


@dataclass(frozen=True)
class GoldenFile:
    """The recorded rollout and its tolerances (``robot_runtime.policies.package.golden``)."""

    file: str
    sha256: str
    steps: int
    logit_atol: float = 1e-4
    state_atol: float = 1e-3
    input_atol: float = 1e-5

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        _check_file(self.file)
        _check_sha256(self.sha256)
        if self.steps < 1 or min(self.logit_atol, self.state_atol, self.input_atol) < 0:
            raise ValueError("needs steps >= 1 and tolerances >= 0")
        if max(self.logit_atol, self.state_atol, self.input_atol) > 0.1:
            raise ValueError("a tolerance above 0.1 proves nothing")


@dataclass(frozen=True)
class Manifest:
    """The content of ``policy.yaml``.

    Attributes:
        native_actions: the training framework's names of the task's actions, in the same order.
        stop_id: position of ``stop`` in that order.
        preprocess: operations on the task's observation, in order.
        vocabulary: vocabulary of a network that takes questions.
    """

    schema: int
    name: str
    task: Task
    native_actions: tuple[str, ...]
    stop_id: int
    sources: tuple[Source, ...]
    converter: Converter
    proof: Proof
    model: Model
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    preprocess: tuple[Operation, ...]
    goal: Goal
    selection: Selection
    golden: GoldenFile
    recurrent: Recurrent | None = None
    previous_action: PreviousAction | None = None
    vocabulary: Vocabulary | None = None

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise ValueError(f"has schema {self.schema}, this version reads {SCHEMA}")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}", self.name):
            raise ValueError(f"name must be made of letters, digits and . _ + -, got {self.name!r}")
        if not self.sources:
            raise ValueError("sources must name the origin of the network and its licence")
        self._check_actions()
        self._check_tensors()
        self._check_goal()
        self._check_words()

    @property
    def needs(self) -> tuple[str, ...]:
        """Sensors that the network takes."""
        return tuple(tensor.role for tensor in self.inputs if has_sensor(self.task, tensor.role))

    def inputs_of(self, role: str) -> tuple[Tensor, ...]:
        """Inputs of a role, in order."""
        return tuple(tensor for tensor in self.inputs if tensor.role == role)

    def outputs_of(self, role: str) -> tuple[Tensor, ...]:
        """Outputs of a role, in order."""
        return tuple(tensor for tensor in self.outputs if tensor.role == role)

    def _check_actions(self) -> None:
        actions = self.task.actions
        if len(set(actions)) < len(actions):
            raise ValueError(f"task.actions names an action twice: {', '.join(actions)}")
        if len(self.native_actions) != len(actions):
            raise ValueError(f"native_actions has {len(self.native_actions)} names, the task {len(actions)} actions")
        if actions.index(Action.STOP) != self.stop_id:
            raise ValueError(f"stop_id is {self.stop_id}, but stop is action {actions.index(Action.STOP)} of the task")

    def _check_tensors(self) -> None:
        for what, tensors, roles in (
            ("input", self.inputs, (*self.task.sensors, RECURRENT, PREVIOUS_ACTION, MASK)),
            ("output", self.outputs, (LOGITS, VALUE, ANSWERS, RECURRENT)),
        ):
            names = [tensor.name for tensor in tensors]
            if len(set(names)) < len(names):
                raise ValueError(f"two {what}s have one name: {', '.join(names)}")
            for tensor in tensors:
                if tensor.role not in roles:
                    raise ValueError(f"{what} {tensor.name!r} has role {tensor.role!r}; there are {', '.join(roles)}")
                if tensor.role != RECURRENT and len([t for t in tensors if t.role == tensor.role]) > 1:
                    raise ValueError(f"two {what}s have the role {tensor.role!r}")
        if not self.needs:
            raise ValueError("no input has the role of a sensor")
        states_in, states_out = self.inputs_of(RECURRENT), self.outputs_of(RECURRENT)
        if [(t.shape, t.dtype) for t in states_in] != [(t.shape, t.dtype) for t in states_out]:
            raise ValueError("recurrent states must go in and come out in the same number, order, shapes and types")
        if bool(states_in) != (self.recurrent is not None):
            raise ValueError("'recurrent' goes with tensors of the role recurrent_state")
        if bool(self.inputs_of(PREVIOUS_ACTION)) != (self.previous_action is not None):
            raise ValueError("'previous_action' goes with an input of that role")
        for tensor in (*self.inputs_of(PREVIOUS_ACTION), *self.inputs_of(MASK)):
            if math.prod(tensor.shape) != 1:
                raise ValueError(f"input {tensor.name!r} must hold one number, has shape {list(tensor.shape)}")
        for tensor in self.inputs_of(PREVIOUS_ACTION):
            if np.dtype(tensor.dtype).kind != "i":
                raise ValueError(f"input {tensor.name!r}: a previous action is an integer, not {tensor.dtype}")
        logits = self.outputs_of(LOGITS)
        if not logits or math.prod(logits[0].shape) != len(self.task.actions) or logits[0].dtype != "float32":
            raise ValueError(f"needs an output of the role logits: float32, one for each of {len(self.task.actions)}")
        for tensor in self.outputs_of(VALUE):
            if math.prod(tensor.shape) != 1 or tensor.dtype != "float32":
                raise ValueError(f"output {tensor.name!r}: a value is one float32")

    def _check_words(self) -> None:
        questions, answers = self.inputs_of(QUESTION), self.outputs_of(ANSWERS)
        if bool(questions or answers) != (self.vocabulary is not None):
            raise ValueError("'vocabulary' goes with an input 'question' or an output 'answers'")
        for tensor in questions:
            if tensor.dtype != "int64" or len(tensor.shape) != 2 or tensor.shape[0] != 1:
                raise ValueError(f"input {tensor.name!r}: a question is int64 (1, words), not {tensor.dtype}")
        for tensor in answers:
            count = len(self.vocabulary.answers) if self.vocabulary else 0
            if tensor.dtype != "float32" or math.prod(tensor.shape) != count:
                raise ValueError(f"output {tensor.name!r} must be float32, one for each of {count} answers")

    def _check_goal(self) -> None:
        goal = self.goal
        if goal.sensor is not None and goal.sensor not in self.needs:
            raise ValueError(f"goal.sensor {goal.sensor!r} is not an input's role")
        if goal.format == "id":
            by_id = {category.id: name for name, category in self.task.categories.items()}
            if by_id != dict(enumerate(goal.vocabulary)):
                raise ValueError("goal.vocabulary and task.categories number the categories differently")


def _check_sha256(text: str) -> None:
    if not _SHA256.fullmatch(text):
        raise ValueError(f"sha256 must be 64 lower-case hexadecimal digits, got {text!r}")


def _check_file(name: str) -> None:
    if not _FILE.fullmatch(name):
        raise ValueError(
            f"a package's files lie next to its manifest and are named by letters, digits and . _ -: {name!r}"
        )
