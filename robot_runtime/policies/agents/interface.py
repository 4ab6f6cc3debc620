"""Interface of the kinds of agents: their observations, and the decoding of their answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from robot_runtime.actions.continuous import Decision
from robot_runtime.errors import PolicyError
from robot_runtime.policy import Answer, Observation
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
        """Sensors without which the agent cannot decide."""
        return ()

    def agent_observation(self, observation: Observation, task: Task) -> dict[str, Any]:
        """The observation in the agent's format: arrays, text, None."""
        return {name: str(array) if array.dtype.kind == "U" else array for name, array in observation.items()}

    @abstractmethod
    def decision(self, returned: Any, task: Task) -> tuple[Decision, Answer | None]:
        """Decode the agent's return value: a decision, and the answer to the task's question if it holds one.

        Raises:
            PolicyError: it is not an action.
            UnknownAction: it is an action that the task does not have.
        """

    def invalid_answer(self, returned: object, remedy: str) -> PolicyError:
        """The error for a return value that is not an action."""
        return PolicyError(f"agent {self.name!r} returned {returned!r:.300}, which is not an action", remedy)
