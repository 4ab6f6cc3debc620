"""Interface of the kinds of agents: their observations, and the decoding of their answers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.actions.timed import Decision
from robot_runtime.errors import PolicyError
from robot_runtime.policy import Answer, ChunkedPolicy, Observation, World
from robot_runtime.tasks.task import Task


class Interface(ABC):
    """The runtime's side of a kind of agent.

    Attributes:
        kind: the word before the agent's name, and the class of that kind in the worker.
        solves: kinds of the tasks that such agents solve; empty for any.

    Args:
        name: name of the agent, for messages.
        about: the worker's description of the agent.
    """

    kind: ClassVar[str]
    solves: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, about: Mapping[str, Any]) -> None:
        self.name = name
        self.about = about

    @property
    def needs(self) -> tuple[str, ...]:
        """Sensors without which the agent cannot decide: those that it declares."""
        return tuple(self.about.get("needs", ()))

    def check(self, task: Task) -> None:
        """Check what the agent declares of its inputs. Raises ``PolicyMismatch``."""

    def agent_observation(self, observation: Observation, task: Task) -> dict[str, Any]:
        """The observation in the agent's format: arrays, text, None; if it declares what it needs, that and no more."""
        shown = self.about.get("needs") or observation
        return {n: str(array) if array.dtype.kind == "U" else array for n, array in observation.items() if n in shown}

    @abstractmethod
    def decision(self, returned: Any, task: Task) -> tuple[Decision, Answer | None]:
        """Decode the agent's return value: a decision, and the answer to the task's question if it holds one.

        Raises:
            PolicyError: it is not an action.
            UnknownAction: it is an action that the task does not have.
        """

    def decisions(self, returned: Any, task: Task) -> tuple[tuple[Decision, ...], Answer | None]:
        """Decode what an agent of any kind may return: one decision, a timed action as a dictionary, or a chunk.

        A chunk is ``{'chunk': [...], 'carry_out': n}``: the first ``n`` of its decisions, by default all, are carried
        out before the agent is asked again. Raises as :meth:`decision`.
        """
        if not isinstance(returned, Mapping) or "chunk" not in returned:
            decision, answer = self._one(returned, task)
            return (decision,), answer
        chunk, count = returned["chunk"], returned.get("carry_out")
        if not (isinstance(chunk, Sequence) and chunk) or not (
            count is None or (type(count) is int and 0 < count <= len(chunk))
        ):
            raise self.invalid_answer(returned, "give 'chunk' a list of decisions, and 'carry_out' how many of them")
        return tuple(self._one(one, task)[0] for one in chunk[:count]), None

    def _one(self, returned: Any, task: Task) -> tuple[Decision, Answer | None]:
        from robot_runtime.actions.timed_values import timed_from  # most agents return discrete actions

        try:
            timed = timed_from(returned) if isinstance(returned, Mapping) else None
        except (TypeError, ValueError) as error:
            raise self.invalid_answer(
                returned, f"correct its timed action ({error}): docs/how-to/own-agent.md lists the forms"
            ) from error
        return self.decision(returned, task) if timed is None else (timed, None)

    def invalid_answer(self, returned: object, remedy: str) -> PolicyError:
        """The error for a return value that is not an action."""
        return PolicyError(f"agent {self.name!r} returned {returned!r:.300}, which is not an action", remedy)


class InterfacePolicy(ChunkedPolicy):
    """Base of the policies of agents with an interface."""

    def __init__(self, interface: Interface) -> None:
        self.name = interface.name  # type: ignore[misc]  # one class stands for many agents
        self.needs, self.kinds = interface.needs, interface.solves  # type: ignore[misc]
        self._interface = interface
        self._task: Task | None = None
        self._answer: Answer | None = None

    @override
    def check(self, task: Task) -> None:
        super().check(task)
        self._interface.check(task)

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._task, self._answer, self.rest = task, None, ()

    @override
    def answered(self, observation: Observation) -> tuple[Decision, ...]:
        """The agent's decisions.

        Raises:
            PolicyError: it raised, hangs, ended, or returned something that is not an action.
            UnknownAction: it returned an action that the task does not have.
        """
        if self._task is None:
            raise PolicyError(f"agent {self.name!r} has no episode", "call reset() first")
        returned = self._returned(self._interface.agent_observation(observation, self._task))
        decisions, self._answer = self._interface.decisions(returned, self._task)
        return decisions

    @abstractmethod
    def _returned(self, shown: dict[str, Any]) -> Any:
        """What the agent returns for an observation in its format."""

    @override
    def answer(self, observation: Observation) -> Answer | None:
        return self._answer


def single(value: Any) -> Any:
    """The one number or name in an array, or in sequences of one; else the value."""
    value = value.tolist() if hasattr(value, "tolist") else value
    while isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    return value
