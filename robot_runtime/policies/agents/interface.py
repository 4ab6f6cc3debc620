"""What differs between the kinds of agents: what they are shown, and what their answers mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from robot_runtime.actions.continuous import Decision
from robot_runtime.errors import PolicyError
from robot_runtime.policy import Answer, Observation
from robot_runtime.tasks.task import Task


class Interface(ABC):
    """One kind of agent, seen from the runtime.

    Attributes:
        kind: the word before the agent's name, and the class of that kind in the worker.

    Args:
        name: of the agent, for messages. about: what the worker says about it.
    """

    kind: ClassVar[str]

    def __init__(self, name: str, about: Mapping[str, Any]) -> None:
        self.name = name
        self.about = about

    @property
    def needs(self) -> tuple[str, ...]:
        """Sensors without which the agent cannot decide."""
        return ()

    def check(self, task: Task) -> None:
        """Whether the agent can run in a task, beyond its sensors. Raises ``PolicyError``."""

    def shown(self, observation: Observation, task: Task) -> dict[str, Any]:
        """What the agent is given: arrays, text, None."""
        return {name: str(array) if array.dtype.kind == "U" else array for name, array in observation.items()}

    @abstractmethod
    def decision(self, returned: Any, task: Task) -> tuple[Decision, Answer | None]:
        """What an answer means, and the answer to the task's question if it has one in it.

        Raises:
            PolicyError: it means nothing. UnknownAction: it is an action that the task does not have.
        """

    def rubbish(self, returned: object, wanted: str) -> PolicyError:
        """The error for an answer that means nothing."""
        return PolicyError(f"agent {self.name!r} returned {returned!r:.300}, which is no action", wanted)
