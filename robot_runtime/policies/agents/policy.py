"""An agent in its own process, as a policy."""

from typing import Any

from typing_extensions import override

from robot_runtime.policies.agents.interface import Interface, InterfacePolicy
from robot_runtime.policies.agents.process import AgentProcess, split
from robot_runtime.policies.isolation import Isolation
from robot_runtime.policy import World
from robot_runtime.tasks.task import Task


class AgentPolicy(InterfacePolicy):
    """Runs an unmodified agent, of a spec ``module:name`` or ``path/to/file.py:name``.

    The agent's random numbers (Python's, numpy's global ones, torch's) are seeded at each episode's start: its
    interface has no seed. After a failure has ended the process, the next episode starts a new one.

    Raises:
        PolicyError: the agent cannot be loaded.
    """

    def __init__(
        self, interface: type[Interface], spec: str, arguments: dict[str, Any], isolation: Isolation | None = None
    ) -> None:
        name = f"{interface.kind}:{spec}"
        self._process = AgentProcess(name, isolation or Isolation())
        self._request = {"type": "load", "interface": interface.kind, "spec": spec, "arguments": arguments}
        try:
            about = self._process.start(self._request).get("about")
        except BaseException:
            self._process.close()
            raise
        super().__init__(interface(name, about if isinstance(about, dict) else {}))

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Start an episode. Raises ``PolicyError``."""
        super().reset(task, seed, world)
        if not self._process.running:
            self._process.start(self._request)
        self._process.ask({"type": "reset", "seed": seed}, {}, "reset()")

    @override
    def _returned(self, shown: dict[str, Any]) -> Any:
        request, arrays = split(shown)
        return self._process.ask({"type": "act", **request}, arrays, "act()").get("action")

    @override
    def close(self) -> None:
        self._process.close()
