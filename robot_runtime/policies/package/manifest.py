"""Manifest of a policy package, ``policy.yaml``: all data about a network that its file does not hold, strictly typed.

The task is in the schema of ``launch/tasks/*.yaml``: actions in the order of the network's logits with their
magnitudes, sensors, the training camera. The other fields describe the network.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from robot_runtime.common import config
from robot_runtime.imaging.preprocess import Operation
from robot_runtime.policies.package.vocabulary import Vocabulary
from robot_runtime.tasks.kind import has_sensor
from robot_runtime.tasks.task import Task

SCHEMA = 2
"""Version of this file's layout."""

MANIFEST_FILE = "policy.yaml"

Format = Literal["onnx", "torch_export", "torchscript"]
Mode = Literal["argmax", "sample"]
DType = Literal["float32", "float16", "int64", "int32", "uint8", "bool"]

RECURRENT, PREVIOUS_ACTION, MASK, NOISE = "recurrent_state", "previous_action", "mask", "noise"
LOGITS, VELOCITY, WAYPOINT, TRAJECTORY = DECISIONS = ("logits", "velocity", "waypoint", "trajectory")
VALUE, ANSWERS, UNUSED = "value", "answers", "unused"
QUESTION, EXPOSURE = "question", "exposure"

_SHA256 = re.compile(r"[0-9a-f]{64}")
_VERSION = re.compile(r"\d+(\.\d+)*")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Source(config.Strict):
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

    def __post_init__(self) -> None:
        if not self.what or not self.licence:
            raise ValueError("a source needs 'what' and 'licence'")
        if self.sha256 is not None:
            _check_sha256(self.sha256)


@dataclass(frozen=True)
class Converter(config.Strict):
    """The program that wrote the package."""

    name: str
    version: str


@dataclass(frozen=True)
class Proof(config.Strict):
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

    def __post_init__(self) -> None:
        if not 0 <= self.same_actions <= self.steps or self.steps < 1 or self.max_logit_difference < 0:
            raise ValueError(f"needs 0 <= same_actions <= steps and a difference >= 0, got {self}")


@dataclass(frozen=True)
class Model(config.Strict):
    """The network's file.

    Attributes:
        opset: version of ONNX's own operators; None for other formats.
        minimum_runtime: first version of ONNX Runtime, or of torch, that runs it.
        data: SHA-256 of the files with weights of an ONNX network that does not hold them itself, by name.
    """

    file: str
    format: Format
    sha256: str
    minimum_runtime: str
    opset: int | None = None
    data: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, sha256 in {self.file: self.sha256, **self.data}.items():
            _check_file(name)
            _check_sha256(sha256)
        if not _VERSION.fullmatch(self.minimum_runtime):
            raise ValueError(f"minimum_runtime must be a version like 1.20.1, got {self.minimum_runtime!r}")
        if (self.opset is None) == (self.format == "onnx"):
            raise ValueError("opset goes with the format onnx")


@dataclass(frozen=True)
class Tensor(config.Strict):
    """One output of the network.

    Attributes:
        name: name in the network.
        shape: exact, with its leading ones (batch, time); None for the side of a state that grows with each step.
        role: meaning: an answer (``logits``, ``velocity``, ``waypoint`` or ``trajectory``), ``value``, ``answers``,
            ``recurrent_state`` or ``unused``. Recurrent states are paired with the inputs of that role, in order.
    """

    name: str
    role: str
    dtype: DType
    shape: tuple[int | None, ...]

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 200:
            raise ValueError("a tensor needs a name of at most 200 characters")
        if any(side < 1 for side in self.sides) or math.prod(self.sides) > 1 << 26:
            raise ValueError(f"tensor {self.name!r}: every side must be positive, and 2**26 elements are the limit")
        if len(self.sides) < len(self.shape) - (self.role == RECURRENT):
            raise ValueError(f"tensor {self.name!r}: one side of a recurrent_state may grow, and no other")

    @property
    def sides(self) -> tuple[int, ...]:
        """The sides that do not grow."""
        return tuple(side for side in self.shape if side is not None)


