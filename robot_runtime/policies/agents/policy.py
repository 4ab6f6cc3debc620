"""An agent in its own process, as a policy."""

from typing import Any

from typing_extensions import override

from robot_runtime.actions.timed import Decision
from robot_runtime.errors import PolicyError
from robot_runtime.policies.agents.interface import Interface
from robot_runtime.policies.agents.process import AgentProcess, split
from robot_runtime.policies.isolation import Isolation
from robot_runtime.policy import Answer, ChunkedPolicy, Observation, World
from robot_runtime.tasks.task import Task


class AgentPolicy(ChunkedPolicy):
    """Runs an unmodified agent.

    The agent's random numbers (Python's, numpy's global ones, torch's) are seeded at each episode's start: its
    interface has no seed. After a failure has ended the process, the next episode starts a new one.

    Args:
        interface: its kind.
        spec: ``module:name`` or ``path/to/file.py:name``.
        arguments: arguments of its constructor.
        isolation: interpreter and time limit; None for the defaults.

    Raises:
        PolicyError: the agent cannot be loaded.
    """

    def __init__(
        self, interface: type[Interface], spec: str, arguments: dict[str, Any], isolation: Isolation | None = None
    ) -> None:
        self.name = f"{interface.kind}:{spec}"  # type: ignore[misc]  # one class stands for many agents
        self._process = AgentProcess(self.name, isolation or Isolation())
        self._request = {"type": "load", "interface": interface.kind, "spec": spec, "arguments": arguments}
        self._task: Task | None = None
        self._answer: Answer | None = None
        try:
            about = self._process.start(self._request).get("about")
        except BaseException:
            self._process.close()
            raise
        self._interface = interface(self.name, about if isinstance(about, dict) else {})
        self.needs, self.kinds = self._interface.needs, interface.solves  # type: ignore[misc]

    @override
    def check(self, task: Task) -> None:
        super().check(task)
        self._interface.check(task)

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Start an episode. Raises ``PolicyError``."""
        self._task, self._answer, self.rest = task, None, ()
        if not self._process.running:
            self._process.start(self._request)
        self._process.ask({"type": "reset", "seed": seed}, {}, "reset()")

    @override
    def answered(self, observation: Observation) -> tuple[Decision, ...]:
        """The agent's decisions.

        Raises:
            PolicyError: it raised, hangs, ended, or returned something that is not an action.
            UnknownAction: it returned an action that the task does not have.
        """
        if self._task is None:
            raise PolicyError(f"agent {self.name!r} has no episode", "call reset() first")
        request, arrays = split(self._interface.agent_observation(observation, self._task))
        reply = self._process.ask({"type": "act", **request}, arrays, "act()")
        decisions, self._answer = self._interface.decisions(reply.get("action"), self._task)
        return decisions

    @override
    def answer(self, observation: Observation) -> Answer | None:
        return self._answer

    @override
    def close(self) -> None:
        self._process.close()
