"""Interface of policies: observations in, actions out."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.actions.timed import Decision
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.common.own_directory import OwnDirectory
from robot_runtime.errors import ConfigError, PolicyMismatch
from robot_runtime.tasks.state import StepState
from robot_runtime.tasks.task import Task

if TYPE_CHECKING:  # a learned policy decides without them, and is ready sooner without the libraries that they need
    from robot_runtime.scenes.scene import Scene
    from robot_runtime.tasks.episode import Episode

Observation = dict[str, NDArray[Any]]
"""Sensor name -> array; keys, shapes, dtypes and frames are documented in ``robot_runtime.sensors``."""


Answer = str | int | Mapping[str, float]
"""Answer to a question: its text, its id in the dataset's vocabulary, or answers with their scores (high is good)."""


@dataclass(frozen=True)
class World:
    """Ground truth for a privileged agent (an oracle).

    Attributes:
        scene: scene of the episode.
        episode: episode with resolved goals.
        pose: returns the robot's present pose in ``map``.
        tilt_rad: returns its camera tilt, up positive.
        state: function that returns the episode's state.
    """

    scene: Scene
    episode: Episode
    pose: Callable[[], SE2]
    tilt_rad: Callable[[], float]
    state: Callable[[], StepState] = StepState


class Policy(ABC):
    """Observations in, actions out.

    Attributes:
        name: name in logs and tables.
        needs: sensors without which it cannot decide; `run` adds those that the task lacks, whose name then lists them.
        kinds: kinds of the tasks that it solves; empty for any.
        privileged: whether it needs the :class:`World`.
        follows: whether :meth:`overruled` reaches all that it remembers of its own actions.
        task: the one that it was trained for and runs in by default; None for any.
        declared: content of its package's ``policy.yaml``, with each input's form; None for a policy of another sort.
        source: its origin, for logs; None for a policy that was not loaded by name.
        directory: folder in which its code is called, once it was loaded or called (``policies.stepping``).
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    kinds: ClassVar[tuple[str, ...]] = ()
    privileged: ClassVar[bool] = False
    follows: ClassVar[bool] = False
    task: Task | None = None
    declared: Mapping[str, Any] | None = None
    source: PolicySource | None = None
    directory: OwnDirectory | None = None

    def check(self, task: Task) -> None:
        """Check that it can run in a task, beyond its sensors; called before the robot moves.

        Raises:
            PolicyMismatch: it does not solve tasks of this kind.
            PolicyError: it cannot run in the task for another reason.
        """
        if self.kinds and task.kind not in self.kinds:
            kinds = " or ".join(self.kinds)
            raise PolicyMismatch(
                f"agent {self.name!r} solves tasks of kind {kinds}, and task {task.name!r} is of kind {task.kind}",
                f"use a task of kind {kinds}, or choose another agent",
            )

    @abstractmethod
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Start an episode. ``world`` is given to privileged policies only."""

    @abstractmethod
    def act(self, observation: Observation) -> Decision:
        """Decide. Called once per step, first with the observation at the start."""

    def overruled(self, decision: Decision) -> None:
        """Take note, after :meth:`act`, that the robot carries out this decision instead of the one returned.

        Called when recorded observations are shown again. All that depends on its own actions (a previous-action
        input, an expected motion) then depends on ``decision``; where ``follows`` is false, not all of it does.

        Raises:
            PolicyError: it cannot go on from there.
        """

    def answer(self, observation: Observation) -> Answer | None:
        """Answer the episode's question; None counts as a wrong answer.

        Called once in tasks that ask a question, after :meth:`act` and with the same observation: when it returned
        ``stop`` or the last action that the task allows.
        """
        return None

    def info(self) -> dict[str, Any]:
        """Return the basis of the last decision, and of an answer that followed it; JSON-serializable, logged."""
        return {}

    def close(self) -> None:
        """Release what was loaded."""


class ChunkedPolicy(Policy):
    """Policy whose answer may be several decisions: each is one step, and then it is asked again."""

    rest: tuple[Decision, ...] = ()
    """Decisions of the last answer that are still to come; to be emptied by :meth:`reset`."""

    @abstractmethod
    def answered(self, observation: Observation) -> tuple[Decision, ...]:
        """Return the decisions of a new answer, at least one."""

    @override
    def act(self, observation: Observation) -> Decision:
        decision, *rest = self.rest or self.answered(observation)
        self.rest = tuple(rest)
        return decision

    @override
    def overruled(self, decision: Decision) -> None:
        """Forget the rest of the answer: it was meant for another place."""
        self.rest = ()


def random_generator(seed: int) -> np.random.Generator:
    """Return the generator of an agent's random numbers."""
    return np.random.default_rng(seed)


_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class PolicySource(config.Strict):
    """Origin of a policy, as on a command line.

    Attributes:
        spec: name for :func:`robot_runtime.policies.load_policy`; paths as they were given.
        arguments: texts, without what is secret.
        python: interpreter or virtual environment of an agent in a process of its own; None for the runtime's own.
        timeout_s: time limit of such an agent for each answer; None for the default.
        digest: SHA-256 of what was loaded (:func:`digest_of`); None where no file is named.
    """

    spec: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None
    timeout_s: float | None = None
    digest: str | None = None

    def public(self) -> PolicySource:
        """Return the source without secrets, which must not be logged: the token of a policy server."""
        return replace(self, arguments={key: value for key, value in self.arguments.items() if key != "token"})

    def values(self) -> dict[str, Any]:
        """Return the arguments as YAML scalars: numbers, true, false, null. Anything else is text, a token always."""
        return {name: text if name in _TEXTS else _scalar(text) for name, text in self.arguments.items()}

    def __str__(self) -> str:
        arguments = "".join(f" {key}={value}" for key, value in self.arguments.items())
        return f"{self.spec}{arguments}" + (f" (SHA-256 {self.digest[:12]})" if self.digest else "")


_TEXTS = ("token",)
"""Arguments that are text even if they look like a number."""


def _scalar(text: str) -> Any:
    try:
        value = config.parse_yaml(text, "an argument") if text else text
    except ConfigError:
        return text
    return value if value is None or isinstance(value, bool | int | float | str) else text


def digest_of(first: bytes | Path | None, arguments: Mapping[str, str]) -> str | None:
    """SHA-256 over ``first`` and the files that arguments name, in the order of the arguments' names.

    Args:
        first: content of the policy, or a file's path; None where it is not a file.
        arguments: values that may be paths of files.

    Returns:
        None where nothing is a file.
    """
    hashed, found = hashlib.sha256(), isinstance(first, bytes)
    if isinstance(first, bytes):
        hashed.update(first)
    files = [first] if isinstance(first, Path) else []
    for file in (*files, *(Path(value) for _, value in sorted(arguments.items()))):
        if file.is_file():
            found = True
            for block in _blocks(file):
                hashed.update(block)
    return hashed.hexdigest() if found else None


def _blocks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            yield block