@dataclass(frozen=True)
class Need(Tensor):
    """One input of the network: what it needs of a sensor, of its own memory, or of chance.

    Its form is made by the operations of ``preprocess`` that name its sensor, or it itself.

    Attributes:
        role: a sensor's name, ``recurrent_state``, ``previous_action``, ``mask`` (false at an episode's first step) or
            ``noise`` (standard normal, of the selection's seed). A ``question`` is given as the words of
            ``vocabulary``: int64, index plus 1, then zeros.
        count: number of observations, the newest last; before there are as many, the first one is repeated.
        period_s: time between their exposures; 0 for the last ``count`` observations.
        first: number of the previous action at an episode's start. habitat-baselines' networks take 0.
        offset: number that is added to a previous action's id; habitat-baselines' networks add it themselves.
        most: largest length of the side that grows.
    """

    count: int = 1
    period_s: float = 0.0
    first: int = 0
    offset: int = 0
    most: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (1 <= self.count <= 256 and 0 <= self.period_s <= 60 and 1 <= self.most <= 1 << 16):
            raise ValueError(f"input {self.name!r}: needs count in 1..256, period_s in 0..60 and most in 1..65536")
        if not (-1 <= self.first <= 1000 and 0 <= self.offset <= 1):
            raise ValueError(f"input {self.name!r}: needs first >= -1 and offset 0 or 1")
        if self.count > 1 and math.prod(self.sides) % self.count:
            raise ValueError(f"input {self.name!r}: {list(self.shape)} does not hold {self.count} observations")

    @property
    def one(self) -> tuple[int, ...]:
        """Shape of one of its ``count`` observations."""
        if self.count == 1:
            return self.sides
        inner = self.sides[next((k for k, side in enumerate(self.sides) if side > 1), 0) :]
        return inner[1:] if inner[0] == self.count else (inner[0] // self.count, *inner[1:])


@dataclass(frozen=True)
class Timing(config.Strict):
    """Meaning of a velocity, waypoint or trajectory.

    Attributes:
        period_s: duration of a velocity, or time from each point of a trajectory to the next.
        scale: meters, or meters per second, of one unit of the network.
        turn_scale: radians, or radians per second, of one unit.
        deltas: whether each point is relative to the one before it.
        settle: whether the robot comes to rest before the next observation, as Habitat's do.
        stop_m: points, or a velocity in meters per second, all nearer to zero than this mean stop.
    """

    period_s: float
    scale: float = 1.0
    turn_scale: float = 1.0
    deltas: bool = False
    settle: bool = False
    stop_m: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.period_s <= 10 and self.scale > 0 and self.turn_scale > 0 and self.stop_m >= 0):
            raise ValueError(f"needs period_s in 0..10, positive scales and stop_m >= 0, got {self}")


@dataclass(frozen=True)
class Selection(config.Strict):
    """Choice of an action from logits.

    Attributes:
        mode: ``argmax``, the largest logit, or ``sample``, a draw from the softmax of ``logits / temperature``.
        seed: seed of the draws, together with the episode's; both are logged.
    """

    mode: Mode
    temperature: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.temperature > 0 or not 0 <= self.seed < 1 << 63:
            raise ValueError(f"needs temperature > 0 and a seed in 0..2**63-1, got {self}")


@dataclass(frozen=True)
class GoldenFile(config.Strict):
    """The recorded rollout and its tolerances (``robot_runtime.policies.package.golden``)."""

    file: str
    sha256: str
    steps: int
    logit_atol: float = 1e-4
    state_atol: float = 1e-3
    input_atol: float = 1e-5

    def __post_init__(self) -> None:
        _check_file(self.file)
        _check_sha256(self.sha256)
        if self.steps < 1 or min(self.logit_atol, self.state_atol, self.input_atol) < 0:
            raise ValueError("needs steps >= 1 and tolerances >= 0")
        if max(self.logit_atol, self.state_atol, self.input_atol) > 0.1:
            raise ValueError("a tolerance above 0.1 proves nothing")


