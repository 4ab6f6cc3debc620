"""Policy around another one, the base of those that change what it sees or answers."""

from typing import Any

from typing_extensions import override

from robot_runtime.actions.timed import Decision
from robot_runtime.policy import Answer, Observation, Policy, World
from robot_runtime.tasks.task import Task


class PolicyWrapper(Policy):
    """Passes every call on to the wrapped policy."""

    def __init__(self, inner: Policy, name: str) -> None:
        self.inner = inner
        self.name = name  # type: ignore[misc]  # one class wraps every policy
        self.needs = inner.needs  # type: ignore[misc]
        self.privileged = inner.privileged  # type: ignore[misc]
        self.follows = inner.follows  # type: ignore[misc]
        self.task, self.declared = inner.task, inner.declared
        self.source, self.directory = inner.source, inner.directory

    @override
    def check(self, task: Task) -> None:
        super().check(task)
        self.inner.check(task)

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self.inner.reset(task, seed, world)

    @override
    def act(self, observation: Observation) -> Decision:
        return self.inner.act(observation)

    @override
    def overruled(self, decision: Decision) -> None:
        self.inner.overruled(decision)

    @override
    def answer(self, observation: Observation) -> Answer | None:
        return self.inner.answer(observation)

    @override
    def info(self) -> dict[str, Any]:
        return self.inner.info()

    @override
    def close(self) -> None:
        self.inner.close()