@dataclass(frozen=True)
class Manifest(config.Strict):
    """The content of ``policy.yaml``.

    Attributes:
        preprocess: operations on the task's observation, in order.
        timing: times of an answer that is not a choice of an action.
        carry_out: number of actions of an answer before the next; None for all of its logits or velocities.
        vocabulary: vocabulary of a network that takes questions.
    """

    schema: int
    name: str
    task: Task
    sources: tuple[Source, ...]
    converter: Converter
    proof: Proof
    model: Model
    inputs: tuple[Need, ...]
    outputs: tuple[Tensor, ...]
    preprocess: tuple[Operation, ...]
    selection: Selection
    golden: GoldenFile
    timing: Timing | None = None
    carry_out: int | None = None
    vocabulary: Vocabulary | None = None

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise ValueError(f"has schema {self.schema}, this version reads {SCHEMA}")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}", self.name):
            raise ValueError(f"name must be made of letters, digits and . _ + -, got {self.name!r}")
        if not self.sources:
            raise ValueError("sources must name the origin of the network and its licence")
        if len(set(self.task.actions)) < len(self.task.actions):
            raise ValueError(f"task.actions names an action twice: {', '.join(self.task.actions)}")
        self._check_tensors()
        self._check_answer()
        self._check_words()

    @property
    def needs(self) -> tuple[str, ...]:
        """Sensors that the network takes; for a history by time also that of the exposure."""
        roles = [need.role for need in self.inputs if has_sensor(self.task, need.role)]
        return tuple(dict.fromkeys([*roles, *([EXPOSURE] if any(need.period_s for need in self.inputs) else [])]))

    @property
    def answer(self) -> Tensor:
        """The output that decides."""
        return next(tensor for tensor in self.outputs if tensor.role in DECISIONS)

    @property
    def chunk(self) -> int:
        """Number of actions in an answer; a trajectory is one."""
        width = {LOGITS: len(self.task.actions), VELOCITY: 2}.get(self.answer.role)
        return 1 if width is None else math.prod(self.answer.sides) // width

    def inputs_of(self, role: str) -> tuple[Need, ...]:
        """Inputs of a role, in order."""
        return tuple(need for need in self.inputs if need.role == role)

    def outputs_of(self, role: str) -> tuple[Tensor, ...]:
        """Outputs of a role, in order."""
        return tuple(tensor for tensor in self.outputs if tensor.role == role)

    def _check_tensors(self) -> None:
        for what, tensors, roles in (
            ("input", self.inputs, (*self.task.sensors, RECURRENT, PREVIOUS_ACTION, MASK, NOISE)),
            ("output", self.outputs, (*DECISIONS, VALUE, ANSWERS, RECURRENT, UNUSED)),
        ):
            names = [tensor.name for tensor in tensors]
            if len(set(names)) < len(names):
                raise ValueError(f"two {what}s have one name: {', '.join(names)}")
            for tensor in tensors:
                if tensor.role not in roles:
                    raise ValueError(f"{what} {tensor.name!r} has role {tensor.role!r}; there are {', '.join(roles)}")
        if not self.needs:
            raise ValueError("no input has the role of a sensor")
        states_in, states_out = self.inputs_of(RECURRENT), self.outputs_of(RECURRENT)
        if [(t.shape, t.dtype) for t in states_in] != [(t.shape, t.dtype) for t in states_out]:
            raise ValueError("recurrent states must go in and come out in the same number, order, shapes and types")
        for need in (*self.inputs_of(PREVIOUS_ACTION), *self.inputs_of(MASK)):
            if math.prod(need.sides) != 1:
                raise ValueError(f"input {need.name!r} must hold one number, has shape {list(need.shape)}")
        for need in self.inputs_of(PREVIOUS_ACTION):
            if np.dtype(need.dtype).kind != "i":
                raise ValueError(f"input {need.name!r}: a previous action is an integer, not {need.dtype}")

    def _check_answer(self) -> None:
        found = [tensor for tensor in self.outputs if tensor.role in DECISIONS]
        if len(found) != 1 or not found[0].dtype.startswith("float"):
            raise ValueError(f"needs one output of floats with the role {', '.join(DECISIONS)}")
        answer, size = found[0], math.prod(found[0].sides)
        count = {LOGITS: len(self.task.actions), VELOCITY: 2, WAYPOINT: 3}.get(answer.role, size)
        rows = size != count and answer.role in (LOGITS, VELOCITY) and answer.sides[-1] == count
        if not (size == count or rows) or (answer.role == TRAJECTORY and answer.shape[-1] not in (2, 3, 4)):
            raise ValueError(
                f"output {answer.name!r} is {answer.role} of shape {list(answer.shape)}; logits are one for each of "
                f"{len(self.task.actions)} actions, a velocity is [forward, left turn], or rows of these; a waypoint "
                "is [x, y, yaw], and a trajectory ends in 2, 3 or 4 columns: x, y, yaw, or the cosine and sine of yaw"
            )
        if self.carry_out is not None and not 1 <= self.carry_out <= self.chunk:
            raise ValueError(f"carry_out is {self.carry_out}, and an answer has {self.chunk} actions")
        if (answer.role == LOGITS) == (self.timing is not None):
            raise ValueError(f"'timing' goes with the roles {VELOCITY}, {WAYPOINT} and {TRAJECTORY}")
        for tensor in self.outputs_of(VALUE):
            if math.prod(tensor.sides) != 1 or not tensor.dtype.startswith("float"):
                raise ValueError(f"output {tensor.name!r}: a value is one number")

    def _check_words(self) -> None:
        questions, answers = self.inputs_of(QUESTION), self.outputs_of(ANSWERS)
        if bool(questions or answers) != (self.vocabulary is not None):
            raise ValueError("'vocabulary' goes with an input 'question' or an output 'answers'")
        for need in questions:
            if need.dtype != "int64" or len(need.sides) != 2 or need.sides[0] != 1:
                raise ValueError(f"input {need.name!r}: a question is int64 (1, words), not {need.dtype}")
        for tensor in answers:
            count = len(self.vocabulary.answers) if self.vocabulary else 0
            if tensor.dtype != "float32" or math.prod(tensor.sides) != count:
                raise ValueError(f"output {tensor.name!r} must be float32, one for each of {count} answers")


def _check_sha256(text: str) -> None:
    if not _SHA256.fullmatch(text):
        raise ValueError(f"sha256 must be 64 lower-case hexadecimal digits, got {text!r}")


def _check_file(name: str) -> None:
    if not _FILE.fullmatch(name):
        raise ValueError(
            f"a package's files lie next to its manifest and are named by letters, digits and . _ -: {name!r}"
        )
